#include "optimizer/cost/kernel_cost.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "optimizer/cost/product_efficiency.h"

namespace isomer {

const char* TimeOriginName(TimeOrigin origin) {
  switch (origin) {
    case TimeOrigin::kMeasured:
      return "measured";
    case TimeOrigin::kCalibrated:
      return "calibrated";
    case TimeOrigin::kRoofline:
      return "roofline";
  }
  return "?";
}

double Roofline::Us(double flops, double bytes) const {
  return launch_us + std::max(flops / flops_per_us, bytes / memory_bytes_per_us);
}

KernelCost::KernelCost(const Profile* profile) : profile_(profile) {
  if (profile == nullptr) return;
  calibration_ = std::make_unique<Calibration>(*profile);
  for (const TaskKind kind :
       {TaskKind::kFill, TaskKind::kAccumulate, TaskKind::kLocal, TaskKind::kUpdate}) {
    if (const SizeTable* table = profile->FindTable(TaskKindName(kind))) tables_[kind] = table;
  }
}

namespace {

// What takes as long as this at the rate of large products.
double EffectiveFlops(const Operator& op, absl::Span<const TensorType> operands,
                      const std::vector<bool>& wanted, const Work& work, const DeviceKind* kind) {
  if (kind == nullptr) return work.flops;
  if (const auto factor = AttentionFactor(*kind, op, operands, !wanted.empty())) {
    return *factor * work.flops;
  }
  if (kind->multiprocessors == 0) return work.flops;
  double flops = work.flops;
  for (const ProductShape& product : ProductsOf(op, operands, wanted)) {
    flops += product.flops() * (1 / ProductEfficiency(*kind, product) - 1);
  }
  return flops;
}

// How many numbers the products read.
double NumbersOf(absl::Span<const ProductShape> products) {
  double numbers = 0;
  for (const ProductShape& product : products) {
    numbers +=
        static_cast<double>(product.batch * product.k) * static_cast<double>(product.m + product.n);
  }
  return numbers;
}

// Operands are rounded to 8 bits by a kernel each, which reads 16 bits a number, twice if all
// numbers share a scale, and writes the 8 that the product reads. A gradient that both products of
// the backward pass take is rounded for each: scales lie along their sums.
double Fp8RoundingUs(const Operator& op, size_t products, double numbers,
                     const Roofline& roofline) {
  if (numbers == 0) return 0;
  const double bytes_a_number = Fp8ScalingOf(op) == Fp8Scaling::kTensor ? 2 + 2 + 1 : 2 + 1;
  return 2 * static_cast<double>(products) * roofline.launch_us +
         numbers * bytes_a_number / roofline.memory_bytes_per_us;
}

// Each matrix product is a kernel of its own.
TaskTime RooflineTime(const Operator& op, absl::Span<const TensorType> operands,
                      const std::vector<bool>& wanted, const Work& work, const Roofline& roofline) {
  const bool two_kernels = wanted.size() >= 2 && wanted[0] && wanted[1] && GradientsAreProducts(op);
  std::vector<ProductShape> products;
  if (Fp8ScalingOf(op) != Fp8Scaling::kNone) products = ProductsOf(op, operands, wanted);
  const double rounded = NumbersOf(products);
  const double bytes = std::max(static_cast<double>(work.bytes) - rounded, 0.0);
  return {roofline.Us(EffectiveFlops(op, operands, wanted, work, roofline.kind), bytes) +
              (two_kernels ? roofline.launch_us : 0) +
              Fp8RoundingUs(op, products.size(), rounded, roofline),
          TimeOrigin::kRoofline};
}

}  // namespace

TaskTime KernelCost::CallTime(const Operator& op, absl::Span<const TensorType> operands,
                              const std::vector<bool>& wanted, const Work& work,
                              const Roofline& roofline) const {
  if (profile_ == nullptr) return RooflineTime(op, operands, wanted, work, roofline);
  if (const KernelTime* measured = profile_->Find(op, operands, wanted)) {
    return {measured->median_us + profile_->task_overhead_us, TimeOrigin::kMeasured};
  }
  const std::string family = KernelFamily(op, operands, !wanted.empty());
  std::lock_guard lock(mutex_);
  const auto [at, added] = estimates_.try_emplace({family, work.flops, work.bytes}, -1);
  if (added) {
    const auto estimate = calibration_->UsOf(family, work.flops, static_cast<double>(work.bytes));
    if (estimate.has_value()) {
      at->second = estimate->us + profile_->task_overhead_us;
      ++used_[estimate->from];
    }
  }
  if (at->second >= 0) return {at->second, TimeOrigin::kCalibrated};
  return RooflineTime(op, operands, wanted, work, roofline);
}

TaskTime KernelCost::ElementwiseTime(TaskKind kind, int64_t bytes, const Roofline& roofline) const {
  const auto table = tables_.find(kind);
  if (table != tables_.end()) return {table->second->UsOf(bytes), TimeOrigin::kMeasured};
  return {roofline.Us(0, static_cast<double>(bytes)), TimeOrigin::kRoofline};
}

double KernelCost::LeastElementwiseUs(TaskKind kind, int64_t bytes,
                                      const Roofline& roofline) const {
  const auto table = tables_.find(kind);
  const double us_per_byte =
      table != tables_.end() ? table->second->LeastUsPerByte() : 1 / roofline.memory_bytes_per_us;
  return static_cast<double>(bytes) * us_per_byte;
}

std::vector<Calibration::HeldOut> KernelCost::Calibrations() const {
  std::lock_guard lock(mutex_);
  std::vector<Calibration::HeldOut> all;
  for (const auto& [from, count] : used_) all.push_back(calibration_->LeaveOneOut(from));
  return all;
}

absl::Status CheckProfileServes(const Profile& profile, const Machine& machine) {
  const std::string& processor = profile.device.processor;
  const bool cpu = profile.device.backend == "cpu";
  const std::string devices = machine.device_name();
  const std::string lower = absl::AsciiStrToLower(devices);
  const bool cores = absl::StrContains(lower, "core") || absl::StrContains(lower, "cpu");
  const std::string host = HostProcessor();
  if (cpu ? cores && processor == host : absl::StrContains(processor, devices)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the profile is of ", processor, ", and ",
                   cpu && cores ? absl::StrCat("this computer has ", host)
                                : absl::StrCat("the devices of ", machine.name, " are ", devices),
                   "; measure there, or give --profile_of_another_device"));
}

