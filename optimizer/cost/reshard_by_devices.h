// Cost of a resharding, device by device: for placements without common digits
// (reshard_by_digits.h), as when a dim goes from degree 2 to 3, where the old one has common digits
// with the machine's levels. The nearest owner of a piece then agrees with the receiver in every
// digit that the piece leaves free, so that levels and elements follow dim by dim, without a search
// through the owners.
#ifndef ISOMER_OPTIMIZER_COST_RESHARD_BY_DEVICES_H_
#define ISOMER_OPTIMIZER_COST_RESHARD_BY_DEVICES_H_

#include <optional>

#include "optimizer/cost/reshard_levels.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// As ReshardByShards; nullopt if the old placement is not made of digits. REQUIRES: views without
// micro-batches.
std::optional<MoveLine> ReshardByDevices(const ReshardLevels& levels, const Placement& from,
                                         const Placement& to);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_RESHARD_BY_DEVICES_H_
