// What a node must look like to be the first root of a match: what most nodes fail by, and what
// rules are sorted by.
#ifndef ISOMER_RULES_MATCHING_ROOT_SHAPE_H_
#define ISOMER_RULES_MATCHING_ROOT_SHAPE_H_

#include <optional>
#include <vector>

#include "pcg/ir/graph.h"
#include "rules/language/rule.h"

namespace isomer {

struct RootShape {
  OpKind kind;
  std::vector<std::optional<OpKind>> operands;  // nullopt: an input of the rule, of any kind
};

// Of the node of the pattern's first output that a node computes; nullopt: none does (x0 -> ..).
std::optional<RootShape> RootShapeOf(const Pattern& pattern);

// Whether a node has operands of such kinds, in either order if they may be exchanged. REQUIRES: it
// is of that kind.
bool HasShape(const Graph& graph, NodeId id, const RootShape& shape);

}  // namespace isomer

#endif  // ISOMER_RULES_MATCHING_ROOT_SHAPE_H_
