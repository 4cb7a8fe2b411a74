#include "verifier/plans/plan_fields.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/ir/precision.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status No(absl::string_view why) { return absl::FailedPreconditionError(why); }

// Names of the weights that training changes: of the model, and of what the plan's graph has.
std::set<std::string> WeightNames(const Plan& plan) {
  std::set<std::string> names;
  for (const Graph* graph : {&plan.model.graph, &plan.graph}) {
    for (int id = 0; id < graph->num_nodes(); ++id) {
      const Node& node = graph->node(id);
      if (node.op.kind() == OpKind::kWeight) names.insert(node.name);
    }
  }
  return names;
}

absl::Status CheckUpdate(const Plan& plan) {
  const UpdateOptions& update = plan.update;
  if (plan.mode != "training") {
    if (update == UpdateOptions()) return absl::OkStatus();
    return No("update: a plan for inference says how weights are updated");
  }
  const std::set<std::string> weights = WeightNames(plan);
  for (const auto& [name, method] : update.methods) {
    if (weights.count(name) == 0) {
      return No(absl::StrCat("update: there is no weight '", name, "' to be updated"));
    }
  }
  for (const std::string& name : update.bucket_ends) {
    if (weights.count(name) == 0) {
      return No(absl::StrCat("update: there is no weight '", name, "' for a bucket to end behind"));
    }
  }
  if (update.gradient_sums != DataType::kFloat32 &&
      update.gradient_sums != LowGradientSums(plan.precision)) {
    return No("update: gradients are summed in another type than float32 or the plan's");
  }
  if (update.bucket_bytes < 0) return No("update: buckets of a negative number of bytes");
  if (const absl::Status flushes = CheckStepsBetweenFlushes(update.steps_between_flushes);
      !flushes.ok()) {
    return No(absl::StrCat("update: ", flushes.message()));
  }
  return absl::OkStatus();
}

absl::Status CheckOffloaded(const Plan& plan) {
  if (plan.offloaded.empty()) return absl::OkStatus();
  if (plan.mode != "training") return No("offloaded: there is no backward pass in inference");
  if (plan.update.steps_between_flushes > 1) {
    return No("offloaded: values of several steps between flushes stay on the device");
  }
  for (NodeId id : plan.offloaded) {
    if (!std::binary_search(plan.recomputed.begin(), plan.recomputed.end(), id)) continue;
    return No(absl::StrCat("offloaded: node %", id.value, " is computed again, too"));
  }
  return absl::OkStatus();
}

absl::Status CheckFp8(const Plan& plan) {
  if (const absl::Status valid = CheckFp8Products(plan.fp8, plan.precision); !valid.ok()) {
    return No(valid.message());
  }
  const std::vector<std::string> all = WeightsOfProducts(plan.model.graph);
  for (const std::string& name : plan.fp8.kept) {
    if (!std::binary_search(all.begin(), all.end(), name)) {
      return No(absl::StrCat("fp8: no product is with a weight '", name, "', which is kept"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlanFields(const Plan& plan) {
  if (plan.mode != "training" && plan.mode != "inference") {
    return No(absl::StrCat("mode: '", plan.mode, "' is neither training nor inference"));
  }
  if (!IsFloat(plan.precision)) return No("precision: not of floats");
  if (const absl::Status fp8 = CheckFp8(plan); !fp8.ok()) return fp8;
  if (plan.mode != "training" && !plan.recomputed.empty()) {
    return No("recomputed: there is no backward pass in inference");
  }
  if (const absl::Status offloaded = CheckOffloaded(plan); !offloaded.ok()) return offloaded;
  if (plan.mode != "training" && plan.zero_bubble.splits()) {
    return No("zero_bubble: there is no backward pass in inference");
  }
  const absl::Status halves = CheckZeroBubble(plan.zero_bubble, plan.update.steps_between_flushes);
  if (!halves.ok()) return No(std::string(halves.message()));
  if (!std::isfinite(plan.predicted_step_us) || plan.predicted_step_us < 0) {
    return No(absl::StrCat("predicted_step_us: ", plan.predicted_step_us));
  }
  if (!std::isfinite(plan.peak_flops) || plan.peak_flops < 0) {
    return No(absl::StrCat("peak_flops: ", plan.peak_flops));
  }
  if (plan.predicted_peak_bytes < 0) {
    return No(absl::StrCat("predicted_peak_bytes: ", plan.predicted_peak_bytes));
  }
  return CheckUpdate(plan);
}

}  // namespace isomer
