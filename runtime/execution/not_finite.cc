#include "runtime/execution/not_finite.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "runtime/execution/state_parts.h"

namespace isomer {

absl::StatusOr<std::string> WhatIsNotFinite(const Graph& graph, const HostValues& inputs,
                                            Job* job) {
  for (const auto& [name, value] : inputs) {
    for (int64_t i = 0; i < value.size(); ++i) {
      if (std::isfinite(value.data[i])) continue;
      const int64_t rows = value.shape.empty() ? 1 : std::max<int64_t>(value.shape[0], 1);
      return absl::StrCat("input '", name, "' has ", value.data[i], " in row ",
                          i / (value.size() / rows) + 1);
    }
  }
  const Schedule& schedule = job->schedule();
  // By parameter, as the devices here have them; each device in its thread.
  std::vector<std::vector<char>> found(schedule.options.num_devices,
                                       std::vector<char>(schedule.parameters.size(), '0'));
  ISOMER_RETURN_IF_ERROR(job->ReadState([&](const StatePart& part, const void* contents) {
    const Buffer& buffer = schedule.buffers[part.buffer];
    const auto* const elements = static_cast<const float*>(contents);
    const bool is_finite = std::all_of(elements, elements + buffer.box.Volume(),
                                       [](float element) { return std::isfinite(element); });
    if (part.slot == 0 && !is_finite) found[buffer.device][part.parameter] = '1';
    return absl::OkStatus();
  }));
  std::vector<std::string> all;
  for (const std::vector<char>& device : found) all.emplace_back(device.begin(), device.end());
  if (ControlPlane* const control = job->options().control; control != nullptr) {
    ISOMER_ASSIGN_OR_RETURN(all, control->Gather(all[control->rank()]));
  }
  std::vector<std::string> names;
  for (size_t p = 0; p < schedule.parameters.size(); ++p) {
    const bool is_found =
        std::any_of(all.begin(), all.end(), [p](const std::string& of) { return of[p] == '1'; });
    if (is_found) names.push_back(graph.node(schedule.parameters[p].leaves[0]).name);
  }
  if (names.empty()) return "";
  if (names.size() == 1) return absl::StrCat("weight '", names[0], "' is not finite after it");
  return absl::StrCat("weight '", names[0], "' and ", names.size() - 1,
                      " more are not finite after it");
}

}  // namespace isomer
