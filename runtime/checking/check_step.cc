#include "runtime/checking/check_step.h"

#include <memory>
#include <utility>
#include <vector>

#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/status_macros.h"
#include "runtime/checking/rounding_bounds.h"
#include "runtime/cpu/cpu_backend.h"

namespace isomer {
namespace {

// The reference is the reference evaluator for steps of so many FLOPs (about half a minute), else
// the cpu backend's kernels on one device.
constexpr double kMostEvaluatorFlops = 2e9;

absl::StatusOr<double> FlopsOf(const Plan& plan) {
  ScheduleOptions options;
  options.training = plan.mode == "training";
  options.loss = plan.model.loss;
  ISOMER_ASSIGN_OR_RETURN(const Schedule schedule,
                          LowerGraph(plan.model.graph, SequentialViews(plan.model.graph), options));
  double flops = 0;
  for (const Task& task : schedule.tasks) flops += task.flops;
  return flops;
}

}  // namespace

absl::StatusOr<StepChecker> StepChecker::Make(const Plan& plan, const HostValues& weights,
                                              const HostValues& inputs) {
  StepChecker checker(plan, weights, inputs);
  const std::unique_ptr<Backend> cores = MakeCpuBackend();
  const bool training = plan.mode == "training";
  ISOMER_ASSIGN_OR_RETURN(const double flops, FlopsOf(plan));
  checker.evaluator_ = flops <= kMostEvaluatorFlops;
  ISOMER_ASSIGN_OR_RETURN(checker.expected_,
                          checker.evaluator_
                              ? ReferenceStep(plan.model, weights, inputs, training)
                              : SequentialStep(plan.model, weights, inputs, training, cores.get()));
  return checker;
}

absl::StatusOr<StepCheck> StepChecker::Check(const StepValues& actual,
                                             const Rounding& rounding) const {
  ISOMER_ASSIGN_OR_RETURN(
      const StepBounds bounds,
      RoundingBounds(plan_.model, weights_, inputs_, plan_.mode == "training", rounding));
  return StepCheck{.rounding = rounding, .comparison = Compare(expected_, actual, bounds)};
}

absl::StatusOr<PlanStep> FirstStep(const Plan& plan, const HostValues& weights,
                                   const HostValues& inputs, Backend* backend,
                                   const JobOptions& options) {
  const bool training = plan.mode == "training";
  ISOMER_ASSIGN_OR_RETURN(LoweredPlan lowered, LowerPlan(plan, /*keep_gradients=*/training));
  const Graph& graph = lowered.mapped.graph;
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Job> job,
                          Job::Start(graph, std::move(lowered.schedule), backend, options));
  ISOMER_RETURN_IF_ERROR(job->SetParameters(weights));
  const std::vector<HostValues> steps(job->num_steps(), inputs);
  ISOMER_RETURN_IF_ERROR(training ? job->TrainSteps(steps, 0) : job->Evaluate(inputs));
  PlanStep step;
  ISOMER_ASSIGN_OR_RETURN(step.values, ValuesOfStep(plan.model, job.get(), training));
  step.rounding = RoundingOf(plan.precision, job->schedule(), plan.fp8);
  return step;
}

absl::StatusOr<StepCheck> CheckInFloat32(const StepChecker& checker, const Plan& plan,
                                         const HostValues& weights, const HostValues& inputs,
                                         Backend* backend, const JobOptions& options) {
  Plan exact = plan;
  exact.precision = exact.update.gradient_sums = DataType::kFloat32;
  exact.fp8 = {};
  ISOMER_ASSIGN_OR_RETURN(const PlanStep step, FirstStep(exact, weights, inputs, backend, options));
  return checker.Check(step.values, step.rounding);
}

}  // namespace isomer
