#include "pcg/schedule/order/weight_versions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Of all steps; more take gigabytes.
constexpr size_t kMostTasks = 10'000'000;

// Enough micro-batches that the first of the step after next comes in when the weights that it
// reads are there: behind the last backward of this one.
absl::Status CheckPipeline(const Schedule& schedule, int32_t steps) {
  const auto error = [steps](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(steps, " steps between flushes: ", why));
  };
  if (schedule.num_moments == 1 || MixesMicroBatches(schedule)) {
    return error("there is no pipeline that is drained after each");
  }
  const PipelineStages stages = StagesOf(schedule);
  if (stages.num_stages == 1) return error("there is no pipeline that is drained after each");
  PipelineShape shape = ShapeOf(schedule, stages);
  shape.num_steps = steps;
  const std::vector<PipelineSlot> slots = SlotsOfStage(schedule.options.order, 0, shape);
  const auto backward = std::find_if(slots.begin(), slots.end(), [](const PipelineSlot& slot) {
    return slot.phase == Phase::kBackward;
  });
  if (schedule.tasks.size() > kMostTasks / static_cast<size_t>(steps)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(steps, " steps between flushes: of one there are ", schedule.tasks.size(),
                     " tasks, and at most ", kMostTasks, " of all"));
  }
  const int64_t ahead = backward - slots.begin();
  if (ahead <= int64_t{schedule.num_moments} * stages.num_chunks) return absl::OkStatus();
  return error(absl::StrCat(stages.num_stages, " stages work on more micro-batches at a time than ",
                            schedule.num_moments, ", for which two versions of weights are not",
                            " enough"));
}

class Repetition {
 public:
  explicit Repetition(Schedule* schedule)
      : schedule_(*schedule),
        steps_(schedule->options.update.steps_between_flushes),
        num_buffers_(schedule->buffers.size()) {}

  void Run() {
    AddBuffers();
    const std::vector<Task> one = std::exchange(schedule_.tasks, {});
    schedule_.tasks.reserve(steps_ * one.size());
    for (Part part : {kBefore, kBetween, kBehind}) {
      for (int32_t step = 0; step < steps_; ++step) {
        for (const Task& task : one) {
          if (PartOf(task.phase) == part) AddTask(task, step);
        }
      }
    }
    schedule_.num_moments *= steps_;
  }

 private:
  enum Part { kBefore, kBetween, kBehind };
  static Part PartOf(Phase phase) {
    return phase == Phase::kLoad ? kBefore : phase == Phase::kUnload ? kBehind : kBetween;
  }

  void AddBuffers() {
    std::vector<bool> versioned(num_buffers_, false);
    for (const Task& task : schedule_.tasks) {
      if (task.phase != Phase::kUpdate) continue;
      for (BufferId id : task.writes) {
        versioned[id] = schedule_.buffers[id].role == BufferRole::kParameter;
      }
    }
    schedule_.buffers.reserve(steps_ * num_buffers_);
    schedule_.in_step.resize(steps_);
    for (int32_t step = 0; step < steps_; ++step) {
      for (size_t id = 0; id < num_buffers_; ++id) {
        const BufferRole role = schedule_.buffers[id].role;
        const bool stays = LivesThroughout(role);
        const int32_t first = !stays ? step : versioned[id] ? step % 2 : 0;
        schedule_.in_step[step].push_back(first < step ? schedule_.in_step[first][id]
                                          : step == 0  ? static_cast<BufferId>(id)
                                                       : Copy(id, step));
      }
    }
  }

  BufferId Copy(size_t id, int32_t step) {
    Buffer buffer = schedule_.buffers[id];
    if (buffer.moment != kNoMoment) buffer.moment += step * schedule_.num_moments;
    schedule_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(schedule_.buffers.size()) - 1;
  }

  bool IsTrained(BufferId id) const { return HoldsTrained(schedule_.buffers[id].role); }

  void AddTask(const Task& one, int32_t step) {
    // Both versions are loaded, states filled once; of weights the last version is unloaded.
    if (one.phase == Phase::kLoad && step > 0 &&
        (step > 1 || schedule_.InStep(one.writes[0], step) == one.writes[0])) {
      return;
    }
    if (one.kind == TaskKind::kUnload && IsTrained(one.reads[0]) && step + 1 < steps_) return;
    Task task = one;
    task.step = step;
    if (task.moment != kNoMoment) task.moment += step * schedule_.num_moments;
    const size_t updated = task.kind == TaskKind::kUpdate ? task.segments : 0;
    for (size_t i = 0; i < task.reads.size(); ++i) {
      task.reads[i] = schedule_.InStep(task.reads[i], i < updated ? step ^ 1 : step);
    }
    for (BufferId& id : task.writes) id = schedule_.InStep(id, step);
    schedule_.tasks.push_back(std::move(task));
  }

  Schedule& schedule_;
  const int32_t steps_;
  const size_t num_buffers_;
};

}  // namespace

absl::Status RepeatSteps(Schedule* schedule) {
  const int32_t steps = schedule->options.update.steps_between_flushes;
  ISOMER_RETURN_IF_ERROR(CheckStepsBetweenFlushes(steps));
  ISOMER_RETURN_IF_ERROR(CheckZeroBubble(schedule->options.zero_bubble, steps));
  if (steps == 1 || !schedule->options.training) return absl::OkStatus();
  ISOMER_RETURN_IF_ERROR(CheckPipeline(*schedule, steps));
  Repetition(schedule).Run();
  return absl::OkStatus();
}

}  // namespace isomer
