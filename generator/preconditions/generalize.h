// From a pair of equal graphs with constants to a rule with variables.
//
// Degrees become variables, as many different ones as the rule bears; axes, factors and the sizes
// of Splits likewise. Assignments of variables are tried from the most general down to the
// constants as found, and the first that settles (settle.h) is the rule. Sizes of a Split become
// variables of their own or the sizes of inputs, whichever holds for inputs that differ in all
// sizes.
#ifndef ISOMER_GENERATOR_PRECONDITIONS_GENERALIZE_H_
#define ISOMER_GENERATOR_PRECONDITIONS_GENERALIZE_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generator/assignments/sampler.h"
#include "generator/assignments/type_oracle.h"
#include "rules/language/rule.h"

namespace isomer {

// Two patterns that were found to be equal on inputs of the types `inputs` had.
struct Candidate {
  Pattern source, target;          // attributes are constants
  std::vector<TensorType> inputs;  // where they were found
  std::string origin;
};

// A rule, an assignment to start from when it is tried again, and what it generalises (no nodes: a
// family).
struct GeneralRule {
  Rule rule;
  Binding found;
  Candidate candidate = {};
};

// Nullopt: it does not generalise beyond the shapes and degrees at which it was found.
// `except`: patterns (as PatternsText has them) that are known to be too general.
std::optional<GeneralRule> Generalize(const Candidate& candidate, TypeOracle* oracle,
                                      Random* random, const std::set<std::string>& except = {});

// Source and target, without conditions.
std::string PatternsText(const Rule& rule);

// The candidate as a rule without variables, at the ranks of its inputs.
Rule ConstantRule(const Candidate& candidate);

// The candidate from target to source.
Candidate Reversed(const Candidate& candidate);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PRECONDITIONS_GENERALIZE_H_
