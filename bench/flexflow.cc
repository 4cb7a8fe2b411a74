// What FlexFlow found (MLSys'19, section 8), asked again on its clusters: is there a plan that is
// faster than data parallelism, how much less does it send, and how much less of that is the
// synchronisation of gradients?
//
//   flexflow [NETWORK]
//
// The plan is Isomer's mapping to all devices or to half of them, of the graph as it is, as
// FlexFlow has no algebra, and of what algebra makes of it; with calls in the order, and weights
// updated in the way, that is fastest. Data parallelism is PyTorch's, buckets of 25 MiB. A step
// gives back its loss alone.
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "bench/zoo_training.h"
#include "optimizer/cost/traffic.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/mapping/restrictions.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/update_choice.h"
#include "optimizer/sharding/rule_index.h"
#include "optimizer/simulator/simulator.h"
#include "optimizer/substitution/search.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct Setting {
  const char* model;
  const char* machine;
  int64_t nodes, batch_per_device;
  const char* finding;
  // Constraints under which layers keep to devices of their own, as in FlexFlow's figure 13.
  const char* layers_apart = "";
};
// NMT's second layers are a step of the recurrence behind the first ones, so that both halves work
// all the time, and each synchronises half of the weights over half of the devices.
constexpr char kNmtLayers[] = R"(
    node { name: "encoder/layer0/*" devices { first: 0 count: 32 } }
    node { name: "decoder/layer0/*" devices { first: 0 count: 32 } }
    node { name: "encoder/layer1/*" devices { first: 32 count: 32 } }
    node { name: "decoder/layer1/*" devices { first: 32 count: 32 } })";
constexpr Setting kSettings[] = {
    {"nmt", "k80_cluster", 16, 64, "1.7-2.4 x faster, 2-5.5 x less traffic", kNmtLayers},
    {"inception_v3", "p100_cluster", 1, 64, "75 % less synchronisation"},
    {"lenet", "p100_cluster", 1, 64, "proven optimum"},
    {"rnnlm?steps=2", "p100_cluster", 1, 64, "proven optimum"}};

// How much of the gradient synchronisation counts in the tables: as the optimizer tries it, and
// more, for what less of it would cost.
constexpr double kSyncWeights[] = {64, 48, 32, 24, 16, 8, 4, 2, 1, 0.5, 0.25, 0.1, 0};

struct Figures {
  double step_us = 0, bytes = 0, synchronisation_bytes = 0;
};

// Whether it sends gradients of a weight, or of what copies or arranges one.
bool Synchronises(const LoweredPlan& lowered, const Task& task) {
  if (!IsCommunication(task.kind) || task.reads.empty()) return false;
  const Buffer& buffer = lowered.schedule.buffers[task.reads[0]];
  if (buffer.role != BufferRole::kGradient) return false;
  const Graph& graph = lowered.mapped.graph;
  NodeId node = buffer.tensor.node;
  while (graph.node(node).inputs.size() == 1) node = graph.node(node).inputs[0].node;
  return graph.node(node).op.kind() == OpKind::kWeight;
}

absl::StatusOr<Figures> FiguresOf(const CostModel& cost, Plan plan) {
  ISOMER_ASSIGN_OR_RETURN(const Simulation simulation, PredictPlan(cost, &plan));
  ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered, LowerPlan(plan));
  Figures figures{simulation.step_us, 0, 0};
  const Schedule& schedule = lowered.schedule;
  // Each message counts once, however many links it takes.
  const auto leaves_device = [&](LinkId link) {
    const std::string name = cost.machine().LinkName(link);
    return absl::StartsWith(name, "device") && absl::EndsWith(name, "up");
  };
  for (const Task& task : schedule.tasks) {
    Traffic traffic;
    AddTraffic(cost, schedule, task, &traffic);
    double bytes = 0;
    for (const auto& [link, sent] : traffic) {
      if (leaves_device(link)) bytes += sent;
    }
    figures.bytes += bytes;
    if (Synchronises(lowered, task)) figures.synchronisation_bytes += bytes;
  }
  return figures;
}

struct Found {
  MappedModel mapped = {};
  Figures figures = {};
};

absl::StatusOr<Found> Derived(const Model& model, const MappedModel& mapped, CostTables* tables) {
  Found found{mapped};
  ISOMER_ASSIGN_OR_RETURN(Plan plan, DerivePlan(model, mapped, /*training=*/true, tables));
  ISOMER_ASSIGN_OR_RETURN(found.figures, FiguresOf(tables->cost(), std::move(plan)));
  return found;
}

// Its calls in the best order, its weights updated and its gradients summed in the best way.
absl::Status ChooseOrders(const Model& model, CostTables* tables, Found* found) {
  Contest contest(tables->cost());
  for (CallOrder order : {CallOrder::kCanonical, CallOrder::kModel}) {
    for (bool spread : {false, true}) {
      ISOMER_ASSIGN_OR_RETURN(Plan plan,
                              DerivePlan(model, found->mapped, /*training=*/true, tables, order));
      plan.spread_branches = spread;
      ISOMER_RETURN_IF_ERROR(contest.Consider(std::move(plan), kFound).status());
    }
  }
  ISOMER_RETURN_IF_ERROR(
      ConsiderUpdates({.method = true, .order = true}, Deadline::In(0), &contest));
  ISOMER_ASSIGN_OR_RETURN(found->figures, FiguresOf(tables->cost(), contest.TakeBest().plan));
  return absl::OkStatus();
}

