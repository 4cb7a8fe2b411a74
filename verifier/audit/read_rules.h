// Reading the rule files of other optimizers. Each rule is checked (CheckAndSort); an error is one
// line that names file, rule and operator:
//   "graph_subst.pb: rule 3: target operator 1 (OP_CONCAT): PM_AXIS is 1000000000, not 0 to 7"
#ifndef ISOMER_VERIFIER_AUDIT_READ_RULES_H_
#define ISOMER_VERIFIER_AUDIT_READ_RULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "verifier/audit/foreign_rule.h"

namespace isomer {

// TASO's graph_subst.pb: a serialized RuleCollection. A name that ends in .txt or .textproto is
// read as the text form of the same message (verifier/audit/foreign.proto). Rules are named by
// their place: "rule 0".
absl::StatusOr<std::vector<ForeignRule>> ReadTasoRules(const std::string& path);

// FlexFlow's JSON: {"rule": [{"name", "srcOp", "dstOp", "mappedOutput"}]}.
absl::StatusOr<std::vector<ForeignRule>> ReadUnityRules(const std::string& path);

// The formats' lists of operators and parameters; a name is "" where the list has no such number.
absl::string_view TasoOperatorName(int number);
absl::string_view TasoParameterName(int number);
bool IsUnityOperator(absl::string_view name);
bool IsUnityParameter(absl::string_view name);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_READ_RULES_H_
