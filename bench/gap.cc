// How far the plans that the search finds are from the lower bound (optimizer/lower_bound.h), over
// the zoo on a machine of DGX H100 nodes.
//
//   gap NODES DEVICES_PER_NODE [MODEL ..]
//
// Plans are those that the bound is over: of one micro-batch, found by the hierarchical search or a
// baseline. The bound is that of the model's graph or of the plan's, whichever is less: other
// algebra than the plan's is not bounded.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/resources.h"
#include "bench/zoo_training.h"
#include "optimizer/baselines.h"
#include "optimizer/lower_bound.h"
#include "optimizer/machine.h"
#include "optimizer/rule_index.h"
#include "optimizer/search.h"
#include "optimizer/simulator.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr const char* kNetworks[] = {
    "mlp",          "lenet",    "alexnet", "vgg19", "squeezenet", "resnet101", "resnext50",
    "inception_v3", "nasnet_a", "unet",    "vit",   "bert_large", "dlrm",      "xdl",
    "candle_uno",   "rnntc",    "rnnlm",   "nmt",   "nasrnn"};

// How much of the gradient synchronisation the tables count (optimizer.cc).
constexpr double kSyncWeights[] = {1, 0.5, 0.25, 0.1, 0};

struct Found {
  Graph graph;  // before anything was spread
  Simulation simulation;
  std::string origin;
};

absl::StatusOr<Found> Best(const Model& model, const CostModel& cost, CostTables* tables) {
  Found best;
  const auto consider = [&](const MappedModel& mapped, const char* origin) -> absl::Status {
    ISOMER_ASSIGN_OR_RETURN(Plan plan, DerivePlan(model, mapped, /*training=*/true, tables));
    ISOMER_ASSIGN_OR_RETURN(Simulation simulation, PredictPlan(cost, &plan));
    if (!best.origin.empty() && simulation.step_us >= best.simulation.step_us) {
      return absl::OkStatus();
    }
    best = {mapped.graph, std::move(simulation), origin};
    return absl::OkStatus();
  };
  for (const char* name : {kSingleDevice, kDataParallel, kMegatron}) {
    const auto mapped = MapBaseline(name, model.graph, tables);
    if (mapped.ok()) ISOMER_RETURN_IF_ERROR(consider(*mapped, name));
  }
  for (double weight : kSyncWeights) {
    CostOptions options;
    options.sync_weight = weight;
    tables->set_options(options);
    SearchOptions search;
    search.budget = 100;
    ISOMER_ASSIGN_OR_RETURN(const SearchResult found,
                            HierarchicalSearch(model.graph, search, tables));
    ISOMER_RETURN_IF_ERROR(consider(found.mapped, "search"));
  }
  return best;
}

absl::StatusOr<double> Gap(const std::string& name, int64_t nodes, int64_t devices,
                           const RuleIndex& rules) {
  ISOMER_ASSIGN_OR_RETURN(const Model model, TrainedInZoo(name));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine("dgx_h100", nodes, devices));
  const CostModel cost(std::move(machine));
  CostTables tables(rules, cost, CostOptions{});
  ISOMER_ASSIGN_OR_RETURN(const Found found, Best(model, cost, &tables));
  tables.set_options(CostOptions{});
  const double start = CpuSeconds();
  ISOMER_ASSIGN_OR_RETURN(LowerBound bound, BoundStep(model.graph, &tables));
  const double seconds = CpuSeconds() - start;
  ISOMER_ASSIGN_OR_RETURN(const LowerBound rewritten, BoundStep(found.graph, &tables));
  if (rewritten.step_us < bound.step_us) bound = rewritten;
  const double step_us = found.simulation.step_us;
  const double gap = 1 - bound.step_us / step_us;
  std::printf("| %s | %.1f | %s | %.1f | %.1f | %.1f | %ld | %.2f | %.1f %% | %.1f |\n",
              name.c_str(), step_us, found.origin.c_str(), found.simulation.compute_us,
              found.simulation.communication_us, bound.step_us, static_cast<long>(bound.devices),
              bound.compute_part, 100 * gap, seconds);
  std::fflush(stdout);
  return gap;
}

absl::Status Run(int64_t nodes, int64_t devices, std::vector<std::string> names) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  if (names.empty()) names.assign(std::begin(kNetworks), std::end(kNetworks));
  std::printf(
      "| network | step us | plan | its compute us | its communication us | bound us | of devices "
      "| compute part | gap | bound s |\n|---|--:|---|--:|--:|--:|--:|--:|--:|--:|\n");
  std::vector<double> gaps;
  for (const std::string& name : names) {
    ISOMER_ASSIGN_OR_RETURN(const double gap, Gap(name, nodes, devices, index));
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
    std::fprintf(stderr, "usage: gap NODES DEVICES_PER_NODE [MODEL ..]\n");
    return 2;
  }
  const absl::Status run = isomer::Run(std::atoll(argv[1]), std::atoll(argv[2]),
                                       std::vector<std::string>(argv + 3, argv + argc));
  if (run.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(run.message()).c_str());
  return 1;
}
