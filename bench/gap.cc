// How far the plans that the search finds are from the lower bound (optimizer/bound/lower_bound.h),
// over the zoo on a machine of DGX H100 nodes.
//
//   gap NODES DEVICES_PER_NODE [--fixed_batch] [MODEL ..]
//
// A device has as many samples as in the papers, or one: the zoo's batches are for four (zoo.h).
// With --fixed_batch the batch is the zoo's, on however many devices. A step gives back its loss
// alone: nobody gathers the logits of such batches on one device.
//
// Plans are those of isomer-optimize with a budget of 100. The bound is that of the model's graph
// or of the plan's, whichever is less: other algebra than the plan's is not bounded. Where the plan
// has calls beside each other, it is of all such plans, else of those without. A pipeline has none,
// which counts as a gap of 100 %. The step is told apart by what the device that computes
// most does, and what it waits for.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/zoo_networks.h"
#include "bench/zoo_training.h"
#include "optimizer/bound/lower_bound.h"
#include "optimizer/machine/machine.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/rule_index.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int64_t kBudget = 100;
constexpr int kSolutions = 12, kCuts = 60;
// As a gap.
constexpr double kUnbounded = 1;

// What the device that computes most does all step long.
struct Spent {
  double forward_us = 0, backward_us = 0, update_us = 0;
  // What it waits for: what moves forward and backward, and gradients to be synchronised and
  // weights to be gathered.
  double activations_us = 0, gradients_us = 0, synchronisation_us = 0;
};

absl::StatusOr<Spent> WhatIsSpent(const CostModel& cost, const Plan& plan) {
  ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered, LowerForSimulation(cost.machine(), plan));
  const Simulation step = Simulate(cost, lowered.mapped.graph, lowered.schedule);
  const std::vector<Task>& tasks = lowered.schedule.tasks;
  std::map<int32_t, double> busy_us;
  for (int32_t t = 0; t < step.tasks.size(); ++t) {
    if (IsCommunication(tasks[t].kind) || step.tasks.queues(t).empty()) continue;
    busy_us[tasks[t].devices[0]] += MicrosecondsOf(step.tasks.duration(t));
  }
  const auto busiest =
      std::max_element(busy_us.begin(), busy_us.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  Spent spent;
  Picoseconds done = 0;
  for (int32_t t = 0; t < step.tasks.size(); ++t) {
    const Task& task = tasks[t];
    if (IsCommunication(task.kind) || step.tasks.queues(t).empty()) continue;
    if (task.devices[0] != busiest->first) continue;
    const double us = MicrosecondsOf(step.tasks.duration(t));
    const double waited_us = MicrosecondsOf(step.timeline.start[t] - done);
    done = step.timeline.end[t];
    if (task.phase == Phase::kForward) {
      spent.forward_us += us;
      spent.activations_us += waited_us;
    } else if (task.kind == TaskKind::kUpdate) {
      spent.update_us += us;
      spent.synchronisation_us += waited_us;
    } else {
      spent.backward_us += us;
      spent.gradients_us += waited_us;
    }
  }
  spent.synchronisation_us += MicrosecondsOf(step.timeline.makespan - done);
  return spent;
}

absl::StatusOr<double> Gap(const std::string& name, int64_t nodes, int64_t devices,
                           bool fixed_batch, const RuleIndex& rules) {
  const int64_t batch = fixed_batch ? 0 : BatchOn(name, nodes * devices);
  ISOMER_ASSIGN_OR_RETURN(Model model, TrainedInZoo(name, batch));
  ISOMER_RETURN_IF_ERROR(KeepLossAlone(&model));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine("dgx_h100", nodes, devices));
  const CostModel cost(std::move(machine));
  OptimizeOptions options;
  options.choose_update_method = options.choose_buckets = true;
  options.bound_nodes = std::numeric_limits<int64_t>::max();
  options.search.budget = kBudget;
  options.bound = {.solutions = kSolutions, .most_devices = nodes * devices, .cuts = kCuts};
  ISOMER_ASSIGN_OR_RETURN(const OptimizeResult found, Optimize(model, rules, cost, options));
  const double step_us = found.simulation.step_us;
  ISOMER_ASSIGN_OR_RETURN(const Spent spent, WhatIsSpent(cost, found.plan));
  std::printf("| %s | %.1f | %s | %.0f + %.0f + %.0f | %.0f + %.0f + %.0f |", name.c_str(), step_us,
              found.origin.c_str(), spent.forward_us, spent.backward_us, spent.update_us,
              spent.activations_us, spent.gradients_us, spent.synchronisation_us);
  if (!found.bound.has_value()) {
    std::printf(" not bounded | | | | %.1f | |\n", found.seconds);
    std::fflush(stdout);
    return kUnbounded;
  }
  const LowerBound& bound = *found.bound;
  const double gap = 1 - bound.step_us / step_us;
  std::printf(" %.1f | %ld | %s | %.1f %% | %.1f | %.2f |\n", bound.step_us,
              static_cast<long>(bound.devices), bound.by, 100 * gap, found.seconds,
              found.bound_seconds);
  std::fflush(stdout);
  return gap;
}

absl::Status Run(int64_t nodes, int64_t devices, bool fixed_batch, std::vector<std::string> names) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  if (names.empty()) names.assign(std::begin(kSearchedNetworks), std::end(kSearchedNetworks));
  std::printf(
      "| network | step us | plan | forward + backward + update | waits for activations + "
      "gradients "
      "+ synchronisation | bound us | of devices | by | gap | search s | bound s |\n"
      "|---|--:|---|--:|--:|--:|--:|---|--:|--:|--:|\n");
  std::vector<double> gaps;
  for (const std::string& name : names) {
    ISOMER_ASSIGN_OR_RETURN(const double gap, Gap(name, nodes, devices, fixed_batch, index));
    gaps.push_back(gap);
  }
  std::sort(gaps.begin(), gaps.end());
  std::printf("\nmedian %.1f %%, greatest %.1f %%, least %.1f %%\n", 100 * gaps[gaps.size() / 2],
              100 * gaps.back(), 100 * gaps.front());
  return absl::OkStatus();
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: gap NODES DEVICES_PER_NODE [--fixed_batch] [MODEL ..]\n");
    return 2;
  }
  std::vector<std::string> names(argv + 3, argv + argc);
  const bool fixed_batch = std::erase(names, "--fixed_batch") > 0;
  const absl::Status run =
      isomer::Run(std::atoll(argv[1]), std::atoll(argv[2]), fixed_batch, std::move(names));
  if (run.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(run.message()).c_str());
  return 1;
}
