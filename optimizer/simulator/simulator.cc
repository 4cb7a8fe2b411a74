#include "optimizer/simulator/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "optimizer/cost/memory_cost.h"
#include "optimizer/cost/workspace.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/schedule/program/program.h"
#include "pcg/schedule/symmetry/class_schedule.h"
#include "pcg/support/status_macros.h"

namespace isomer {

namespace {

bool LeavesNode(const Machine& machine, absl::Span<const int32_t> devices) {
  const int64_t node = machine.devices_per_node();
  return std::any_of(devices.begin(), devices.end(),
                     [&](int32_t device) { return device / node != devices[0] / node; });
}

}  // namespace

void AppendQueues(const CostModel& cost, const Schedule& schedule, const Task& task,
                  std::vector<int32_t>* queues) {
  if (IsOfHost(task.kind)) return;
  int32_t queue = QueueOf(task, NumQueuesOfDevice(cost.machine()));
  if (!IsCommunication(task.kind)) {
    queues->push_back(QueueOfDevice(task.devices[0], queue));
    return;
  }
  if (queue == kWeightsQueue && !LeavesNode(cost.machine(), schedule.GroupOf(task))) {
    queue = kCommunicationQueue;
  }
  for (int32_t device : task.devices) queues->push_back(QueueOfDevice(device, queue));
  if (task.kind != TaskKind::kSendReceive) return;
  std::vector<int32_t> links;
  for (const auto& [read, write] : task.transfers) {
    for (LinkId link : cost.machine().Path(schedule.buffers[task.reads[read]].device,
                                           schedule.buffers[task.writes[write]].device)) {
      links.push_back(LinkQueue(cost.machine(), link));
    }
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  queues->insert(queues->end(), links.begin(), links.end());
}

namespace {

// Per task: earlier tasks on the same bytes, which its devices wait for.
std::vector<std::vector<int32_t>> WaitsOf(const Schedule& schedule, const MemoryPlan& memory,
                                          int32_t num_queues) {
  std::vector<std::vector<int32_t>> waits(schedule.tasks.size());
  AccessTable accesses(schedule, memory);
  for (size_t d = 0; d < schedule.programs.size(); ++d) {
    const std::vector<Command> commands =
        CompileProgramOf(schedule, &accesses, num_queues, static_cast<int32_t>(d));
    for (const Command& command : commands) {
      for (int32_t other : command.waits) waits[command.task].push_back(commands[other].task);
    }
  }
  return waits;
}

}  // namespace

double ExchangeOfNormsUs(const CostModel& cost, const Schedule& schedule) {
  const int64_t devices = schedule.options.num_devices;
  const bool exchanges =
      schedule.options.training && devices > 1 && schedule.options.update.all_gradients_first();
  if (!exchanges) return 0;
  return cost.CollectiveUs(Collective::kAllReduce, sizeof(double), DeviceGroup{0, 1, devices});
}

Simulation Simulate(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const MemoryPlan* memory) {
  Simulation simulation;
  std::vector<std::vector<int32_t>> waits;
  if (memory != nullptr) waits = WaitsOf(schedule, *memory, NumQueuesOfDevice(cost.machine()));
  std::vector<double> compute_us(schedule.programs.size(), 0), communication_us = compute_us;
  std::vector<int32_t> queues, deps;
  simulation.devices = schedule.num_represented();
  simulation.micro_batches = simulation.simulated_micro_batches =
      schedule.num_moments / schedule.num_steps();
  simulation.tasks = TaskList(LinkQueue(cost.machine(), 0));
  TaskTimes times(cost, graph, schedule);
  for (const Task& task : schedule.tasks) {
    const TaskTime time = times.Of(task);
    if (time.us > 0) {
      Simulation::Origins& origin = simulation.origins[time.origin];
      ++origin.tasks;
      origin.us += time.us * static_cast<double>(task.devices.size());
    }
    queues.clear();
    for (int32_t device : task.devices) {
      const bool beside = IsCommunication(task.kind) || IsHostCopy(task.kind);
      (beside ? communication_us : compute_us)[device] += time.us;
    }
    const bool runs = waits.empty() || !task.is_view;
    if (runs) AppendQueues(cost, schedule, task, &queues);
    deps.assign(task.deps.begin(), task.deps.end());
    if (!waits.empty()) {
      const std::vector<int32_t>& of_task = waits[simulation.tasks.size()];
      deps.insert(deps.end(), of_task.begin(), of_task.end());
    }
    simulation.tasks.Add(PicosecondsOf(time.us), queues, deps, PicosecondsOf(time.beyond_links_us));
  }
  simulation.timeline = RunTimeline(simulation.tasks);
  const int32_t steps = schedule.num_steps();
  simulation.step_us =
      MicrosecondsOf(simulation.timeline.makespan) / steps + ExchangeOfNormsUs(cost, schedule);
  Picoseconds computed = 0;
  for (int32_t t = 0; t < simulation.tasks.size(); ++t) {
    const TaskKind kind = schedule.tasks[t].kind;
    if (!IsOfKernel(kind)) continue;
    computed = std::max(computed, simulation.timeline.end[t]);
  }
  simulation.exposed_tail_us = MicrosecondsOf(simulation.timeline.makespan - computed) / steps;
  simulation.memory = LargestPeak(schedule);
  simulation.peak_bytes = simulation.memory.bytes;
  simulation.compute_us = *std::max_element(compute_us.begin(), compute_us.end()) / steps;
  simulation.communication_us =
      *std::max_element(communication_us.begin(), communication_us.end()) / steps;
  return simulation;
}

namespace {

// Shards of all nodes and micro-batches in a simulation: the target, about a tenth of a second; the
// limit, some gigabytes; the limit where more than a few devices are simulated, some seconds,
// unless most of them are micro-batches, which are copies.
constexpr int64_t kMostShards = 20'000, kLimitOfShards = 3'000'000, kLimitOfSeconds = 600'000;
constexpr int64_t kFewDevices = 16;
int64_t LimitOfShards(const Plan& plan, int64_t moments) {
  if (moments > 1) return kLimitOfShards;
  return std::clamp(kFewDevices * plan.graph.num_nodes(), kLimitOfSeconds, kLimitOfShards);
}

// Whether devices of one class share no link and, where they are of one kind, are symmetric.
bool IsRegular(const Machine& machine) {
  return machine.topology.empty() && !machine.levels.back().shared;
}

// ClassOptions::alike. 1: kinds take turns in other numbers than a plan has, and no fewer devices
// stand for all.
int64_t AlikeDevices(const Machine& machine) {
  const int64_t alike = machine.devices_alike();
  return alike == machine.num_devices() ? 0 : alike;
}

}  // namespace

int64_t NumGroupsOfDevices(const Plan& plan) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const MachineView& view = plan.views[id];
    spans.emplace_back(view.start, LastDevice(view, plan.graph.node({id}).outputs[0]));
  }
  std::sort(spans.begin(), spans.end());
  int64_t groups = 0, last = -1;
  for (const auto& [first, end] : spans) {
    groups += first > last;
    last = std::max(last, end);
  }
  return groups;
}

