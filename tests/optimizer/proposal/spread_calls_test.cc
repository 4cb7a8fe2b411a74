#include "optimizer/proposal/spread_calls.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

constexpr int64_t kRows = 32, kFeatures = 8, kBatch = 16;

// The sum of what `tables` tables say.
Graph Tables(int tables) {
  Graph graph;
  TensorRef sum;
  for (int t = 0; t < tables; ++t) {
    const std::string name = "table" + std::to_string(t);
    const TensorRef table = graph.AddWeight(name, SequentialType({kRows, kFeatures}));
    const TensorRef ids = graph.AddInput(name + "_ids", SequentialType({kBatch}, DataType::kInt64));
    const TensorRef rows = *graph.AddOp(OpKind::kEmbedding, {table, ids});
    sum = t == 0 ? rows : *graph.AddOp(OpKind::kAdd, {sum, rows});
  }
  graph.AddOutput("sum", sum);
  return graph;
}

// The first devices of the tables when each is split over `degree` of four devices.
std::vector<int64_t> Starts(int num_tables, int64_t degree) {
  MappedModel mapped;
  mapped.graph = Tables(num_tables);
  const RuleSet rules = ExampleRules(mapped.graph);
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(1, 4));
  CostTables tables(index, cost, {.training = false});
  std::vector<NodeId> look_ups;
  for (const auto& node : AnalyzeCompute(mapped.graph, false).nodes) {
    const Operator& op = mapped.graph.node(node.id).op;
    if (op.kind() != OpKind::kEmbedding) continue;
    const CallTables* call = *tables.Call(op, node.operand_types, -1);
    const int features = call->space.sharding.declaration.LeadOfOperandDim(0, 1);
    mapped.choices[node.id] =
        *MakeChoice(call->space, {{features, degree}, {kIdleAxis, 4 / degree}});
    look_ups.push_back(node.id);
  }
  const auto turned = SpreadCalls(mapped, &tables);
  EXPECT_TRUE(turned.ok()) << turned.status();
  if (!turned.ok() || !turned->has_value()) return {};
  std::vector<int64_t> starts;
  for (NodeId id : look_ups) starts.push_back((*turned)->choices.at(id).start);
  return starts;
}

TEST(SpreadCalls, TablesOnHalfOfTheDevicesGoToBothHalves) {
  EXPECT_EQ(Starts(2, 2), std::vector<int64_t>({0, 1}));
  EXPECT_EQ(Starts(3, 2), std::vector<int64_t>({0, 1, 0}));
}

TEST(SpreadCalls, WholeTablesGoToADeviceEach) {
  EXPECT_EQ(Starts(4, 1), std::vector<int64_t>({0, 1, 2, 3}));
  EXPECT_EQ(Starts(2, 1), std::vector<int64_t>({0, 2}));
}

TEST(SpreadCalls, NothingToDoWithoutIdleDevicesOrCompany) {
  EXPECT_TRUE(Starts(3, 4).empty());
  EXPECT_TRUE(Starts(1, 2).empty());
}

}  // namespace
}  // namespace isomer