MeasuredCollectives::MeasuredCollectives(const Profile* profile, const std::string& communicator) {
  if (profile == nullptr) return;
  std::string chosen = communicator;
  for (const bool threads : {true, false}) {
    for (const auto& [key, table] : profile->tables) {
      const std::vector<std::string> words = absl::StrSplit(key, ' ');
      if (words.size() != 3 || !chosen.empty()) continue;
      if (!threads || words[1] == "threads") chosen = words[1];
    }
  }
  for (const TaskKind kind :
       {TaskKind::kAllReduce, TaskKind::kReduceScatter, TaskKind::kAllGather, TaskKind::kAllToAll,
        TaskKind::kReduce, TaskKind::kBroadcast, TaskKind::kSendReceive}) {
    for (const auto& [key, table] : profile->tables) {
      const std::vector<std::string> words = absl::StrSplit(key, ' ');
      int64_t size;
      if (words.size() != 3 || words[0] != TaskKindName(kind) || words[1] != chosen ||
          !absl::SimpleAtoi(words[2], &size) || table.empty()) {
        continue;
      }
      tables_[{kind, size}] = &table;
    }
  }
}

const SizeTable* MeasuredCollectives::Find(TaskKind kind, int64_t group_size) const {
  const auto found = tables_.find({kind, group_size});
  return found == tables_.end() ? nullptr : found->second;
}

}  // namespace isomer
