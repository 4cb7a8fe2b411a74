#include "pcg/schedule/symmetry/micro_batch_classes.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace isomer {
namespace {

// The first, two alike, of which the second is repeated, and the last.
constexpr int64_t kLeastMoments = 4;

class Repetition {
 public:
  Repetition(const Graph& graph, absl::Span<const MachineView> views, int32_t num_moments,
             Schedule* schedule)
      : graph_(graph),
        views_(views),
        schedule_(*schedule),
        last_(schedule->num_moments - 1),
        repeated_(schedule->num_moments - 2),
        num_moments_(num_moments),
        times_(num_moments - schedule->num_moments + 1) {}

  bool Run() {
    if (schedule_.num_moments < kLeastMoments || times_ < 2) return false;
    FindMoments();
    if (!AreAlike()) return false;
    RepeatBuffers();
    RepeatTasks();
    for (Schedule::HostTensor& parameter : schedule_.parameters) {
      for (auto* list : {&parameter.stored, &parameter.trained, &parameter.gradients}) {
        for (BufferId& id : *list) id = Renamed(id, 0);
      }
    }
    schedule_.shards.clear();
    schedule_.output_copies.clear();
    schedule_.num_moments = num_moments_;
    return true;
  }

 private:
  int32_t MomentOf(BufferId id) const { return id == kNoBuffer ? kNoMoment : of_buffer_[id]; }

  // What the host does is of the micro-batch of its buffer, and what sums gradients of that of all
  // that it adds, if there is one.
  int32_t MomentOf(const Task& task) const {
    if (task.kind == TaskKind::kFeed) return MomentOf(task.writes[0]);
    if (task.kind == TaskKind::kUnload) return MomentOf(task.reads[0]);
    const bool sums =
        task.kind == TaskKind::kAccumulate || task.kind == TaskKind::kConvert || HasSegments(task);
    if (task.moment != kNoMoment || !sums) return task.moment;
    const int32_t first = MomentOf(task.reads[0]);
    const bool is_one = std::all_of(task.reads.begin(), task.reads.end(),
                                    [&](BufferId id) { return MomentOf(id) == first; });
    return is_one ? first : kNoMoment;
  }

  // A part of a gradient that one task writes is of that task's micro-batch.
  void FindMoments() {
    std::vector<int32_t> writers(schedule_.buffers.size(), 0);
    for (const Task& task : schedule_.tasks) {
      for (BufferId id : task.writes) {
        if (id != kNoBuffer) ++writers[id];
      }
    }
    for (const Buffer& buffer : schedule_.buffers) of_buffer_.push_back(buffer.moment);
    for (const Task& task : schedule_.tasks) {
      moments_.push_back(MomentOf(task));
      for (BufferId id : task.writes) {
        if (id == kNoBuffer || writers[id] > 1) continue;
        const Buffer& buffer = schedule_.buffers[id];
        if (buffer.role == BufferRole::kGradientShard) of_buffer_[id] = moments_.back();
      }
    }
  }

  static bool Moves(const Task& task) {
    return task.kind == TaskKind::kLocal || task.kind == TaskKind::kSendReceive;
  }
  // Whether the lists of a task have as many segments for each of its devices.
  static bool HasSegments(const Task& task) {
    switch (task.kind) {
      case TaskKind::kAllReduce:
      case TaskKind::kReduceScatter:
      case TaskKind::kAllGather:
      case TaskKind::kAllToAll: {
        const size_t segments = task.devices.size() * static_cast<size_t>(task.segments);
        return task.reads.size() == segments && task.writes.size() == segments;
      }
      default:
        return false;
    }
  }

  // Every task is of one micro-batch, or sums or spreads what is of several; and what is repeated
  // is what the one before does.
  bool AreAlike() const {
    std::vector<const Task*> before, repeated;
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      const int32_t moment = moments_[t];
      for (const BufferList* list : {&task.reads, &task.writes}) {
        for (BufferId id : *list) {
          const int32_t other = MomentOf(id);
          if (other == kNoMoment || other == moment) continue;
          if (moment != kNoMoment || !(Moves(task) || HasSegments(task))) {
            return false;
          }
        }
      }
      if (moment == repeated_ - 1) before.push_back(&task);
      if (moment == repeated_) repeated.push_back(&task);
    }
    return std::equal(before.begin(), before.end(), repeated.begin(), repeated.end(),
                      [](const Task* a, const Task* b) {
                        return a->kind == b->kind && a->phase == b->phase && a->node == b->node &&
                               a->devices == b->devices && a->bytes == b->bytes &&
                               a->reads.size() == b->reads.size() &&
                               a->writes.size() == b->writes.size();
                      });
  }

