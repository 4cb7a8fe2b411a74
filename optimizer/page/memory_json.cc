#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "optimizer/cost/memory_cost.h"
#include "optimizer/cost/workspace.h"
#include "optimizer/page/shown_devices.h"
#include "optimizer/page/timeline_json.h"
#include "pcg/schedule/memory/memory.h"

namespace isomer {
namespace {

constexpr int64_t kUnits = 10000;  // of the largest peak

// Of one device: per bin what lives when most does, and what lives last.
struct MemoryBins {
  std::array<MemoryPeak, kMemoryBins> most;
  std::array<MemoryPeak, kMemoryBins> last;
  std::array<bool, kMemoryBins> is_known = {};
  int64_t peak_bytes = 0;
};

int BinOf(const Simulation& simulation, int32_t task) {
  const auto makespan = static_cast<double>(std::max<Picoseconds>(1, simulation.timeline.makespan));
  const auto start = static_cast<double>(simulation.timeline.start[task]);
  return std::clamp(static_cast<int>(kMemoryBins * start / makespan), 0, kMemoryBins - 1);
}

Json SeriesJson(const MemoryBins& bins, int category, double unit_bytes) {
  Json json = Json::EmptyArray();
  MemoryPeak now;
  for (int b = 0; b < kMemoryBins; ++b) {
    const MemoryPeak& shown = bins.is_known[b] ? bins.most[b] : now;
    json.Append(
        int64_t{std::llround(static_cast<double>(shown.categories[category]) / unit_bytes)});
    if (bins.is_known[b]) now = bins.last[b];
  }
  return json;
}

}  // namespace

Json MemoryJson(const CostModel& cost, const LoweredPlan& lowered, const Simulation& simulation) {
  // With the workspaces of kernels, which are the cost model's to say.
  Schedule schedule = lowered.schedule;
  const PredictedMemory memory =
      PredictMemory(cost.profile(), lowered.mapped.graph, RunsOnCores(cost.machine()),
                    NumQueuesOfDevice(cost.machine()), &schedule);
  std::map<int32_t, MemoryBins> devices;
  const std::vector<ShownDevice> shown = ShownDevices(schedule);
  for (const ShownDevice& device : shown) devices[device.device];
  std::array<bool, kNumMemoryCategories> is_used = {};
  ForEachMemoryUse(schedule, [&](int32_t task, int32_t device, const MemoryPeak& now) {
    const auto found = devices.find(device);
    if (found == devices.end()) return;
    MemoryBins& bins = found->second;
    const int b = BinOf(simulation, task);
    if (!bins.is_known[b] || now.bytes > bins.most[b].bytes) bins.most[b] = now;
    bins.last[b] = now;
    bins.is_known[b] = true;
    bins.peak_bytes = std::max(bins.peak_bytes, now.bytes);
    for (int c = 0; c < kNumMemoryCategories; ++c) is_used[c] |= now.categories[c] > 0;
  });
  int64_t peak_bytes = 1;
  for (const auto& [device, bins] : devices) peak_bytes = std::max(peak_bytes, bins.peak_bytes);
  const double unit_bytes = static_cast<double>(peak_bytes) / static_cast<double>(kUnits);
  Json json;
  json["unit_bytes"] = unit_bytes;
  json["bins"] = kMemoryBins;
  json["categories"] = Json::EmptyArray();
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    if (is_used[c]) json["categories"].Append(MemoryCategoryName(static_cast<MemoryCategory>(c)));
  }
  json["devices"] = Json::EmptyArray();
  for (const ShownDevice& device : shown) {
    const MemoryBins& bins = devices[device.device];
    Json one;
    one["device"] = device.device;
    one["stage"] = device.stage;
    one["live_bytes"] = bins.peak_bytes;
    one["arena_bytes"] = memory.bytes_per_device[device.device];
    one["series"] = Json::EmptyArray();
    for (int c = 0; c < kNumMemoryCategories; ++c) {
      if (is_used[c]) one["series"].Append(SeriesJson(bins, c, unit_bytes));
    }
    json["devices"].Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
