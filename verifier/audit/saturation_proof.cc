#include "verifier/audit/saturation_proof.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pcg/ir/operator_traits.h"
#include "rules/equality/egraph.h"
#include "rules/equality/saturation.h"

namespace isomer {
namespace {

// Both sides over the same inputs; the outputs of the second follow those of the first.
struct BothSides {
  Graph graph;
  std::vector<TensorRef> source, target;
};

std::vector<TensorRef> AddSide(const Graph& side, const std::vector<TensorRef>& inputs,
                               Graph* graph) {
  std::vector<std::vector<TensorRef>> tensors(side.num_nodes());
  size_t next = 0;
  for (NodeId id{0}; id.value < side.num_nodes(); ++id.value) {
    const Node& node = side.node(id);
    if (IsLeaf(node.op.kind())) {
      tensors[id.value] = {inputs[next++]};
      continue;
    }
    std::vector<TensorRef> operands;
    for (TensorRef input : node.inputs) {
      operands.push_back(tensors[input.node.value][input.output]);
    }
    const NodeId added = *graph->Add(node.op, std::move(operands), node.name);
    for (int o = 0; o < static_cast<int>(node.outputs.size()); ++o) {
      tensors[id.value].push_back({added, o});
    }
  }
  std::vector<TensorRef> outputs;
  for (const Graph::NamedOutput& output : side.outputs()) {
    outputs.push_back(tensors[output.tensor.node.value][output.tensor.output]);
  }
  return outputs;
}

BothSides Joined(const Graph& source, const Graph& target) {
  BothSides both;
  std::vector<TensorRef> inputs;
  for (NodeId id{0}; id.value < source.num_nodes(); ++id.value) {
    const Node& node = source.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    inputs.push_back(both.graph.AddInput(node.name, node.outputs[0]));
  }
  both.source = AddSide(source, inputs, &both.graph);
  both.target = AddSide(target, inputs, &both.graph);
  int number = 0;
  for (const std::vector<TensorRef>* side : {&both.source, &both.target}) {
    for (TensorRef output : *side) both.graph.AddOutput("y" + std::to_string(number++), output);
  }
  return both;
}

// The rules that were applied until the sides met, or nullopt: they did not.
std::optional<std::set<const Rule*>> Meet(const BothSides& both,
                                          const std::vector<const Rule*>& rules,
                                          const std::vector<int64_t>& degrees, int iterations,
                                          int nodes) {
  EGraph egraph(both.graph, /*training=*/true);
  SaturationOptions options;
  options.iterations = iterations;
  options.nodes = nodes;
  options.matches = nodes;
  options.joint_matches = nodes;
  options.shares_calls = true;
  options.degrees = degrees;
  // Smaller terms first.
  const auto us_of = [](const Operator&, const std::vector<TensorType>&) { return 1.0; };
  const auto never = [] { return false; };
  Saturation(rules, options, us_of, never, &egraph).Run();
  for (size_t o = 0; o < both.source.size(); ++o) {
    if (egraph.ClassOf(both.source[o]) != egraph.ClassOf(both.target[o])) return std::nullopt;
  }
  std::set<const Rule*> used;
  for (const Application& application : egraph.applications()) used.insert(application.rule);
  return used;
}

}  // namespace

std::optional<std::vector<std::string>> EqualBySaturation(const std::vector<const Rule*>& rules,
                                                          const std::vector<int64_t>& degrees,
                                                          const Graph& source, const Graph& target,
                                                          const SaturationLimits& limits) {
  const BothSides both = Joined(source, target);
  for (int iterations = 1; iterations <= limits.iterations; ++iterations) {
    const auto used = Meet(both, rules, degrees, iterations, limits.nodes);
    if (!used) continue;
    std::vector<const Rule*> needed;
    for (const Rule* rule : rules) {
      if (used->contains(rule)) needed.push_back(rule);
    }
    for (size_t i = needed.size(); i-- > 0;) {
      std::vector<const Rule*> fewer = needed;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (Meet(both, fewer, degrees, iterations, limits.nodes)) needed = std::move(fewer);
    }
    std::vector<std::string> ids;
    for (const Rule* rule : needed) ids.push_back(rule->id);
    return ids;
  }
  return std::nullopt;
}

}  // namespace isomer
