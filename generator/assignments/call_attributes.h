// The attributes of a call as a rule writes them.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_CALL_ATTRIBUTES_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_CALL_ATTRIBUTES_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generator/assignments/sample_calls.h"
#include "rules/language/rule.h"

namespace isomer {

struct CallAttributes {
  std::vector<AttributePattern> attributes;
  std::vector<RuleVariable> variables;
  Binding binding;  // of the variables, to what they are at the call
};

// Attributes are variables, but for those named in `constants`. Axes ("a"), numbers and the sizes
// of a Split ("p0", "p1") are variables that conditions could speak of; any other attribute is one
// as a whole, named after it with `prefix`. Nullopt: an attribute that no rule can hold as a
// constant.
std::optional<CallAttributes> AttributesOfCall(const SampleCall& call, const std::string& prefix,
                                               const std::set<std::string>& constants);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_CALL_ATTRIBUTES_H_
