// What the search finds, and what A* proves to be the optimum (optimizer/bound/exhaustive.h), on
// small networks and four P100s (FlexFlow, MLSys'19, section 8.4: LeNet and a recurrent language
// model of two steps; 0.8 h and 18 h by depth-first search). First among plans that divide
// operators as coarse as FlexFlow's, then among those that divide every call in a way of its own.
//
//   exhaustive [MODEL [BUDGET]]

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/resources.h"
#include "bench/zoo_training.h"
#include "optimizer/machine/machine.h"
#include "optimizer/proposal/exhaustive_search.h"
#include "optimizer/sharding/rule_index.h"
#include "optimizer/simulator/task_graph.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Calls as FlexFlow's operators have them: a cell of a recurrent network is one, and what only
// rearranges a tensor belongs to what made it. By the names of the zoo.
std::map<NodeId, std::string> CoarseOperators(const Graph& graph) {
  std::map<NodeId, std::string> operators;
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind())) continue;
    if (node.op.kind() == OpKind::kReshape || node.op.kind() == OpKind::kSplit) {
      const auto maker = operators.find(node.inputs[0].node);
      if (maker != operators.end()) {
        operators[id] = maker->second;
        continue;
      }
    }
    const size_t step = node.name.find("/step");
    const size_t end =
        step == std::string::npos ? node.name.rfind('/') : node.name.find('/', step + 1);
    operators[id] = node.inputs.empty() ? node.name : node.name.substr(0, end);
  }
  return operators;
}

absl::Status Prove(const std::string& spec, bool coarse, int64_t budget, const RuleIndex& rules) {
  ISOMER_ASSIGN_OR_RETURN(const Model model, TrainedInZoo(spec));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine("p100_cluster", 1, 4));
  const CostModel cost(std::move(machine));
  const double start = CpuSeconds();
  CostTables tables(rules, cost, CostOptions{});
  ISOMER_ASSIGN_OR_RETURN(const MappedModel best, BestMapping(model, Deadline(), &tables));
  ISOMER_ASSIGN_OR_RETURN(const auto graph,
                          TaskGraph::Create(model, best, &tables, nullptr, TaskGraph::Lists::kFixed,
                                            TaskGraph::Order::kInterleaved));
  const double searched = CpuSeconds();
  std::map<NodeId, std::string> operators;
  if (coarse) operators = CoarseOperators(model.graph);
  ISOMER_ASSIGN_OR_RETURN(
      const ExhaustiveResult result,
      SearchExhaustively(model, best, {.budget = budget, .operators = operators}, &tables));
  std::printf("%s%s: search %.1f us in %.3f s; A* in %.3f s: %s\n", spec.c_str(),
              coarse ? ", coarse operators" : "", MicrosecondsOf(graph->makespan()),
              searched - start, CpuSeconds() - searched, result.ToString().c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run(const std::string& only, int64_t budget) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  std::vector<std::string> specs = {"lenet", "rnnlm?steps=2"};
  if (!only.empty()) specs = {only};
  for (const std::string& spec : specs) {
    for (bool coarse : {true, false}) ISOMER_RETURN_IF_ERROR(Prove(spec, coarse, budget, index));
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
