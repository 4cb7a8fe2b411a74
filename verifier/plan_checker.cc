#include "verifier/plan_checker.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "pcg/schedule/check.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "verifier/step_replay.h"

namespace isomer {
namespace {

absl::Status Refuse(absl::string_view what, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(what, ": ", why));
}

absl::Status CheckModel(const Plan& plan) {
  const Graph& graph = plan.model.graph;
  if (absl::Status valid = graph.Validate(); !valid.ok()) return Refuse("model", valid.message());
  for (int id = 0; id < graph.num_nodes(); ++id) {
    for (const TensorType& type : graph.node(id).outputs) {
      if (type.IsParallel()) return Refuse("model", graph.Label({id}) + " is parallel already");
    }
  }
  if (plan.seal != SealOf(plan)) {
    return Refuse("seal", "the plan was changed after it was made");
  }
  return absl::OkStatus();
}

// The rule that a step names, if it is what its id says and is proved.
absl::StatusOr<const Rule*> ProvedRule(const RuleSet& rules, const std::string& id,
                                       Prover* reprove) {
  const std::string what = absl::StrCat("rule ", id);
  const Rule* used = rules.Find(id);
  const Rule* base = rules.Find(std::string(absl::StripSuffix(id, "^-1")));
  if (used == nullptr || base == nullptr) return Refuse(what, "not in the rules file");
  Rule named = *base;
  SetId(&named);
  if (named.id != base->id) return Refuse(what, "its id is not that of what it says");
  if (base->proof.verdict != ProofRecord::Verdict::kProved) return Refuse(what, "it has no proof");
  if (reprove != nullptr) {
    const ProofRecord record = reprove->Prove(*base);
    if (record.verdict != ProofRecord::Verdict::kProved) {
      return Refuse(what, absl::StrCat("not proved again: ", record.note));
    }
  }
  return used;
}

absl::StatusOr<Graph> Replay(const Plan& plan, const RuleSet& rules, Prover* reprove) {
  Graph graph = plan.model.graph;
  std::set<std::string> seen;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const std::string& id = plan.steps[s].rule;
    // Each rule's proof is looked at once.
    Prover* prover = seen.insert(id).second ? reprove : nullptr;
    ISOMER_ASSIGN_OR_RETURN(const Rule* rule, ProvedRule(rules, id, prover));
    if (absl::Status replayed = ReplayStep(*rule, plan.steps[s], &graph); !replayed.ok()) {
      return Refuse(absl::StrCat("step ", s, " (rule ", id, ")"), replayed.message());
    }
  }
  if (absl::Status valid = graph.Validate(); !valid.ok()) {
    return Refuse("derivation", valid.message());
  }
  return graph.Canonical();
}

// The first difference between the graph derived and the plan's.
absl::Status CheckSameGraph(const Graph& derived, const Graph& planned) {
  if (derived.num_nodes() != planned.num_nodes()) {
    return Refuse("graph", absl::StrCat("the derivation gives ", derived.num_nodes(),
                                        " nodes, the plan has ", planned.num_nodes()));
  }
  for (int id = 0; id < derived.num_nodes(); ++id) {
    const Node &a = derived.node(id), &b = planned.node(id);
    const bool same_name = !IsLeaf(a.op.kind()) || a.name == b.name;
    if (a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs || !same_name) {
      return Refuse("graph",
                    absl::StrCat(planned.Label({id}), " is not what the derivation gives there, ",
                                 derived.Label({id})));
    }
  }
  for (size_t o = 0; o < derived.outputs().size() || o < planned.outputs().size(); ++o) {
    if (o >= derived.outputs().size() || o >= planned.outputs().size() ||
        derived.outputs()[o].name != planned.outputs()[o].name ||
        derived.outputs()[o].tensor != planned.outputs()[o].tensor) {
      return Refuse("graph", absl::StrCat("output ", o, " is not what the derivation gives"));
    }
  }
  if (derived.StructuralHash() != planned.StructuralHash()) {
    return Refuse("graph", "its structural hash is not that of the derivation");
  }
  return absl::OkStatus();
}

absl::Status CheckViews(const Plan& plan) {
  if (static_cast<int>(plan.views.size()) != plan.graph.num_nodes()) {
    return Refuse("views",
                  absl::StrCat(plan.views.size(), " for ", plan.graph.num_nodes(), " nodes"));
  }
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const absl::Status valid =
        ValidateView(plan.views[id], plan.graph.node(id).outputs[0], plan.num_devices);
    if (!valid.ok()) return Refuse("view of " + plan.graph.Label({id}), valid.message());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlan(const Plan& plan, const RuleSet& rules, Prover* reprove) {
  ISOMER_RETURN_IF_ERROR(CheckModel(plan));
  if (plan.rules_digest != rules.Digest()) {
    return Refuse("rules",
                  absl::StrCat("the plan was made with the rules ", DigestString(plan.rules_digest),
                               ", not with ", DigestString(rules.Digest())));
  }
  ISOMER_ASSIGN_OR_RETURN(const Graph derived, Replay(plan, rules, reprove));
  ISOMER_RETURN_IF_ERROR(CheckSameGraph(derived, plan.graph));
  if (absl::Status valid = plan.graph.Validate(); !valid.ok()) {
    return Refuse("types", valid.message());
  }
  ISOMER_RETURN_IF_ERROR(CheckViews(plan));
  const absl::StatusOr<LoweredPlan> lowered = LowerPlan(plan);
  if (!lowered.ok()) return Refuse("schedule", lowered.status().message());
  if (absl::Status valid = CheckSchedule(lowered->mapped.graph, lowered->schedule); !valid.ok()) {
    return Refuse("schedule", valid.message());
  }
  return absl::OkStatus();
}

}  // namespace isomer
