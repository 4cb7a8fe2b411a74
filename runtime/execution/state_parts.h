// Which buffers hold what training makes: weights and the optimizer's states.
#ifndef ISOMER_RUNTIME_EXECUTION_STATE_PARTS_H_
#define ISOMER_RUNTIME_EXECUTION_STATE_PARTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"
#include "runtime/execution/arrangement.h"

namespace isomer {

// A buffer with a box of a parameter or of one of its states: of float32, or of what
// UpdateOptions::TypeOfState says, which is read as float32 all the same.
struct StatePart {
  int32_t parameter;  // of Schedule::parameters
  int32_t slot;       // 0: the weight, as it is trained; from 1 on: the optimizer's states
  BufferId buffer;
};

// As it is read.
inline int64_t BytesOfPart(const Schedule& schedule, const StatePart& part) {
  return schedule.buffers[part.buffer].box.Volume() * static_cast<int64_t>(sizeof(float));
}

// `each_once`: of copies the first alone. Else all that there are of the states, and no weights:
// these are set as all parameters are (Job::SetParameters).
std::vector<StatePart> StatePartsOf(const Schedule& schedule, bool each_once);

// Elements of a trained leaf, or of one of its states, that no device has, as nothing computes with
// them: such as a part of a weight that the model cuts and drops. They stay as they are.
struct UnheldPart {
  NodeId leaf;
  int32_t slot;
  // Of stride 1, with places one behind the other.
  std::vector<LeafLine> lines;
  std::vector<float> values;  // of these: zeros
};
// Of every leaf and slot of which devices have some elements and not all.
absl::StatusOr<std::vector<UnheldPart>> UnheldPartsOf(const Graph& graph, const Schedule& schedule);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_STATE_PARTS_H_
