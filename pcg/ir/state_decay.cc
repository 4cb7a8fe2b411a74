#include "pcg/ir/state_decay.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace isomer {

absl::Status CheckStatesDecay(const UpdateOptions& update, const OptimizerSettings& settings) {
  if (update.state_precision == DataType::kFloat32) return absl::OkStatus();
  const OptimizerTraits& traits = TraitsOf(update.optimizer);
  std::vector<std::pair<absl::string_view, double>> kept;  // shares
  if (traits.has_momentum) kept.emplace_back("momentum", settings.momentum);
  if (traits.has_betas && traits.num_states > 1) kept.emplace_back("beta1", settings.beta1);
  if (traits.has_betas) kept.emplace_back("beta2", settings.beta2);
  for (const auto& [name, share] : kept) {
    if (1 - share >= kLeastDecayInBFloat16) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, "=", share, ": a state in bfloat16 would not decay, as each step ",
                     "rounds it to what it was; it takes at most ",
                     absl::StrFormat("%.3f", 1 - kLeastDecayInBFloat16)));
  }
  return absl::OkStatus();
}

}  // namespace isomer
