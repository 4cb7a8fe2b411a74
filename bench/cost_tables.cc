// How fast the tables of the search are made: choices of calls, and entries of edges (what it costs
// to take a tensor from one choice of its producer to one of its user), on 8 to 16,384 devices; and
// how long the derivation of a plan takes.
//
//   cost_tables                 choices and edges of bert_large on DGX H100 machines
//   cost_tables derivation 1000 a chain of so many thousands of operators, split by samples

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/resources.h"
#include "bench/zoo_training.h"
#include "optimizer/machine/machine.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/baselines.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status MeasureTables(const RuleIndex& rules, int64_t nodes) {
  ISOMER_ASSIGN_OR_RETURN(const Model model, TrainedInZoo("bert_large"));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine("dgx_h100", nodes, 8));
  const CostModel cost(std::move(machine));
  CostTables tables(rules, cost, {});
  const ComputeGraph compute = AnalyzeCompute(model.graph);
  const double start = CpuSeconds();
  std::vector<const CallTables*> calls;
  size_t most = 0, entries = 0;
  for (const auto& node : compute.nodes) {
    ISOMER_ASSIGN_OR_RETURN(const CallTables* call,
                            tables.Call(model.graph.node(node.id).op, node.operand_types));
    tables.NodeUs(*call, node);
    calls.push_back(call);
    most = std::max(most, call->space.choices.size());
  }
  const double called = CpuSeconds();
  std::set<const CostTable*> seen;
  for (size_t i = 0; i < calls.size(); ++i) {
    for (size_t o = 0; o < calls[i]->operands.size(); ++o) {
      const ComputeGraph::Operand& operand = compute.nodes[i].operands[o];
      if (operand.producer < 0) continue;
      const CostTable& table = tables.EdgeUs(calls[operand.producer]->outputs[operand.output],
                                             calls[i]->operands[o], operand.gradient);
      if (seen.insert(&table).second) entries += table.us.size();
    }
  }
  const double done = CpuSeconds();
  std::printf("| %ld | %zu | %.3f | %zu | %.3f | %.2f | %.2f |\n", static_cast<long>(8 * nodes),
              most, called - start, entries, done - called,
              1e6 * (done - called) / static_cast<double>(entries), PeakGib());
  return absl::OkStatus();
}

// Products and activations, one after the other, of one shape.
absl::StatusOr<Model> Chain(int64_t operators) {
  Model model;
  model.name = "chain";
  Graph& graph = model.graph;
  TensorRef x = graph.AddInput("x", SequentialType({1024, 64}));
  for (int64_t i = 0; 2 * i < operators; ++i) {
    const TensorRef w = graph.AddWeight(absl::StrCat("w", i), SequentialType({64, 64}));
    ISOMER_ASSIGN_OR_RETURN(x, graph.AddOp(OpKind::kMatMul, {x, w}, absl::StrCat("l", i)));
    ISOMER_ASSIGN_OR_RETURN(x, graph.AddOp(OpKind::kRelu, {x}, absl::StrCat("r", i)));
  }
  graph.AddOutput("y", x);
  return model;
}

absl::Status MeasureDerivation(const RuleIndex& rules, int64_t operators) {
  ISOMER_ASSIGN_OR_RETURN(const Model model, Chain(operators));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine("dgx_h100", 8, 8));
  const CostModel cost(std::move(machine));
  CostTables tables(rules, cost, {.training = false});
  ISOMER_ASSIGN_OR_RETURN(const MappedModel mapped,
                          MapBaseline(kDataParallel, model.graph, &tables));
  const double start = CpuSeconds();
  ISOMER_ASSIGN_OR_RETURN(const Plan plan, DerivePlan(model, mapped, false, &tables));
  std::printf("%ld operators: %zu steps in %.2f s, %.2f GiB\n", static_cast<long>(operators),
              plan.steps.size(), CpuSeconds() - start, PeakGib());
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet set, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex rules(set);
  if (argc > 1 && std::string(argv[1]) == "derivation") {
    const int64_t thousands = argc > 2 ? std::atoll(argv[2]) : 100;
    return MeasureDerivation(rules, 1000 * thousands);
  }
  std::printf("| devices | most choices | choices s | entries | entries s | us an entry | GiB |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (int64_t nodes : {1, 8, 128, 2048}) ISOMER_RETURN_IF_ERROR(MeasureTables(rules, nodes));
  return absl::OkStatus();
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  const absl::Status status = isomer::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 2;
}
