#include "optimizer/derivation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/chain.h"
#include "optimizer/compute_graph.h"
#include "optimizer/view_assignment.h"
#include "pcg/support/status_macros.h"
#include "rules/rewrite.h"

namespace isomer {
namespace {

class Derivation {
 public:
  Derivation(const MappedModel& mapped, CostTables* tables)
      : mapped_(mapped), tables_(*tables), graph_(mapped.graph), steps_(mapped.steps) {}

  absl::Status Run() {
    for (const auto& node : AnalyzeCompute(mapped_.graph).nodes) {
      auto it = mapped_.choices.find(node.id);
      if (it == mapped_.choices.end()) continue;
      ISOMER_ASSIGN_OR_RETURN(const CallTables* call,
                              tables_.Call(graph_.node(node.id).op, node.operand_types));
      ISOMER_RETURN_IF_ERROR(Expand(node.id, call->space, it->second));
    }
    ChainNormalizer chains(tables_.rules());
    for (const auto& [id, choice] : calls_) {
      const int operands = static_cast<int>(graph_.node(id).inputs.size());
      for (int o = 0; o < operands; ++o) {
        ISOMER_RETURN_IF_ERROR(chains.Normalize(id, o, &graph_, &steps_));
      }
    }
    return absl::OkStatus();
  }

  void Fill(Plan* plan) {
    std::vector<NodeId> new_ids;
    plan->graph = graph_.Canonical(&new_ids);
    plan->steps = std::move(steps_);
    std::map<NodeId, const ShardingChoice*> choices;
    for (const auto& [id, choice] : calls_) {
      if (new_ids[id.value].value >= 0) choices[new_ids[id.value]] = &choice;
    }
    plan->views = AssignViews(plan->graph, choices);
  }

 private:
  absl::Status Expand(NodeId id, const ChoiceSpace& space, const ShardingChoice& choice) {
    const std::string name = graph_.node(id).name;
    ISOMER_ASSIGN_OR_RETURN(const SplitCall call,
                            SplitByRules(space, choice, id, &graph_, &steps_));
    graph_.set_name(call.id, name);
    ShardingChoice& split = calls_[call.id] = choice;
    for (size_t j = 0; j < call.order.size(); ++j) {
      split.operands[j] = choice.operands[call.order[j]];
    }
    return absl::OkStatus();
  }

  const MappedModel& mapped_;
  CostTables& tables_;
  Graph graph_;
  std::vector<DerivationStep> steps_;
  std::map<NodeId, ShardingChoice> calls_;  // the calls as split
};

}  // namespace

absl::StatusOr<Plan> DerivePlan(const Model& model, const MappedModel& mapped, bool training,
                                CostTables* tables) {
  Derivation derivation(mapped, tables);
  ISOMER_RETURN_IF_ERROR(derivation.Run());
  Plan plan;
  plan.model = model;
  plan.mode = training ? "training" : "inference";
  const Machine& machine = tables->cost().machine();
  plan.machine = machine.name;
  plan.num_devices = machine.num_devices();
  plan.rules_digest = tables->rules().rules().Digest();
  derivation.Fill(&plan);
  return plan;
}

}  // namespace isomer
