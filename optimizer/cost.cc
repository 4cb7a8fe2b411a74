#include "optimizer/cost.h"

#include <algorithm>
#include <set>
#include <utility>

namespace isomer {

CostModel::CostModel(Machine machine, const Profile* profile)
    : machine_(std::move(machine)),
      profile_(profile),
      kernels_(profile),
      collectives_(profile),
      num_devices_(machine_.num_devices()) {
  levels_.assign(num_devices_ * num_devices_, -1);
  for (int64_t a = 0; a < num_devices_; ++a) {
    for (int64_t b = 0; b < num_devices_; ++b) {
      int8_t& level = levels_[a * num_devices_ + b];
      while (a != b &&
             (level < 0 || a / machine_.UnitSize(level) != b / machine_.UnitSize(level))) {
        ++level;
      }
    }
  }
}

Roofline CostModel::RooflineOf(DataType dtype) const {
  return {.launch_us = machine_.launch_us,
          .flops_per_us = machine_.FlopsPerUs(dtype),
          .memory_bytes_per_us = machine_.memory_bytes_per_us};
}

double CostModel::ComputeUs(double flops, int64_t bytes, DataType dtype) const {
  return RooflineOf(dtype).Us(flops, static_cast<double>(bytes));
}

TaskTime CostModel::CallTime(const Operator& op, absl::Span<const TensorType> operands,
                             const std::vector<bool>& wanted, const Work& work) const {
  const auto is_float = [](const TensorType& type) { return IsFloat(type.dtype); };
  const auto first = std::find_if(operands.begin(), operands.end(), is_float);
  return kernels_.CallTime(op, operands, wanted, work,
                           RooflineOf(first == operands.end() ? DataType::kFloat32 : first->dtype));
}

TaskTime CostModel::ElementwiseTime(TaskKind kind, int64_t bytes) const {
  return kernels_.ElementwiseTime(kind, bytes, RooflineOf(DataType::kFloat32));
}

namespace {

TaskKind KindOf(Collective kind) {
  switch (kind) {
    case Collective::kAllReduce:
      return TaskKind::kAllReduce;
    case Collective::kReduceScatter:
      return TaskKind::kReduceScatter;
    case Collective::kAllGather:
      return TaskKind::kAllGather;
    case Collective::kAllToAll:
      return TaskKind::kAllToAll;
  }
  return TaskKind::kSendReceive;
}

}  // namespace

std::optional<double> CostModel::MeasuredUs(TaskKind kind, int64_t bytes,
                                            absl::Span<const int32_t> devices) const {
  const SizeTable* table = collectives_.Find(kind, static_cast<int64_t>(devices.size()));
  if (table == nullptr) return std::nullopt;
  // How nodes are joined was not measured.
  const auto [first, last] = std::minmax_element(devices.begin(), devices.end());
  const int64_t node = machine_.devices_per_node();
  if (*first / node != *last / node) return std::nullopt;
  return table->UsOf(bytes);
}

double CostModel::CollectiveUs(Collective kind, int64_t bytes,
                               absl::Span<const int32_t> devices) const {
  if (devices.size() < 2) return 0;
  if (const auto measured = MeasuredUs(KindOf(kind), bytes, devices)) return *measured;
  double slowest_us = 0, latency_us = 0;
  for (int level = 0; level < static_cast<int>(machine_.levels.size()); ++level) {
    const int64_t below = machine_.UnitSize(level - 1), unit = machine_.UnitSize(level);
    // Units below this level that the group touches, and those of them that lie in one unit.
    std::set<int64_t> children, units;
    for (int32_t device : devices) {
      children.insert(device / below);
      units.insert(device / unit);
    }
    const double m = static_cast<double>(children.size()) / static_cast<double>(units.size());
    if (m <= 1) continue;
    const double members = static_cast<double>(devices.size()) / children.size();
    const double share = members / static_cast<double>(below);
    const double bandwidth = machine_.levels[level].bytes_per_us * share;
    // Of an all-to-all, every member's bytes cross; of the others, the unit's members share them.
    const double crossing =
        (m - 1) / m * static_cast<double>(bytes) * (kind == Collective::kAllToAll ? members : 1);
    slowest_us = std::max(slowest_us, crossing / bandwidth);
    latency_us += (m - 1) * machine_.levels[level].latency_us;
  }
  const double passes = kind == Collective::kAllReduce ? 2 : 1;
  return machine_.launch_us + passes * (slowest_us + latency_us);
}

double CostModel::SendUs(int64_t bytes, int32_t from, int32_t to) const {
  if (from == to) return 0;
  const Machine::Level& level = machine_.levels[LevelBetween(from, to)];
  return level.latency_us + static_cast<double>(bytes) / level.bytes_per_us;
}

}  // namespace isomer
