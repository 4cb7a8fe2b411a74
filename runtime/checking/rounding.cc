#include "runtime/checking/rounding.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/precision.h"

namespace isomer {
namespace {

// Adds what the parts of a buffer are rounded, from the tasks that add them up.
class PartCounter {
 public:
  explicit PartCounter(const Schedule& schedule)
      : schedule_(schedule), parts_(schedule.buffers.size(), 1) {}

  void Take(const Task& task) {
    switch (task.kind) {
      case TaskKind::kAccumulate:
        parts_[task.writes[0]] += parts_[task.reads[0]];
        break;
      case TaskKind::kConvert:
      case TaskKind::kOffload:
      case TaskKind::kFetch:
        SetAll(task, parts_[task.reads[0]]);
        break;
      case TaskKind::kAllReduce:
      case TaskKind::kReduceScatter:
      case TaskKind::kReduce:
        SetAll(task, Sum(task));
        break;
      case TaskKind::kAllGather:
      case TaskKind::kAllToAll:
      case TaskKind::kBroadcast:
        SetAll(task, Largest(task));
        break;
      case TaskKind::kLocal:
      case TaskKind::kSendReceive:
        Transfer(task);
        break;
      default:  // A kernel's result is rounded once.
        SetAll(task, 1);
    }
    int64_t& most = task.phase == Phase::kForward ? forward_ : gradient_;
    if (task.phase != Phase::kForward && task.phase != Phase::kBackward &&
        task.phase != Phase::kUpdate) {
      return;
    }
    for (BufferId id : task.writes) {
      if (id != kNoBuffer && IsFloat(schedule_.buffers[id].dtype)) {
        most = std::max(most, parts_[id]);
      }
    }
  }

  int64_t forward() const { return forward_; }
  int64_t gradient() const { return gradient_; }

 private:
  void SetAll(const Task& task, int64_t parts) {
    for (BufferId id : task.writes) {
      if (id != kNoBuffer) parts_[id] = parts;
    }
  }

  int64_t Largest(const Task& task) const {
    int64_t largest = 1;
    for (BufferId id : task.reads) {
      if (id != kNoBuffer) largest = std::max(largest, parts_[id]);
    }
    return largest;
  }

  // Members bring as many parts each as the fullest of their buffers has.
  int64_t Sum(const Task& task) const {
    return Largest(task) * static_cast<int64_t>(task.devices.size());
  }

  // A write gets what lies in its box of each of its reads; those that share no element do not add
  // up, so this counts too many where a write is put together.
  void Transfer(const Task& task) {
    std::vector<std::vector<BufferId>> from(task.writes.size());
    for (const auto& [read, write] : task.transfers) from[write].push_back(task.reads[read]);
    for (size_t w = 0; w < from.size(); ++w) {
      const Box& into = schedule_.buffers[task.writes[w]].box;
      int64_t elements = 0, most = 1;
      for (BufferId id : from[w]) {
        elements += parts_[id] * IntersectionVolume(schedule_.buffers[id].box, into);
        most = std::max(most, parts_[id]);
      }
      const int64_t volume = std::max<int64_t>(into.Volume(), 1);
      parts_[task.writes[w]] = std::max(most, (elements + volume - 1) / volume);
    }
  }

  const Schedule& schedule_;
  std::vector<int64_t> parts_;  // by buffer
  int64_t forward_ = 1, gradient_ = 1;
};

}  // namespace

Rounding RoundingOf(DataType precision, const Schedule& schedule, const Fp8Products& fp8) {
  Rounding rounding{
      .precision = precision, .fp8 = fp8, .gradients = schedule.options.update.gradient_sums};
  if (!IsLow(rounding)) return rounding;
  PartCounter counter(schedule);
  for (const Task& task : schedule.tasks) counter.Take(task);
  // What is not added up is rounded once, as every result is.
  if (precision != DataType::kFloat32) rounding.forward_parts = counter.forward() - 1;
  rounding.gradient_parts = counter.gradient() - 1;
  return rounding;
}

std::string Rounding::ToString() const {
  std::string text(PrecisionName(precision));
  if (fp8.any()) {
    absl::StrAppend(&text, ", products in 8 bits with a scale per ", Fp8ScalingName(fp8.scaling));
  }
  if (forward_parts > 0) absl::StrAppend(&text, ", sums of ", forward_parts + 1, " parts");
  const DataType in = StoredIn(*this, /*gradient=*/true);
  if (in == precision && gradient_parts == 0) return text;
  absl::StrAppend(&text, ", gradients");
  if (in != precision) absl::StrAppend(&text, " in ", PrecisionName(in));
  if (gradient_parts > 0) absl::StrAppend(&text, " of ", gradient_parts + 1, " parts");
  return text;
}

}  // namespace isomer
