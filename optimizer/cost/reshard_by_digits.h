// Cost of a resharding, in time that grows with the digits of device numbers, not with devices.
//
// Placements are mixed radix: the coordinate of a device on every axis of a view is one or several
// digits of its number. Where the axes of two views and the levels of the machine have digits in
// common, each digit indexes a known part of a known dim on either side:
//
//   f32[64:8] on 8 devices, levels of 4 and 2     digits of a device: (outer 2, inner 4)
//   to f32[64:2] c4, the dim over the outer       has eighth 4 outer + inner of the dim,
//   digit, copies over the inner                  needs half `outer`: that of 4 inner digits
//
// Where one digit indexes the same part of a dim on both sides, a device needs the pieces with its
// own digit; where only the old side has a digit, the pieces of all its values; and where digit a
// indexed a part before and digit b does now, the pieces of the devices whose digit a is its own
// digit b. The nearest owner of a piece agrees with the receiver in all other digits; its level is
// that of the outermost digit in which they differ. So the elements from each level are a product
// over digits, except for the equations a = b, which hold on some devices only; only the outermost
// one that fails matters.
#ifndef ISOMER_OPTIMIZER_COST_RESHARD_BY_DIGITS_H_
#define ISOMER_OPTIMIZER_COST_RESHARD_BY_DIGITS_H_

#include <optional>

#include "optimizer/cost/reshard_levels.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// As ReshardByShards; nullopt if the two have no digits in common (a dim's degree goes from 3 to
// 2), or a placement starts within one of its axes. REQUIRES: views without micro-batches.
std::optional<MoveLine> ReshardByDigits(const ReshardLevels& levels, const Placement& from,
                                        const Placement& to);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_RESHARD_BY_DIGITS_H_
