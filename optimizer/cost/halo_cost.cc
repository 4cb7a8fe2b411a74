#include "optimizer/cost/halo_cost.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "pcg/ir/box.h"

namespace isomer {
namespace {

bool MayHaveHalo(const Sharding& sharding, int operand, const TensorType& type) {
  for (int i = 0; i < type.rank(); ++i) {
    if (type.dims[i].degree > 1 && sharding.declaration.HasHalo(operand, i)) return true;
  }
  return false;
}

// The task with the operand's shard at `coordinates`. Its reads depend on no other dim.
Sharding::Task TaskAt(const Sharding& sharding, int operand,
                      const std::vector<int64_t>& coordinates) {
  Sharding::Task task;
  task.dims.assign(sharding.degrees.size(), 0);
  for (size_t i = 0; i < coordinates.size(); ++i) {
    const int lead = sharding.declaration.LeadOfOperandDim(operand, static_cast<int>(i));
    if (lead >= 0) task.dims[lead] = coordinates[i];
  }
  return task;
}

}  // namespace

HaloCost CostOfHalo(const CostModel& cost, const Sharding& sharding, int operand,
                    const Placement& placement) {
  HaloCost halo;
  const TensorType& type = placement.type;
  if (!MayHaveHalo(sharding, operand, type)) return halo;
  const std::vector<int64_t> devices = DevicesOf(placement.view, type);
  const int64_t element = BytesPerElement(type.dtype);
  std::map<LinkId, double> bytes_over;
  std::map<std::pair<int, int64_t>, int> messages;  // per level and receiver
  for (int64_t shard = 0; shard < type.NumShards(); ++shard) {
    ShardCoordinates at = CoordinatesOfShard(type, shard);
    const Box box = sharding.OperandBox(TaskAt(sharding, operand, at.dims), operand);
    if (box == ShardBox(type, at.dims)) continue;
    halo.bytes = std::max(halo.bytes, box.Volume() * element);
    const int64_t to = devices[shard];
    for (const std::vector<int64_t>& piece : OverlappingPieces(type, box)) {
      at.dims = piece;
      const int64_t from = devices[ShardAt(type, at)];
      const int level = cost.LevelBetween(from, to);
      if (level < 0) continue;
      const double bytes =
          static_cast<double>(Intersection(box, ShardBox(type, piece)).Volume() * element);
      for (LinkId link : cost.machine().Path(from, to)) bytes_over[link] += bytes;
      ++messages[{level, to}];
    }
  }
  if (messages.empty()) return halo;
  double slowest_us = 0, latency_us = 0;
  for (const auto& [link, bytes] : bytes_over) {
    slowest_us = std::max(slowest_us, bytes / cost.machine().link(link).bytes_per_us);
  }
  for (const auto& [place, count] : messages) {
    latency_us = std::max(latency_us, cost.machine().LatencyUs(place.first, count));
  }
  halo.us = cost.machine().message_start_us() + slowest_us + latency_us;
  return halo;
}

}  // namespace isomer
