#include "optimizer/mapping/derivation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/mapping/arranged_weights.h"
#include "optimizer/mapping/copied_call.h"
#include "optimizer/mapping/derivation_memo.h"
#include "optimizer/mapping/detours.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/growing_graph.h"
#include "optimizer/sharding/view_assignment.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class Derivation {
 public:
  Derivation(const MappedModel& mapped, CostTables* tables)
      : mapped_(mapped), tables_(*tables), graph_(mapped.graph), steps_(mapped.steps) {}

  absl::Status Run() {
    const ComputeGraph compute = AnalyzeCompute(mapped_.graph, tables_.options().training);
    std::map<NodeId, ShardingChoice> arranged;
    if (mapped_.copies_arranged) {
      ISOMER_ASSIGN_OR_RETURN(
          arranged, ChoicesOfArrangedWeights(mapped_.graph, compute, mapped_.choices, &tables_));
    }
    std::vector<std::pair<NodeId, ShardingChoice>> copied;
    for (const auto& node : compute.nodes) {
      ++place_;
      place_of_[node.id] = place_;
      const auto it = mapped_.choices.find(node.id);
      const auto of_weight = arranged.find(node.id);
      const bool arranges = of_weight != arranged.end();
      if (it == mapped_.choices.end() && !arranges) continue;
      ISOMER_ASSIGN_OR_RETURN(const ChoiceSpace* space,
                              tables_.Space(graph_.node(node.id).op, node.operand_types));
      ISOMER_ASSIGN_OR_RETURN(const NodeId call,
                              Expand(node.id, *space, arranges ? of_weight->second : it->second));
      ShardingChoice& as_split = calls_[call];
      if (as_split.copies() == 1) continue;
      copied.push_back({call, as_split});
      as_split = WithoutCopies(as_split);
    }
    ChainNormalizer& chains = tables_.derivation_memo()->chains;
    for (const auto& [id, choice] : calls_) {
      const int operands = static_cast<int>(graph_.node(id).inputs.size());
      for (int o = 0; o < operands; ++o) {
        ISOMER_RETURN_IF_ERROR(chains.Normalize(id, o, &graph_, &steps_));
      }
    }
    // Reverse topological: users come before producers.
    for (auto call = copied.rbegin(); call != copied.rend(); ++call) {
      const auto& [id, choice] = *call;
      const std::vector<NodeId> replicates = ReplicatesBehind(id, choice.copies());
      if (replicates.empty()) continue;
      const NodeId replicate =
          replicates.size() == 1 ? replicates[0] : graph_.Merge(replicates, &steps_);
      ISOMER_RETURN_IF_ERROR(Copy(id, replicate, choice));
    }
    return absl::OkStatus();
  }

  absl::Status Fill(CallOrder order, Plan* plan) {
    ISOMER_ASSIGN_OR_RETURN(const Graph graph, std::move(graph_).Build());
    std::vector<NodeId> new_ids;
    plan->graph = graph.Canonical(&new_ids);
    if (order == CallOrder::kModel) {
      ISOMER_ASSIGN_OR_RETURN(plan->graph, InOrderOfModel(plan->graph, &new_ids));
    }
    plan->steps = WithoutDetours(std::move(steps_), graph, tables_.rules().rules());
    std::map<NodeId, const ShardingChoice*> choices;
    for (const auto& [id, choice] : calls_) {
      if (new_ids[id.value].value >= 0) choices[new_ids[id.value]] = &choice;
    }
    plan->views = AssignViews(plan->graph, choices);
    return absl::OkStatus();
  }

 private:
  // Returns the image of the call.
  absl::StatusOr<NodeId> Expand(NodeId id, const ChoiceSpace& space, const ShardingChoice& choice) {
    auto [it, added] =
        tables_.derivation_memo()->splits.try_emplace({&space, choice.axes, choice.degrees});
    DerivationMemo::Split& split = it->second;
    if (added) ISOMER_RETURN_IF_ERROR(SplitByRules(space, choice, &split.steps, &split.call));
    // Operands, then the call itself.
    std::vector<TensorRef> place = graph_.node(id).inputs;
    place.push_back({id, 0});
    const std::string name = graph_.node(id).name;
    graph_.Apply(split.steps, &place, &steps_);
    const NodeId call = place[split.call.id.value].node;
    graph_.set_name(call, name);
    place_of_[call] = place_;
    ShardingChoice& as_split = calls_[call] = choice;
    for (size_t j = 0; j < split.call.order.size(); ++j) {
      as_split.operands[j] = choice.operands[split.call.order[j]];
    }
    return call;
  }

  // `replicate` copies the result of `call`: replaces it by replicated computation, with the choice
  // `choice`. Where no rule proves that of the call, it is computed once, and its result copied.
  absl::Status Copy(NodeId call, NodeId replicate, const ShardingChoice& choice) {
    const Operator op = graph_.node(call).op, copies = graph_.node(replicate).op;
    std::vector<TensorRef> place = graph_.node(call).inputs;
    std::vector<TensorType> operands;
    std::string key = absl::StrCat(op.ToString(), " ", copies.ToString());
    for (TensorRef input : place) {
      operands.push_back(graph_.type(input));
      absl::StrAppend(&key, " ", operands.back().ToString());
    }
    auto& known = tables_.derivation_memo()->copied;
    auto it = known.find(key);
    if (it == known.end()) {
      absl::StatusOr<CopiedCall> made = CopyCall(tables_.rules(), op, operands, copies);
      if (absl::IsNotFound(made.status())) return absl::OkStatus();
      if (!made.ok()) return made.status();
      it = known.emplace(key, *std::move(made)).first;
    }
    place.push_back({call, 0});
    place.push_back({replicate, 0});
    graph_.Apply(it->second.steps, &place, &steps_);
    const auto& [copied, order] = it->second.call;
    const NodeId to = place[copied.value].node;
    place_of_[to] = place_of_.at(call);
    ShardingChoice& as_copied = calls_[to] = choice;
    for (size_t j = 0; j < order.size(); ++j) as_copied.operands[j] = choice.operands[order[j]];
    for (size_t o = 0; o < operands.size(); ++o) {
      ISOMER_RETURN_IF_ERROR(
          tables_.derivation_memo()->chains.Normalize(to, static_cast<int>(o), &graph_, &steps_));
    }
    return absl::OkStatus();
  }

  // Each replicate(copies) of the call's results that a call uses: every user has its own.
  std::vector<NodeId> ReplicatesBehind(NodeId call, int64_t copies) const {
    std::set<NodeId> found;
    for (const auto& [user, choice] : calls_) {
      for (TensorRef input : graph_.node(user).inputs) {
        const Node& node = graph_.node(input.node);
        if (node.op.kind() == OpKind::kReplicate && node.op.Int("degree") == copies &&
            node.inputs[0] == TensorRef{call, 0}) {
          found.insert(input.node);
        }
      }
    }
    return {found.begin(), found.end()};
  }

  // Updates `new_ids`.
  absl::StatusOr<Graph> InOrderOfModel(const Graph& graph, std::vector<NodeId>* new_ids) const {
    constexpr int kNone = std::numeric_limits<int>::max();
    std::vector<int> call_place(graph.num_nodes(), kNone);
    for (const auto& [id, at] : place_of_) {
      const NodeId to = (*new_ids)[id.value];
      if (to.value >= 0) call_place[to.value] = std::min(call_place[to.value], at);
    }
    // Ids are topological; nodes that are no calls of the model precede their first user, leaves
    // come first.
    std::vector<int> place = call_place;
    for (int id = graph.num_nodes() - 1; id >= 0; --id) {
      if (IsLeaf(graph.node({id}).op.kind())) place[id] = -1;
      for (TensorRef input : graph.node({id}).inputs) {
        const int before = input.node.value;
        if (call_place[before] == kNone) place[before] = std::min(place[before], place[id]);
      }
    }
    std::vector<int> order(graph.num_nodes());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return place[a] < place[b]; });
    std::vector<NodeId> moved(graph.num_nodes());
    for (size_t i = 0; i < order.size(); ++i) moved[order[i]] = NodeId{static_cast<int>(i)};
    std::vector<Node> nodes;
    for (int id : order) {
      nodes.push_back(graph.node({id}));
      for (TensorRef& input : nodes.back().inputs) input.node = moved[input.node.value];
    }
    std::vector<Graph::NamedOutput> outputs = graph.outputs();
    for (Graph::NamedOutput& output : outputs) {
      output.tensor.node = moved[output.tensor.node.value];
    }
    for (NodeId& id : *new_ids) {
      if (id.value >= 0) id = moved[id.value];
    }
    return GraphFromParts(std::move(nodes), std::move(outputs));
  }

  const MappedModel& mapped_;
  CostTables& tables_;
  GrowingGraph graph_;
  std::vector<DerivationStep> steps_;
  std::map<NodeId, ShardingChoice> calls_;  // the calls as split
  std::map<NodeId, int> place_of_;          // of calls, in the model's order
  int place_ = -1;
};

}  // namespace

absl::StatusOr<Plan> DerivePlan(const Model& model, const MappedModel& mapped, bool training,
                                CostTables* tables, CallOrder order) {
  Derivation derivation(mapped, tables);
  ISOMER_RETURN_IF_ERROR(derivation.Run());
  Plan plan;
  plan.model = model;
  plan.mode = training ? "training" : "inference";
  const Machine& machine = tables->cost().machine();
  plan.machine = machine.name;
  plan.num_devices = machine.num_devices();
  plan.rules_digest = tables->rules().digest();
  ISOMER_RETURN_IF_ERROR(derivation.Fill(order, &plan));
  return plan;
}

}  // namespace isomer
