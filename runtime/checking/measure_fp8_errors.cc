#include "runtime/checking/measure_fp8_errors.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "runtime/checking/check_step.h"
#include "runtime/checking/compare.h"

namespace isomer {
namespace {

// What errors are of: the gradients, or in inference the outputs.
const HostValues& Judged(const StepValues& step) {
  return step.gradients.empty() ? step.outputs : step.gradients;
}

double DistanceOfAll(const HostValues& a, const HostValues& b) {
  double square = 0;
  for (const auto& [name, array] : a) {
    const double distance = Distance(array, b.at(name));
    square += distance * distance;
  }
  return std::sqrt(square);
}

double NormOfAll(const HostValues& values) {
  double square = 0;
  for (const auto& [name, array] : values) square += Norm(array) * Norm(array);
  return std::sqrt(square);
}

}  // namespace

absl::StatusOr<Fp8Errors> MeasureFp8Errors(const Plan& plan, Fp8Scaling scaling,
                                           const HostValues& weights, const HostValues& inputs,
                                           Backend* backend,
                                           const std::function<void(int64_t steps)>& progress) {
  const std::vector<std::string> names = WeightsOfProducts(plan.graph);
  if (names.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.model.name, " has no products with weights that can be in 8 bits"));
  }
  const auto steps = static_cast<int64_t>(names.size()) + 2;
  Plan tried = plan;
  const auto step = [&](DataType precision, const Fp8Products& fp8) -> absl::StatusOr<HostValues> {
    tried.precision = precision;
    tried.fp8 = fp8;
    ISOMER_ASSIGN_OR_RETURN(const PlanStep taken,
                            FirstStep(tried, weights, inputs, backend, JobOptions()));
    progress(steps);
    return Judged(taken.values);
  };
  ISOMER_ASSIGN_OR_RETURN(const HostValues exact, step(DataType::kFloat32, {}));
  ISOMER_ASSIGN_OR_RETURN(const HostValues low, step(DataType::kBFloat16, {}));
  const double norm = NormOfAll(exact);
  if (!std::isfinite(norm) || norm == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        plan.model.name, ": errors are relative, and the norm of what it computes is ", norm));
  }
  Fp8Errors errors{.model = plan.model.name,
                   .mode = plan.mode,
                   .scaling = scaling,
                   .bfloat16 = DistanceOfAll(low, exact) / norm,
                   .of_weights = {}};
  for (const std::string& name : names) {
    Fp8Products alone{.scaling = scaling, .kept = names};
    alone.kept.erase(std::find(alone.kept.begin(), alone.kept.end(), name));
    ISOMER_ASSIGN_OR_RETURN(const HostValues values, step(DataType::kBFloat16, alone));
    const double error = DistanceOfAll(values, low) / norm;
    if (!std::isfinite(error)) {
      return absl::InvalidArgumentError(
          absl::StrCat("products with '", name, "' in 8 bits are not finite"));
    }
    errors.of_weights[name] = error;
  }
  return errors;
}

}  // namespace isomer
