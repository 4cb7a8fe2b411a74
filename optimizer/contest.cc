#include "optimizer/contest.h"

#include <limits>
#include <utility>

#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// A digest of all of a plan that its prediction can depend on.
uint64_t WhatRuns(Plan* plan) {
  Model model = std::exchange(plan->model, Model());
  std::vector<DerivationStep> steps = std::exchange(plan->steps, {});
  plan->predicted_step_us = 0;
  plan->predicted_peak_bytes = 0;
  const uint64_t digest = SealOf(*plan);
  plan->model = std::move(model);
  plan->steps = std::move(steps);
  return digest;
}

}  // namespace

absl::StatusOr<Prediction> Contest::Consider(Plan plan, std::string origin) {
  const uint64_t what = WhatRuns(&plan);
  if (const auto known = known_.find(what); known != known_.end()) return known->second;
  ISOMER_ASSIGN_OR_RETURN(Simulation now, PredictPlan(cost_, &plan));
  const Prediction prediction{now.step_us, now.peak_bytes};
  known_[what] = prediction;
  const bool fits = now.peak_bytes <= cost_.machine().memory_bytes();
  const bool fastest = empty() || now.step_us < fastest_us_;
  const bool better = empty() || (best_->fits != fits ? fits
                                  : fits              ? now.step_us < best_->simulation.step_us
                                         : now.peak_bytes < best_->simulation.peak_bytes);
  if (fastest) {
    fastest_us_ = now.step_us;
    fastest_.reset();
    if (!better) {
      fastest_ = plan;
      fastest_origin_ = origin;
    }
  } else if (better && !fastest_.has_value()) {
    fastest_ = std::move(best_->plan);
    fastest_origin_ = best_->origin;
  }
  if (better) best_ = Entry{std::move(plan), std::move(now), std::move(origin), fits};
  return prediction;
}

double Contest::step_us() const {
  return fits() ? best_->simulation.step_us : std::numeric_limits<double>::infinity();
}

}  // namespace isomer
