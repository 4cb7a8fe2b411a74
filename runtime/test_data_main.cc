#include "runtime/test_data_main.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "models/full_precision.h"
#include "models/load_plan.h"
#include "models/loss.h"
#include "models/onnx/import/onnx_test_data.h"
#include "pcg/ir/expert_room.h"
#include "pcg/support/file.h"
#include "pcg/support/json.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "runtime/checking/check_step.h"
#include "runtime/checking/compare.h"
#include "runtime/checking/rounding_bounds.h"
#include "runtime/execution/host_values.h"

namespace isomer {
namespace {

constexpr char kDiffers[] = "DIFFERS: ";

// kDiffers and the first difference; or that none differs, and by how much the furthest is off.
std::string VerdictOn(const OnnxTestSet& set, const Model& model, const HostValues& outputs,
                      const TestTolerance& tolerance) {
  double of_scale = 0;
  for (size_t i = 0; i < model.graph.outputs().size(); ++i) {
    const Graph::NamedOutput& output = model.graph.outputs()[i];
    const TensorDistance distance = DistanceFrom(set.outputs[i], outputs.at(output.name),
                                                 model.graph.type(output.tensor), tolerance);
    if (!distance.difference.empty()) {
      return absl::StrCat(kDiffers, "output '", output.name, "': ", distance.difference);
    }
    const double scale = distance.scale > 0 ? distance.scale : 1;
    of_scale = std::max(of_scale, distance.most / scale);
  }
  const size_t count = set.outputs.size();
  return absl::StrCat(
      count, count == 1 ? " output agrees" : " outputs agree",
      of_scale == 0 ? std::string(" exactly")
                    : absl::StrFormat(", off by at most %.2g of its largest element", of_scale));
}

// What the set has of a step of the model, which may have lost its outputs to --loss_alone.
absl::StatusOr<StepValues> ExpectedOf(const OnnxTestSet& set, const Model& model, bool training) {
  StepValues expected;
  size_t outputs = 0;
  for (const Graph::NamedOutput& output : model.graph.outputs()) {
    if (output.name == model.loss) continue;
    if (outputs < set.outputs.size()) {
      expected.outputs[output.name] = ArrayOf(set.outputs[outputs]);
    }
    ++outputs;
  }
  if (outputs != 0 && outputs != set.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(set.folder, ": it has ", set.outputs.size(),
                                                   " outputs, and the model ", outputs));
  }
  if (!training) return expected;
  std::set<std::string> weights;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (node.op.kind() == OpKind::kWeight) weights.insert(node.name);
  }
  for (const auto& [name, gradient] : set.gradients) {
    if (!weights.contains(name)) {
      return absl::InvalidArgumentError(absl::StrCat(set.folder, ": it has a gradient of '", name,
                                                     "', which is no weight of the model"));
    }
    expected.gradients[name] = ArrayOf(gradient);
  }
  return expected;
}

// In the Euclidean norm, within the share that outputs may be off by one by one, and what rounding
// does: to low precision, and to what is nothing else, as the gradient of a key's bias.
Comparison CompareWithin(const StepValues& expected, const StepValues& step, StepBounds bounds,
                         const TestTolerance& tolerance) {
  StepValues actual;
  for (auto of : {&StepValues::outputs, &StepValues::gradients}) {
    auto& bounds_of = of == &StepValues::outputs ? bounds.outputs : bounds.gradients;
    for (const auto& [name, array] : expected.*of) {
      const auto found = (step.*of).find(name);
      if (found != (step.*of).end()) (actual.*of)[name] = found->second;
      bounds_of[name] += tolerance.relative * Norm(array) +
                         tolerance.absolute * std::sqrt(static_cast<double>(array.data.size()));
    }
  }
  return Compare(expected, actual, bounds);
}

// What agrees; or kDiffers, and what is furthest off.
absl::StatusOr<std::string> RunPlanOnSet(const Plan& plan, const OnnxTestSet& set,
                                         const TestTolerance& tolerance, Backend* backend) {
  const bool training = plan.mode == "training";
  OnnxTestSet own = set;
  if (!training) own.targets.clear();
  ISOMER_ASSIGN_OR_RETURN(const HostValues inputs, InputsFrom(own, plan.model.graph));
  ISOMER_ASSIGN_OR_RETURN(const StepValues expected, ExpectedOf(set, plan.model, training));
  ISOMER_ASSIGN_OR_RETURN(const HostValues weights, InitialWeights(plan.model, /*seed=*/1));
  const JobOptions options = {.pin = plan.num_devices > 1,
                              .expert_imbalance = AssumedImbalance(plan.model)};
  ISOMER_ASSIGN_OR_RETURN(const PlanStep step, FirstStep(plan, weights, inputs, backend, options));
  ISOMER_ASSIGN_OR_RETURN(const StepBounds bounds,
                          RoundingBounds(plan.model, weights, inputs, training, step.rounding));
  const Comparison comparison = CompareWithin(expected, step.values, bounds, tolerance);
  const Difference& worst = comparison.of_worst;
  if (comparison.differs()) {
    return absl::StrFormat("%s%s: off by %.3g of %.3g, where %.2g is allowed", kDiffers,
                           comparison.worst, worst.error, worst.norm, worst.bound);
  }
  if (!comparison.compared() && worst.error > 0) {
    return absl::StrFormat(
        "none of %d outputs and %d gradients is off by more than rounding alone may change it, "
        "which is more than it is",
        expected.outputs.size(), expected.gradients.size());
  }
  const size_t left_out = comparison.not_comparable.size();
  const std::string without =
      left_out == 0 ? "" : absl::StrCat(" (", left_out, " not comparable, for rounding)");
  return absl::StrFormat("%d outputs and %d gradients%s agree within %.2g", expected.outputs.size(),
                         expected.gradients.size(), without, comparison.max_rel_error);
}

