// Finds how rules lead from one graph to another.
#ifndef ISOMER_TESTS_DERIVATIONS_DERIVATION_SEARCH_H_
#define ISOMER_TESTS_DERIVATIONS_DERIVATION_SEARCH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

// Whether two graphs have the same outputs, up to equal calls and the order of what Add and Mul
// take.
bool SameGraph(const Graph& a, const Graph& b);

struct SearchLimits {
  int expansions = 400;  // graphs whose neighbours are looked at
  int extra_nodes = 6;   // that a graph on the way may have more than start and goal
};

// Steps that turn `graph` into one that is the same as `goal`, best first by the steps so far
// plus the differences left; applies them to `graph`, which grows and is not made canonical, so
// that chains can be joined. Only rules whose target keeps to the operators of start and goal (and,
// for a parallel goal, Partition and Combine) are tried; degrees and sizes that a target introduces
// are those of the goal. An error: no chain was found, and why the search ended.
absl::StatusOr<std::vector<DerivationStep>> Derive(const RuleSet& rules, const Graph& goal,
                                                   const SearchLimits& limits, Graph* graph);

}  // namespace isomer

#endif  // ISOMER_TESTS_DERIVATIONS_DERIVATION_SEARCH_H_
