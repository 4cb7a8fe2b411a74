#include "optimizer/cost/cost.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "optimizer/cost/timeline.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {

CostModel::CostModel(Machine machine, const Profile* profile)
    : machine_(std::move(machine)),
      profile_(profile),
      kernels_(profile),
      measured_collectives_(profile),
      collectives_(machine_),
      kinds_(machine_.kinds_in_use()),
      num_levels_(static_cast<int>(machine_.levels.size())) {
  const int64_t devices = machine_.num_devices();
  units_.reserve(devices * num_levels_);
  for (int64_t device = 0; device < devices; ++device) {
    int64_t unit = device;
    for (const Machine::Level& level : machine_.levels) {
      unit /= level.count;
      units_.push_back(static_cast<int32_t>(unit));
    }
  }
}

template <typename TimeOf>
TaskTime CostModel::Slowest(int64_t device, DataType dtype, TimeOf time_of, bool fp8) const {
  const auto on = [&](const DeviceKind& kind) {
    return time_of(Roofline{.launch_us = kind.launch_us,
                            .flops_per_us = fp8 ? kind.Fp8FlopsPerUs() : kind.FlopsPerUs(dtype),
                            .memory_bytes_per_us = kind.memory_bytes_per_us,
                            .kind = &kind});
  };
  if (device != kSlowest) return on(machine_.kind(device));
  TaskTime slowest = on(machine_.kinds[kinds_[0]]);
  for (size_t k = 1; k < kinds_.size(); ++k) {
    const TaskTime time = on(machine_.kinds[kinds_[k]]);
    if (time.us > slowest.us) slowest = time;
  }
  return slowest;
}

bool CostModel::IsView(const Operator& op, absl::Span<const TensorType> operands) {
  if (operands.size() != 1) return false;
  std::vector<int64_t> sizes;
  for (const Dim& dim : operands[0].dims) sizes.push_back(dim.size / dim.degree);
  return KeepsOrder(op, sizes);
}

double CostModel::ComputeUs(double flops, int64_t bytes, DataType dtype, int64_t device) const {
  return Slowest(device, dtype,
                 [&](const Roofline& roofline) {
                   return TaskTime{roofline.Us(flops, static_cast<double>(bytes))};
                 })
      .us;
}

TaskTime CostModel::CallTime(const Operator& op, absl::Span<const TensorType> operands,
                             const std::vector<bool>& wanted, const Work& work,
                             int64_t device) const {
  const auto is_float = [](const TensorType& type) { return IsFloat(type.dtype); };
  const auto first = std::find_if(operands.begin(), operands.end(), is_float);
  return Slowest(
      device, first == operands.end() ? DataType::kFloat32 : first->dtype,
      [&](const Roofline& roofline) {
        return kernels_.CallTime(op, operands, wanted, work, roofline);
      },
      Fp8ScalingOf(op) != Fp8Scaling::kNone);
}

double CostModel::PackingUs(int64_t sent, int64_t received) const {
  double us = 0;
  for (const int64_t bytes : {sent, received}) {
    if (bytes > 0) us += ElementwiseTime(TaskKind::kLocal, 2 * bytes).us;
  }
  return us;
}

TaskTime CostModel::ElementwiseTime(TaskKind kind, int64_t bytes, int64_t device) const {
  return Slowest(device, DataType::kFloat32, [&](const Roofline& roofline) {
    return kernels_.ElementwiseTime(kind, bytes, roofline);
  });
}

double CostModel::LeastElementwiseUs(TaskKind kind, int64_t bytes, int64_t device) const {
  return Slowest(device, DataType::kFloat32,
                 [&](const Roofline& roofline) {
                   return TaskTime{kernels_.LeastElementwiseUs(kind, bytes, roofline)};
                 })
      .us;
}

double CostModel::AddingUs(int64_t bytes, int64_t device) const {
  return MicrosecondsOf(PicosecondsOf(LeastElementwiseUs(TaskKind::kAccumulate, bytes, device)));
}

double CostModel::SharedUpdateUs(int64_t bytes, int64_t device) const {
  return LeastElementwiseUs(TaskKind::kUpdate, 3 * bytes, device);
}

std::optional<double> CostModel::MeasuredUs(TaskKind kind, int64_t bytes, int64_t count,
                                            int64_t first, int64_t last) const {
  const SizeTable* table = measured_collectives_.Find(kind, count);
  if (table == nullptr) return std::nullopt;
  // Links between nodes were not measured.
  const int64_t node = machine_.devices_per_node();
  if (first / node != last / node) return std::nullopt;
  return table->UsOf(bytes);
}

std::optional<double> CostModel::MeasuredUs(TaskKind kind, int64_t bytes,
                                            absl::Span<const int32_t> devices) const {
  const auto [first, last] = std::minmax_element(devices.begin(), devices.end());
  return MeasuredUs(kind, bytes, static_cast<int64_t>(devices.size()), *first, *last);
}

std::vector<int64_t> CostModel::OnePerKind(absl::Span<const int64_t> devices) const {
  if (kinds_.size() == 1) return {devices[0]};
  std::set<int> seen;
  std::vector<int64_t> first;
  for (int64_t device : devices) {
    if (seen.insert(machine_.kind_index(device)).second) first.push_back(device);
  }
  return first;
}

double CostModel::CollectiveUs(Collective kind, int64_t bytes,
                               absl::Span<const int32_t> devices) const {
  if (devices.size() < 2) return 0;
  if (const auto us = MeasuredUs(TraitsOf(kind).task, bytes, devices)) return *us;
  return collectives_.Us(kind, bytes, devices);
}

double CostModel::CollectiveUs(Collective kind, int64_t bytes, const DeviceGroup& group) const {
  if (group.count < 2) return 0;
  const TaskKind task = TraitsOf(kind).task;
  if (const auto us = MeasuredUs(task, bytes, group.count, group.start, group.last())) return *us;
  return collectives_.Us(kind, bytes, group);
}

double CostModel::SendUs(int64_t bytes, int32_t from, int32_t to) const {
  double latency_us = 0, slowest_us = 0;
  for (LinkId id : machine_.Path(from, to)) {
    const Link link = machine_.link(id);
    latency_us += link.latency_us;
    slowest_us = std::max(slowest_us, static_cast<double>(bytes) / link.bytes_per_us);
  }
  return latency_us + slowest_us;
}

}  // namespace isomer
