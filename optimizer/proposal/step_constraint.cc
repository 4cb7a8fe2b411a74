#include "optimizer/proposal/step_constraint.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/grid_search.h"
#include "optimizer/proposal/parallel_config.h"
#include "optimizer/proposal/recompute.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/sharding/compute_graph.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool Differs(const std::optional<int64_t>& wanted, int64_t is) { return wanted && *wanted != is; }

// Of a check: "mine.txt:3: stages: 7: there are 8 devices".
class StepChecker {
 public:
  StepChecker(const OptimizeOptions& options, const Model& model, int64_t devices)
      : options_(options), step_(options.constraints.step), model_(model), devices_(devices) {}

  absl::Status Run() const {
    ISOMER_RETURN_IF_ERROR(CheckOptions());
    if (!options_.training) ISOMER_RETURN_IF_ERROR(CheckIsNotOfTraining());
    if (step_.HasMicroBatches()) ISOMER_RETURN_IF_ERROR(CheckHasMicroBatches());
    if (step_.IsPipeline()) ISOMER_RETURN_IF_ERROR(CheckHasPipeline());
    if (step_.recompute == RecomputeMode::kFull &&
        RecomputedNodes(RecomputeMode::kFull, model_.graph).empty()) {
      return Wrong("recompute: full", absl::StrCat(model_.name, " has nothing to compute again"));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Wrong(absl::string_view said, absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(step_.source, ": ", said, ": ", why));
  }
  // The field that asks for several micro-batches.
  std::string WhatHasMicroBatches() const {
    return step_.micro_batches.value_or(1) > 1
               ? absl::StrCat("micro_batches: ", *step_.micro_batches)
               : WhatHasStages();
  }
  std::string WhatHasStages() const {
    return step_.stages.value_or(1) > 1 ? absl::StrCat("stages: ", *step_.stages)
                                        : absl::StrCat("chunks: ", *step_.chunks);
  }

  absl::Status CheckOptions() const {
    if (options_.strategy == Strategy::kExhaustive) {
      return Wrong(step_.ToString(), "--search=exhaustive knows no constraints");
    }
    if (step_.update && !options_.choose_update_method && options_.update.method != *step_.update) {
      return Wrong(
          absl::StrCat("update: ", UpdateMethodName(*step_.update)),
          absl::StrCat("--update=", UpdateMethodName(options_.update.method), " says otherwise"));
    }
    if (step_.IsPipeline() && options_.whole_machine) {
      return Wrong(WhatHasStages(), "--whole_machine has no pipelines");
    }
    if (step_.HasMicroBatches() && options_.without.count(kGrids.name) > 0) {
      return Wrong(WhatHasMicroBatches(), absl::StrCat("--without=", kGrids.name,
                                                       " leaves out all plans with micro-batches"));
    }
    if (options_.steps_between_flushes > 1 && (step_.stages == 1 || step_.micro_batches == 1)) {
      return Wrong(step_.stages == 1 ? "stages: 1" : "micro_batches: 1",
                   absl::StrCat("--steps_between_flushes=", options_.steps_between_flushes,
                                " is for pipelines"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckIsNotOfTraining() const {
    if (step_.update) {
      return Wrong(absl::StrCat("update: ", UpdateMethodName(*step_.update)),
                   "it is for --mode=training");
    }
    if (step_.recompute) {
      return Wrong(absl::StrCat("recompute: ", RecomputeModeName(*step_.recompute)),
                   "it is for --mode=training");
    }
    return absl::OkStatus();
  }

  absl::Status CheckHasMicroBatches() const {
    if (MixesSamples(model_.graph)) {
      return Wrong(WhatHasMicroBatches(), absl::StrCat(model_.name,
                                                       " needs all samples at once, and has no "
                                                       "micro-batches"));
    }
    const int64_t batch = BatchSize(model_.graph);
    const int64_t most = std::min(batch, kMostMicroBatches);
    if (most < 2) return Wrong(WhatHasMicroBatches(), absl::StrCat("the batch is ", batch));
    if (!step_.micro_batches) return absl::OkStatus();
    if (*step_.micro_batches > most) {
      return Wrong(WhatHasMicroBatches(), batch == most
                                              ? absl::StrCat("the batch is ", batch)
                                              : absl::StrCat("there are 1 to ", kMostMicroBatches));
    }
    if (batch % *step_.micro_batches != 0) {
      return Wrong(WhatHasMicroBatches(), absl::StrCat("they do not divide the batch of ", batch));
    }
    return absl::OkStatus();
  }

  absl::Status CheckHasPipeline() const {
    const int64_t stages = step_.stages.value_or(2), chunks = step_.chunks.value_or(1);
    if (step_.stages && devices_ % stages != 0) {
      return Wrong(WhatHasStages(), absl::StrCat("they do not divide ", devices_, " devices"));
    }
    if (devices_ == 1) return Wrong(WhatHasStages(), "there is one device");
    const auto calls =
        static_cast<int64_t>(AnalyzeCompute(model_.graph, options_.training).nodes.size());
    if (stages > calls / chunks) {
      return Wrong(
          chunks > 1 ? absl::StrCat("stages: ", stages, ", chunks: ", chunks) : WhatHasStages(),
          absl::StrCat(model_.name, " has ", calls, " calls"));
    }
    return absl::OkStatus();
  }

  const OptimizeOptions& options_;
  const Constraints::OfStep& step_;
  const Model& model_;
  const int64_t devices_;
};

}  // namespace

absl::StatusOr<std::string> DeviationWithoutSchedule(const Constraints::OfStep& step,
                                                     const Plan& plan) {
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
  if (Differs(step.micro_batches, moments)) {
    return absl::StrCat("it has ", moments, moments == 1 ? " micro-batch" : " micro-batches");
  }
  if (step.HasMicroBatches() && moments == 1) return std::string("it has one micro-batch");
  if (step.update) {
    if (plan.update.method != *step.update) {
      return absl::StrCat("it updates by ", UpdateMethodName(plan.update.method));
    }
    for (const auto& [weight, method] : plan.update.methods) {
      if (method == *step.update) continue;
      return absl::StrCat("it updates ", weight, " by ", UpdateMethodName(method));
    }
  }
  if (step.recompute && plan.recomputed != RecomputedNodes(*step.recompute, plan.graph)) {
    return absl::StrCat("it computes ", plan.recomputed.size(), " results again");
  }
  return std::string();
}

absl::StatusOr<std::string> DeviationOfPipeline(const Constraints::OfStep& step,
                                                const CostModel& cost, const Plan& plan) {
  if (!step.stages && !step.chunks) return std::string();
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
  PipelineStages stages;
  if (moments > 1) {
    ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered, LowerForSimulation(cost.machine(), plan));
    if (step.IsPipeline() && MixesMicroBatches(lowered.schedule)) {
      return std::string("its micro-batches depend on each other, and do not take turns");
    }
    stages = StagesOf(lowered.schedule);
  }
  if (Differs(step.stages, stages.num_stages)) {
    return absl::StrCat("it has ", stages.num_stages,
                        stages.num_stages == 1 ? " stage" : " stages");
  }
  if (Differs(step.chunks, stages.num_chunks)) {
    return absl::StrCat("it has ", stages.num_chunks, stages.num_chunks == 1 ? " chunk" : " chunks",
                        " of the model on a stage");
  }
  return std::string();
}

absl::StatusOr<std::string> DeviationOf(const Constraints::OfStep& step, const CostModel& cost,
                                        const Plan& plan) {
  ISOMER_ASSIGN_OR_RETURN(std::string deviation, DeviationWithoutSchedule(step, plan));
  if (!deviation.empty()) return deviation;
  return DeviationOfPipeline(step, cost, plan);
}

absl::Status CheckStepConstraint(const OptimizeOptions& options, const Model& model,
                                 int64_t devices) {
  if (options.constraints.step.empty()) return absl::OkStatus();
  return StepChecker(options, model, devices).Run();
}

}  // namespace isomer
