// An incremental timeline, for the simulator's delta mode: parts of its tasks can be exchanged.
// Equal to RunTimeline on the same tasks to the last bit.
//
// Tasks are grouped into blocks in a fixed order; an exchange replaces the content of a block. An
// update simulates the exchanged blocks again and then, in order, every block one of whose inputs
// (the end of a task it depends on, or the time when its predecessor left a queue) changed.
//
// After most changes nearly all later tasks are shifted by the same amount: the new layer is slower
// by 3 us, so everything after it is 3 us later. Shifting all inputs of a task shifts the task
// (max(a + d, b + d) = max(a, b) + d, exact in integers), so such a shift is recorded once, in the
// offsets of the later blocks, and only blocks with differently shifted inputs are visited: those
// after the frontier that share a queue with it, or depend on a task before it. The earliest start
// of a block suffices to see that a dependency binds neither before nor after. When enough of the
// simulated blocks are shifted by another amount, that one is recorded instead. (FlexFlow,
// MLSys'19, section 5.3, propagates from task to task.)
#ifndef ISOMER_OPTIMIZER_SIMULATOR_BLOCK_TIMELINE_H_
#define ISOMER_OPTIMIZER_SIMULATOR_BLOCK_TIMELINE_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "optimizer/cost/timeline.h"

namespace isomer {

struct TaskRef {
  int32_t block = -1, index = -1;
  friend bool operator==(const TaskRef&, const TaskRef&) = default;
};

// The tasks of a block, in order. Each uses at least one queue that is no link; it depends on tasks
// of earlier blocks, or on earlier ones of its own.
class BlockTasks {
 public:
  void Reserve(size_t tasks, size_t queues, size_t deps) {
    tasks_.reserve(tasks);
    queues_.reserve(queues);
    deps_.reserve(deps);
  }
  // Returns the task's index. `beyond_links`: as in TaskList::Add.
  int32_t Add(Picoseconds duration, Picoseconds beyond_links = 0) {
    const int32_t queues = static_cast<int32_t>(queues_.size());
    tasks_.push_back({duration, beyond_links, queues, queues, static_cast<int32_t>(deps_.size()),
                      static_cast<int32_t>(deps_.size())});
    return size() - 1;
  }
  // Both apply to the task added last.
  void AddQueue(int32_t queue) {
    queues_.push_back(queue);
    ++tasks_.back().queue_end;
  }
  void AddDep(TaskRef dep) {
    deps_.push_back(dep);
    ++tasks_.back().dep_end;
  }
  int32_t size() const { return static_cast<int32_t>(tasks_.size()); }
  bool empty() const { return tasks_.empty(); }
  friend bool operator==(const BlockTasks&, const BlockTasks&) = default;

 private:
  friend class BlockTimeline;
  struct Item {
    Picoseconds duration, beyond_links;
    int32_t queue_begin, queue_end, dep_begin, dep_end;
    friend bool operator==(const Item&, const Item&) = default;
  };
  std::vector<Item> tasks_;
  std::vector<int32_t> queues_;
  std::vector<TaskRef> deps_;
};

class BlockTimeline {
 public:
  // Queues from `first_link` on are links.
  BlockTimeline(int32_t num_blocks, int32_t num_queues, int32_t first_link = kNoLinks);

  struct Change {
    int32_t block;
    BlockTasks tasks;
  };
  // Exchanges blocks and updates the times. Identical content costs little. REQUIRES: every
  // dependency, also of other blocks, is on a task that exists afterwards.
  void Update(std::vector<Change> changes);
  // Reverts all updates since the last Commit (or construction).
  void Rollback();
  void Commit();

  const BlockTasks& tasks(int32_t block) const { return blocks_[block].tasks; }
  int32_t num_blocks() const { return static_cast<int32_t>(blocks_.size()); }
  int64_t num_tasks() const { return num_tasks_; }
  Picoseconds makespan() const {
    Picoseconds makespan = 0;
    for (int32_t queue = 0; queue < num_queues_; ++queue) {
      const int32_t last = tail_[queue];
      if (last >= 0) makespan = std::max(makespan, Free({last, FindUse(last, queue)->last}, queue));
    }
    return makespan;
  }
  Picoseconds End(TaskRef task) const {
    return blocks_[task.block].end[task.index] + Offset(task.block);
  }
  // All tasks, for a full simulation.
  void Assemble(TaskList* tasks) const;
  // Tasks simulated by updates so far.
  int64_t simulated_tasks() const { return simulated_tasks_; }

