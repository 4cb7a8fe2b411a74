#include "verifier/own_model_main.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/carry_states.h"
#include "models/experts_room.h"
#include "models/loss.h"
#include "pcg/ir/expert_room.h"
#include "pcg/ir/states.h"
#include "pcg/support/status_macros.h"
#include "verifier/plans/model_match.h"

namespace isomer {
namespace {

// Ok if the model inside of the plan is `own`, with the states that the plan says it has: --carry
// of isomer-optimize.
absl::Status ExpectModelWithStates(Model own, const Plan& plan, OwnModelFindings* findings) {
  std::vector<std::string> carry, notes;
  Model paired = own;
  if (CarryStates({}, &paired, &notes).ok() && !notes.empty() &&
      ExpectSameModel(paired, plan.model).ok()) {
    findings->states_by_name = static_cast<int>(StatesOf(paired.graph).size());
    return absl::OkStatus();
  }
  // What is a state already is one by its name.
  std::set<std::string> states;
  for (const State& state : StatesOf(own.graph)) states.insert(state.name);
  const auto &here = own.graph.outputs(), &there = plan.model.graph.outputs();
  for (size_t o = 0; here.size() == there.size() && o < here.size(); ++o) {
    if (here[o].name == there[o].name || states.contains(here[o].name)) continue;
    carry.push_back(absl::StrCat(here[o].name, ":", there[o].name));
  }
  if (!carry.empty() && CarryStates(carry, &own, &notes).ok()) findings->carried = carry;
  return ExpectSameModel(own, plan.model);
}

// Ok if the model inside of the plan is `own`, in training with a loss of that kind of the output
// `of`.
absl::Status ExpectTrainedModel(Model own, const std::string& kind, const std::string& of,
                                const Plan& plan, OwnModelFindings* findings) {
  if (plan.mode != "training") return ExpectModelWithStates(std::move(own), plan, findings);
  ISOMER_RETURN_IF_ERROR(AttachLoss(&own, kind, of));
  findings->loss = LossText(own);
  findings->outputs_left_out = 0;
  const absl::Status same = ExpectSameModel(own, plan.model);
  // --loss_alone of isomer-optimize.
  if (same.ok() || plan.model.graph.outputs().size() > 1) return same;
  findings->outputs_left_out = static_cast<int>(own.graph.outputs().size()) - 1;
  ISOMER_RETURN_IF_ERROR(KeepLossAlone(&own));
  const absl::Status alone = ExpectSameModel(own, plan.model);
  return alone.ok() || findings->outputs_left_out > 0 ? alone : same;
}

}  // namespace

absl::Status ExpectOwnModel(const Model& model, const std::string& spec, const Plan& plan,
                            OwnModelFindings* findings) {
  const auto not_that = [&](const absl::Status& why) {
    return absl::FailedPreconditionError(
        absl::StrCat("model: not that of ", spec, ": ", why.message()));
  };
  Model own = model;
  // --expert_imbalance of isomer-optimize, which is among what the plan assumes.
  if (const double imbalance = AssumedImbalance(plan.model); imbalance > 0) {
    if (const absl::Status given = GiveExpertsRoom(imbalance, &own); !given.ok()) {
      return not_that(given);
    }
  }
  absl::Status same;
  if (plan.mode == "training" && own.loss.empty()) {
    // Of whichever output, or one that is the loss itself.
    for (const Graph::NamedOutput& output : own.graph.outputs()) {
      for (const std::string& kind : {KindOfLoss(plan.model), std::string("none")}) {
        const bool is_single = own.graph.type(output.tensor).rank() == 0;
        if (kind == "none" && !is_single) continue;
        const absl::Status is_this = ExpectTrainedModel(own, kind, output.name, plan, findings);
        if (is_this.ok()) return is_this;
        // What is wrong with a single number is more telling as a loss than below one.
        if (same.ok() || (kind == "none" && is_single)) same = is_this;
      }
    }
  } else {
    same = ExpectTrainedModel(own, "auto", "", plan, findings);
    if (same.ok()) return same;
  }
  return not_that(same);
}

}  // namespace isomer
