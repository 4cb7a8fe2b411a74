// What the search finds, and what A* proves to be the optimum (optimizer/exhaustive.h), on small
// networks and four P100s (FlexFlow, MLSys'19, section 8.4: LeNet and a recurrent language model of
// two steps; 0.8 h and 18 h by depth-first search).
//
//   exhaustive [MODEL [BUDGET]]

#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/resources.h"
#include "bench/zoo_training.h"
#include "optimizer/exhaustive_search.h"
#include "optimizer/machine.h"
#include "optimizer/rule_index.h"
#include "optimizer/task_graph.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status Prove(const std::string& spec, int64_t budget, const RuleIndex& rules) {
  ISOMER_ASSIGN_OR_RETURN(const Model model, TrainedInZoo(spec));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine("p100_cluster", 1, 4));
  const CostModel cost(std::move(machine));
  const double start = CpuSeconds();
  CostTables tables(rules, cost, CostOptions{});
  ISOMER_ASSIGN_OR_RETURN(const MappedModel best, BestMapping(model, &tables));
  ISOMER_ASSIGN_OR_RETURN(const auto graph,
                          TaskGraph::Create(model, best, &tables, nullptr, TaskGraph::Lists::kFixed,
                                            TaskGraph::Order::kInterleaved));
  const double searched = CpuSeconds();
  ISOMER_ASSIGN_OR_RETURN(const ExhaustiveResult result,
                          SearchExhaustively(model, best, {.budget = budget}, &tables));
  std::printf("%s: search %.1f us in %.3f s; A* in %.1f s: %s\n", spec.c_str(),
              MicrosecondsOf(graph->makespan()), searched - start, CpuSeconds() - searched,
              result.ToString().c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run(const std::string& only, int64_t budget) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  if (!only.empty()) return Prove(only, budget, index);
  for (const char* spec : {"lenet", "rnnlm?steps=2"}) {
    ISOMER_RETURN_IF_ERROR(Prove(spec, budget, index));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  const int64_t budget = argc > 2 ? std::atoll(argv[2]) : isomer::ExhaustiveOptions().budget;
  const absl::Status run = isomer::Run(argc > 1 ? argv[1] : "", budget);
  if (run.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(run.message()).c_str());
  return 1;
}
