// Which devices pages, pictures and traces show, and what each stands for.
#ifndef ISOMER_OPTIMIZER_REPORT_SHOWN_DEVICES_H_
#define ISOMER_OPTIMIZER_REPORT_SHOWN_DEVICES_H_

#include <cstdint>
#include <vector>

#include "pcg/schedule/schedule.h"
#include "pcg/support/json.h"

namespace isomer {

// The simulated devices: all, or one of each class (Schedule::represented).
std::vector<int32_t> SimulatedDevices(const Schedule& schedule);

// Pipeline stages with their devices, in order; one that has all if there is no pipeline.
struct StageDevices {
  std::vector<int32_t> simulated;
  int64_t first = 0, last = 0;  // of the machine: those up to the next simulated stage
};
std::vector<StageDevices> StageDevicesOf(const Schedule& schedule);

// All that are simulated or, of more than kMostShown, the first of each stage.
inline constexpr size_t kMostShown = 16;
struct ShownDevice {
  int32_t device = 0;
  int stage = 0;
};
std::vector<ShownDevice> ShownDevices(const Schedule& schedule);

// {devices, simulated, stages: [{first, last, simulated: [..]}], shown: [{device, stage}]}.
Json DevicesJson(const Schedule& schedule);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_SHOWN_DEVICES_H_
