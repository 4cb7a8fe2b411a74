// Weights that calls arrange (transpose, join): each device that reads the result makes it from a
// copy of its own, or one makes it and sends it (MappedModel::copies_arranged).
#ifndef ISOMER_OPTIMIZER_PROPOSAL_ARRANGED_WEIGHTS_PROPOSER_H_
#define ISOMER_OPTIMIZER_PROPOSAL_ARRANGED_WEIGHTS_PROPOSER_H_

#include "absl/status/status.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/proposer.h"

namespace isomer {

// Is asked for each mapping that is considered, by ConsiderOtherwiseArranged.
extern const Proposer kArrangedWeights;

// The mapping with the other arrangement, if it is promising as it is.
absl::Status ConsiderOtherwiseArranged(MappedModel mapped, const Prediction& as_mapped,
                                       SearchContext* context);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_ARRANGED_WEIGHTS_PROPOSER_H_