namespace {

// Whether micro-batches come back to devices before those they come from: in an interleaved
// pipeline, if it is one.
bool LeadsBack(const Plan& plan) {
  const auto takes_turns = [&](NodeId id) {
    const std::vector<int64_t>& moments = plan.views[id.value].moments;
    return std::any_of(moments.begin(), moments.end(), [](int64_t count) { return count > 1; });
  };
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const Node& node = plan.graph.node({id});
    if (!takes_turns({id})) continue;
    const int64_t last = LastDevice(plan.views[id], node.outputs[0]);
    for (const TensorRef& input : node.inputs) {
      if (takes_turns(input.node) && plan.views[input.node.value].start > last) return true;
    }
  }
  return false;
}

// Simulation::period, or 0: all micro-batches are simulated.
int64_t PeriodOf(const Plan& plan, int64_t moments) {
  // Two simulations, of one period and of two, must be less than one of all, and much less where
  // that would not take long.
  constexpr int64_t kLeastPeriods = 4, kManyPeriods = 8, kLongTasks = 300'000;
  // Rounds of more micro-batches than stages hide messages, the first one not yet.
  constexpr int64_t kLeastRounds = 2;
  const int64_t tasks = plan.graph.num_nodes() * moments;
  if (tasks <= kMostShards || plan.update.steps_between_flushes > 1) return 0;
  const PipelineShape shape = {.num_stages = NumGroupsOfDevices(plan), .num_moments = moments};
  int64_t round = shape.num_stages, least = LeastMade(moments);
  // Up to two micro-batches a stage are under way before the first backward pass.
  if (plan.zero_bubble.splits()) least = std::max(least, kLeastRounds * round);
  if (moments % shape.num_stages != 0 && LeadsBack(plan)) {
    round = shape.LargestRound();
    least = std::max(least, kLeastRounds * round);
  }
  const int64_t period = (least + round - 1) / round * round;
  return moments < (tasks > kLongTasks ? kLeastPeriods : kManyPeriods) * period ? 0 : period;
}

