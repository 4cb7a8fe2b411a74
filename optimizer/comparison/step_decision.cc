#include "optimizer/comparison/step_decision.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/machine/machine_units.h"
#include "optimizer/report/plan_facts.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/weight_update.h"
#include "pcg/support/bytes_text.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct Undone {
  std::string text, instead;
  Plan plan;
};

bool UpdatesOtherwise(const UpdateOptions& update) {
  if (update.method != UpdateMethod::kAllReduce) return true;
  for (const auto& [weight, method] : update.methods) {
    if (method != UpdateMethod::kAllReduce) return true;
  }
  return false;
}

std::string UpdateText(const UpdateOptions& update) {
  const int stage = TraitsOf(update.method).zero_stage;
  return absl::StrCat("weights are updated by ", UpdateMethodName(update.method),
                      stage > 0 ? absl::StrCat(" (ZeRO ", stage, ")") : "",
                      update.methods.empty()
                          ? ""
                          : absl::StrCat(", ", update.methods.size(), " of them otherwise"));
}

std::vector<Undone> UndoneOf(const Plan& plan) {
  std::vector<Undone> undone;
  const auto without = [&](std::string text, std::string instead) -> Plan& {
    undone.push_back({std::move(text), std::move(instead), plan});
    return undone.back().plan;
  };
  if (const int64_t again = RecomputedOperators(plan); again > 0) {
    without(absl::StrCat(again, " operators are computed again for the backward pass"),
            "all results kept")
        .recomputed.clear();
  }
  if (const int64_t away = OffloadedOperators(plan); away > 0) {
    without(absl::StrCat("results of ", away,
                         " operators lie in the host's memory until the backward pass"),
            "on the device")
        .offloaded.clear();
  }
  const UpdateOptions& update = plan.update;
  if (plan.mode == "training") {
    if (UpdatesOtherwise(update)) {
      Plan& other = without(UpdateText(update), "every copy updated behind an all-reduce");
      other.update.method = UpdateMethod::kAllReduce;
      other.update.methods.clear();
      other.update.states_on_host = false;
    }
    if (update.states_on_host) {
      without("the optimizer's states are kept on the host", "kept on the devices")
          .update.states_on_host = false;
    }
    if (!update.bucket_ends.empty() || update.bucket_bytes != 0) {
      Plan& other = without("gradients are summed over devices in buckets", "each by itself");
      other.update.bucket_ends.clear();
      other.update.bucket_bytes = 0;
    }
    if (update.immediate) {
      without("weights are updated as soon as their gradients are summed", "at the end")
          .update.immediate = false;
    }
  }
  if (plan.spread_branches) {
    without("short branches are computed between the exchanges of long ones",
            "as soon as they can be")
        .spread_branches = false;
  }
  if (plan.zero_bubble.splits()) {
    without("backward passes are two halves, and gradients of weights fill bubbles", "whole (1F1B)")
        .zero_bubble = {};
  }
  return undone;
}

}  // namespace

absl::StatusOr<std::vector<StepDecision>> StepDecisionsOf(const Plan& plan, const CostModel& cost) {
  std::vector<StepDecision> decisions;
  for (Undone& undone : UndoneOf(plan)) {
    ISOMER_ASSIGN_OR_RETURN(const Simulation simulation, PredictPlan(cost, &undone.plan));
    decisions.push_back({std::move(undone.text), std::move(undone.instead), simulation.step_us,
                         simulation.peak_bytes,
                         simulation.peak_bytes <= cost.machine().memory_bytes()});
  }
  return decisions;
}

std::string StepDecisionsText(const std::vector<StepDecision>& decisions, const Plan& plan) {
  std::string text;
  for (const StepDecision& decision : decisions) {
    const double us = decision.step_us - plan.predicted_step_us;
    const int64_t bytes = decision.peak_bytes - plan.predicted_peak_bytes;
    absl::StrAppendFormat(&text, "  %s\n    %s: %s%s a step, %s%s a device%s\n", decision.text,
                          decision.instead, us < 0 ? "-" : "+", TimeText(std::abs(us)),
                          bytes < 0 ? "-" : "+", BytesText(std::abs(bytes)),
                          decision.fits ? "" : ", which does not fit");
  }
  return text;
}

Json StepDecisionsJson(const std::vector<StepDecision>& decisions) {
  Json json = Json::EmptyArray();
  for (const StepDecision& decision : decisions) {
    Json one;
    one["decision"] = decision.text;
    one["instead"] = decision.instead;
    one["predicted_step_us"] = decision.step_us;
    one["predicted_peak_bytes"] = decision.peak_bytes;
    one["fits"] = decision.fits;
    json.Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