// The model as it is on one device.
Plan PlanOf(Model model, const std::string& mode) {
  Plan plan;
  plan.model = std::move(model);
  plan.graph = plan.model.graph;
  plan.views = SequentialViews(plan.graph);
  plan.mode = mode;
  return plan;
}

// The outputs of the model as it is, in inference. Of one that is in low precision they may be off
// by what that rounds, as those of a plan may: no tolerance that goes by elements allows for it.
absl::StatusOr<std::string> RunBound(const BoundModel& bound, const TestTolerance& tolerance,
                                     Backend* backend) {
  ISOMER_ASSIGN_OR_RETURN(const HostValues weights, InitialWeights(bound.model, /*seed=*/1));
  ISOMER_ASSIGN_OR_RETURN(
      const StepValues values,
      SequentialStep(bound.model, weights, bound.inputs, /*training=*/false, backend));
  std::string verdict = VerdictOn(bound.set, bound.model, values.outputs, tolerance);
  if (!absl::StartsWith(verdict, kDiffers) || StatedPrecision(bound.model) == DataType::kFloat32) {
    return verdict;
  }
  return RunPlanOnSet(PlanOf(bound.model, "inference"), bound.set, tolerance, backend);
}

// A step of training with the loss that the model gets by default.
absl::StatusOr<std::string> TrainBound(const BoundModel& bound, const TestTolerance& tolerance,
                                       Backend* backend) {
  Model model = bound.model;
  ISOMER_RETURN_IF_ERROR(AttachLoss(&model, "auto"));
  return RunPlanOnSet(PlanOf(std::move(model), "training"), bound.set, tolerance, backend);
}

absl::StatusOr<std::string> RunModelOnSet(const std::string& contents, const std::string& path,
                                          const OnnxTestSet& set, const TestTolerance& tolerance,
                                          Backend* backend) {
  absl::StatusOr<BoundModel> bound;
  absl::StatusOr<std::string> verdict;
  // Inputs are data where that can be, and constants where an operator needs their values.
  for (BoundInputs constants : kAllBoundInputs) {
    bound = BindOnnxModel(contents, path, set, constants);
    verdict = bound.ok() ? RunBound(*bound, tolerance, backend) : bound.status();
    if (verdict.ok()) break;
  }
  if (!verdict.ok() || set.gradients.empty() || absl::StartsWith(*verdict, kDiffers)) {
    return verdict;
  }
  return TrainBound(*bound, tolerance, backend);
}

}  // namespace

std::string ModelBeside(const std::string& folder) {
  const std::string inside = absl::StrCat(folder, "/model.onnx");
  std::error_code error;
  return std::filesystem::exists(inside, error) ? inside : absl::StrCat(folder, "/../model.onnx");
}

absl::StatusOr<int> RunTestData(const std::string& spec, const std::string& folder, double rtol,
                                double atol, Backend* backend) {
  TestTolerance tolerance = {.relative = rtol};
  if (atol >= 0) tolerance.absolute = atol, tolerance.of_largest = 0;
  ISOMER_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(spec));
  Plan plan;
  std::string contents;
  if (is_plan) {
    ISOMER_ASSIGN_OR_RETURN(plan, LoadPlan(spec));
  } else {
    ISOMER_ASSIGN_OR_RETURN(contents, ReadFile(spec));
    ISOMER_RETURN_IF_ERROR(CheckTensorTypes(contents, spec));
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<OnnxTestSet> sets, ReadOnnxTestSets(folder));
  Json summary;
  bool agrees = true;
  for (const OnnxTestSet& set : sets) {
    ISOMER_ASSIGN_OR_RETURN(const std::string verdict,
                            is_plan ? RunPlanOnSet(plan, set, tolerance, backend)
                                    : RunModelOnSet(contents, spec, set, tolerance, backend));
    absl::string_view difference = verdict;
    const bool differs = absl::ConsumePrefix(&difference, kDiffers);
    agrees = agrees && !differs;
    summary["test_data"][set.folder] = differs ? std::string(difference) : std::string("agrees");
    absl::PrintF("%s: %s\n", set.folder, verdict);
  }
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  return agrees ? kExitDone : kExitNo;
}

}  // namespace isomer
