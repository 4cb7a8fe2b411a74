#include "runtime/checking/rounding_bounds.h"

#include <cmath>
#include <memory>
#include <utility>

#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/status_macros.h"
#include "runtime/checking/rounding_backend.h"
#include "runtime/cpu/cpu_backend.h"

namespace isomer {
namespace {

// Any: the draws of a check are the same each time.
constexpr uint64_t kSeed = 0x150c0de5;

absl::StatusOr<StepValues> OneStep(const Model& model, const HostValues& weights,
                                   const HostValues& inputs, bool training, Job* job) {
  ISOMER_RETURN_IF_ERROR(job->SetParameters(weights));
  ISOMER_RETURN_IF_ERROR(training ? job->TrainStep(inputs, 0) : job->Evaluate(inputs));
  return ValuesOfStep(model, job, training);
}

// Adds the squared distances.
void AddMovements(const HostValues& still, const HostValues& moved,
                  std::map<std::string, double>* squares) {
  for (const auto& [name, array] : still) {
    const double distance = Distance(array, moved.at(name));
    (*squares)[name] += distance * distance;
  }
}

// Both sides are stored in float32, at least.
void TurnIntoBounds(const HostValues& still, std::map<std::string, double>* squares) {
  for (auto& [name, square] : *squares) {
    const Array<double>& array = still.at(name);
    const double stored = UnitRoundoff(DataType::kFloat32) * Norm(array);
    square = kMargin * std::sqrt(square / kRoundingDraws) + kAmplitude * stored;
  }
}

}  // namespace

absl::StatusOr<StepBounds> RoundingBounds(const Model& model, const HostValues& weights,
                                          const HostValues& inputs, bool training,
                                          const Rounding& rounding) {
  const std::unique_ptr<Backend> cores = MakeCpuBackend();
  RoundingBackend noisy(cores.get(), rounding, kSeed);
  // Gradients are as many times larger as the plan's, for what of float16 is absolute.
  const ScheduleOptions options{.training = training,
                                .loss = model.loss,
                                .seed = LossScale(rounding.precision),
                                .keep_gradients = training};
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, WithFp8Products(model.graph, rounding.fp8));
  ISOMER_ASSIGN_OR_RETURN(Schedule schedule, LowerGraph(graph, SequentialViews(graph), options));
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Job> job,
                          Job::Start(graph, std::move(schedule), &noisy));
  ISOMER_ASSIGN_OR_RETURN(const StepValues still,
                          OneStep(model, weights, inputs, training, job.get()));
  StepBounds bounds;
  const bool low = IsLow(rounding);
  for (int draw = 0; draw < kRoundingDraws; ++draw) {
    noisy.StartNoise(low && draw == 0 ? 0 : kAmplitude);
    ISOMER_ASSIGN_OR_RETURN(const StepValues moved,
                            OneStep(model, weights, inputs, training, job.get()));
    AddMovements(still.outputs, moved.outputs, &bounds.outputs);
    AddMovements(still.gradients, moved.gradients, &bounds.gradients);
  }
  TurnIntoBounds(still.outputs, &bounds.outputs);
  TurnIntoBounds(still.gradients, &bounds.gradients);
  return bounds;
}

}  // namespace isomer
