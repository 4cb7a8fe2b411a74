#include "optimizer/simulator/task_graph_value.h"

#include <algorithm>
#include <set>
#include <utility>

#include "optimizer/simulator/simulator.h"
#include "pcg/support/status_macros.h"

namespace isomer {

void ValueBuilder::AddDep(const Writer& writer, bool communicates, BlockTasks* tasks) {
  if (writer.task.block >= 0 && writer.communicates != communicates) tasks->AddDep(writer.task);
}

// Where it is, and how it gets elsewhere.

// The placement that the use asks for. A graph output is gathered on the first device that has a
// shard.
absl::StatusOr<int> ValueBuilder::PlaceOf(Use use) {
  if (use.node < graph_.num_nodes_) {
    ISOMER_ASSIGN_OR_RETURN(const auto* info, graph_.InfoOf(use.node));
    return info->operands[use.operand];
  }
  return graph_.WholeAt(id_, graph_.moves_.place(root_place_).placement.view.start);
}

// The storage placement of a value that is read in several placements.
int ValueBuilder::HomeAmong(const std::vector<int>& places) {
  const auto at = [this](int place) -> const MoveMemo::Place& {
    return graph_.moves_.place(place);
  };
  const bool is_read_in_place = std::any_of(places.begin(), places.end(), [&](int place) {
    return at(place).placement.type.NumShards() == 1;
  });
  if (is_read_in_place) return graph_.WholeAt(id_, at(places[0]).placement.view.start);
  return graph_.moves_.HomeAmong(places);
}

absl::StatusOr<int> ValueBuilder::RootPlace() {
  if (value_.origin == TaskGraph::Origin::kComputed) {
    ISOMER_ASSIGN_OR_RETURN(const auto* info, graph_.InfoOf(value_.producer));
    return info->outputs[value_.output];
  }
  ISOMER_ASSIGN_OR_RETURN(const int first, PlaceOf(value_.uses[0]));
  if (value_.origin == TaskGraph::Origin::kFed) return first;
  std::vector<int> places, types;  // the first of each type
  for (const Use& use : value_.uses) {
    ISOMER_ASSIGN_OR_RETURN(const int place, PlaceOf(use));
    const int type = graph_.moves_.place(place).type;
    if (std::find(types.begin(), types.end(), type) != types.end()) continue;
    places.push_back(place);
    types.push_back(type);
  }
  return places.size() == 1 ? first : HomeAmong(places);
}

int ValueBuilder::NewInstance(int type, int place, int parent, Use home) {
  instances_.push_back({type, place, parent, home, nullptr, {}});
  instances_.back().slots.assign(graph_.cost_.machine().num_devices(), -1);
  return static_cast<int>(instances_.size()) - 1;
}

void ValueBuilder::AddSlots(int instance, int place) {
  const MoveMemo::Place& at = graph_.moves_.place(place);
  for (size_t s = 0; s < at.devices.size(); ++s) {
    instances_[instance].slots[at.devices[s]] = static_cast<int32_t>(slots_.size());
    slots_.push_back({at.devices[s], at.accumulate[s], at.adding[s], {}, {}});
  }
}

// The tasks that make an instance from its parent.
void ValueBuilder::Move(int instance, int32_t block) {
  Instance& to = instances_[instance];
  const Instance& from = instances_[to.parent];
  for (int32_t device : to.move->stays) to.slots[device] = from.slots[device];
  for (const MoveFragment::Shard& shard : to.move->received) {
    to.slots[shard.device] = static_cast<int32_t>(slots_.size());
    slots_.push_back({shard.device, shard.accumulate, shard.adding, {}, {}});
  }
  BlockTasks tasks;
  for (const MoveTask& task : to.move->forward) {
    const int32_t index = tasks.Add(task.duration, task.beyond_links);
    for (int32_t queue : task.queues) tasks.AddQueue(queue);
    for (int32_t device : task.reads) {
      AddDep(slots_[from.slots[device]].value, task.communicates, &tasks);
    }
    for (int32_t device : task.writes) {
      slots_[to.slots[device]].value = {{block, index}, task.communicates};
    }
  }
  Emit(block, std::move(tasks));
}

// The instance of the type that the use asks for; the first user makes it.
absl::StatusOr<int> ValueBuilder::InstanceFor(Use use, Reading* reading) {
  ISOMER_ASSIGN_OR_RETURN(const int place, PlaceOf(use));
  const int type = graph_.moves_.place(place).type;
  for (size_t i = 0; i < instances_.size(); ++i) {
    if (instances_[i].place >= 0 && instances_[i].type == type) return static_cast<int>(i);
  }
  if (value_.origin == TaskGraph::Origin::kFed) {  // The host feeds it in every form.
    const int instance = NewInstance(type, place, -1, use);
    AddSlots(instance, place);
    return instance;
  }
  const int instance = NewInstance(type, place, 0, use);
  ISOMER_ASSIGN_OR_RETURN(instances_[instance].move,
                          graph_.moves_.Chain(root_place_, place, graph_.training_));
  Move(instance, graph_.ChainBlock(use));
  reading->chain = instance;
  return instance;
}

absl::Status ValueBuilder::Read(Use use, Reading* reading) {
  ISOMER_ASSIGN_OR_RETURN(const int instance, InstanceFor(use, reading));
  reading->instance = instance;
  if (reading->chain < 0) Emit(graph_.ChainBlock(use), {});
  if (use.node == graph_.num_nodes_) {
    Emit(graph_.ArrivalBlock(use), {});
    for (int32_t slot : instances_[instance].slots) {
      if (slot >= 0) reading->slots.push_back(slot);
    }
    return absl::OkStatus();
  }
  ISOMER_ASSIGN_OR_RETURN(const MoveFragment* arrival,
                          graph_.ArrivalAt(use, instances_[instance].place));
  int received = -1;
  if (!arrival->received.empty()) {
    for (size_t i = 0; i < instances_.size() && received < 0; ++i) {
      const Instance& other = instances_[i];
      if (other.place < 0 && other.parent == instance &&
          other.move->signature == arrival->signature) {
        received = static_cast<int>(i);
      }
    }
    if (received < 0) {
      reading->arrival = received = NewInstance(instances_[instance].type, -1, instance, use);
      instances_[received].move = arrival;
      Move(received, graph_.ArrivalBlock(use));
    }
  }
  if (reading->arrival < 0) Emit(graph_.ArrivalBlock(use), {});
  ISOMER_ASSIGN_OR_RETURN(const auto* info, graph_.InfoOf(use.node));
  std::vector<TaskRef> deps;
  deps.reserve(info->call->devices.size());
  reading->slots.reserve(info->call->devices.size());
  for (int32_t device : info->call->devices) {
    int32_t slot = received < 0 ? -1 : instances_[received].slots[device];
    if (slot < 0) slot = instances_[instance].slots[device];
    reading->slots.push_back(slot);
    const Writer& writer = slots_[slot].value;
    deps.push_back(writer.communicates ? writer.task : TaskRef{});
  }
  std::vector<TaskRef>& known = graph_.nodes_[use.node].operands[use.operand].deps;
  if (known != deps) {
    known = std::move(deps);
    nodes_.push_back(use.node);
  }
  return absl::OkStatus();
}

// The gradient.

// The first summand is the gradient, the others are added. `tasks` are those of `block`.
void ValueBuilder::Contribute(int32_t slot_id, Writer share, int node, int32_t block,
                              BlockTasks* tasks) {
  Slot& slot = slots_[slot_id];
  slot.changed_by = node;
  if (!slot.has_gradient) {
    slot.has_gradient = true;
    slot.gradient = share;
    return;
  }
  const int32_t index = tasks->Add(slot.accumulate);
  tasks->AddQueue(ComputeQueue(slot.device));
  AddDep(share, false, tasks);
  AddDep(slot.gradient, false, tasks);
  slot.gradient = {{block, index}, false};
}

bool ValueBuilder::IsAddedInPlace(const Slot& slot, int node) const {
  return slot.has_gradient && !slot.gradient.communicates && slot.changed_by != node;
}

absl::Status ValueBuilder::ContributeCompute(Use use, const Reading& reading) {
  ISOMER_ASSIGN_OR_RETURN(const auto* info, graph_.InfoOf(use.node));
  const bool behind = graph_.IsBehind(use);
  const int32_t block = behind ? graph_.AccumulateBehind(use) : graph_.AccumulateBlock(use);
  const int32_t made = behind ? graph_.WeightsBlock(graph_.nodes_[use.node].weights_behind)
                              : graph_.GradientBlockOf(use.node);
  BlockTasks tasks;
  std::vector<Picoseconds> adding;
  for (size_t s = 0; s < reading.slots.size(); ++s) {
    Slot& slot = slots_[reading.slots[s]];
    const Writer share{{made, static_cast<int32_t>(s)}, false};
    if (!info->call->keeps_order && IsAddedInPlace(slot, use.node)) {
      adding.resize(reading.slots.size());
      adding[s] = slot.adding;
      slot.gradient = share;
      slot.changed_by = use.node;
    } else {
      Contribute(reading.slots[s], share, use.node, block, &tasks);
    }
  }
  std::vector<Picoseconds>& known = graph_.nodes_[use.node].operands[use.operand].adding;
  if (known != adding) {
    known = std::move(adding);
    nodes_.push_back(use.node);
  }
  Emit(block, std::move(tasks));
  if (behind) Emit(graph_.AccumulateBlock(use), {});
  return absl::OkStatus();
}

// Slots of the root from which the read slots were moved.
std::set<int32_t> ValueBuilder::SourcesOf(const Reading& reading) const {
  const Instance& instance = instances_[reading.instance];
  if (instance.parent < 0) return {reading.slots.begin(), reading.slots.end()};
  const Instance& root = instances_[instance.parent];
  std::set<int32_t> sources;
  for (int32_t device : instance.move->stays) sources.insert(root.slots[device]);
  for (const MoveTask& task : instance.move->forward) {
    for (int32_t device : task.reads) sources.insert(root.slots[device]);
  }
  return sources;
}

// Fills the gradient of the loss at its producer.
void ValueBuilder::Seed(Use use, const Reading& reading) {
  const int32_t block = graph_.FillBlockOf(use.node);
  const MoveMemo::Place& place = graph_.moves_.place(root_place_);
  BlockTasks tasks;
  for (int32_t id : SourcesOf(reading)) {
    Slot& slot = slots_[id];  // The root's come first.
    const int32_t index = tasks.Add(place.fill[id]);
    tasks.AddQueue(ComputeQueue(slot.device));
    slot.has_gradient = true;
    slot.gradient = {{block, index}, false};
  }
  Emit(block, std::move(tasks));
}

void ValueBuilder::Reverse(int instance, Use use, int32_t block) {
  const Instance& to = instances_[instance];
  const Instance& from = instances_[to.parent];
  BlockTasks tasks;
  std::vector<std::pair<int32_t, Writer>> shares;  // by slot
  for (const MoveTask& task : to.move->backward) {
    const bool reached = std::any_of(task.reads.begin(), task.reads.end(), [&](int32_t device) {
      return slots_[to.slots[device]].has_gradient;
    });
    if (!reached) continue;
    if (task.communicates) graph_.nodes_[use.node].operands[use.operand].sends_back = true;
    const int32_t index = tasks.Add(task.duration, task.beyond_links);
    for (int32_t queue : task.queues) tasks.AddQueue(queue);
    for (int32_t device : task.reads) {
      AddDep(slots_[to.slots[device]].gradient, task.communicates, &tasks);
    }
    for (int32_t device : task.writes) {
      shares.push_back({from.slots[device], {{block, index}, task.communicates}});
    }
  }
  // Equals the schedule's order on each device, as each is in one of the tasks.
  for (const auto& [slot, share] : shares) Contribute(slot, share, /*node=*/-1, block, &tasks);
  Emit(block, std::move(tasks));
}

// The uses [first, last) are of one node.
absl::Status ValueBuilder::Contributions(size_t first, size_t last) {
  for (size_t u = first; u < last; ++u) {
    const Use use = value_.uses[u];
    if (use.node == graph_.num_nodes_) {
      if (use.operand == graph_.loss_operand_) Seed(use, readings_[u]);
    } else if (graph_.nodes_[use.node].operands[use.operand].gradient) {
      ISOMER_RETURN_IF_ERROR(ContributeCompute(use, readings_[u]));
    }
  }
  for (size_t u = last; u-- > first;) {
    const int32_t block = graph_.ReversedArrivalBlock(value_.uses[u]);
    if (readings_[u].arrival < 0) {
      Emit(block, {});
    } else {
      Reverse(readings_[u].arrival, value_.uses[u], block);
    }
  }
  for (size_t u = last; u-- > first;) {
    const int32_t block = graph_.ReversedChainBlock(value_.uses[u]);
    if (readings_[u].chain < 0) {
      Emit(block, {});
    } else {
      Reverse(readings_[u].chain, value_.uses[u], block);
    }
  }
  if (first == 0 && value_.origin == TaskGraph::Origin::kStored) Synchronise(value_.uses[0]);
  return absl::OkStatus();
}

// All-reduces gradients over the replicas of a stored tensor.
void ValueBuilder::Synchronise(Use use) {
  const bool behind = graph_.IsBehind(use);
  if (behind) Emit(graph_.SynchroniseBlock(use), {});
  const int32_t block = behind ? graph_.SynchroniseBehind(use) : graph_.SynchroniseBlock(use);
  BlockTasks tasks;
  for (const MoveTask& task : graph_.moves_.SynchronisationOf(root_place_)) {
    const int32_t index = tasks.Add(task.duration, task.beyond_links);
    for (int32_t queue : task.queues) tasks.AddQueue(queue);
    for (int32_t device : task.reads) {
      Slot& slot = slots_[instances_[0].slots[device]];
      AddDep(slot.gradient, true, &tasks);
      slot.gradient = {{block, index}, true};
    }
  }
  Emit(block, std::move(tasks));
}

void ValueBuilder::UpdateStored(Use use) {
  BlockTasks tasks;
  const MoveMemo::Place& place = graph_.moves_.place(root_place_);
  for (size_t s = 0; s < place.devices.size(); ++s) {
    const Slot& slot = slots_[s];  // The root's come first.
    if (!slot.has_gradient) continue;
    tasks.Add(place.update[s]);
    tasks.AddQueue(ComputeQueue(slot.device));
    AddDep(slot.gradient, false, &tasks);
  }
  Emit(graph_.UpdateBlock(use), std::move(tasks));
}

void ValueBuilder::ReportToProducer() {
  std::vector<TaskRef> deps;
  std::vector<std::pair<int32_t, Picoseconds>> none;
  if (value_.producer < 0 || !graph_.nodes_[value_.producer].has_gradient) return;
  const MoveMemo::Place& place = graph_.moves_.place(root_place_);
  for (size_t s = 0; s < place.devices.size(); ++s) {
    const Slot& slot = slots_[s];
    deps.push_back(slot.gradient.communicates ? slot.gradient.task : TaskRef{});
    if (!slot.has_gradient) none.emplace_back(place.devices[s], place.fill[s]);
  }
  if (deps == value_.gradient_deps && none == value_.no_gradient) return;
  value_.gradient_deps = std::move(deps);
  value_.no_gradient = std::move(none);
  nodes_.push_back(value_.producer);
}

absl::Status ValueBuilder::Build() {
  ISOMER_ASSIGN_OR_RETURN(root_place_, RootPlace());
  NewInstance(graph_.moves_.place(root_place_).type, root_place_, -1, {});
  AddSlots(0, root_place_);
  if (value_.producer >= 0) {
    for (size_t s = 0; s < slots_.size(); ++s) {
      slots_[s].value.task = {graph_.ComputeBlockOf(value_.producer), static_cast<int32_t>(s)};
    }
  }
  readings_.resize(value_.uses.size());
  for (size_t u = 0; u < readings_.size(); ++u) {
    graph_.nodes_[value_.uses[u].node].operands[value_.uses[u].operand].sends_back = false;
    ISOMER_RETURN_IF_ERROR(Read(value_.uses[u], &readings_[u]));
  }
  const auto stored = static_cast<int32_t>(graph_.moves_.place(root_place_).devices.size());
  value_.stays = std::all_of(readings_.begin(), readings_.end(), [&](const Reading& reading) {
    return std::all_of(reading.slots.begin(), reading.slots.end(),
                       [&](int32_t slot) { return slot < stored; });
  });
  if (!graph_.training_) return absl::OkStatus();
  if (value_.wants_gradient) {
    for (size_t last = value_.uses.size(); last > 0;) {
      size_t first = last - 1;
      while (first > 0 && value_.uses[first - 1].node == value_.uses[last - 1].node) --first;
      ISOMER_RETURN_IF_ERROR(Contributions(first, last));
      last = first;
    }
    if (value_.origin == TaskGraph::Origin::kStored) UpdateStored(value_.uses[0]);
  }
  ReportToProducer();
  return absl::OkStatus();
}

}  // namespace isomer
