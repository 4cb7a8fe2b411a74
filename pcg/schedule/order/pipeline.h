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
// Where the views lead back to devices of an earlier stage, v times round in the same order, and n
// is a multiple of S, the pipeline is interleaved (same paper, section 2.2): a device has v chunks
// of the model, each a stage of v S, and takes S micro-batches through each chunk in turn, so that
// they come back from the other devices just when it is done:
//
//     2 (S - s - 1) + (v - 1) S forwards; then a forward and a backward in turn; then the backwards
//     that are left; backwards in the same order with the last chunk first
//
// The idle share is (S - 1) / (v n + S - 1). Where they lead back in any other way, all are one
// stage, which works through one micro-batch after the other. A transfer to another stage is part
// of what it is for. What is of no micro-batch comes as soon as it can: what all need first, a
// weight's synchronisation after its last share; but behind the first stage, after the last
// micro-batch, whose gradients the stages before wait for. Of several steps without a flush in
// between (weight_versions.h) the micro-batches are those of all steps, one after the other, and
// updates come as soon as they can, too.
#ifndef ISOMER_PCG_SCHEDULE_ORDER_PIPELINE_H_
#define ISOMER_PCG_SCHEDULE_ORDER_PIPELINE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// What a stage does with one micro-batch, without a break.
struct PipelineSlot {
  Phase phase;  // forward or backward
  int32_t moment;
  int32_t chunk = 0;
  friend bool operator==(const PipelineSlot&, const PipelineSlot&) = default;
};

// The slots of stage `stage` of `num_stages`.
std::vector<PipelineSlot> SlotsOfStage(PipelineOrder order, int32_t stage, int32_t num_stages,
                                       int32_t num_moments, int32_t num_chunks = 1);

struct PipelineStages {
  int32_t num_stages = 1;
  std::vector<int32_t> stage;  // per device; 0 for those without calls
  // Per device: the least device of those that share calls with it, directly or not. Several such
  // groups may be at one stage, side by side.
  std::vector<int32_t> group;
  // Interleaved: of each device; and that of each task.
  int32_t num_chunks = 1;
  std::vector<int32_t> chunk = {};
  int32_t ChunkOf(size_t task) const { return chunk.empty() ? 0 : chunk[task]; }
};
PipelineStages StagesOf(const Schedule& schedule);
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
// steps whose weights do not come in time, as a stage waits for those of another.
absl::Status OrderMicroBatches(Schedule* schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_ORDER_PIPELINE_H_
