// What a resharding costs, in time that grows with the digits of device numbers, not with devices.
//
// Placements are mixed radix: the coordinate of a device on every axis of a view is a digit of its
// number, or several. Where the axes of two views and the levels of the machine have digits in
// common, it is known of each digit which part of which dim it counts on either side:
//
//   f32[64:8] on 8 devices, levels of 4 and 2     digits of a device: (outer 2, inner 4)
//   to f32[64:2] c4, the dim over the outer       holds eighth 4 outer + inner of the dim,
//   digit, copies over the inner                  needs half `outer`: what 4 inner digits hold
//
// A device needs the pieces whose digits are its own where both sides count the same part of a dim
// by one digit; all values of the digits that only the old side counts; and where the part is
// counted by digit a before and by digit b now, what devices hold whose digit a is its digit b. The
// nearest holder of a piece agrees with the needing device in all digits but those that it must
// have otherwise: its level is that of the outermost of these. So the elements that come from each
// level are a product over digits, but for the equations a = b, which hold on some devices only;
// what matters of them is how far out the outermost one that fails is.
#ifndef ISOMER_OPTIMIZER_COST_RESHARD_BY_DIGITS_H_
#define ISOMER_OPTIMIZER_COST_RESHARD_BY_DIGITS_H_

#include <optional>

#include "optimizer/cost/reshard_levels.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// As ReshardByShards, or nothing if the two have no digits in common (one dim is cut in 3 and in
// 2), or a placement begins within one of its axes. REQUIRES: views without moments.
std::optional<MoveLine> ReshardByDigits(const ReshardLevels& levels, const Placement& from,
                                        const Placement& to);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_RESHARD_BY_DIGITS_H_
