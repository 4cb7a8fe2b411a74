// Rules by hand for tests of the search: what the generator finds, for just the calls at hand.
#ifndef ISOMER_TESTS_OPTIMIZER_EXAMPLE_RULES_H_
#define ISOMER_TESTS_OPTIMIZER_EXAMPLE_RULES_H_

#include "pcg/ir/graph.h"
#include "rules/language/rule.h"

namespace isomer {

// Expansions of every splittable dim of every call of `graph`, cancellations and commutations of
// parallel operators, and algebra: two products that share an operand become one, and a Scale
// moves over a product.
RuleSet ExampleRules(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_TESTS_OPTIMIZER_EXAMPLE_RULES_H_
