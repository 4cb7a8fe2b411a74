#ifndef ISOMER_MODELS_PREPARE_MODEL_H_
#define ISOMER_MODELS_PREPARE_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pcg/ir/plan.h"

namespace isomer {

struct PrepareOptions {
  bool training = true;
  std::string loss = "auto";            // as --loss: KIND, or KIND:OUTPUT (AttachLoss)
  bool loss_alone = false;              // no other output, in training
  std::vector<std::string> carry = {};  // as --carry (CarryStates), in inference
  bool unfused_attention = false;
  // Experts have room for so many times the even load, or for that of a file of loads
  // (GiveExpertsRoom); 0 and "": as the model has it.
  double expert_imbalance = 0;
  std::string expert_loads = {};
};

// Makes of a model, as LoadAnyModel read it from `spec`, what a plan is of: it has a loss if it is
// to be trained. `notes` receives lines that the user should see. Errors are one line that begins
// with `spec` or an option: it is parallel already, there is nothing to train, or no such loss.
absl::Status PrepareModel(const std::string& spec, const PrepareOptions& options, Model* model,
                          std::vector<std::string>* notes);

}  // namespace isomer

#endif  // ISOMER_MODELS_PREPARE_MODEL_H_
