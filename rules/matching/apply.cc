// Applying a step: checked in full, because steps also come from files.
#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/status_macros.h"
#include "rules/matching/conditions.h"
#include "rules/matching/match.h"

namespace isomer {
namespace {

absl::Status Mismatch(const Rule& rule, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("rule ", rule.id, " does not match: ", why));
}

// The graph tensor that a source reference stands for under a step.
TensorRef SourceTensor(const DerivationStep& step, PatternRef ref) {
  return ref.node < 0 ? step.inputs[ref.index] : TensorRef{step.nodes[ref.node], ref.index};
}

// Checks that source node n lies where the step says, and notes whether its operands are exchanged.
absl::Status CheckNode(const Rule& rule, const DerivationStep& step, const Graph& graph,
                       const Binding& binding, size_t n, std::vector<bool>* swapped) {
  const PatternNode& pattern = rule.source.nodes[n];
  const Node& node = graph.node(step.nodes[n]);
  const std::string label = graph.Label(step.nodes[n]);
  if (node.op.kind() != pattern.kind || node.inputs.size() != pattern.inputs.size() ||
      !AttributesAgree(pattern, node.op, graph.type(node.inputs[0]).rank(), binding)) {
    return Mismatch(rule, absl::StrCat(label, " is not the operator of source node ", n));
  }
  std::vector<TensorRef> expected;
  for (PatternRef ref : pattern.inputs) expected.push_back(SourceTensor(step, ref));
  swapped->push_back(false);
  if (expected == node.inputs) return absl::OkStatus();
  if (IsCommutative(pattern.kind)) {
    std::swap(expected[0], expected[1]);
    swapped->back() = true;
    if (expected == node.inputs) return absl::OkStatus();
  }
  return Mismatch(rule, absl::StrCat(label, " has other operands than source node ", n));
}

absl::Status CheckNoCycle(const Rule& rule, const DerivationStep& step, const Graph& graph) {
  if (rule.source.outputs.size() < 2) return absl::OkStatus();
  std::set<NodeId> roots;
  for (PatternRef ref : rule.source.outputs) {
    if (ref.node >= 0) roots.insert(step.nodes[ref.node]);
  }
  std::vector<bool> seen(graph.num_nodes(), false);
  std::vector<NodeId> stack;
  for (TensorRef input : step.inputs) stack.push_back(input.node);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (seen[id.value]) continue;
    seen[id.value] = true;
    if (roots.count(id) > 0) {
      return Mismatch(rule, absl::StrCat("an input depends on the output ", graph.Label(id)));
    }
    for (TensorRef input : graph.node(id).inputs) stack.push_back(input.node);
  }
  return absl::OkStatus();
}

// Checks the step against the graph and the rule's conditions.
absl::StatusOr<Binding> CheckStep(const Rule& rule, const DerivationStep& step,
                                  const Graph& graph) {
  ISOMER_ASSIGN_OR_RETURN(Binding binding, BindingOf(graph, rule, step));
  const std::set<NodeId> distinct(step.nodes.begin(), step.nodes.end());
  if (distinct.size() != step.nodes.size()) return Mismatch(rule, "one node matched twice");
  std::vector<bool> swapped;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    ISOMER_RETURN_IF_ERROR(CheckNode(rule, step, graph, binding, n, &swapped));
  }
  for (PatternRef ref : rule.source.outputs) {
    if (!graph.Contains(SourceTensor(step, ref))) return Mismatch(rule, "an output does not exist");
  }
  ISOMER_RETURN_IF_ERROR(CheckNoCycle(rule, step, graph));
  const bool admitted = Admits(rule, binding, [&](int n) {
    const Node& node = graph.node(step.nodes[n]);
    std::vector<TensorType> types;
    for (TensorRef input : node.inputs) types.push_back(graph.type(input));
    if (swapped[n]) std::swap(types[0], types[1]);
    return std::make_pair(node.op, types);
  });
  if (!admitted) return Mismatch(rule, "its ranks or conditions do not admit the step");
  return binding;
}

}  // namespace

absl::StatusOr<Binding> BindingOf(const Graph& graph, const Rule& rule,
                                  const DerivationStep& step) {
  if (step.nodes.size() != rule.source.nodes.size() ||
      static_cast<int>(step.inputs.size()) != rule.num_inputs) {
    return Mismatch(rule, absl::StrCat("the step has ", step.nodes.size(), " nodes and ",
                                       step.inputs.size(), " inputs"));
  }
  Binding binding;
  binding.variables = step.variables;
  binding.numbers = step.numbers;
  for (TensorRef input : step.inputs) {
    if (!graph.Contains(input))
      return Mismatch(rule, absl::StrCat("%", input.node.value, " does not exist"));
    binding.inputs.push_back(graph.type(input));
  }
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const NodeId id = step.nodes[n];
    if (id.value < 0 || id.value >= graph.num_nodes()) {
      return Mismatch(rule, absl::StrCat("%", id.value, " does not exist"));
    }
    for (const AttributePattern& attribute : rule.source.nodes[n].attributes) {
      const auto* variable = std::get_if<AttributeVariable>(&attribute.value);
      const AttributeValue* value = graph.node(id).op.Find(attribute.name);
      if (variable != nullptr && value != nullptr) {
        binding.attributes.emplace(variable->name, *value);
      }
    }
  }
  return binding;
}

absl::Status ApplyStep(const Rule& rule, const DerivationStep& step, Graph* graph) {
  ISOMER_ASSIGN_OR_RETURN(const Binding binding, CheckStep(rule, step, *graph));
  // Everything that can fail is tried on the side, so that an error leaves the graph as it was.
  ISOMER_ASSIGN_OR_RETURN(const Graph target, InstantiatePattern(rule.target, binding));
  for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
    const TensorType& from = graph->type(SourceTensor(step, rule.source.outputs[o]));
    const TensorType& to = target.type(target.outputs()[o].tensor);
    if (from != to) {
      return absl::InvalidArgumentError(absl::StrCat("rule ", rule.id, ": output ", o, " would be ",
                                                     to.ToString(), ", not ", from.ToString()));
    }
  }
  const NodeId first_new{graph->num_nodes()};
  auto tensor = [&](TensorRef ref) {
    return ref.node.value < rule.num_inputs
               ? step.inputs[ref.node.value]
               : TensorRef{{first_new.value + ref.node.value - rule.num_inputs}, ref.output};
  };
  const std::string name =
      NameOfTarget(step, [graph](NodeId id) -> const Node& { return graph->node(id); });
  for (int id = rule.num_inputs; id < target.num_nodes(); ++id) {
    const Node& node = target.node(id);
    std::vector<TensorRef> inputs;
    for (TensorRef input : node.inputs) inputs.push_back(tensor(input));
    ISOMER_RETURN_IF_ERROR(graph->Add(node.op, std::move(inputs), name).status());
  }
  for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
    graph->ReplaceUses(SourceTensor(step, rule.source.outputs[o]),
                       tensor(target.outputs()[o].tensor), first_new);
  }
  return absl::OkStatus();
}

}  // namespace isomer
