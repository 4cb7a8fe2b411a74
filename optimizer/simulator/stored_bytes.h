// A lower bound on the memory of a plan's weights, without a schedule.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_STORED_BYTES_H_
#define ISOMER_OPTIMIZER_SIMULATOR_STORED_BYTES_H_

#include <cstdint>

#include "pcg/ir/plan.h"

namespace isomer {

// Bytes of weights and optimizer states that some device stores throughout training `plan` with the
// update method `update`: a lower bound on its peak.
int64_t LeastStoredBytes(const Plan& plan, const UpdateOptions& update);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_STORED_BYTES_H_
