// What a resharding costs, device by device: for where the new placement has no digits in common
// with the old one (reshard_by_digits.h), as when a dim that was cut in 2 is cut in 3, but the old
// one has with the levels of the machine. The nearest holder of a piece then agrees with the device
// that needs it wherever the piece leaves it a choice, so that levels and elements follow dim by
// dim, and no list of holders is looked through.
#ifndef ISOMER_OPTIMIZER_COST_RESHARD_BY_DEVICES_H_
#define ISOMER_OPTIMIZER_COST_RESHARD_BY_DEVICES_H_

#include <optional>

#include "optimizer/cost/reshard_levels.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// As ReshardByShards, or nothing if the old placement is not made of digits. REQUIRES: views
// without moments.
std::optional<MoveLine> ReshardByDevices(const ReshardLevels& levels, const Placement& from,
                                         const Placement& to);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_RESHARD_BY_DEVICES_H_
