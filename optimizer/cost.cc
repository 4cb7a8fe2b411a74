#include "optimizer/cost.h"

#include <algorithm>
#include <set>
#include <utility>

namespace isomer {

CostModel::CostModel(Machine machine, const Profile* profile)
    : machine_(std::move(machine)), profile_(profile), num_devices_(machine_.num_devices()) {
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

double CostModel::ComputeUs(double flops, int64_t bytes, DataType dtype) const {
  return machine_.launch_us + std::max(flops / machine_.FlopsPerUs(dtype),
                                       static_cast<double>(bytes) / machine_.memory_bytes_per_us);
}

double CostModel::CallUs(const Operator& op, absl::Span<const TensorType> operands, bool gradient,
                         const Work& work) const {
  if (profile_ != nullptr) {
    const KernelTime* measured = profile_->Find(op, operands, gradient);
    if (measured != nullptr) return measured->median_us;
  }
  const auto is_float = [](const TensorType& type) { return IsFloat(type.dtype); };
  const auto first = std::find_if(operands.begin(), operands.end(), is_float);
  return ComputeUs(work.flops, work.bytes,
                   first == operands.end() ? DataType::kFloat32 : first->dtype);
}

double CostModel::CollectiveUs(Collective kind, int64_t bytes,
                               absl::Span<const int32_t> devices) const {
  if (devices.size() < 2) return 0;
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
