// A derivation without the steps that undo one another: matmul -> linear, and later that
// linear -> matmul. A search among graphs that take equally long goes there and back, and equality
// saturation makes whatever its next step wants to match; such steps say nothing to who reads a
// plan.
#ifndef ISOMER_OPTIMIZER_MAPPING_DETOURS_H_
#define ISOMER_OPTIMIZER_MAPPING_DETOURS_H_

#include <vector>

#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

// Drops pairs of steps of which the later makes anew the calls that the earlier replaced, while no
// step that stays matches what lay between. The others lead to the same graph. `graph`: after all
// steps, with what they replaced, by their ids. Linear in the steps.
std::vector<DerivationStep> WithoutDetours(std::vector<DerivationStep> steps, const Graph& graph,
                                           const RuleSet& rules);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_DETOURS_H_
