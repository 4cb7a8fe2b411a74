// Steps of derivations as messages, for files that hold steps without a plan.
#ifndef ISOMER_PCG_IR_DERIVATION_PROTO_H_
#define ISOMER_PCG_IR_DERIVATION_PROTO_H_

#include "absl/status/statusor.h"
#include "pcg/ir/pcg.pb.h"
#include "pcg/ir/plan.h"

namespace isomer {

void ToProto(const DerivationStep& step, proto::DerivationStepProto* message);
// An error: a call's operator is unknown.
absl::StatusOr<DerivationStep> FromProto(const proto::DerivationStepProto& message);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_DERIVATION_PROTO_H_