  // The box of the same shard `by` micro-batches later.
  void Shift(int32_t by, Buffer* buffer) const {
    const MachineView& view = views_[buffer->tensor.node.value];
    const TensorType& type = graph_.type(buffer->tensor);
    for (int i = 0; i < type.rank(); ++i) {
      const int64_t moments = view.MomentsOfAxis(i);
      if (moments > 1) buffer->box.origin[i] += by * type.dims[i].size / moments;
    }
    if (buffer->moment != kNoMoment) buffer->moment += by;
  }

  // Neighbours that are repeated are repeated as one.
  void RepeatBuffers() {
    const std::vector<Buffer> old = std::move(schedule_.buffers);
    std::vector<Buffer>& buffers = schedule_.buffers;
    buffers.clear();
    buffers.reserve(old.size() * static_cast<size_t>(num_moments_) /
                    static_cast<size_t>(last_ + 1));
    renamed_.resize(old.size());
    run_.assign(old.size(), 0);
    for (size_t begin = 0, end; begin < old.size(); begin = end) {
      for (end = begin; end < old.size() && of_buffer_[end] == repeated_;) ++end;
      const int32_t run = static_cast<int32_t>(end - begin);
      if (run == 0) ++end;
      for (size_t id = begin; id < end; ++id) {
        renamed_[id] = static_cast<BufferId>(buffers.size() + id - begin);
        run_[id] = run;
      }
      for (int32_t j = 0; j < (run == 0 ? 1 : times_); ++j) {
        for (size_t id = begin; id < end; ++id) {
          buffers.push_back(old[id]);
          if (j > 0) Shift(j, &buffers.back());
          if (of_buffer_[id] == last_) Shift(times_ - 1, &buffers.back());
        }
      }
    }
  }

  BufferId Renamed(BufferId id, int32_t j) const {
    return id == kNoBuffer ? id : renamed_[id] + j * run_[id];
  }
  bool IsRepeated(BufferId id) const { return id != kNoBuffer && run_[id] > 0; }

  void RepeatTasks() {
    std::vector<Task> old = std::move(schedule_.tasks);
    std::vector<Task>& tasks = schedule_.tasks;
    tasks.clear();
    tasks.reserve(old.size() * static_cast<size_t>(num_moments_) / static_cast<size_t>(last_ + 1));
    for (size_t begin = 0, end; begin < old.size(); begin = end) {
      for (end = begin; end < old.size() && moments_[end] == repeated_;) ++end;
      if (end == begin) {
        ++end;
        AddOnce(std::move(old[begin]));
        continue;
      }
      for (int32_t j = 0; j < times_; ++j) {
        for (size_t t = begin; t < end; ++t) {
          tasks.push_back(old[t]);
          Rename(j, &tasks.back());
          if (tasks.back().moment != kNoMoment) tasks.back().moment += j;
        }
      }
    }
  }

  void Rename(int32_t j, Task* task) const {
    for (BufferList* list : {&task->reads, &task->writes}) {
      for (BufferId& id : *list) id = Renamed(id, j);
    }
  }

  void AddOnce(Task task) {
    const auto repeated = [this](BufferId id) { return IsRepeated(id); };
    // The lists of a task of one micro-batch have none.
    if (std::any_of(task.reads.begin(), task.reads.end(), repeated) ||
        std::any_of(task.writes.begin(), task.writes.end(), repeated)) {
      if (Moves(task)) {
        RepeatTransfers(&task);
      } else {
        RepeatSegments(&task);
      }
    } else {
      Rename(0, &task);
    }
    if (task.moment == last_) task.moment = num_moments_ - 1;
    schedule_.tasks.push_back(std::move(task));
  }

