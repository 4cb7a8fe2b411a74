// Estimates of mapped models, and their cut into the stages of a pipeline.
//
// A pipeline of S stages on D devices is a mapping onto D / S devices, of which every call is then
// moved to the devices of its stage: stage s has devices [s D / S, (s + 1) D / S), or those of
// another block of so many. Stages are cut from the topological order of calls so that their times
// on their own devices are balanced, whatever their number of calls, and little crosses: a stage of
// faster devices has more of the calls, one of less memory no more than it holds.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_STAGES_H_
#define ISOMER_OPTIMIZER_PROPOSAL_STAGES_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
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

// What a mapping's calls take on each of several blocks of devices that it may be moved to.
class BlockEstimates {
 public:
  // Of a mapping onto the first of `block_devices`, on each of so many blocks: on a machine of one
  // kind of device, one estimate for all.
  static absl::StatusOr<BlockEstimates> Of(const MappedModel& mapped, int64_t block_devices,
                                           int64_t blocks, CostTables* tables);
  // The same on any block.
  explicit BlockEstimates(MappedEstimate estimate) : distinct_({std::move(estimate)}) {}

  // Of blocks that are each so many of these, which do the same at one time: a call is as long as
  // on the slowest.
  BlockEstimates Joined(int64_t parts) const;

  const MappedEstimate& of(int64_t block) const {
    return distinct_[of_block_.empty() ? 0 : of_block_[block]];
  }
  const ComputeGraph& compute() const { return distinct_[0].compute; }
  size_t num_calls() const { return compute().nodes.size(); }
  // Blocks whose estimates are one.
  int64_t ClassOf(int64_t block) const { return of_block_.empty() ? 0 : of_block_[block]; }
  std::vector<MappedEstimate>& distinct() { return distinct_; }

 private:
  BlockEstimates() = default;

  std::vector<MappedEstimate> distinct_;
  std::vector<int> of_block_;  // empty: 0 of each
};

// The stages that a user binds calls to.
using BoundStages = std::map<NodeId, int64_t>;

// What a stage's devices hold: of each call, and at most.
struct StageRoom {
  std::vector<int64_t> bytes;
  int64_t most_bytes = 0;
};

// The stage of every call, in the order of the graph's nodes, where stage s is on block
// `block_of_stage[s]`. Stages are cut from an order of the calls that is the graph's but where it
// does not suit those that are bound: what leads to a call of stage s goes before what follows from
// one of a later stage. `rooms`: of each stage, or empty: they hold anything. Empty: so many
// stages, none of them empty, do not suit, as more than there are calls, or do not hold the calls.
std::vector<int> StagesOfCalls(const BlockEstimates& estimates,
                               absl::Span<const int64_t> block_of_stage,
                               const BoundStages& bound = {},
                               absl::Span<const StageRoom> rooms = {});

// Whether every result is read in the chunk that makes it or in the next: chunks of a stage take
// turns only if none is passed over.
bool LeadsThroughChunks(const ComputeGraph& compute, const std::vector<int>& chunk_of_call);

// Moves every call to its block of `block_devices`.
void MoveToBlocks(const ComputeGraph& compute, absl::Span<const int64_t> block_of_call,
                  int64_t block_devices, MappedModel* mapped);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_STAGES_H_
