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

// What variables are called.
struct CallVariableNames {
  std::string prefix = {};  // before the name of an attribute
  std::string part = "p";   // the sizes of a Split are "p0", "p1", ..
};

// Attributes are variables, but for those named in `constants`. Axes ("a"), numbers and the sizes
// of a Split are variables that conditions could speak of; any other attribute is one as a whole.
// Nullopt: an attribute that no rule can hold as a constant.
std::optional<CallAttributes> AttributesOfCall(const OperatorCall& call,
                                               const CallVariableNames& names,
                                               const std::set<std::string>& constants);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_CALL_ATTRIBUTES_H_
