#include "optimizer/simulator/simulator.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "optimizer/cost/memory_cost.h"
#include "optimizer/cost/workspace.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/program/program.h"
#include "pcg/schedule/symmetry/class_schedule.h"
#include "pcg/support/status_macros.h"

namespace isomer {

void AppendQueues(const CostModel& cost, const Schedule& schedule, const Task& task,
                  std::vector<int32_t>* queues) {
  if (IsOfHost(task.kind)) return;
  if (!IsCommunication(task.kind)) {
    queues->push_back(ComputeQueue(task.devices[0]));
    return;
  }
  for (int32_t device : task.devices) {
    queues->push_back(cost.machine().one_stream ? ComputeQueue(device)
                                                : CommunicationQueue(device));
  }
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

Simulation Simulate(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const MemoryPlan* memory) {
  Simulation simulation;
  std::vector<std::vector<int32_t>> waits;
  if (memory != nullptr) waits = WaitsOf(schedule, *memory, NumQueuesOfDevice(cost.machine()));
  std::vector<double> compute_us(schedule.programs.size(), 0), communication_us = compute_us;
  std::vector<int32_t> queues, deps;
  simulation.devices = schedule.num_represented();
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
      (IsCommunication(task.kind) ? communication_us : compute_us)[device] += time.us;
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
  simulation.step_us = MicrosecondsOf(simulation.timeline.makespan) / steps;
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

// Shards of all nodes and micro-batches in a simulation: the target, about a second; the limit,
// some gigabytes; the limit where more than a few devices are simulated, some seconds, unless most
// of them are micro-batches, which are copies.
constexpr int64_t kMostShards = 300'000, kLimitOfShards = 1'500'000, kLimitOfSeconds = 600'000;
constexpr int64_t kFewDevices = 16;
int64_t LimitOfShards(const Plan& plan, int64_t moments) {
  if (moments > 1) return kLimitOfShards;
  return std::clamp(kFewDevices * plan.graph.num_nodes(), kLimitOfSeconds, kLimitOfShards);
}

// Whether devices of one class are symmetric and share no link.
bool IsRegular(const Machine& machine) {
  return machine.topology.empty() && machine.kinds_in_use().size() == 1 &&
         !machine.levels.back().shared;
}

}  // namespace

absl::StatusOr<LoweredPlan> LowerForSimulation(const Machine& machine, const Plan& plan,
                                               int64_t most_devices) {
  const bool regular = IsRegular(machine);
  if (plan.update.method == UpdateMethod::kOwner)
    most_devices = std::max(most_devices, kMostOwners);
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan.graph, plan.views));
  if (plan.num_devices <= most_devices || !regular) {
    if (moments == 1) return LowerPlan(plan);
    // All devices, but not all micro-batches.
    return LowerPlanInClasses(plan, {plan.num_devices}, kMostShards, LimitOfShards(plan, moments));
  }
  // All devices of a node, so that they compete for its links; if that is too much, one of each
  // class of these, too.
  return LowerPlanInClasses(plan, {machine.devices_per_node(), 1}, kMostShards,
                            LimitOfShards(plan, moments));
}

namespace {

Simulation SimulateLowered(const CostModel& cost, LoweredPlan lowered, Plan* plan) {
  const PredictedMemory memory =
      PredictMemory(cost.profile(), lowered.mapped.graph, RunsOnCores(cost.machine()),
                    NumQueuesOfDevice(cost.machine()), &lowered.schedule);
  Simulation simulation = Simulate(cost, lowered.mapped.graph, lowered.schedule, &memory.plan);
  simulation.peak_bytes = *absl::c_max_element(memory.bytes_per_device);
  // Library allocations, and the gaps of the arena.
  simulation.memory.categories[static_cast<int>(MemoryCategory::kWorkspace)] +=
      simulation.peak_bytes - simulation.memory.bytes;
  simulation.memory.bytes = simulation.peak_bytes;
  plan->predicted_step_us = simulation.step_us;
  plan->predicted_peak_bytes = simulation.peak_bytes;
  return simulation;
}

}  // namespace

absl::StatusOr<Simulation> PredictPlan(const CostModel& cost, Plan* plan) {
  ISOMER_ASSIGN_OR_RETURN(LoweredPlan lowered, LowerForSimulation(cost.machine(), *plan));
  return SimulateLowered(cost, std::move(lowered), plan);
}

absl::StatusOr<std::optional<Simulation>> PredictPlanClosely(const CostModel& cost, Plan* plan) {
  const Machine& machine = cost.machine();
  const int64_t node = machine.devices_per_node();
  if (plan->num_devices <= kMostDevices || !IsRegular(machine) ||
      !LacksDevicesOfNodes(*plan, {node, 1}, kMostShards)) {
    return std::nullopt;
  }
  ISOMER_ASSIGN_OR_RETURN(const int64_t moments, NumMicroBatches(plan->graph, plan->views));
  const int64_t limit = LimitOfShards(*plan, moments);
  absl::StatusOr<LoweredPlan> lowered = LowerPlanInClasses(*plan, {node}, limit, limit);
  if (absl::IsResourceExhausted(lowered.status())) return std::nullopt;
  ISOMER_RETURN_IF_ERROR(lowered.status());
  return SimulateLowered(cost, *std::move(lowered), plan);
}

}  // namespace isomer