 private:
  // A block's use of one queue.
  struct QueueUse {
    int32_t queue;
    int32_t last;      // the block's last task on it
    TaskRef previous;  // the last task on it before the block; block -1: none
  };
  struct Block {
    BlockTasks tasks;
    std::vector<QueueUse> uses;  // by queue, ascending
    // Per entry of tasks.queues_: the preceding task on the queue if it is in this block, else the
    // complement of an index in `uses`.
    std::vector<int32_t> before;
    std::vector<Picoseconds> end;               // relative to the block's offset
    Picoseconds first_start = 0, last_end = 0;  // likewise
    std::vector<int32_t> users;                 // blocks that depend on this one, ascending
  };
  // State that Rollback restores.
  struct SavedBlock {
    int32_t block;
    bool exchanged;
    BlockTasks tasks;  // if exchanged
    std::vector<Picoseconds> end;
    Picoseconds first_start, last_end;
  };

  // When a queue was free, relative to the offset of the block of its last task.
  struct QueueEnd {
    int32_t queue;
    Picoseconds end;
  };
  // Absolute times of a block before its resimulation.
  struct Before {
    bool exchanged;
    std::vector<QueueEnd> queues;  // by queue, ascending
    Picoseconds last_end;
  };

  // When a task leaves a queue, relative to its block's offset, if the block's tasks end at `end`.
  Picoseconds FreeIn(const Block& block, const std::vector<Picoseconds>& end, int32_t task,
                     int32_t queue) const {
    return end[task] - (queue >= first_link_ ? block.tasks.tasks_[task].beyond_links : 0);
  }
  Picoseconds Free(const TaskRef& task, int32_t queue) const {
    if (task.block < 0) return 0;
    const Block& block = blocks_[task.block];
    return FreeIn(block, block.end, task.index, queue) + Offset(task.block);
  }
  Picoseconds FirstStart(int32_t block) const { return blocks_[block].first_start + Offset(block); }
  Picoseconds Offset(int32_t block) const { return offset_[block] + common_offset_[block / 64]; }
  // Shifts all blocks from `from` on.
  void AddToOffsets(int32_t from, Picoseconds shift);
  const QueueUse* FindUse(int32_t block, int32_t queue) const;
  QueueUse* FindUse(int32_t block, int32_t queue) {
    return const_cast<QueueUse*>(std::as_const(*this).FindUse(block, queue));
  }
  // The next block after `block` on the queue, and the previous one; -1: none.
  int32_t NextOnQueue(int32_t queue, int32_t block) const;
  int32_t PreviousOnQueue(int32_t queue, int32_t block) const;

  void Exchange(int32_t block, BlockTasks tasks);
  void IndexQueues(Block* block);
  void LinkQueues(int32_t block, const std::vector<QueueUse>& old);
  void SetUser(int32_t block, const BlockTasks& tasks, bool uses);
  void Save(int32_t block);

  void Run();
  void Simulate(int32_t block);
  void Visit(int32_t block);
  // The shift of most of the block's queues; 0: none.
  Picoseconds CommonShift(int32_t block, const Before& before) const;
  void NoteShift(int32_t block, Picoseconds shift, const Before& before);
  void PushAffected(int32_t block, const Before& before);
  void Push(int32_t block) { pending_[block / 64] |= uint64_t{1} << (block % 64); }

  int32_t num_queues_, first_link_;
  std::vector<Block> blocks_;
  std::vector<Picoseconds> offset_, common_offset_;  // per block, per 64 blocks: summed up
  std::vector<int32_t> reach_;                       // per block: its last user, or -1
  std::vector<int32_t> far_reach_;                   // per 64 blocks: an upper bound on those
  size_t words_;                                     // words of a set of blocks
  std::vector<uint64_t> on_queue_;                   // per queue: the set of blocks that use it
  std::vector<int32_t> tail_;                        // per queue: the last of them, or -1
  std::vector<uint64_t> pending_;                    // blocks to simulate
  int64_t num_tasks_ = 0, simulated_tasks_ = 0;

  std::vector<SavedBlock> saved_;
  std::vector<int32_t> saved_at_;                       // per block: index in `saved_`, or -1
  std::vector<std::pair<int32_t, Picoseconds>> noted_;  // shifts, with their first blocks

  // Number of queues of the consecutive visited blocks that were shifted by `run_shift_`, and the
  // number at which the shift is assumed for all later blocks.
  Picoseconds run_shift_ = 0;
  int64_t run_width_ = 0, believed_width_ = 1;
  // Times of exchanged blocks not simulated yet, relative to the block's offset.
  std::vector<Before> exchanged_;
  std::vector<int32_t> exchanged_at_;  // per block: index in `exchanged_`, or -1
  std::vector<int32_t> scratch_;       // per queue
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_BLOCK_TIMELINE_H_
