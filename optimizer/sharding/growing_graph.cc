#include "optimizer/sharding/growing_graph.h"

#include "pcg/support/status_macros.h"
#include "rules/matching/rewrite.h"

namespace isomer {

absl::Status RecordedSteps::Apply(const Rule& rule, DerivationStep step, Graph* graph) {
  const int first = graph->num_nodes();
  ISOMER_RETURN_IF_ERROR(ApplyStep(rule, step, graph));
  Recorded recorded;
  for (int id = first; id < graph->num_nodes(); ++id) recorded.added.push_back(graph->node(id));
  auto tensor = [&](PatternRef ref, auto node_at) {
    return ref.node < 0 ? step.inputs[ref.index] : TensorRef{node_at(ref.node), ref.index};
  };
  for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
    recorded.replaced.emplace_back(
        tensor(rule.source.outputs[o], [&](int n) { return step.nodes[n]; }),
        tensor(rule.target.outputs[o], [&](int n) { return NodeId{first + n}; }));
  }
  recorded.step = std::move(step);
  steps_.push_back(std::move(recorded));
  return absl::OkStatus();
}

GrowingGraph::GrowingGraph(const Graph& graph) : outputs_(graph.outputs()) {
  uses_.resize(graph.num_nodes());
  for (int id = 0; id < graph.num_nodes(); ++id) {
    nodes_.push_back(graph.node(id));
    AddUses(id);
  }
}

void GrowingGraph::AddUses(int id) {
  const std::vector<TensorRef>& inputs = nodes_[id].inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    uses_[inputs[i].node.value].push_back({id, static_cast<int>(i)});
  }
}

void GrowingGraph::Apply(const RecordedSteps& recorded, std::vector<TensorRef>* place,
                         std::vector<DerivationStep>* steps) {
  auto here = [place](TensorRef ref) {
    const TensorRef at = (*place)[ref.node.value];
    return TensorRef{at.node, at.output + ref.output};
  };
  for (const RecordedSteps::Recorded& r : recorded.steps_) {
    DerivationStep step = r.step;
    for (NodeId& id : step.nodes) id = (*place)[id.value].node;
    for (TensorRef& input : step.inputs) input = here(input);
    const int first = num_nodes();
    const std::string name =
        NameOfTarget(step, [this](NodeId id) -> const Node& { return node(id); });
    for (const Node& added : r.added) {
      Node node = added;
      for (TensorRef& input : node.inputs) input = here(input);
      node.name = name;
      place->push_back({NodeId{num_nodes()}, 0});
      nodes_.push_back(std::move(node));
      uses_.emplace_back();
      AddUses(num_nodes() - 1);
    }
    for (const auto& [from, to] : r.replaced) ReplaceUses(here(from), here(to), first);
    steps->push_back(std::move(step));
  }
}

void GrowingGraph::ReplaceUses(TensorRef from, TensorRef to, int end) {
  std::vector<Use> kept;
  const std::vector<Use> uses = std::move(uses_[from.node.value]);
  for (const Use& use : uses) {
    TensorRef& input = nodes_[use.user].inputs[use.operand];
    if (use.user >= end || input != from) {
      kept.push_back(use);
    } else {
      input = to;
      uses_[to.node.value].push_back(use);
    }
  }
  std::vector<Use>& left = uses_[from.node.value];
  left.insert(left.end(), kept.begin(), kept.end());
  for (Graph::NamedOutput& output : outputs_) {
    if (output.tensor == from) output.tensor = to;
  }
}

NodeId GrowingGraph::Merge(const std::vector<NodeId>& equal, std::vector<DerivationStep>* steps) {
  const NodeId merged{num_nodes()};
  const Node one = node(equal[0]);
  nodes_.push_back(one);
  uses_.emplace_back();
  AddUses(merged.value);
  DerivationStep step;
  step.nodes = equal;
  step.calls = {{one.op, one.inputs}};
  for (NodeId id : equal) {
    for (int output = 0; output < static_cast<int>(one.outputs.size()); ++output) {
      step.replaced.push_back({{id, output}, {merged, output}});
      ReplaceUses({id, output}, {merged, output}, merged.value);
    }
  }
  steps->push_back(std::move(step));
  return merged;
}

absl::StatusOr<Graph> GrowingGraph::Build() && {
  return GraphFromParts(std::move(nodes_), std::move(outputs_));
}

}  // namespace isomer
