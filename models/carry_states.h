// Which outputs of a step are inputs of the next.
#ifndef ISOMER_MODELS_CARRY_STATES_H_
#define ISOMER_MODELS_CARRY_STATES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Makes states (pcg/ir/states.h) of a model for inference. `carry`: "OUTPUT:INPUT" for each; or
// "none" alone; or nothing, which pairs what exporters of decoders call present.. and past..:
//   present.0.key -> past_key_values.0.key, past.0.key     (Hugging Face)
//   present_0     -> past_0                                (ONNX Runtime)
// An output that is longer than its input in one dim, as one that new keys are appended to, leaves
// its last elements there: of a cache that is filled from its end, the oldest place goes.
// `notes` receives a line on what was paired by itself. Errors are one line that begins with
// --carry: there is no such output or input, or its type is another.
absl::Status CarryStates(const std::vector<std::string>& carry, Model* model,
                         std::vector<std::string>* notes);

}  // namespace isomer

#endif  // ISOMER_MODELS_CARRY_STATES_H_
