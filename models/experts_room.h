#ifndef ISOMER_MODELS_EXPERTS_ROOM_H_
#define ISOMER_MODELS_EXPERTS_ROOM_H_

#include "absl/status/status.h"
#include "pcg/ir/plan.h"
#include "pcg/profile/expert_loads.h"

namespace isomer {

// An error if no call of the model sends tokens to experts.
absl::Status CheckSendsToExperts(const Model& model);

// The model with room in each expert for `imbalance` times the even load, whatever room it had, and
// with the assumption that this is enough (pcg/ir/expert_room.h): what experts compute, what is
// sent to them and the memory of both follow, as they do from any size. On tokens of which none was
// dropped and none is, it computes what it did. Errors name the call: experts in groups, or sizes
// that do not follow. REQUIRES: the types of the model are sequential, imbalance >= 1.
absl::Status GiveExpertsRoom(double imbalance, Model* model);

// An error unless each call that sends tokens to experts has a load of as many experts, and each
// load is of such a call.
absl::Status CheckAreLoadsOf(const Model& model, const ExpertLoads& loads);

}  // namespace isomer

#endif  // ISOMER_MODELS_EXPERTS_ROOM_H_
