// What a plan's weights take at least, known without a schedule.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_STORED_BYTES_H_
#define ISOMER_OPTIMIZER_SIMULATOR_STORED_BYTES_H_

#include <cstdint>

#include "pcg/ir/plan.h"

namespace isomer {

// The weights and the optimizer's states that some device holds at all times if `plan`, of
// training, is updated as `update` says: a lower bound on its peak.
int64_t LeastStoredBytes(const Plan& plan, const UpdateOptions& update);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_STORED_BYTES_H_
