// Algebra alone: the networks of TENSAT's evaluation (MLSys'21, section 6), for inference at batch
// 1 on one device, where nothing but algebra is left to optimise. Per network: operators and
// predicted time before and after, seconds of the whole job (rules loaded, network built, searched,
// simulated), what a hundred times the budget finds, and how far final costs differ between seeds.
// Beside them TENSAT's and TASO's seconds and speed-ups, of other machines and cost models: ratios
// of a kind, not the same quantity.
//
//   algebra [NETWORK] [--engine=best_first|egraph|both] [--json=FILE]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench/resources.h"
#include "models/load.h"
#include "optimizer/machine/machine.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/compute_graph.h"
#include "pcg/support/data_path.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"

ABSL_FLAG(std::string, machine, "dgx_h100", "one device of this preset");
ABSL_FLAG(std::string, engine, "both", "best_first, egraph, or both");
ABSL_FLAG(int64_t, budget, isomer::SearchOptions().budget, "candidates of a search");
ABSL_FLAG(int64_t, times_budget, 100, "the longer search has so many times the budget; 0: none");
ABSL_FLAG(int64_t, seeds, 10, "searches whose final costs are compared");

namespace isomer {
namespace {

// Seconds, and speed-up in percent of the optimised network's time, as their papers give them.
struct Published {
  double tensat_s, taso_s, tensat_percent, taso_percent;
};
struct Network {
  const char* name;
  const char* spec;
  Published published;
};
// Statistics of batch normalisation are constants in inference; TASO's BERT has 64 tokens.
constexpr Network kNetworks[] = {
    {"bert_large", "zoo:bert_large?seq=64", {1.4, 13.6, 9.2, 8.5}},
    {"resnext50", "zoo:resnext50?training=0", {0.7, 25.3, 8.8, 5.5}},
    {"nasnet_a", "zoo:nasnet_a", {10.6, 1226, 7.3, 1.9}},
    {"nasrnn", "zoo:nasrnn", {0.5, 177, 68.9, 45.4}},
    {"inception_v3", "zoo:inception_v3?training=0", {5.1, 68.6, 10.0, 6.3}},
    {"squeezenet", "zoo:squeezenet", {0.3, 16.4, 24.5, 6.7}},
    {"vgg19", "zoo:vgg19", {0.4, 8.9, 8.9, 8.9}}};

// Those that run in a step.
int CountOperators(const Graph& graph) {
  return static_cast<int>(AnalyzeCompute(graph, /*training=*/false).nodes.size());
}

struct Outcome {
  int operators_before = 0, operators_after = 0;
  double us_before = 0, us_after = 0;
  int64_t candidates = 0;
  double wall_s = 0, cpu_s = 0;
  const char* stop = "";
};

absl::StatusOr<Outcome> OptimizeOnce(const Network& network, const SearchOptions& search) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu = CpuSeconds();
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  LoadOptions load;
  load.batch_size = 1;
  ISOMER_ASSIGN_OR_RETURN(const Model model, LoadAnyModel(network.spec, load));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine(absl::GetFlag(FLAGS_machine), 1, 1));
  const CostModel cost(std::move(machine));
  OptimizeOptions options;
  options.training = false;
  options.search = search;
  ISOMER_ASSIGN_OR_RETURN(const OptimizeResult result,
                          Optimize(model, RuleIndex(rules), cost, options));
  Outcome outcome;
  outcome.operators_before = CountOperators(model.graph);
  outcome.operators_after = CountOperators(result.plan.graph);
  outcome.us_before = result.single_device.step_us;
  outcome.us_after = result.simulation.step_us;
  outcome.candidates = result.searches.candidates;
  outcome.stop = StopReasonName(result.searches.stop);
  outcome.cpu_s = CpuSeconds() - cpu;
  outcome.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

double SpeedUpPercent(const Outcome& outcome) {
  return 100 * (outcome.us_before / outcome.us_after - 1);
}

Json JsonOf(const Outcome& outcome) {
  Json json;
  json["operators_before"] = outcome.operators_before;
  json["operators_after"] = outcome.operators_after;
  json["us_before"] = outcome.us_before;
  json["us_after"] = outcome.us_after;
  json["candidates"] = outcome.candidates;
  json["wall_s"] = outcome.wall_s;
  json["cpu_s"] = outcome.cpu_s;
  json["stop"] = outcome.stop;
  return json;
}

absl::Status Measure(const Network& network, const SearchOptions& search, Json* rows) {
  ISOMER_ASSIGN_OR_RETURN(const Outcome once, OptimizeOnce(network, search));
  double least = once.us_after, most = once.us_after;
  for (int64_t seed = 2; seed <= absl::GetFlag(FLAGS_seeds); ++seed) {
    SearchOptions seeded = search;
    seeded.seed = static_cast<uint64_t>(seed);
    ISOMER_ASSIGN_OR_RETURN(const Outcome other, OptimizeOnce(network, seeded));
    least = std::min(least, other.us_after);
    most = std::max(most, other.us_after);
  }
  Outcome longer = once;
  if (absl::GetFlag(FLAGS_times_budget) > 0) {
    SearchOptions patient = search;
    patient.budget *= absl::GetFlag(FLAGS_times_budget);
    ISOMER_ASSIGN_OR_RETURN(longer, OptimizeOnce(network, patient));
  }
  const double spread_percent = 100 * (most / least - 1);
  const Published& published = network.published;
  std::printf(
      "| %s | %d -> %d | %.1f -> %.1f | %.1f | %.2f | %.2f | %ld | %.1f in %.1f s | %.2f |"
      " %.1f %% in %.1f s | %.1f %% in %.1f s |\n",
      network.name, once.operators_before, once.operators_after, once.us_before, once.us_after,
      SpeedUpPercent(once), once.wall_s, once.cpu_s, static_cast<long>(once.candidates),
      longer.us_after, longer.cpu_s, spread_percent, published.tensat_percent, published.tensat_s,
      published.taso_percent, published.taso_s);
  std::fflush(stdout);
  Json row = JsonOf(once);
  row["network"] = network.name;
  row["model"] = network.spec;
  row["speed_up_percent"] = SpeedUpPercent(once);
  row["spread_percent"] = spread_percent;
  row["longer"] = JsonOf(longer);
  row["tensat"]["speed_up_percent"] = published.tensat_percent;
  row["tensat"]["seconds"] = published.tensat_s;
  row["taso"]["speed_up_percent"] = published.taso_percent;
  row["taso"]["seconds"] = published.taso_s;
  rows->Append(std::move(row));
  return absl::OkStatus();
}

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  SearchOptions search;
  search.budget = absl::GetFlag(FLAGS_budget);
  const std::string engine = absl::GetFlag(FLAGS_engine);
  if (engine != "best_first" && engine != "egraph" && engine != "both") {
    return absl::InvalidArgumentError(
        absl::StrCat("--engine=", engine, ": there are best_first, egraph and both"));
  }
  search.engine = engine == "egraph" ? Engine::kEGraph
                  : engine == "both" ? Engine::kBoth
                                     : Engine::kBestFirst;
  std::printf(
      "| network | operators | predicted us | speed-up %% | s | CPU s | candidates | us with %ld "
      "times the budget | spread of %ld seeds %% | TENSAT | TASO |\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
      static_cast<long>(absl::GetFlag(FLAGS_times_budget)),
      static_cast<long>(absl::GetFlag(FLAGS_seeds)));
  Json json;
  json["machine"] = absl::GetFlag(FLAGS_machine);
  json["networks"] = Json::EmptyArray();
  for (const Network& network : kNetworks) {
    if (!arguments.empty() && arguments[0] != network.name) continue;
    ISOMER_RETURN_IF_ERROR(Measure(network, search, &json["networks"]));
  }
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(json));
  return kExitDone;
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram({.name = "algebra",
                             .purpose = "Measures what algebra alone gains on one device.",
                             .usage = "[NETWORK]",
                             .example = "algebra nasrnn --json=/tmp/algebra.json"},
                            argc, argv, isomer::Run);
}
