#include "pcg/schedule/lowering/loss_seeds.h"

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

// The gradient of what a task moves goes to what it moves it from.
void PassBack(const Task& task, std::map<BufferId, double>* seeds) {
  for (const Transfer& t : TransfersOf(task)) {
    const auto seed = seeds->find(t.to);
    if (seed != seeds->end()) (*seeds)[t.from] += seed->second;
  }
  for (BufferId to : task.writes) seeds->erase(to);
}

}  // namespace

absl::StatusOr<std::map<BufferId, double>> FindLossSeeds(const ScheduleBuilder& builder) {
  const ScheduleOptions& options = builder.options();
  const Schedule& schedule = builder.schedule();
  for (const Graph::NamedOutput& output : builder.graph().outputs()) {
    if (output.name != options.loss) continue;
    const TensorType& type = builder.graph().type(output.tensor);
    if (type.NumElements() != 1 || !IsFloat(type.dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the loss '", options.loss, "' is ", type.ToString(), ", not one number"));
    }
    // The gradients of c copies are shares of one sum; a buffer may be several of them.
    std::map<BufferId, double> seeds;
    for (BufferId shard : schedule.shards.at(output.tensor)) {
      seeds[shard] += options.seed / static_cast<double>(type.copies);
    }
    for (size_t t = schedule.tasks.size(); t-- > 0;) {
      const Task& task = schedule.tasks[t];
      if (task.kind == TaskKind::kLocal || IsCommunication(task.kind)) PassBack(task, &seeds);
    }
    return seeds;
  }
  return absl::InvalidArgumentError(
      options.loss.empty() ? "the model has no loss to train on"
                           : absl::StrCat("the model has no output '", options.loss, "'"));
}

}  // namespace isomer
