// Whether two graphs are equal by rules, whatever the order and number of steps.
#ifndef ISOMER_VERIFIER_AUDIT_SATURATION_PROOF_H_
#define ISOMER_VERIFIER_AUDIT_SATURATION_PROOF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pcg/ir/graph.h"
#include "rules/language/rule.h"

namespace isomer {

struct SaturationLimits {
  int iterations = 5;
  int nodes = 3000;  // calls in the e-graph
};

// The ids of rules that make the outputs of both graphs equal, and of which none can be left out;
// nullopt: not found within the limits. Both graphs go into one e-graph, to which the rules are
// applied as equations. Unlike a step of a derivation, an application may take one call for two of
// its pattern: add(x, x) is an add of two. REQUIRES: the graphs have the same inputs.
std::optional<std::vector<std::string>> EqualBySaturation(const std::vector<const Rule*>& rules,
                                                          const std::vector<int64_t>& degrees,
                                                          const Graph& source, const Graph& target,
                                                          const SaturationLimits& limits);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_SATURATION_PROOF_H_
