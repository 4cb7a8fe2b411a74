// How the tensors of a Unity rule are cut into pieces, when the replica dim is read as a dim.
//
// FlexFlow gives each dim a degree, and its operators multiply, divide and compare degrees. Of each
// prime of the rule's degrees, a tensor's dim has the exponent of an input's dim plus a constant;
// so what the operators ask is equalities of two such sums and bounds on one, which are decided
// exactly (a union-find with differences).
#ifndef ISOMER_VERIFIER_AUDIT_ARRAY_DEGREES_H_
#define ISOMER_VERIFIER_AUDIT_ARRAY_DEGREES_H_

#include <string>

#include "verifier/audit/foreign_rule.h"

namespace isomer {

struct DegreesVerdict {
  enum class Kind {
    kHold,              // whenever the source can be cut so, so can the target, with equal outputs
    kSourceImpossible,  // no degrees of the inputs fit the source
    kTargetImpossible,  // none that fit the source fit the target
    kTargetFails,       // some that fit the source do not fit the target: `reason` has them
  };
  Kind kind = Kind::kHold;
  std::string reason;
};

// REQUIRES: CheckAndSort was called; every tensor has `rank` dims, the replica dim among them; the
// rule is translated (verifier/audit/translate.h).
DegreesVerdict CheckDegrees(const ForeignRule& rule, int rank);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_ARRAY_DEGREES_H_
