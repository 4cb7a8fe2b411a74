// Which buffers hold what training makes: weights and the optimizer's states.
#ifndef ISOMER_RUNTIME_EXECUTION_STATE_PARTS_H_
#define ISOMER_RUNTIME_EXECUTION_STATE_PARTS_H_

#include <cstdint>
#include <vector>

#include "pcg/schedule/schedule.h"

namespace isomer {

// A buffer of float32 with a box of a parameter or of one of its states.
struct StatePart {
  int32_t parameter;  // of Schedule::parameters
  int32_t slot;       // 0: the weight, as it is trained; from 1 on: the optimizer's states
  BufferId buffer;
};

// `each_once`: of copies the first alone. Else all that there are of the states, and no weights:
// these are set as all parameters are (Job::SetParameters).
std::vector<StatePart> StatePartsOf(const Schedule& schedule, bool each_once);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_STATE_PARTS_H_
