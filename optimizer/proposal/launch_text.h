// A parallel configuration as the settings of a framework, which launch_settings.h reads back.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_LAUNCH_TEXT_H_
#define ISOMER_OPTIMIZER_PROPOSAL_LAUNCH_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optimizer/proposal/grid_plan.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

inline constexpr absl::string_view kLaunchFrameworks[] = {"megatron", "deepspeed", "torchtitan"};

struct LaunchText {
  std::string text;
  // What the framework's settings have no words for; if there is any, the text is of the rest.
  std::vector<std::string> unsaid;
};

// Of a configuration, the devices, the batch of a step and what it computes in. `grid.update` is
// given. Error: Internal, the text reads back as another configuration.
absl::StatusOr<LaunchText> LaunchTextOf(absl::string_view framework, const GridRequest& grid,
                                        int64_t devices, int64_t batch, DataType precision);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_LAUNCH_TEXT_H_
