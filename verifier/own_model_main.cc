#include "verifier/own_model_main.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/loss.h"
#include "models/prepare_model.h"
#include "pcg/ir/expert_room.h"
#include "pcg/ir/states.h"
#include "verifier/plans/model_match.h"

namespace isomer {
namespace {

// Seeks the options with which PrepareModel makes the plan's model of `own`. It is PrepareModel
// that is called, so that whatever it does to every model is done here, too.
class PreparationSearch {
 public:
  PreparationSearch(const Model& own, const std::string& spec, const Plan& plan)
      : own_(own), spec_(spec), plan_(plan) {
    options_.training = plan.mode == "training";
    options_.expert_imbalance = AssumedImbalance(plan.model);
  }

  absl::Status Run(OwnModelFindings* findings) {
    for (const bool unfused : {false, true}) {
      options_.unfused_attention = unfused;
      findings->unfused_attention = unfused;
      if (options_.training ? FindsTraining(findings) : FindsInference(findings)) {
        return absl::OkStatus();
      }
    }
    return difference_;
  }

 private:
  // A loss of whichever output, or one that is the loss itself.
  std::vector<std::string> Losses() const {
    if (!own_.loss.empty()) return {"auto"};
    std::vector<std::string> losses;
    for (const Graph::NamedOutput& output : own_.graph.outputs()) {
      losses.push_back(absl::StrCat(KindOfLoss(plan_.model), ":", output.name));
      if (own_.graph.type(output.tensor).rank() == 0) {
        losses.push_back(absl::StrCat("none:", output.name));
      }
    }
    return losses;
  }

  bool FindsTraining(OwnModelFindings* findings) {
    for (std::string& loss : Losses()) {
      options_.loss = std::move(loss);
      options_.loss_alone = false;
      std::optional<Model> model = Prepared();
      if (!model) continue;
      const auto others = static_cast<int>(model->graph.outputs().size()) - 1;
      findings->outputs_left_out = 0;
      findings->loss = LossText(*model);
      if (matches_) return true;
      if (others == 0 || plan_.model.graph.outputs().size() > 1) continue;
      options_.loss_alone = true;
      findings->outputs_left_out = others;
      if (Prepared() && matches_) return true;
    }
    return false;
  }

  bool FindsInference(OwnModelFindings* findings) {
    options_.carry = {};
    const std::optional<Model> by_name = Prepared();
    if (by_name && matches_) {
      const size_t states = StatesOf(by_name->graph).size();
      const bool has_more = states > StatesOf(own_.graph).size();
      findings->states_by_name = has_more ? static_cast<int>(states) : 0;
      return true;
    }
    options_.carry = {"none"};
    if (Prepared() && matches_) return true;
    // What is a state already is one by its name.
    std::set<std::string> states;
    for (const State& state : StatesOf(own_.graph)) states.insert(state.name);
    std::vector<std::string> carry;
    const auto &here = own_.graph.outputs(), &there = plan_.model.graph.outputs();
    for (size_t o = 0; here.size() == there.size() && o < here.size(); ++o) {
      if (here[o].name == there[o].name || states.contains(here[o].name)) continue;
      carry.push_back(absl::StrCat(here[o].name, ":", there[o].name));
    }
    if (carry.empty()) return false;
    options_.carry = carry;
    findings->carried = std::move(carry);
    return Prepared() && matches_;
  }

  // The model of `options_`, where there is one; sets whether it `matches_`. The first difference
  // is that of the first, or of one with as many nodes as the plan's, which is more telling.
  std::optional<Model> Prepared() {
    Model model = own_;
    std::vector<std::string> notes;
    absl::Status same = PrepareModel(spec_, options_, &model, &notes);
    const bool is_prepared = same.ok();
    if (is_prepared) same = ExpectSameModel(model, plan_.model);
    matches_ = same.ok();
    const bool is_near = is_prepared && model.graph.num_nodes() == plan_.model.graph.num_nodes();
    if (difference_.ok() || (is_near && !difference_is_near_)) {
      difference_ = same;
      difference_is_near_ = is_near;
    }
    return is_prepared ? std::optional(std::move(model)) : std::nullopt;
  }

  const Model& own_;
  const std::string& spec_;
  const Plan& plan_;
  PrepareOptions options_;
  bool matches_ = false;
  absl::Status difference_;
  bool difference_is_near_ = false;
};

}  // namespace

absl::Status ExpectOwnModel(const Model& model, const std::string& spec, const Plan& plan,
                            OwnModelFindings* findings) {
  const absl::Status same = PreparationSearch(model, spec, plan).Run(findings);
  if (same.ok()) return same;
  return absl::FailedPreconditionError(
      absl::StrCat("model: not that of ", spec, ": ", same.message()));
}

}  // namespace isomer
