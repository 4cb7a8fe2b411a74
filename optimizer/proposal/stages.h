// Estimates of mapped models, and their cut into the stages of a pipeline.
//
// A pipeline of S stages on D devices is a mapping onto D / S devices, of which every call is then
// moved to the devices of its stage: stage s has devices [s D / S, (s + 1) D / S). Stages are cut
// from the topological order of calls so that their times are balanced, whatever their number of
// calls, and little crosses.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_STAGES_H_
#define ISOMER_OPTIMIZER_PROPOSAL_STAGES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/sharding/compute_graph.h"

namespace isomer {

// What a mapped call takes of each of its devices in a step, by the tables.
struct CallEstimate {
  double us = 0;  // forward and backward, of all micro-batches, with what moves its operands
  double synchronisation_us = 0;  // of its weights' gradients, and their update
  int64_t weights = 0;            // trained, in numbers
  int64_t fixed_bytes = 0;        // stored, not trained
  int64_t copies = 1;             // devices that hold the same shard of its weights
  // Of what is trained, the shards of each weight, and of `weights` those that as many equal parts
  // as there are copies make up: others have no parts (ZeRO).
  std::vector<std::vector<int64_t>> shards = {};
  int64_t in_parts = 0;
  void SetCopies(int64_t devices);
  int64_t kept_bytes = 0;  // for the backward pass, of one micro-batch
  // Of operands that are placed otherwise than they were made, as they are read, which are kept,
  // too; and what gathering them again takes, of all micro-batches.
  int64_t gathered_bytes = 0;
  double gather_us = 0;
  int64_t output_bytes = 0;  // of one micro-batch
};

struct MappedEstimate {
  ComputeGraph compute;
  std::vector<CallEstimate> calls;  // in the order of `compute.nodes`
};
// REQUIRES: every call has a choice.
absl::StatusOr<MappedEstimate> EstimateMapped(const MappedModel& mapped, CostTables* tables);

// The stages that a user binds calls to.
using BoundStages = std::map<NodeId, int64_t>;

// The stage of every call, in the order of `estimate.compute.nodes`. Stages are cut from an order
// of the calls that is the graph's but where it does not suit those that are bound: what leads to a
// call of stage s goes before what follows from one of a later stage. Empty: so many stages, none
// of them empty, do not suit. REQUIRES: stages >= 1, and not more than calls.
std::vector<int> StagesOfCalls(const MappedEstimate& estimate, int64_t stages,
                               const BoundStages& bound = {});

// Whether every result is read in the chunk that makes it or in the next: chunks of a stage take
// turns only if none is passed over.
bool LeadsThroughChunks(const MappedEstimate& estimate, const std::vector<int>& chunk_of_call);

// Moves every call to the devices of its stage, of which there are `stage_devices`. A stage may
// have several chunks of the model (PipelineShape::StageOfLevel, pcg/schedule/order/pipeline.h).
void MoveToStages(const MappedEstimate& estimate, const std::vector<int64_t>& stage_of_call,
                  int64_t stage_devices, MappedModel* mapped);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_STAGES_H_
