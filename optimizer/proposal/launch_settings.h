// The configuration that a team runs, from the file that says so to the framework which runs it.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_LAUNCH_SETTINGS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_LAUNCH_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optimizer/proposal/grid_plan.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/ir/weight_update.h"

namespace isomer {

struct LaunchSettings {
  std::string framework;  // "Megatron-LM", "DeepSpeed", "torchtitan"
  GridRequest grid;
  std::optional<int64_t> global_batch_size;
  std::optional<DataType> precision;
  std::optional<OptimizerKind> optimizer;
  // Settings that a step depends on, and its prediction does not.
  std::vector<std::string> not_modelled;
  std::vector<std::string> not_read;  // all others that are stated
};

// `contents`: Megatron-LM's command line (with or without the launcher in front, continued lines,
// comments), DeepSpeed's configuration (JSON) or torchtitan's (TOML). Errors, of one line that
// begins with `name`: it is none of these, a value is no number or none that there is, a
// configuration that no plan has (sharding in groups of replicas, other orders of a pipeline).
absl::StatusOr<LaunchSettings> ParseLaunchSettings(absl::string_view contents,
                                                   const std::string& name);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_LAUNCH_SETTINGS_H_