  // The places of a list with what is repeated in it: the first of them for each old place, and how
  // far one repetition is from the next.
  struct Places {
    std::vector<int32_t> first, step;
  };
  Places RepeatList(BufferList* list) const {
    Places places;
    BufferList repeated;
    for (size_t begin = 0, end; begin < list->size(); begin = end) {
      for (end = begin; end < list->size() && IsRepeated((*list)[end]);) ++end;
      const int32_t run = static_cast<int32_t>(end - begin);
      if (run == 0) ++end;
      for (size_t i = begin; i < end; ++i) {
        places.first.push_back(static_cast<int32_t>(repeated.size() + i - begin));
        places.step.push_back(run);
      }
      for (int32_t j = 0; j < (run == 0 ? 1 : times_); ++j) {
        for (size_t i = begin; i < end; ++i) repeated.push_back(Renamed((*list)[i], j));
      }
    }
    *list = std::move(repeated);
    return places;
  }

  // REQUIRES: HasSegments.
  void RepeatSegments(Task* task) {
    RepeatList(&task->reads);
    RepeatList(&task->writes);
    task->segments = static_cast<int32_t>(task->reads.size() / task->devices.size());
    const BufferList& largest = task->kind == TaskKind::kAllGather ? task->writes : task->reads;
    task->bytes = 0;
    for (int32_t i = 0; i < task->segments; ++i) {
      task->bytes += schedule_.buffers[largest[i]].bytes();
    }
  }

  void RepeatTransfers(Task* task) {
    const Places reads = RepeatList(&task->reads), writes = RepeatList(&task->writes);
    const auto old = std::move(task->transfers);
    task->transfers.clear();
    const auto is_repeated = [&](size_t i) {
      return reads.step[old[i].first] > 0 || writes.step[old[i].second] > 0;
    };
    std::vector<Schedule::Whole::Count> counts;
    int64_t local = 0, crossing = 0;
    for (size_t begin = 0, end; begin < old.size(); begin = end) {
      for (end = begin; end < old.size() && is_repeated(end);) ++end;
      const int32_t times = end == begin ? 1 : times_;
      if (end == begin) ++end;
      for (int32_t j = 0; j < times; ++j) {
        for (size_t i = begin; i < end; ++i) {
          const int32_t read = reads.first[old[i].first] + j * reads.step[old[i].first];
          const int32_t write = writes.first[old[i].second] + j * writes.step[old[i].second];
          task->transfers.emplace_back(read, write);
          counts.push_back(schedule_.CountOf(*task, i));
          const Buffer& from = schedule_.buffers[task->reads[read]];
          const Buffer& to = schedule_.buffers[task->writes[write]];
          const int64_t bytes = IntersectionVolume(from.box, to.box) * BytesPerElement(to.dtype);
          (from.device == to.device ? local : crossing) += bytes * counts.back().most();
        }
      }
    }
    task->bytes = task->kind == TaskKind::kLocal ? 2 * local : crossing;
    if (task->whole < 0) return;
    schedule_.wholes.push_back({schedule_.wholes[task->whole].devices, std::move(counts)});
    task->whole = static_cast<int32_t>(schedule_.wholes.size()) - 1;
  }

  const Graph& graph_;
  absl::Span<const MachineView> views_;
  Schedule& schedule_;
  const int32_t last_, repeated_;  // before
  const int32_t num_moments_, times_;
  std::vector<int32_t> of_buffer_;  // micro-batches, per old buffer
  std::vector<int32_t> moments_;    // per old task
  std::vector<BufferId> renamed_;   // per old buffer: its first repetition
  std::vector<int32_t> run_;        // and how far one is from the next; 0: it is not repeated
};

}  // namespace

int64_t RepresentedMoments(int64_t moments) {
  for (int64_t few = kLeastMoments; 2 * few <= moments; ++few) {
    if (moments % few == 0) return few;
  }
  return moments;
}

bool RepeatMicroBatches(const Graph& graph, absl::Span<const MachineView> views,
                        int32_t num_moments, Schedule* schedule) {
  return Repetition(graph, views, num_moments, schedule).Run();
}

}  // namespace isomer
