// How fast the simulator is, in full and in delta mode, and how long FlexFlow's search takes with
// it: the six networks of its evaluation on 4 to 64 devices (MLSys'19, section 8, table 5).
//
//   simulator tasks     tasks a second in full mode
//   simulator delta     single-operator changes, simulated by what they change and from nothing
//   simulator search    from data parallelism to the end of the search, with all that is set up
//
// A second argument restricts the networks, a third the numbers of devices: "nmt" "4".

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/resources.h"
#include "bench/zoo_training.h"
#include "optimizer/machine/machine.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/sharding/rule_index.h"
#include "optimizer/simulator/task_graph.h"
#include "optimizer/substitution/search.h"
#include "optimizer/walk/mcmc.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct Network {
  const char* name;
  int64_t batch_per_device;
  double flexflow_s[5];  // delta, on 4, 8, .., 64 devices
};
constexpr Network kNetworks[] = {
    {"alexnet", 256, {0.04, 0.13, 0.48, 1.8, 5.9}}, {"resnet101", 64, {0.4, 1.4, 7.3, 33, 158}},
    {"inception_v3", 64, {4.1, 17, 77, 298, 1278}}, {"rnntc", 64, {7.5, 39, 170, 516, 1489}},
    {"rnnlm", 64, {9.2, 31, 121, 342, 969}},        {"nmt", 64, {16, 65, 328, 701, 2190}}};
// How much of it counts, of two of those that the optimizer tries.
constexpr double kSyncWeights[] = {0.1, 0};
constexpr int64_t kDevices[] = {4, 8, 16, 32, 64};

// A network in data parallelism. FlexFlow's P100 cluster has 4 nodes of 4, its K80 cluster 16.
struct Setting {
  Model model;
  std::optional<CostModel> cost;
  std::optional<CostTables> tables;
  std::unique_ptr<TaskGraph> graph;
};

absl::StatusOr<std::unique_ptr<Setting>> Load(const Network& network, int64_t devices) {
  auto setting = std::make_unique<Setting>();
  ISOMER_ASSIGN_OR_RETURN(setting->model,
                          TrainedInZoo(network.name, network.batch_per_device * devices));
  ISOMER_ASSIGN_OR_RETURN(
      Machine machine, LoadMachine(devices <= 16 ? "p100_cluster" : "k80_cluster", devices / 4, 4));
  setting->cost.emplace(std::move(machine));
  return setting;
}

