#include "verifier/mutation/plan_changes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/hash.h"
#include "rules/matching/rewrite.h"

namespace isomer {
namespace {

constexpr int kSteps = 5;
constexpr int64_t kMaxShards = 8;

int64_t MostShards(const Graph& graph) {
  int64_t most = 1;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    for (const TensorType& type : graph.node(id).outputs) most = std::max(most, type.NumShards());
  }
  return most;
}

}  // namespace

Certified DeriveCertified(const Model& model, const std::vector<const Rule*>& rules,
                          uint64_t seed) {
  Certified made;
  made.plan.model = model;
  made.plan.mode = model.loss.empty() ? "inference" : "training";
  made.plan.machine = "none";
  std::vector<std::pair<uint64_t, const Rule*>> order;
  for (const Rule* rule : rules) {
    if (!rule->source.nodes.empty()) order.emplace_back(HashBytes(rule->id, seed), rule);
  }
  std::sort(order.begin(), order.end());
  Graph graph = model.graph;
  for (const auto& [place, rule] : order) {
    Binding given;
    for (const RuleVariable& variable : rule->variables) {
      if (variable.kind == VariableKind::kDegree) given.variables[variable.name] = 2;
    }
    for (const DerivationStep& step : FindMatches(graph, *rule, given)) {
      Graph next = graph;
      if (!ApplyStep(*rule, step, &next).ok() || MostShards(next) > kMaxShards) continue;
      graph = std::move(next);
      made.plan.steps.push_back(step);
      made.rules.rules.push_back(*rule);
      break;
    }
    if (made.plan.steps.size() == kSteps) break;
  }
  // Rules that the plan does not use: a step may claim to be one of them.
  for (size_t i = 0; i < order.size() && i < 4; ++i) made.rules.rules.push_back(*order[i].second);
  std::sort(made.rules.rules.begin(), made.rules.rules.end(),
            [](const Rule& a, const Rule& b) { return a.id < b.id; });
  made.rules.rules.erase(std::unique(made.rules.rules.begin(), made.rules.rules.end(),
                                     [](const Rule& a, const Rule& b) { return a.id == b.id; }),
                         made.rules.rules.end());
  made.rules.BuildIndex();
  made.plan.graph = graph.Canonical();
  for (int id = 0; id < made.plan.graph.num_nodes(); ++id) {
    made.plan.views.push_back(RowMajorView(made.plan.graph.node(id).outputs[0]));
  }
  made.plan.num_devices = MostShards(made.plan.graph);
  made.plan.rules_digest = made.rules.Digest();
  made.plan.seal = SealOf(made.plan);
  return made;
}