// Of the larger of two simulations, or of the only one.
int64_t MomentsToMake(const Plan& plan, int64_t moments) {
  const int64_t period = PeriodOf(plan, moments);
  return period == 0 ? moments : 2 * period;
}

// Whether fewer devices stand for all. Owners of weights are many, and unlike each other.
bool AreInClasses(const Machine& machine, const Plan& plan, int64_t most_devices) {
  if (plan.update.method == UpdateMethod::kOwner)
    most_devices = std::max(most_devices, kMostOwners);
  return plan.num_devices > most_devices && IsRegular(machine) && AlikeDevices(machine) != 1;
}

// Up to so many shards all devices of a node are there, so that they compete for its links; of
// more, one of each class of these. Where all devices run all calls they meet in collectives, whose
// costs know of those beside them, so that these few are enough to compare plans by.
int64_t MostShardsInSearch(const Plan& plan) {
  return NumGroupsOfDevices(plan) > 1 ? kMostShards : 0;
}

absl::StatusOr<LoweredPlan> LowerMicroBatches(const Machine& machine, const Plan& plan,
                                              int64_t most_devices, int64_t most_shards,
                                              int64_t made) {
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
  const int64_t limit = LimitOfShards(plan, moments);
  if (!AreInClasses(machine, plan, most_devices)) {
    if (moments == 1) return LowerPlan(plan);
    // All devices, but not all micro-batches.
    return LowerPlanInClasses(plan, {plan.num_devices}, kMostShards, limit, made);
  }
  return LowerPlanInClasses(plan, {machine.devices_per_node(), 1}, most_shards, limit, made,
                            AlikeDevices(machine));
}

// Whether a node is simulated without some of its devices. REQUIRES: AreInClasses.
bool LacksDevices(const Machine& machine, const Plan& plan, int64_t most_shards) {
  const absl::StatusOr<int64_t> moments = NumMicroBatches(plan.graph, plan.views);
  return moments.ok() && LacksDevicesOfNodes(plan, {machine.devices_per_node(), 1}, most_shards,
                                             MomentsToMake(plan, *moments), AlikeDevices(machine));
}

PredictedMemory MemoryOf(const CostModel& cost, LoweredPlan* lowered) {
  return PredictMemory(cost.profile(), lowered->mapped.graph, RunsOnCores(cost.machine()),
                       NumQueuesOfDevice(cost.machine()), &lowered->schedule);
}

