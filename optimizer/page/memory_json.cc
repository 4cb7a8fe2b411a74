#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "optimizer/page/timeline_json.h"
#include "optimizer/report/memory_over_step.h"
#include "optimizer/report/shown_devices.h"
#include "pcg/schedule/memory/memory.h"

namespace isomer {
namespace {

constexpr int64_t kUnits = 10000;  // of the largest peak

Json SeriesJson(const MemoryBins& bins, int category, double unit_bytes) {
  Json json = Json::EmptyArray();
  MemoryPeak now;
  for (int b = 0; b < kMemoryBins; ++b) {
    const MemoryPeak& shown = bins.bins[b].is_known ? bins.bins[b].most : now;
    json.Append(
        int64_t{std::llround(static_cast<double>(shown.categories[category]) / unit_bytes)});
    if (bins.bins[b].is_known) now = bins.bins[b].last;
  }
  return json;
}

}  // namespace

Json MemoryJson(const CostModel& cost, const LoweredPlan& lowered, const Simulation& simulation) {
  const std::vector<ShownDevice> shown = ShownDevices(lowered.schedule);
  std::vector<int32_t> numbers;
  for (const ShownDevice& device : shown) numbers.push_back(device.device);
  const MemoryOverStep memory = MemoryOf(cost, lowered, simulation, numbers, kMemoryBins);
  int64_t peak_bytes = 1;
  for (const auto& [device, bins] : memory.devices)
    peak_bytes = std::max(peak_bytes, bins.peak_bytes);
  const double unit_bytes = static_cast<double>(peak_bytes) / static_cast<double>(kUnits);
  Json json;
  json["unit_bytes"] = unit_bytes;
  json["bins"] = kMemoryBins;
  json["categories"] = Json::EmptyArray();
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    if (memory.is_used[c])
      json["categories"].Append(MemoryCategoryName(static_cast<MemoryCategory>(c)));
  }
  json["devices"] = Json::EmptyArray();
  for (const ShownDevice& device : shown) {
    const MemoryBins& bins = memory.devices.at(device.device);
    Json one;
    one["device"] = device.device;
    one["stage"] = device.stage;
    one["live_bytes"] = bins.peak_bytes;
    one["arena_bytes"] = memory.arena_bytes[device.device];
    one["series"] = Json::EmptyArray();
    for (int c = 0; c < kNumMemoryCategories; ++c) {
      if (memory.is_used[c]) one["series"].Append(SeriesJson(bins, c, unit_bytes));
    }
    json["devices"].Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
