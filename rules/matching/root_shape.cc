#include "rules/matching/root_shape.h"

#include "pcg/ir/operator_traits.h"
#include "rules/matching/matcher.h"

namespace isomer {

std::optional<RootShape> RootShapeOf(const Pattern& pattern) {
  const int first = FirstRootOf(pattern);
  if (first < 0) return std::nullopt;
  const PatternNode& root = pattern.nodes[pattern.outputs[first].node];
  RootShape shape{root.kind, {}};
  for (PatternRef ref : root.inputs) {
    shape.operands.push_back(ref.node < 0 ? std::nullopt
                                          : std::optional(pattern.nodes[ref.node].kind));
  }
  return shape;
}

bool HasShape(const Graph& graph, NodeId id, const RootShape& shape) {
  const Node& node = graph.node(id);
  if (node.inputs.size() != shape.operands.size()) return false;
  const auto fits = [&](size_t operand, size_t place) {
    return !shape.operands[place].has_value() ||
           graph.node(node.inputs[operand].node).op.kind() == *shape.operands[place];
  };
  bool straight = true;
  for (size_t o = 0; o < node.inputs.size(); ++o) straight = straight && fits(o, o);
  return straight || (IsCommutative(node.op.kind()) && fits(0, 1) && fits(1, 0));
}

}  // namespace isomer