// The device that has least left of its memory; sets the peaks of kinds, if there are several.
size_t FullestDevice(const CostModel& cost, const std::vector<int64_t>& bytes_per_device,
                     Simulation* simulation) {
  if (cost.uniform()) {
    return absl::c_max_element(bytes_per_device) - bytes_per_device.begin();
  }
  const Machine& machine = cost.machine();
  size_t fullest = 0;
  int64_t least_left = std::numeric_limits<int64_t>::max();
  for (size_t d = 0; d < bytes_per_device.size(); ++d) {
    const int kind = machine.kind_index(static_cast<int64_t>(d));
    int64_t& peak = simulation->peak_bytes_of_kind[kind];
    peak = std::max(peak, bytes_per_device[d]);
    const int64_t left = machine.kinds[kind].memory_bytes - bytes_per_device[d];
    if (left >= least_left) continue;
    least_left = left;
    fullest = d;
  }
  return fullest;
}

Simulation SimulateLowered(const CostModel& cost, LoweredPlan lowered) {
  const PredictedMemory memory = MemoryOf(cost, &lowered);
  Simulation simulation = Simulate(cost, lowered.mapped.graph, lowered.schedule, &memory.plan);
  simulation.tasks_for_each = lowered.tasks_for_each;
  const size_t fullest = FullestDevice(cost, memory.bytes_per_device, &simulation);
  const int64_t bytes = memory.bytes_per_device[fullest];
  if (!cost.uniform()) simulation.memory = PeaksPerDevice(lowered.schedule)[fullest];
  simulation.peak_bytes =
      bytes -
      (cost.uniform() ? 0 : cost.machine().more_memory_bytes(static_cast<int64_t>(fullest)));
  // Library allocations, and the gaps of the arena.
  simulation.memory.categories[static_cast<int>(MemoryCategory::kWorkspace)] +=
      bytes - simulation.memory.bytes;
  simulation.memory.bytes = bytes;
  return simulation;
}

// Continues a simulation of two periods by one of one.
void Continue(const Simulation& one, int64_t moments, Simulation* two) {
  two->period = one.micro_batches;
  two->micro_batches = moments;
  const double more = static_cast<double>(moments - two->simulated_micro_batches) /
                      static_cast<double>(two->period);
  const auto extend = [more](double of_one, double* of_two) {
    *of_two += more * (*of_two - of_one);
  };
  extend(one.step_us, &two->step_us);
  extend(one.compute_us, &two->compute_us);
  extend(one.communication_us, &two->communication_us);
  for (auto& [origin, sum] : two->origins) {
    const auto before = one.origins.find(origin);
    const Simulation::Origins none, &of_one = before == one.origins.end() ? none : before->second;
    extend(of_one.us, &sum.us);
    sum.tasks += std::llround(more * static_cast<double>(sum.tasks - of_one.tasks));
  }
}

// `lower`: the plan's schedule, of so many micro-batches.
template <typename Lower>
absl::StatusOr<Simulation> Predict(const CostModel& cost, const Lower& lower, Plan* plan) {
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan->graph, plan->views));
  const int64_t made = MomentsToMake(*plan, moments);
  ISOMER_ASSIGN_OR_RETURN(LoweredPlan lowered, lower(made));
  Simulation simulation = SimulateLowered(cost, std::move(lowered));
  if (simulation.simulated_micro_batches < moments) {
    ISOMER_ASSIGN_OR_RETURN(LoweredPlan fewer, lower(made / 2));
    Continue(SimulateLowered(cost, std::move(fewer)), moments, &simulation);
  }
  plan->predicted_step_us = simulation.step_us;
  plan->predicted_peak_bytes = simulation.peak_bytes;
  return simulation;
}

absl::StatusOr<Simulation> PredictBy(const CostModel& cost, int64_t most_shards, Plan* plan) {
  const auto lower = [&](int64_t made) {
    return LowerMicroBatches(cost.machine(), *plan, kMostDevices, most_shards, made);
  };
  return Predict(cost, lower, plan);
}

