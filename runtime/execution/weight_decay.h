// Which weights an optimizer's weight decay is for.
#ifndef ISOMER_RUNTIME_EXECUTION_WEIGHT_DECAY_H_
#define ISOMER_RUNTIME_EXECUTION_WEIGHT_DECAY_H_

#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// The trained tensors of the schedule whose weights decay: all but those whose names the regular
// expression `no_decay` (ECMAScript) matches somewhere; "" matches none, as PyTorch decays all that
// an optimizer is given. Without it those with fewer than two dims do not decay: biases, and scales
// of normalisations, which do not overfit and are not to be drawn to zero (as GPT-3's and LLaMA's
// training has it). What counts are the model's own weights, however they are arranged.
//
// Errors: no expression; one that matches no weight that is trained; weights that are arranged into
// one tensor, of which one decays and another does not.
absl::StatusOr<std::set<TensorRef>> DecayingTensors(const Graph& graph, const Schedule& schedule,
                                                    const std::optional<std::string>& no_decay);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_WEIGHT_DECAY_H_
