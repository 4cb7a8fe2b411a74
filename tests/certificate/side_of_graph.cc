#include "tests/certificate/side_of_graph.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "pcg/evaluation/evaluator.h"

namespace isomer {

ConcreteSide SideOfGraph(const Graph& graph) {
  ConcreteSide side;
  std::map<NodeId, PatternRef> places;
  int inputs = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(NodeId{id});
    if (IsLeaf(node.op.kind())) {
      places[NodeId{id}] = PatternRef::Input(inputs++);
      continue;
    }
    ConcreteCall call{node.op, {}, {}};
    for (TensorRef input : node.inputs) {
      const PatternRef made = places.at(input.node);
      call.inputs.push_back(made.node < 0 ? made : PatternRef::Node(made.node, input.output));
      call.operands.push_back(graph.type(input).GlobalShape());
    }
    places[NodeId{id}] = PatternRef::Node(static_cast<int>(side.calls.size()));
    side.calls.push_back(std::move(call));
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    const PatternRef made = places.at(output.tensor.node);
    side.outputs.push_back(made.node < 0 ? made
                                         : PatternRef::Node(made.node, output.tensor.output));
  }
  return side;
}

std::vector<double> OutputOfRandomLeaves(const Graph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 2);
  std::map<NodeId, Value<double>> leaves;
  for (int n = 0; n < graph.num_nodes(); ++n) {
    if (!IsLeaf(graph.node(n).op.kind())) continue;
    Array<double> array(graph.node(n).outputs[0].Sizes());
    for (double& x : array.data) x = normal(random);
    leaves[NodeId{n}] = {graph.node(n).outputs[0], {std::move(array)}};
  }
  const Values<double> values = EvaluateGraph<double>(graph, leaves).value();
  return values[graph.outputs()[0].tensor.node.value][0].parts[0].data;
}

}  // namespace isomer
