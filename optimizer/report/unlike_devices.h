// On a machine of several kinds of devices: what each kind does in a step, and what is lost against
// clusters of one kind.
#ifndef ISOMER_OPTIMIZER_REPORT_UNLIKE_DEVICES_H_
#define ISOMER_OPTIMIZER_REPORT_UNLIKE_DEVICES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "optimizer/machine/machine.h"
#include "optimizer/report/explanation.h"
#include "optimizer/search/optimizer.h"
#include "pcg/support/json.h"

namespace isomer {

struct UnlikeDevices {
  struct Kind {
    std::string name;
    int64_t devices = 0;
    double compute_share = 0;  // of the step, on average over those that were simulated
    int64_t peak_bytes = 0;    // of the fullest
    int64_t memory_bytes = 0;
  };
  std::vector<Kind> kinds;
  // StepWithoutLoss; 0: not known. And the share of the plan's step that is beyond it.
  double without_loss_us = 0, lost = 0;
};
// Absent: all devices are of one kind.
std::optional<UnlikeDevices> UnlikeDevicesOf(const OptimizeResult& result,
                                             const Explanation& explanation,
                                             const Machine& machine);

std::string UnlikeDevicesText(const UnlikeDevices& unlike, const OptimizeResult& result);
Json UnlikeDevicesJson(const UnlikeDevices& unlike, const OptimizeResult& result);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_UNLIKE_DEVICES_H_
