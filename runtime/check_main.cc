#include "runtime/check_main.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/ir/precision.h"
#include "pcg/support/status_macros.h"
#include "runtime/checking/check_step.h"
#include "runtime/checking/first_step_check.h"
#include "runtime/checking/rounding_bounds.h"

namespace isomer {
namespace {

// How many tensors that differ, or cannot be compared, are named; --json has all.
constexpr size_t kNamed = 8;

void WriteDifferences(const std::map<std::string, Difference>& differences, Json* json) {
  for (const auto& [name, difference] : differences) {
    Json& tensor = (*json)[name];
    tensor["error"] = difference.error;
    tensor["tolerance"] = difference.bound;
    tensor["norm"] = difference.norm;
    tensor["comparable"] = difference.comparable();
  }
}

void Write(const StepCheck& check, Json* json) {
  const Comparison& comparison = check.comparison;
  (*json)["agrees"] = comparison.agrees();
  (*json)["max_rel_error"] = comparison.max_rel_error;
  (*json)["worst"] = comparison.worst;
  (*json)["rounding"] = check.rounding.ToString();
  (*json)["not_comparable"] = comparison.not_comparable.size();
  WriteDifferences(comparison.outputs, &(*json)["outputs"]);
  WriteDifferences(comparison.gradients, &(*json)["gradients"]);
}

// The tensors of a comparison by their titles, "gradient of w1", outputs first.
std::vector<std::pair<std::string, Difference>> Tensors(const Comparison& comparison) {
  std::vector<std::pair<std::string, Difference>> tensors;
  for (const auto& [name, difference] : comparison.outputs) {
    tensors.push_back({absl::StrCat("output ", name), difference});
  }
  for (const auto& [name, difference] : comparison.gradients) {
    tensors.push_back({absl::StrCat("gradient of ", name), difference});
  }
  return tensors;
}

void PrintTensors(const Comparison& comparison, absl::string_view precision) {
  size_t differ = 0, vague = 0;
  for (const auto& [title, tensor] : Tensors(comparison)) {
    if (!tensor.agrees() && ++differ <= kNamed) {
      absl::PrintF("check: %s differs by %.3g; its norm is %.3g, rounding may do %.2g\n", title,
                   tensor.error, tensor.norm, tensor.bound);
    }
    if (!tensor.comparable() && tensor.agrees() && ++vague <= kNamed) {
      if (!std::isfinite(tensor.bound)) {
        absl::PrintF("check: %s is not comparable in %s: the model makes NaN or infinity of it\n",
                     title, precision);
        continue;
      }
      absl::PrintF(
          "check: %s is not comparable in %s: rounding alone may change it by %.2g, its "
          "norm is %.2g\n",
          title, precision, tensor.bound, tensor.norm);
    }
  }
  if (differ > kNamed) absl::PrintF("check: %d tensors differ\n", differ);
  if (vague > kNamed) absl::PrintF("check: %d tensors are not comparable\n", vague);
}

// How far a tensor may be from the model's, of those that are comparable, relative to their norms.
double MedianBound(const Comparison& comparison) {
  std::vector<double> bounds;
  for (const auto& [title, tensor] : Tensors(comparison)) {
    if (tensor.comparable() && tensor.norm > 0) bounds.push_back(tensor.bound / tensor.norm);
  }
  if (bounds.empty()) return 0;
  std::nth_element(bounds.begin(), bounds.begin() + bounds.size() / 2, bounds.end());
  return bounds[bounds.size() / 2];
}

absl::string_view VerdictOf(const Comparison& comparison) {
  if (comparison.differs()) return "DOES NOT AGREE";
  return comparison.compared() ? "agrees" : "COMPARED NOTHING, no tensor is comparable";
}

void Print(const StepCheck& check) {
  const Comparison& comparison = check.comparison;
  const absl::string_view precision =
      check.rounding.fp8.any() ? kFp8Precision : PrecisionName(check.rounding.precision);
  const DataType sums = StoredIn(check.rounding, /*gradient=*/true);
  const std::string summed =
      sums == check.rounding.precision ? "" : absl::StrCat(", summed in ", PrecisionName(sums));
  absl::PrintF("check: %d outputs and %d gradients in %s%s, largest relative error %.2g: %s\n",
               comparison.outputs.size(), comparison.gradients.size(), precision, summed,
               comparison.max_rel_error, VerdictOf(comparison));
  const Difference& worst = comparison.of_worst;
  absl::PrintF("check: nearest to its bound is the %s: error %.2g, bound %.2g, norm %.2g\n",
               comparison.worst, worst.error, worst.bound, worst.norm);
  absl::PrintF(
      "check: bounds are %g times what rounding does to the model (%s) in %d draws, in "
      "the median %.2g of the norm; %d tensors are not comparable\n",
      kAmplitude * kMargin, check.rounding.ToString(), kRoundingDraws, MedianBound(comparison),
      comparison.not_comparable.size());
  PrintTensors(comparison, precision);
}

}  // namespace

absl::StatusOr<bool> CheckAndPrintFirstStep(const Plan& plan, const HostValues& weights,
                                            const HostValues& inputs, Backend* backend, Job* job,
                                            Json* summary) {
  ISOMER_ASSIGN_OR_RETURN(const FirstStepCheck first,
                          CheckFirstStep(plan, weights, inputs, backend, job));
  Json& json = (*summary)["check"];
  json["reference"] = first.reference;
  if (first.in_float32.has_value()) {
    Write(*first.in_float32, &json["in_float32"]);
    Print(*first.in_float32);
  }
  Write(first.check, &json);
  Print(first.check);
  if (plan.fp8.any()) {
    const double error = ErrorOfAll(first.check.comparison), budget = first.error_budget;
    json["error_of_all"] = error;
    absl::PrintF("check: %s is off by %.3g of its norm%s\n",
                 plan.mode == "training" ? "the gradient by all weights" : "all output", error,
                 budget == 0 ? ""
                 : first.is_within_budget()
                     ? absl::StrFormat(", within --fp8_error=%g", budget)
                     : absl::StrFormat(", MORE THAN --fp8_error=%g", budget));
  }
  for (const std::string& deviation : DeviationsOf(plan)) {
    absl::PrintF("check: of the first step; the plan's steps are not the model's: %s\n", deviation);
  }
  return first.agrees();
}

}  // namespace isomer
