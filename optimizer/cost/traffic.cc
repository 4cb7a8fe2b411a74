#include "optimizer/cost/traffic.h"

#include <algorithm>
#include <vector>

namespace isomer {
namespace {

using Visit = absl::FunctionRef<void(const Message&)>;

// Every device sends `bytes` to the next one.
void VisitRing(absl::Span<const int32_t> ring, double bytes, Visit visit) {
  for (size_t i = 0; i < ring.size(); ++i) {
    visit({ring[i], ring[(i + 1) % ring.size()], bytes});
  }
}

// Members of a group per unit of `size` devices. REQUIRES: ascending.
std::vector<std::vector<int32_t>> UnitsOf(absl::Span<const int32_t> devices, int64_t size) {
  std::vector<std::vector<int32_t>> units;
  for (int32_t device : devices) {
    if (units.empty() || units.back().back() / size != device / size) units.emplace_back();
    units.back().push_back(device);
  }
  return units;
}

// Each of a unit's k members exchanges its k-th of `bytes` with the members at its position in the
// other m - 1 units of the parent.
void VisitLevels(const Machine& machine, absl::Span<const int32_t> devices, double bytes,
                 Visit visit) {
  for (int l = 0; l < static_cast<int>(machine.levels.size()); ++l) {
    for (const std::vector<int32_t>& parent : UnitsOf(devices, machine.UnitSize(l))) {
      const auto units = UnitsOf(parent, machine.UnitSize(l - 1));
      const double m = static_cast<double>(units.size());
      size_t k = units[0].size();
      for (const auto& unit : units) k = std::min(k, unit.size());
      for (size_t place = 0; place < k && units.size() > 1; ++place) {
        std::vector<int32_t> ring;
        for (const auto& unit : units) ring.push_back(unit[place]);
        VisitRing(ring, (m - 1) / m * bytes / static_cast<double>(k), visit);
      }
    }
  }
}

// Broadcasts and reduces cost as all-gathers: all but one device send everything.
void VisitCollective(const CostModel& cost, const Schedule& schedule, const Task& task,
                     const CollectiveTraits& traits, Visit visit) {
  const Collective kind = traits.is_rooted ? Collective::kAllGather : traits.kind;
  const absl::Span<const int32_t> group = schedule.GroupOf(task);
  std::vector<int32_t> devices(group.begin(), group.end());
  std::sort(devices.begin(), devices.end());
  if (devices.size() < 2) return;
  const double bytes = traits.passes * static_cast<double>(task.bytes);
  const auto size = static_cast<double>(devices.size());
  const absl::string_view algorithm =
      cost.collectives().Choice(kind, task.bytes, devices).algorithm;
  if (algorithm == "ring") {
    VisitRing(devices, (size - 1) / size * bytes, visit);
  } else {
    VisitLevels(cost.machine(), devices, bytes, visit);
  }
}

void VisitTransfers(const Schedule& schedule, const Task& task, Visit visit) {
  for (size_t i = 0; i < task.transfers.size(); ++i) {
    const Buffer& from = schedule.buffers[task.reads[task.transfers[i].first]];
    const Buffer& to = schedule.buffers[task.writes[task.transfers[i].second]];
    const int64_t bytes = IntersectionVolume(from.box, to.box) * BytesPerElement(from.dtype);
    visit({from.device, to.device, static_cast<double>(bytes), schedule.CountOf(task, i)});
  }
}

void VisitAllToAll(absl::Span<const int32_t> devices, int64_t bytes, Visit visit) {
  const double part = static_cast<double>(bytes) / static_cast<double>(devices.size());
  for (int32_t from : devices) {
    for (int32_t to : devices) visit({from, to, part});
  }
}

}  // namespace

void ForEachMessage(const CostModel& cost, const Schedule& schedule, const Task& task,
                    absl::FunctionRef<void(const Message&)> visit) {
  if (!IsCommunication(task.kind)) return;
  if (task.kind == TaskKind::kSendReceive) {
    VisitTransfers(schedule, task, visit);
  } else if (task.kind == TaskKind::kAllToAll) {
    VisitAllToAll(schedule.GroupOf(task), task.bytes, visit);
  } else {
    VisitCollective(cost, schedule, task, TraitsOf(*CollectiveOf(task.kind)), visit);
  }
}

void AddMessage(const Machine& machine, const Message& message, double times, Traffic* traffic) {
  const LinkPath path = machine.Path(message.from, message.to);
  for (size_t l = 0; l < path.size(); ++l) {
    (*traffic)[path[l]] +=
        times * message.bytes * static_cast<double>(OnPath(message.count, l, path.size()));
  }
}

void AddTraffic(const CostModel& cost, const Schedule& schedule, const Task& task,
                Traffic* traffic) {
  ForEachMessage(cost, schedule, task, [&](const Message& message) {
    AddMessage(cost.machine(), message, /*times=*/1, traffic);
  });
}

Traffic TrafficOf(const CostModel& cost, const Schedule& schedule) {
  Traffic traffic;
  for (const Task& task : schedule.tasks) AddTraffic(cost, schedule, task, &traffic);
  return traffic;
}

double SlowestLinkUs(const Machine& machine, const Traffic& traffic) {
  double slowest_us = 0;
  for (const auto& [link, bytes] : traffic) {
    slowest_us = std::max(slowest_us, bytes / machine.link(link).bytes_per_us);
  }
  return slowest_us;
}

}  // namespace isomer
