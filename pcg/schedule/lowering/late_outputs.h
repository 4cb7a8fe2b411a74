// Outputs of the graph that are brought to where they are wanted during the backward pass. Internal
// to pcg/schedule.
//
// Nothing waits for what only brings an output of the graph to where it is wanted, but links are
// first in, first out: so it goes when the gradients that calls wait for are under way, behind the
// gradient of what made it.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_LATE_OUTPUTS_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_LATE_OUTPUTS_H_

#include <map>
#include <vector>

#include "pcg/schedule/lowering/builder.h"
#include "pcg/schedule/lowering/recomputation.h"

namespace isomer {

class LateOutputs {
 public:
  // Takes the tasks out of the forward pass, of schedules of one moment: only its last ones are
  // looked at (forward.cc). `builder` outlives this.
  LateOutputs(ScheduleBuilder* builder, const Recomputation& recomputation);
  // Adds those of outputs that `node` made, if they have not been.
  void AddBehind(NodeId node);

 private:
  ScheduleBuilder& builder_;
  std::map<NodeId, std::vector<Task>> tasks_;  // by the node that made the output, in order
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_LATE_OUTPUTS_H_
