// The order of micro-batches.
//
// Devices that share a call are a stage of a pipeline; stages are numbered along the forward pass,
// by the longest way from the first. Stage s of S works through n micro-batches as PipeDream-flush
// and Megatron-LM do (Narayanan et al. 2021, section 2.2; one forward, one backward, not
// interleaved):
//
//     min(S - s, n) forwards; then a backward and a forward in turn; then the backwards that are
//     left
//
// so that it never keeps activations of more than S - s micro-batches, and in time, with equal
// stages, (S - 1) / (n + S - 1) of the step is idle:
//
//     stage 0   F0 F1 F2 B0 F3 B1 ..          S = 3
//     stage 1      F0 F1 B0 F2 B1 ..
//     stage 2         F0 B0 F1 B1 ..
//
// Where the views lead back to devices of an earlier stage, v times round in the same order, the
// pipeline is interleaved (same paper, section 2.2): a device has v chunks of the model, each a
// stage of v S, and takes micro-batches in rounds, each through one chunk after the other. Those of
// a round of S come back from the other devices just when a device is done with them, of fewer too
// late. So rounds have S and more, as few more as can be: n micro-batches are [n / S] rounds or
// less, of at most N = ceil(n / [n / S]), as equal as can be; fewer than S are one round.
//
//     2 (S - s - 1) + (v - 1) N forwards; then a forward and a backward in turn; then the backwards
//     that are left; backwards in the same order with the last chunk first
//
//     stage 1    F0 F1 F2 F0'B0'F1'B1'F2'B2'F3 B0 F4 B1 F3'B2 F4'B3'B4'B3 B4    S = 2, v = 2, n = 5
//
// (Rounds of any N, also with a shorter last one, are in "The Llama 3 Herd of Models", 2024,
// section 3.3.2, and in Megatron-Core, where N is microbatch_group_size_per_vp_stage.) The step is
// as long as v max(n, S) + min(n, S) - 1 chunks take of one micro-batch, and v n of them are work:
// the idle share is (S - 1) / (v n + S - 1), but where n < S.
//
// Where they lead back in any other way, all are one stage, which works through one micro-batch
// after the other. A transfer to another stage is part of what it is for. What is of no micro-batch
// comes as soon as it can: what all need first, a weight's synchronisation after its last share;
// but behind the first stage, after the last micro-batch, whose gradients the stages before wait
// for. Of several steps without a flush in between (weight_versions.h) the micro-batches are those
// of all steps, one after the other, rounds are of one step, and updates come as soon as they can,
// too.
//
// Backward passes may be two halves, with slots of their own (zero_bubble_order.h).
#ifndef ISOMER_PCG_SCHEDULE_ORDER_PIPELINE_H_
#define ISOMER_PCG_SCHEDULE_ORDER_PIPELINE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/zero_bubble.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// What a stage does with one micro-batch, without a break.
struct PipelineSlot {
  Phase phase;  // forward or backward
  int32_t moment;
  int32_t chunk = 0;
  bool of_weights = false;  // the second half of a backward pass that is split
  friend auto operator<=>(const PipelineSlot&, const PipelineSlot&) = default;
};

// What the order of micro-batches depends on.
struct PipelineShape {
  int64_t num_stages = 1, num_moments = 1;  // micro-batches of a step
  int64_t num_chunks = 1, num_steps = 1;    // of each stage; between flushes
  int64_t largest_round = 0;                // N, if it is to be more than that of num_moments
  ZeroBubble zero_bubble = {};
  bool folds = false;  // every second chunk goes through the stages backward

  // N, in micro-batches.
  int64_t LargestRound() const;
  // The stage of a chunk of the model, and which of the stage's it is.
  int64_t StageOfLevel(int64_t level) const {
    const int64_t place = level % num_stages;
    return folds && ChunkOfLevel(level) % 2 == 1 ? num_stages - 1 - place : place;
  }
  int32_t ChunkOfLevel(int64_t level) const { return static_cast<int32_t>(level / num_stages); }
  // Micro-batches, each in a chunk, that a stage keeps activations of at a time; counted with the
  // one that it works on.
  int64_t MostInFlight(int64_t stage) const;
  // Of the time with equal stages and free transfers.
  double IdleShare() const;
};

// The slots of stage `stage`, whose backward passes are whole.
std::vector<PipelineSlot> SlotsOfStage(PipelineOrder order, int32_t stage,
                                       const PipelineShape& shape);
// Those of each stage. InvalidArgument: no stage may begin a micro-batch.
absl::StatusOr<std::vector<std::vector<PipelineSlot>>> SlotsOfStages(PipelineOrder order,
                                                                     const PipelineShape& shape);

struct PipelineStages {
  int32_t num_stages = 1;
  std::vector<int32_t> stage;  // per device; 0 for those without calls
  // Per device: the least device of those that share calls with it, directly or not. Several such
  // groups may be at one stage, side by side.
  std::vector<int32_t> group;
  // Interleaved: of each device; and that of each task.
  int32_t num_chunks = 1;
  std::vector<int32_t> chunk = {};
  bool folds = false;  // PipelineShape
  int32_t ChunkOf(size_t task) const { return chunk.empty() ? 0 : chunk[task]; }
};
PipelineStages StagesOf(const Schedule& schedule);
// Of a schedule with these stages.
PipelineShape ShapeOf(const Schedule& schedule, const PipelineStages& stages);
// PipelineStages::group, whatever way data takes between groups.
std::vector<int32_t> GroupsOf(const Schedule& schedule);
// Between stages: a move whose buffers are of several groups.
bool CrossesGroups(const Task& task, const std::vector<int32_t>& group);

// Whether a task of one micro-batch needs another's: then there is no order of micro-batches, and
// every operator is done for all before the next. REQUIRES: tasks come after those that write what
// they read.
bool MixesMicroBatches(const Schedule& schedule);

// Puts the tasks of the forward and the backward pass in pipeline order, and renames deps
// accordingly. Nothing changes with one micro-batch, or where they mix. InvalidArgument: several
// steps whose weights do not come in time, as a stage waits for those of another; halves of
// backward passes with too few micro-batches in flight, or that wait for each other.
absl::Status OrderMicroBatches(Schedule* schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_ORDER_PIPELINE_H_
