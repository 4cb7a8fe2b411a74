#include "optimizer/page/lineage.h"

#include "tests/optimizer/report/report_scenario.h"

namespace isomer {
namespace {

class LineageTest : public ReportScenario {};

TEST_F(LineageTest, EveryOperatorOfThePlanIsFound) {
  Make(ResidualModel(2, 64, 128, 256), 1, 2);
  const auto lineage = Lineage::Of(result_.plan, rules_);
  ASSERT_TRUE(lineage.ok()) << lineage.status();
  const Graph& graph = result_.plan.graph;
  const std::vector<NodeId> matched = lineage->Match(graph);
  for (int id = 0; id < graph.num_nodes(); ++id) {
    ASSERT_GE(matched[id].value, 0) << graph.Label({id});
    EXPECT_EQ(lineage->grown().node(matched[id]).op, graph.node(id).op);
  }
}

TEST_F(LineageTest, StepsToACallAreThoseThatRewroteIt) {
  MakePipeline();
  const auto lineage = Lineage::Of(result_.plan, rules_);
  ASSERT_TRUE(lineage.ok()) << lineage.status();
  const Graph& graph = result_.lowered.mapped.graph;
  const std::vector<NodeId> matched = lineage->Match(graph);
  int products = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node(id).op.kind() != OpKind::kMatMul) continue;
    ASSERT_GE(matched[id].value, 0) << graph.Label({id});
    const std::vector<int> steps = lineage->StepsTo(result_.plan, matched[id]);
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(lineage->StepOf(matched[id]), steps.back());
    // The first is of the model's own call.
    const DerivationStep& first = result_.plan.steps[steps[0]];
    EXPECT_LT(first.nodes[0].value, result_.plan.model.graph.num_nodes());
    ++products;
  }
  EXPECT_GT(products, 0);
}

TEST_F(LineageTest, ARuleThatIsNotThereIsAnError) {
  Make(ResidualModel(2, 64, 128, 256), 1, 2);
  result_.plan.steps[0].rule = "r000000000000";
  EXPECT_FALSE(Lineage::Of(result_.plan, rules_).ok());
}

}  // namespace
}  // namespace isomer