absl::Status MakeGraph(const RuleIndex& rules, Setting* setting) {
  setting->tables.emplace(rules, *setting->cost, CostOptions{});
  ISOMER_ASSIGN_OR_RETURN(const MappedModel mapped,
                          MapBaseline(kDataParallel, setting->model.graph, &*setting->tables));
  ISOMER_ASSIGN_OR_RETURN(setting->graph,
                          TaskGraph::Create(setting->model, mapped, &*setting->tables));
  return absl::OkStatus();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

absl::Status MeasureTasks(const Network& network, int64_t devices, const RuleIndex& rules) {
  ISOMER_ASSIGN_OR_RETURN(const auto setting, Load(network, devices));
  ISOMER_RETURN_IF_ERROR(MakeGraph(rules, setting.get()));
  TaskList tasks;
  std::vector<double> assemble_s, run_s;
  for (int i = 0; i < 15; ++i) {
    const double start = CpuSeconds();
    setting->graph->timeline().Assemble(&tasks);
    const double assembled = CpuSeconds();
    const Timeline timeline = RunTimeline(tasks);
    run_s.push_back(CpuSeconds() - assembled);
    assemble_s.push_back(assembled - start);
    if (timeline.makespan != setting->graph->makespan()) return absl::InternalError("differs");
  }
  int64_t inputs = 0;
  for (int32_t t = 0; t < tasks.size(); ++t) {
    inputs += static_cast<int64_t>(tasks.queues(t).size() + tasks.deps(t).size());
  }
  std::printf("| %s | %ld | %d | %.1f | %.1f | %.1f |\n", network.name, static_cast<long>(devices),
              tasks.size(), static_cast<double>(inputs) / tasks.size(),
              tasks.size() / Median(run_s) / 1e6,
              tasks.size() / (Median(run_s) + Median(assemble_s)) / 1e6);
  return absl::OkStatus();
}

absl::Status MeasureDelta(const Network& network, int64_t devices, const RuleIndex& rules) {
  ISOMER_ASSIGN_OR_RETURN(const auto setting, Load(network, devices));
  ISOMER_RETURN_IF_ERROR(MakeGraph(rules, setting.get()));
  TaskGraph& graph = *setting->graph;
  std::mt19937_64 random(1);
  std::vector<double> delta_s, full_s, ratio;
  TaskList tasks;
  constexpr int kChanges = 300;
  for (int i = 0; i < kChanges; ++i) {
    const int node = static_cast<int>(random() % graph.num_nodes());
    const int choice = static_cast<int>(random() % graph.num_choices(node));
    // Once, so that fragments are at hand; FlexFlow's task times are cached likewise.
    ISOMER_RETURN_IF_ERROR(graph.SetChoice(node, choice));
    graph.Rollback();
    const double start = CpuSeconds();
    ISOMER_RETURN_IF_ERROR(graph.SetChoice(node, choice));
    const Picoseconds makespan = graph.makespan();
    const double changed = CpuSeconds();
    graph.timeline().Assemble(&tasks);
    const Timeline timeline = RunTimeline(tasks);
    const double simulated = CpuSeconds();
    if (timeline.makespan != makespan) return absl::InternalError("delta and full differ");
    delta_s.push_back(changed - start);
    full_s.push_back(simulated - changed);
    ratio.push_back((simulated - changed) / (changed - start));
    // Half of the changes stay, so that this is not about data parallelism alone.
    if (i % 2 == 0) {
      graph.Commit();
    } else {
      graph.Rollback();
    }
  }
  std::printf("| %s | %ld | %d | %.0f | %.1f | %.1f |\n", network.name, static_cast<long>(devices),
              tasks.size(), 1e6 * Median(full_s), 1e6 * Median(delta_s), Median(ratio));
  return absl::OkStatus();
}

// A step that was found, and the CPU time until then.
struct Found {
  Picoseconds step = 0;
  double at_s = 0;
};

// Isomer's way to map a graph as it is, and the steps that it finds on its way: data parallelism,
// then dynamic programs over the tables with more and less of the gradient synchronisation hidden,
// each simulated. Everything that is set up is counted, when it is: choices of calls are listed for
// the dynamic programs. `best`: of them.
absl::StatusOr<std::vector<Found>> Map(const RuleIndex& rules, Setting* setting,
                                       MappedModel* best) {
  std::vector<Found> found;
  const double start = CpuSeconds();
  setting->tables.emplace(rules, *setting->cost, CostOptions{});
  const auto simulate = [&](MappedModel plan) {
    ISOMER_ASSIGN_OR_RETURN(const auto graph,
                            TaskGraph::Create(setting->model, plan, &*setting->tables,
                                              /*restrictions=*/nullptr, TaskGraph::Lists::kFixed));
    const Picoseconds step = graph->makespan();
    const bool better = found.empty() || step < found.back().step;
    if (better) *best = std::move(plan);
    found.push_back({better ? step : found.back().step, CpuSeconds() - start});
    return absl::OkStatus();
  };
  ISOMER_ASSIGN_OR_RETURN(MappedModel parallel,
                          MapBaseline(kDataParallel, setting->model.graph, &*setting->tables));
  ISOMER_RETURN_IF_ERROR(simulate(std::move(parallel)));
  for (double sync_weight : kSyncWeights) {
    setting->tables->set_options({.sync_weight = sync_weight});
    SearchOptions search;
    search.budget = 0;  // each piece as it is
    ISOMER_ASSIGN_OR_RETURN(SearchResult mapped,
                            HierarchicalSearch(setting->model.graph, search, &*setting->tables));
    ISOMER_RETURN_IF_ERROR(simulate(std::move(mapped.mapped)));
  }
  return found;
}

// FlexFlow's walk from `start` until it finds `target`.
absl::StatusOr<Found> WalkOn(const MappedModel& start, Picoseconds target, Setting* setting,
                             int64_t* proposals) {
  const double start_s = CpuSeconds();
  ISOMER_ASSIGN_OR_RETURN(const auto graph,
                          TaskGraph::Create(setting->model, start, &*setting->tables));
  ISOMER_ASSIGN_OR_RETURN(const McmcResult walked, SearchByMcmc({.target = target}, graph.get()));
  *proposals = walked.proposals;
  return Found{walked.best, CpuSeconds() - start_s};
}

absl::Status MeasureSearch(const Network& network, int64_t devices, double flexflow_s,
                           const RuleIndex& rules) {
  ISOMER_ASSIGN_OR_RETURN(const auto setting, Load(network, devices));
  // First, so that it finds nothing at hand but the model.
  MappedModel best;
  ISOMER_ASSIGN_OR_RETURN(std::vector<Found> found, Map(rules, setting.get(), &best));
  const double start = CpuSeconds();
  ISOMER_RETURN_IF_ERROR(MakeGraph(rules, setting.get()));
  const double made = CpuSeconds();
  ISOMER_ASSIGN_OR_RETURN(const McmcResult result, SearchByMcmc({}, setting->graph.get()));
  const double end = CpuSeconds();
  const int num_nodes = setting->graph->num_nodes();
  int64_t proposals = 0;
  if (found.back().step > result.best) {
    setting->graph.reset();
    ISOMER_ASSIGN_OR_RETURN(Found walked, WalkOn(best, result.best, setting.get(), &proposals));
    walked.at_s += found.back().at_s;
    found.push_back(walked);
  }
  const double initial = static_cast<double>(result.initial);
  std::printf("| %s | %ld | %d | %.2f | %ld | %.3f | %.3f | %.3f | %.0f | ", network.name,
              static_cast<long>(devices), num_nodes, flexflow_s,
              static_cast<long>(result.proposals), static_cast<double>(result.best) / initial,
              made - start, end - start, flexflow_s / (end - start));
  const auto reached = std::find_if(found.begin(), found.end(),
                                    [&](const Found& f) { return f.step <= result.best; });
  if (reached == found.end()) {
    std::printf("never | 0 ");
  } else {
    std::printf("%.4f | %.0f ", reached->at_s, flexflow_s / reached->at_s);
  }
  std::printf("| %ld | %.3f | %.3f | %.0f |\n", static_cast<long>(proposals),
              static_cast<double>(found.back().step) / initial, found.back().at_s,
              flexflow_s / found.back().at_s);
  return absl::OkStatus();
}

absl::Status Run(const std::string& what, const std::string& only, int64_t only_devices) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  if (what == "tasks") {
    std::printf(
        "| network | devices | tasks | inputs a task | run M/s | assembled and run M/s |\n"
        "|---|--:|--:|--:|--:|--:|\n");
  } else if (what == "delta") {
    std::printf(
        "| network | devices | tasks | full us | delta us | ratio |\n"
        "|---|--:|--:|--:|--:|--:|\n");
  } else {
    std::printf(
        "| network | devices | operators | FlexFlow s | proposals | step | set-up s | all s | "
        "times "
        "| reached s | times | proposals | mapped step | all s | times |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  }
  for (const Network& network : kNetworks) {
    if (!only.empty() && only != network.name) continue;
    for (int d = 0; d < 5; ++d) {
      if (only_devices != 0 && only_devices != kDevices[d]) continue;
      if (what == "tasks") {
        ISOMER_RETURN_IF_ERROR(MeasureTasks(network, kDevices[d], index));
      } else if (what == "delta") {
        ISOMER_RETURN_IF_ERROR(MeasureDelta(network, kDevices[d], index));
      } else {
        ISOMER_RETURN_IF_ERROR(MeasureSearch(network, kDevices[d], network.flexflow_s[d], index));
      }
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (argc > 4 || (what != "tasks" && what != "delta" && what != "search")) {
    std::fprintf(stderr, "usage: simulator tasks|delta|search [NETWORK [DEVICES]]\n");
    return 2;
  }
  const absl::Status run =
      isomer::Run(what, argc > 2 ? argv[2] : "", argc > 3 ? std::atoll(argv[3]) : 0);
  if (run.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(run.message()).c_str());
  return 1;
}
