// What a plan says of itself to people.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/ir/fp8.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/precision.h"

namespace isomer {

absl::string_view PrecisionName(const Plan& plan) {
  return plan.fp8.any() ? kFp8Precision : PrecisionName(plan.precision);
}

std::vector<std::string> DeviationsOf(const Plan& plan) {
  std::vector<std::string> deviations;
  if (plan.update.steps_between_flushes > 1) {
    deviations.push_back(
        absl::StrCat("gradients are of weights that are one step old, but for the first step of "
                     "every ",
                     plan.update.steps_between_flushes, " (2BW)"));
  }
  if (plan.precision != DataType::kFloat32) {
    std::string text = absl::StrCat("it computes in ", PrecisionName(plan.precision));
    if (plan.fp8.any()) {
      const std::vector<std::string> all = WeightsOfProducts(plan.graph);
      const auto kept = std::count_if(all.begin(), all.end(), [&](const std::string& weight) {
        return std::binary_search(plan.fp8.kept.begin(), plan.fp8.kept.end(), weight);
      });
      absl::StrAppend(&text, ", and multiplies by ", all.size() - kept, " of ", all.size(),
                      " weights in 8 bits (fp8, a scale per ", Fp8ScalingName(plan.fp8.scaling),
                      ")");
    }
    deviations.push_back(text);
  }
  if (plan.update.gradient_sums != DataType::kFloat32) {
    deviations.push_back(absl::StrCat("it sums gradients over devices in ",
                                      PrecisionName(plan.update.gradient_sums)));
  }
  return deviations;
}

}  // namespace isomer
