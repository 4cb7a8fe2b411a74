// Whether rules of ours lead from one side of a rule to the other.
#ifndef ISOMER_VERIFIER_AUDIT_DERIVABLE_H_
#define ISOMER_VERIFIER_AUDIT_DERIVABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "pcg/ir/graph.h"
#include "rules/language/rule.h"
#include "verifier/audit/saturation_proof.h"

namespace isomer {

struct DerivationLimits {
  int max_steps = 3;
  int max_graphs = 4000;  // on the way, in all
  SaturationLimits saturation;
};

struct RulesUsed {
  std::vector<std::string> ids;  // of the steps in order; by saturation: each once
  bool by_saturation = false;
};

// How rules lead from `source` to `target`: in at most max_steps steps, or by equality saturation,
// or nullopt. Rules are equations: they are applied from both sides until the two meet, and a step
// from the target is marked "from the target". Only rules whose result keeps to the operators and
// degrees of the two sides are tried. REQUIRES: BuildIndex was called on `rules`; the graphs have
// the same inputs.
std::optional<RulesUsed> Derivation(const RuleSet& rules, const Graph& source, const Graph& target,
                                    const DerivationLimits& limits);

// An assignment at which the rule's two sides are graphs, with sizes above 1 where there is one.
std::optional<Binding> RepresentativeInstance(const Rule& rule);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_DERIVABLE_H_