// All devices or some, layers apart or not.
struct Space {
  int64_t devices = 0;
  const Restrictions* restrictions = nullptr;
};

// What each weight of synchronisation finds in a space.
absl::Status MapWithWeights(const Model& model, const Space& space, const RuleIndex& rules,
                            CostTables* tables,
                            const std::function<void(double, const Found&)>& found) {
  HierarchicalSearcher searcher(model.graph, {.restrictions = space.restrictions}, rules);
  for (double sync_weight : kSyncWeights) {
    tables->set_options({.num_devices = space.devices, .sync_weight = sync_weight});
    ISOMER_ASSIGN_OR_RETURN(const SearchResult mapping,
                            searcher.Search(tables, Deadline::In(0), /*part=*/0));
    ISOMER_ASSIGN_OR_RETURN(const Found plan, Derived(model, mapping.mapped, tables));
    found(sync_weight, plan);
  }
  return absl::OkStatus();
}

// The fastest mapping, and the fastest that sends at most half.
struct Best {
  std::optional<Found> fastest, half;
  void Note(const Found& found, const Figures& parallel) {
    const auto note = [&](std::optional<Found>* best) {
      if (!best->has_value() || found.figures.step_us < (*best)->figures.step_us) *best = found;
    };
    note(&fastest);
    if (2 * found.figures.bytes <= parallel.bytes) note(&half);
  }
};

// The best in rows; what each weight gives, relative to data parallelism, in `all`.
absl::Status Ask(const Setting& setting, const RuleIndex& rules, std::string* all) {
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine(setting.machine, setting.nodes, 4));
  ISOMER_ASSIGN_OR_RETURN(
      Model model, TrainedInZoo(setting.model, setting.batch_per_device * machine.num_devices()));
  ISOMER_RETURN_IF_ERROR(KeepLossAlone(&model));
  const CostModel cost(std::move(machine));
  CostTables tables(rules, cost, CostOptions{});
  ISOMER_ASSIGN_OR_RETURN(const MappedModel baseline,
                          MapBaseline(kDataParallel, model.graph, &tables));
  ISOMER_ASSIGN_OR_RETURN(const Found by_hand, Derived(model, baseline, &tables));
  const Figures& parallel = by_hand.figures;
  Restrictions apart;
  if (*setting.layers_apart != 0) {
    ISOMER_ASSIGN_OR_RETURN(const Constraints constraints,
                            ParseConstraints(setting.layers_apart, setting.model));
    ISOMER_ASSIGN_OR_RETURN(apart, Restrictions::Resolve(constraints, model.graph, &tables));
  }
  // Layers apart, where there are constraints, on the whole machine; the rest of it idle.
  const int64_t num_devices = cost.machine().num_devices();
  std::vector<Space> spaces = {{num_devices}, {num_devices / 2}};
  if (!apart.empty()) spaces.push_back({num_devices, &apart});
  Best best;
  best.Note(by_hand, parallel);
  for (const Space& space : spaces) {
    const auto note = [&](double weight, const Found& found) {
      const Figures& figures = found.figures;
      absl::StrAppendFormat(all, "| %s | %d | %s | %g | %.3f | %.2f | %.2f |\n", setting.model,
                            space.devices, space.restrictions != nullptr ? "yes" : "", weight,
                            figures.step_us / parallel.step_us, figures.bytes / parallel.bytes,
                            figures.synchronisation_bytes / parallel.synchronisation_bytes);
      best.Note(found, parallel);
    };
    ISOMER_RETURN_IF_ERROR(MapWithWeights(model, space, rules, &tables, note));
  }
  const auto print = [&](const char* which, Found* found) -> absl::Status {
    ISOMER_RETURN_IF_ERROR(ChooseOrders(model, &tables, found));
    const Figures& figures = found->figures;
    std::printf("| %s, %s | %ld | %.2f | %.2f | %.3f | %.1f | %.1f | %.2f | %.0f %% | %s |\n",
                setting.model, which, static_cast<long>(num_devices), parallel.step_us * 1e-3,
                figures.step_us * 1e-3, parallel.step_us / figures.step_us, parallel.bytes * 1e-9,
                figures.bytes * 1e-9, parallel.bytes / figures.bytes,
                100 * (1 - figures.synchronisation_bytes / parallel.synchronisation_bytes),
                setting.finding);
    return absl::OkStatus();
  };
  ISOMER_RETURN_IF_ERROR(print("fastest", &*best.fastest));
  if (best.half.has_value()) ISOMER_RETURN_IF_ERROR(print("half the traffic", &*best.half));
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run(const char* only) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  std::printf(
      "| network | devices | data parallel ms | mapped ms | times | GB sent | GB | times less | "
      "less "
      "synchronisation | FlexFlow |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
  std::string all;
  for (const Setting& setting : kSettings) {
    if (only != nullptr && std::strcmp(only, setting.model) != 0) continue;
    ISOMER_RETURN_IF_ERROR(Ask(setting, index, &all));
  }
  std::printf(
      "\n| network | devices | layers apart | synchronisation counts | step | sent | "
      "synchronisation |\n|---|--:|---|--:|--:|--:|--:|\n%s",
      all.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  if (argc > 2) {
    std::fprintf(stderr, "usage: flexflow [NETWORK]\n");
    return 2;
  }
  const absl::Status run = isomer::Run(argc > 1 ? argv[1] : nullptr);
  if (run.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(run.message()).c_str());
  return 1;
}
