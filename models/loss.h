#ifndef ISOMER_MODELS_LOSS_H_
#define ISOMER_MODELS_LOSS_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Makes `model` trainable: adds the scalar output `loss` of an output, and the input that the loss
// compares it with. The outputs that were there stay. `of`: the output's name; "": the first.
//
//   kind           new input                        loss
//   cross_entropy  labels, int64, without the       mean over samples of the cross-entropy
//                  output's last dim                of softmax(output)
//   mse            target, of the output's shape    mean of (output - target)^2
//   none           none                             the output itself, a scalar
//   auto           cross_entropy for an output [N, C] that is called logits, else mse
//
// What a model states in low precision becomes float32 (full_precision.h).
//
// A model that has a loss is left as it is by `auto`, and refused by the others, as are models
// without a fitting output and models with a leaf or output of the name that would be added.
// REQUIRES: the types of the model are sequential.
absl::Status AttachLoss(Model* model, absl::string_view kind, absl::string_view of = "");

// What AttachLoss made of a model, for people: "cross_entropy of 'logits' f32[8,10] and 'labels'".
std::string LossText(const Model& model);

// The kind for AttachLoss with which a model without it gets the loss of `trained`.
std::string KindOfLoss(const Model& trained);

// Drops all outputs but the loss, so that a step of training does not gather what nobody reads: the
// logits of a large batch fit on no device. REQUIRES: the model has a loss.
absl::Status KeepLossAlone(Model* model);

// Drops inputs of these names that nothing uses.
absl::Status DropUnusedInputs(const std::set<std::string>& names, Model* model);

// Drops the loss, with what is there for it alone: the model that inference runs. Errors: it gives
// back nothing else.
absl::Status DropLoss(Model* model);

}  // namespace isomer

#endif  // ISOMER_MODELS_LOSS_H_
