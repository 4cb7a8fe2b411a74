// What the audit of a file found, as text and for scripts.
#ifndef ISOMER_VERIFIER_AUDIT_REPORT_H_
#define ISOMER_VERIFIER_AUDIT_REPORT_H_

#include <string>
#include <vector>

#include "pcg/support/json.h"
#include "verifier/audit/audit.h"
#include "verifier/audit/foreign_rule.h"

namespace isomer {

// A line per rule, what explains it indented below, and a table of counts:
//   taso_rule_3: proved, derivable (r0123456789ab)
//       if 2*degree divides size(x0,-1)
std::string AuditText(const std::vector<ForeignRule>& rules,
                      const std::vector<AuditResult>& results);

Json AuditJson(const std::vector<ForeignRule>& rules, const std::vector<AuditResult>& results);

// Whether no rule is refuted or ill-typed.
bool NothingIsFalse(const std::vector<AuditResult>& results);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_REPORT_H_
