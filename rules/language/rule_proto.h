// Rules as messages, for rules files and for files that hold rules among other things.
#ifndef ISOMER_RULES_LANGUAGE_RULE_PROTO_H_
#define ISOMER_RULES_LANGUAGE_RULE_PROTO_H_

#include "absl/status/statusor.h"
#include "rules/language/rule.h"
#include "rules/language/rules.pb.h"

namespace isomer {

// `with_text`: with the rule as people read it, which is not read back.
proto::Rule ToProto(const Rule& rule, bool with_text);
proto::Pattern ToProto(const Pattern& pattern);
proto::Proof ToProto(const ProofRecord& record);

// An error: the message is no well-formed rule (ValidateRule).
absl::StatusOr<Rule> FromProto(const proto::Rule& message);
// An error names an unknown operator. References are not checked.
absl::StatusOr<Pattern> FromProto(const proto::Pattern& message);
// An error: an unknown verdict.
absl::StatusOr<ProofRecord> FromProto(const proto::Proof& message);

}  // namespace isomer

#endif  // ISOMER_RULES_LANGUAGE_RULE_PROTO_H_
