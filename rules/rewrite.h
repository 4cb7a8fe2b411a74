// Matching and rewriting: how a rule is used on a graph.
#ifndef ISOMER_RULES_REWRITE_H_
#define ISOMER_RULES_REWRITE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/plan.h"
#include "rules/rule.h"

namespace isomer {

// A match of rule.source: the step that would apply it. Pattern variables are bound to graph
// tensors and attributes; conditions hold; inner tensors of the pattern may have other users (they
// stay). Variables that occur in the target alone (an introduced degree) must be given in `given`.
// Matches are in order of node ids. `near`: if not empty, only matches that use one of these nodes.
std::vector<DerivationStep> FindMatches(const Graph& graph, const Rule& rule,
                                        const Binding& given = {},
                                        const std::vector<NodeId>& near = {});

// Applies a step in place: adds the target's nodes (reusing nothing), then redirects the uses of
// the source outputs. Ids of new nodes follow the graph's last, in target pattern order.
// Errors: the step does not match, conditions fail, the target does not type-check or has other
// output types. On error the graph is unchanged.
absl::Status ApplyStep(const Rule& rule, const DerivationStep& step, Graph* graph);

// The binding (types, variables) that a step stands for.
Binding BindingOf(const Graph& graph, const DerivationStep& step);

}  // namespace isomer

#endif  // ISOMER_RULES_REWRITE_H_