namespace {

void ChangeNodes(Plan* plan, const std::function<void(std::vector<Node>*)>& change) {
  std::vector<Node> nodes;
  for (int id = 0; id < plan->graph.num_nodes(); ++id) nodes.push_back(plan->graph.node(id));
  change(&nodes);
  absl::StatusOr<Graph> graph = GraphFromParts(nodes, plan->graph.outputs());
  // What is no graph cannot be loaded from a file either: an empty one stands for it.
  plan->graph = graph.ok() ? *std::move(graph) : Graph();
}

// The plan without node `id`, whose uses take its operand.
void DropNode(Plan* plan, int id) {
  const TensorRef from{{id}, 0}, to = plan->graph.node(id).inputs[0];
  std::vector<Node> nodes;
  for (int n = 0; n < plan->graph.num_nodes(); ++n) nodes.push_back(plan->graph.node(n));
  std::vector<Graph::NamedOutput> outputs = plan->graph.outputs();
  for (Node& node : nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  for (Graph::NamedOutput& output : outputs) {
    if (output.tensor == from) output.tensor = to;
  }
  absl::StatusOr<Graph> graph = GraphFromParts(nodes, outputs);
  std::vector<NodeId> new_ids;
  const Graph kept = graph.ok() ? graph->Canonical(&new_ids) : Graph();
  std::vector<MachineView> views(kept.num_nodes());
  for (size_t n = 0; n < new_ids.size(); ++n) {
    if (new_ids[n].value >= 0) views[new_ids[n].value] = plan->views[n];
  }
  plan->graph = kept;
  plan->views = views;
}

using PlanEdit = std::function<void(Plan*)>;

class PlanChanges {
 public:
  explicit PlanChanges(const Certified& base) : plan_(base.plan), rules_(base.rules) {}

  std::vector<PlanChange> Run() {
    for (size_t s = 0; s < plan_.steps.size(); ++s) ChangeStep(s);
    for (int id = 0; id < plan_.graph.num_nodes(); ++id) ChangeNode(id);
    // Of a plan that was changed before, there may be more or fewer views than nodes.
    const size_t views = std::min(plan_.views.size(), static_cast<size_t>(plan_.graph.num_nodes()));
    for (size_t id = 0; id < views; ++id) ChangeView(id);
    if (!plan_.views.empty()) Keep("one view less", [](Plan* plan) { plan->views.pop_back(); });
    Keep("one device less", [](Plan* plan) { plan->num_devices -= 1; });
    Keep("other rules", [](Plan* plan) { plan->rules_digest += 1; });
    Keep("no steps", [](Plan* plan) { plan->steps.clear(); });
    return std::move(found_);
  }

 private:
  void Keep(const std::string& what, PlanEdit change) {
    found_.push_back({what, std::move(change)});
  }

  void ChangeStep(size_t s) {
    const DerivationStep& step = plan_.steps[s];
    const std::string where = absl::StrCat("step ", s, ": ");
    Keep(where + "dropped",
         [s](Plan* plan) { plan->steps.erase(plan->steps.begin() + static_cast<int64_t>(s)); });
    Keep(where + "twice", [s](Plan* plan) {
      const DerivationStep again = plan->steps[s];
      plan->steps.insert(plan->steps.begin() + static_cast<int64_t>(s), again);
    });
    if (s > 0) {
      Keep(where + "exchanged with the one before",
           [s](Plan* plan) { std::swap(plan->steps[s - 1], plan->steps[s]); });
    }
    for (const Rule& rule : rules_.rules) {
      if (rule.id == step.rule) continue;
      Keep(where + "by rule " + rule.id,
           [s, id = rule.id](Plan* plan) { plan->steps[s].rule = id; });
    }
    for (const auto& [name, value] : step.variables) {
      for (int64_t other : {value + 1, value * 2, int64_t{1}, -value}) {
        if (other == value) continue;
        Keep(absl::StrCat(where, name, " = ", other),
             [s, n = name, other](Plan* plan) { plan->steps[s].variables[n] = other; });
      }
    }
    for (size_t n = 0; n < step.nodes.size(); ++n) {
      Keep(absl::StrCat(where, "node ", n, " is the next"),
           [s, n](Plan* plan) { plan->steps[s].nodes[n].value += 1; });
    }
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      Keep(absl::StrCat(where, "input ", i, " is the next"),
           [s, i](Plan* plan) { plan->steps[s].inputs[i].node.value += 1; });
    }
  }

  void ChangeNode(int id) {
    const Node& node = plan_.graph.node(id);
    const std::string where = plan_.graph.Label({id}) + ": ";
    auto keep = [&](const std::string& what, const std::function<void(Node*)>& change) {
      Keep(where + what, [id, change](Plan* plan) {
        ChangeNodes(plan, [&](std::vector<Node>* nodes) { change(&(*nodes)[id]); });
      });
    };
    if (IsParallel(node.op.kind())) {
      Keep(where + "dropped", [id](Plan* plan) { DropNode(plan, id); });
    }
    if (node.op.Find("degree") != nullptr) {
      keep("another degree",
           [](Node* changed) { changed->op.Set("degree", changed->op.Int("degree") * 2); });
    }
    if (node.op.Find("axis") != nullptr) {
      keep("another axis",
           [](Node* changed) { changed->op.Set("axis", changed->op.Int("axis") == 0 ? 1 : 0); });
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      for (int other = 0; other < id; ++other) {
        if (node.inputs[i].node.value == other) continue;
        if (plan_.graph.node(other).outputs[0] != plan_.graph.type(node.inputs[i])) continue;
        keep(absl::StrCat("operand ", i, " is %", other), [i, other](Node* changed) {
          changed->inputs[i] = {{other}, 0};
        });
      }
    }
    if (node.inputs.size() > 1) {
      keep("operands exchanged",
           [](Node* changed) { std::swap(changed->inputs[0], changed->inputs[1]); });
    }
    for (size_t i = 0; i < node.outputs[0].dims.size() && i < 2; ++i) {
      keep("its type has another degree",
           [i](Node* changed) { changed->outputs[0].dims[i].degree *= 2; });
    }
    keep("its type has more copies", [](Node* changed) { changed->outputs[0].copies *= 2; });
    keep("its type has more partials", [](Node* changed) { changed->outputs[0].partials *= 2; });
  }

  void ChangeView(size_t id) {
    const std::string where =
        absl::StrCat("view of ", plan_.graph.Label({static_cast<int>(id)}), ": ");
    Keep(where + "starts at the next device", [id](Plan* plan) { plan->views[id].start += 1; });
    Keep(where + "starts outside", [id](Plan* plan) { plan->views[id].start = plan->num_devices; });
    if (!plan_.views[id].strides.empty()) {
      Keep(where + "one stride less", [id](Plan* plan) { plan->views[id].strides.pop_back(); });
    }
    for (size_t i = 0; i < plan_.views[id].outer.size(); ++i) {
      Keep(where + "without its outer stride", [id, i](Plan* plan) {
        plan->views[id].outer.erase(plan->views[id].outer.begin() + static_cast<int64_t>(i));
      });
      Keep(where + "an outer stride of 0",
           [id, i](Plan* plan) { plan->views[id].outer[i].stride = 0; });
      Keep(where + "periods of one device",
           [id, i](Plan* plan) { plan->views[id].outer[i].period = 1; });
      Keep(where + "an outer stride of no axis",
           [id, i](Plan* plan) { plan->views[id].outer[i].axis = -1; });
    }
    const TensorType& type = plan_.graph.node(static_cast<int>(id)).outputs[0];
    for (size_t axis = 0; axis < plan_.views[id].strides.size(); ++axis) {
      const bool walks = axis < type.dims.size()    ? type.dims[axis].degree > 1
                         : axis == type.dims.size() ? type.copies > 1
                                                    : type.partials > 1;
      // The stride of an axis of one task means nothing.
      if (!walks) continue;
      Keep(absl::StrCat(where, "two tasks on a device, axis ", axis),
           [id, axis](Plan* plan) { plan->views[id].strides[axis] = 0; });
    }
  }

  const Plan& plan_;
  const RuleSet& rules_;
  std::vector<PlanChange> found_;
};

}  // namespace

std::vector<PlanChange> ChangesOf(const Certified& certified) {
  return PlanChanges(certified).Run();
}

}  // namespace isomer