absl::StatusOr<LoweredPlan> LowerBy(const Machine& machine, const Plan& plan, int64_t most_devices,
                                    int64_t most_shards) {
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
  return LowerMicroBatches(machine, plan, most_devices, most_shards, MomentsToMake(plan, moments));
}

}  // namespace

absl::StatusOr<LoweredPlan> LowerForSimulation(const Machine& machine, const Plan& plan,
                                               int64_t most_devices) {
  return LowerBy(machine, plan, most_devices, kMostShards);
}

absl::StatusOr<LoweredPlan> LowerInSearch(const Machine& machine, const Plan& plan) {
  return LowerBy(machine, plan, kMostDevices, MostShardsInSearch(plan));
}

PreparedPlan::Lowered PreparedPlan::WithMemory(const CostModel& cost, LoweredPlan lowered) {
  PredictedMemory memory = MemoryOf(cost, &lowered);
  return {std::move(lowered), std::move(memory.plan)};
}

absl::StatusOr<PreparedPlan> PreparedPlan::Prepare(const CostModel& cost, const Plan& plan) {
  PreparedPlan prepared;
  ISOMER_ASSIGN_OR_RETURN(prepared.micro_batches_, NumMicroBatches(plan.graph, plan.views));
  const int64_t made = MomentsToMake(plan, prepared.micro_batches_);
  const auto lower = [&](int64_t micro_batches) -> absl::StatusOr<Lowered> {
    ISOMER_ASSIGN_OR_RETURN(
        LoweredPlan lowered,
        LowerMicroBatches(cost.machine(), plan, kMostDevices, kMostShards, micro_batches));
    return WithMemory(cost, std::move(lowered));
  };
  ISOMER_ASSIGN_OR_RETURN(prepared.lowered_, lower(made));
  if (made < prepared.micro_batches_) {
    ISOMER_ASSIGN_OR_RETURN(prepared.fewer_, lower(made / 2));
  }
  return prepared;
}

double PreparedPlan::StepUs(const CostModel& cost) const {
  const auto simulate = [&cost](const Lowered& lowered) {
    return Simulate(cost, lowered.plan.mapped.graph, lowered.plan.schedule, &lowered.memory);
  };
  Simulation simulation = simulate(lowered_);
  if (fewer_.has_value()) Continue(simulate(*fewer_), micro_batches_, &simulation);
  return simulation.step_us;
}

absl::StatusOr<Simulation> PredictPlan(const CostModel& cost, Plan* plan) {
  return PredictBy(cost, kMostShards, plan);
}

absl::StatusOr<Simulation> PredictPlanInSearch(const CostModel& cost, Plan* plan) {
  return PredictBy(cost, MostShardsInSearch(*plan), plan);
}

bool SearchLacksDevices(const CostModel& cost, const Plan& plan) {
  const Machine& machine = cost.machine();
  return AreInClasses(machine, plan, kMostDevices) &&
         LacksDevices(machine, plan, MostShardsInSearch(plan)) &&
         !LacksDevices(machine, plan, kMostShards);
}

absl::StatusOr<std::optional<Simulation>> PredictPlanClosely(const CostModel& cost, Plan* plan) {
  const Machine& machine = cost.machine();
  const int64_t node = machine.devices_per_node(), alike = AlikeDevices(machine);
  if (!AreInClasses(machine, *plan, kMostDevices) ||
      !LacksDevices(machine, *plan, MostShardsInSearch(*plan))) {
    return std::nullopt;
  }
  const auto lower = [&](int64_t made) {
    return LowerPlanInClasses(*plan, {node}, kLimitOfSeconds, kLimitOfSeconds, made, alike);
  };
  absl::StatusOr<Simulation> simulation = Predict(cost, lower, plan);
  if (absl::IsResourceExhausted(simulation.status())) return std::nullopt;
  ISOMER_RETURN_IF_ERROR(simulation.status());
  return *std::move(simulation);
}

}  // namespace isomer
