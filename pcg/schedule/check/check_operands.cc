#include "pcg/schedule/check/check_operands.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check_calls.h"
#include "pcg/schedule/lowering/builder.h"
#include "pcg/schedule/task_error.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class OperandCheck {
 public:
  OperandCheck(const Graph& graph, const Schedule& schedule) : graph_(graph), schedule_(schedule) {}

  absl::Status CheckBoxes(int32_t t) const;
  absl::Status CheckCollective(int32_t t) const;

 private:
  absl::Status Error(int32_t t, absl::string_view what) const {
    return TaskError(graph_, schedule_, t, what);
  }
  absl::Status CheckSegment(int32_t t, const std::vector<BufferId>& reads,
                            const std::vector<BufferId>& writes) const;

  const Graph& graph_;
  const Schedule& schedule_;
};

// What is added has the box of what it is added to; so has what an update takes of a weight but the
// weight, of which it may be a part.
absl::Status OperandCheck::CheckBoxes(int32_t t) const {
  const Task& task = schedule_.tasks[t];
  const bool update = task.kind == TaskKind::kUpdate;
  if (task.kind != TaskKind::kAccumulate && task.kind != TaskKind::kConvert && !update) {
    return absl::OkStatus();
  }
  const size_t segments = std::max(task.segments, 1), weights = update ? segments : 0;
  bool fits = task.segments > 0 && !task.writes.empty() && task.writes.size() % segments == 0 &&
              task.reads.size() % segments == 0 && !task.reads.empty();
  // An update with masters writes them beside the weights.
  const size_t masters =
      fits && update && HasMaster(schedule_.buffers[task.writes[0]].dtype) ? segments : 0;
  fits = fits && task.reads.size() == task.writes.size() + weights - masters;
  for (size_t i = 0; fits && i < task.reads.size(); ++i) {
    const Box& box = schedule_.buffers[task.reads[i]].box;
    const Box& part = schedule_.buffers[task.writes[i % segments]].box;
    fits = i < weights ? Covers(box, part) : box == part;
  }
  return fits ? absl::OkStatus() : Error(t, "its buffers have different boxes");
}

absl::Status OperandCheck::CheckCollective(int32_t t) const {
  const Task& task = schedule_.tasks[t];
  if (!IsCommunication(task.kind) && task.kind != TaskKind::kLocal) {
    const bool may = task.kind == TaskKind::kUpdate;
    return task.segments == 1 || may ? absl::OkStatus() : Error(t, "has segments");
  }
  for (const BufferList* list : {&task.reads, &task.writes}) {
    for (BufferId id : *list) {
      if (id == kNoBuffer || task.reads.empty() || task.reads[0] == kNoBuffer ||
          schedule_.buffers[id].dtype != schedule_.buffers[task.reads[0]].dtype) {
        return Error(t, "its buffers are not of one data type");
      }
    }
  }
  if (task.kind == TaskKind::kSendReceive || task.kind == TaskKind::kLocal) {
    return task.segments == 1 ? absl::OkStatus() : Error(t, "has segments");
  }
  // Which members bring buffers, and which receive.
  std::vector<int32_t> readers = task.devices, writers = task.devices;
  const bool rooted = task.kind == TaskKind::kReduce || task.kind == TaskKind::kBroadcast;
  if (rooted && !task.reads.empty() && !task.writes.empty()) {
    const bool reduce = task.kind == TaskKind::kReduce;
    const int32_t root = schedule_.buffers[reduce ? task.writes[0] : task.reads[0]].device;
    (reduce ? writers : readers) = {root};
    if (!reduce) std::erase(writers, root);
  }
  const size_t segments = task.segments;
  if (task.segments < 1 || task.reads.size() != readers.size() * segments ||
      task.writes.size() != writers.size() * segments) {
    return Error(t, absl::StrCat("has ", task.reads.size(), " operands and ", task.writes.size(),
                                 " results of ", task.segments, " segments on ",
                                 task.devices.size(), " devices"));
  }
  const auto in_order = [&](absl::Span<const BufferId> ids, absl::Span<const int32_t> devices) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (schedule_.buffers[ids[i]].device != devices[i / segments]) return false;
    }
    return true;
  };
  if (!in_order(task.reads, readers) || !in_order(task.writes, writers)) {
    return Error(t, "its buffers are not in the order of its devices");
  }
  int64_t bytes = 0;
  for (size_t i = 0; i < segments; ++i) {
    const std::vector<BufferId> reads = OfSegment(task, task.reads, i);
    const std::vector<BufferId> writes = OfSegment(task, task.writes, i);
    ISOMER_RETURN_IF_ERROR(CheckSegment(t, reads, writes));
    const BufferId whole = task.kind == TaskKind::kAllGather ? writes[0] : reads[0];
    bytes += schedule_.buffers[whole].bytes();
  }
  if (task.bytes == bytes) return absl::OkStatus();
  return Error(t, absl::StrCat("moves ", task.bytes, " bytes of a buffer of ", bytes));
}

absl::Status OperandCheck::CheckSegment(int32_t t, const std::vector<BufferId>& reads,
                                        const std::vector<BufferId>& writes) const {
  const Task& task = schedule_.tasks[t];
  const Box& box = schedule_.buffers[writes[0]].box;
  bool same = true;
  for (const std::vector<BufferId>* list : {&reads, &writes}) {
    for (BufferId id : *list) {
      const Box& other = schedule_.buffers[id].box;
      if (other.shape.size() != box.shape.size())
        return Error(t, "its buffers have different ranks");
      same &= other == box;
    }
  }
  const bool rooted = task.kind == TaskKind::kReduce || task.kind == TaskKind::kBroadcast;
  const bool fits = rooted ? same
                           : RecogniseCollective(schedule_.buffers, reads, writes,
                                                 reads.size() * writes.size()) == task.kind;
  return fits ? absl::OkStatus() : Error(t, "its boxes are not those of this collective");
}

}  // namespace

absl::Status CheckOperands(const Graph& graph, const Schedule& schedule, int32_t t) {
  const OperandCheck check(graph, schedule);
  ISOMER_RETURN_IF_ERROR(check.CheckBoxes(t));
  return check.CheckCollective(t);
}

}  // namespace isomer
