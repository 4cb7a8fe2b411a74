#include "optimizer/report/shown_devices.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "pcg/schedule/order/pipeline.h"

namespace isomer {

std::vector<int32_t> SimulatedDevices(const Schedule& schedule) {
  if (!schedule.represented.empty()) return schedule.represented;
  std::vector<int32_t> devices(schedule.options.num_devices);
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

std::vector<StageDevices> StageDevicesOf(const Schedule& schedule) {
  const std::vector<int32_t> devices = SimulatedDevices(schedule);
  std::vector<StageDevices> stages(1);
  if (schedule.num_moments == 1) {
    stages[0].simulated = devices;
  } else {
    const PipelineStages of = StagesOf(schedule);
    stages.resize(of.num_stages);
    for (int32_t device : devices) stages[of.stage[device]].simulated.push_back(device);
    std::erase_if(stages, [](const StageDevices& stage) { return stage.simulated.empty(); });
  }
  std::vector<StageDevices*> by_device;
  for (StageDevices& stage : stages) {
    stage.first = stage.simulated.front();
    by_device.push_back(&stage);
  }
  std::sort(by_device.begin(), by_device.end(),
            [](const StageDevices* a, const StageDevices* b) { return a->first < b->first; });
  for (size_t i = 0; i < by_device.size(); ++i) {
    by_device[i]->last =
        i + 1 < by_device.size() ? by_device[i + 1]->first - 1 : schedule.options.num_devices - 1;
  }
  return stages;
}

std::vector<ShownDevice> ShownDevices(const Schedule& schedule) {
  const std::vector<StageDevices> stages = StageDevicesOf(schedule);
  const bool shows_all = SimulatedDevices(schedule).size() <= kMostShown;
  std::vector<ShownDevice> shown;
  for (size_t s = 0; s < stages.size(); ++s) {
    const std::vector<int32_t>& simulated = stages[s].simulated;
    const size_t most = shows_all            ? simulated.size()
                        : stages.size() == 1 ? std::min(simulated.size(), kMostShown)
                                             : 1;
    for (size_t i = 0; i < most; ++i) shown.push_back({simulated[i], static_cast<int>(s)});
  }
  return shown;
}

Json DevicesJson(const Schedule& schedule) {
  Json json;
  json["devices"] = schedule.options.num_devices;
  json["simulated"] = schedule.num_represented();
  for (const StageDevices& stage : StageDevicesOf(schedule)) {
    Json one;
    one["first"] = stage.first;
    one["last"] = stage.last;
    one["simulated"] = stage.simulated;
    json["stages"].Append(std::move(one));
  }
  for (const ShownDevice& shown : ShownDevices(schedule)) {
    Json one;
    one["device"] = shown.device;
    one["stage"] = shown.stage;
    json["shown"].Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
