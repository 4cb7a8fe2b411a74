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

namespace isomer {

struct LaunchSettings {
  std::string framework;  // "Megatron-LM", "DeepSpeed", "torchtitan"
  GridRequest grid;
  std::optional<int64_t> global_batch_size;
  std::optional<DataType> precision;
  std::vector<std::string> ignored;  // arguments that no plan depends on
};

// `contents`: Megatron-LM's command line (with or without the launcher in front, continued lines,
// comments), DeepSpeed's configuration (JSON) or torchtitan's (TOML). Errors, of one line that
// begins with `name`: it is none of these, a value is no number or none that there is, a setting
// that no plan has.
absl::StatusOr<LaunchSettings> ParseLaunchSettings(absl::string_view contents,
                                                   const std::string& name);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_LAUNCH_SETTINGS_H_
