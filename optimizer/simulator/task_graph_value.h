// The tasks of one value of a task graph: transfers to its users, and its gradient back. Internal
// to task_graph.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_TASK_GRAPH_VALUE_H_
#define ISOMER_OPTIMIZER_SIMULATOR_TASK_GRAPH_VALUE_H_

#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "optimizer/simulator/task_graph.h"

namespace isomer {

// A value has instances: as its producer leaves it (or the host feeds or stores it), in each form
// that a chain of parallel operators gives it, and as devices received it. An instance has at most
// one slot per device; where a chain keeps a shard, two instances share the slot.
class ValueBuilder {
 public:
  // `nodes` receives the nodes whose dependencies change. `again`: `changes` may contain blocks of
  // the value from an earlier build.
  ValueBuilder(TaskGraph* graph, int value, bool again, std::vector<BlockTimeline::Change>* changes,
               std::vector<int>* nodes)
      : graph_(*graph),
        id_(value),
        value_(graph->values_[value]),
        again_(again),
        changes_(*changes),
        nodes_(*nodes) {}
  absl::Status Build();

 private:
  using Use = TaskGraph::Use;

  // The last writer of a value or gradient.
  struct Writer {
    TaskRef task;
    bool communicates = false;
  };
  struct Slot {
    int32_t device;
    Picoseconds accumulate, adding;  // a summand to the gradient: by a task; by its producer
    Writer value;                    // block -1: the host
    Writer gradient;
    bool has_gradient = false;
    int changed_by = -1;  // node of the gradient's last summand; -1: a move
  };
  struct Instance {
    int type;    // of the placement
    int place;   // -1: received
    int parent;  // -1: as the producer leaves it
    Use home;    // the use that it is made for
    const MoveFragment* move = nullptr;
    std::vector<int32_t> slots;  // per device, or -1
  };
  // The slots that one use reads.
  struct Reading {
    std::vector<int32_t> slots;  // per task
    int instance = -1;
    int chain = -1, arrival = -1;  // instances made for this use, if any
  };

  absl::StatusOr<int> PlaceOf(Use use);
  int HomeAmong(const std::vector<int>& places);
  absl::StatusOr<int> RootPlace();
  int NewInstance(int type, int place, int parent, Use home);
  void AddSlots(int instance, int place);
  absl::StatusOr<int> InstanceFor(Use use, Reading* reading);
  absl::Status Read(Use use, Reading* reading);
  void Move(int instance, int32_t block);

  absl::Status Contributions(size_t first, size_t last);
  absl::Status ContributeCompute(Use use, const Reading& reading);
  std::set<int32_t> SourcesOf(const Reading& reading) const;
  void Seed(Use use, const Reading& reading);
  void Reverse(int instance, Use use, int32_t block);
  // `node`: whose gradient the summand is; -1: a move.
  void Contribute(int32_t slot, Writer share, int node, int32_t block, BlockTasks* tasks);
  // Whether the node's call adds its summand of a slot's gradient directly to the sum
  // (pcg/schedule/memory/additions.h).
  bool IsAddedInPlace(const Slot& slot, int node) const;
  void Synchronise(Use use);
  void UpdateStored(Use use);
  void ReportToProducer();
  // Adds a dependency between a compute and a communication task; tasks of one kind on one device
  // wait in the queue anyway.
  static void AddDep(const Writer& writer, bool communicates, BlockTasks* tasks);
  void Emit(int32_t block, BlockTasks tasks) {
    if (tasks.empty() && !again_ && graph_.timeline_.tasks(block).empty()) return;
    changes_.push_back({block, std::move(tasks)});
  }

  TaskGraph& graph_;
  const int id_;
  TaskGraph::Value& value_;
  const bool again_;
  std::vector<BlockTimeline::Change>& changes_;
  std::vector<int>& nodes_;
  int root_place_ = -1;
  std::vector<Instance> instances_;
  std::vector<Slot> slots_;
  std::vector<Reading> readings_;  // per use
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_TASK_GRAPH_VALUE_H_
