#include "optimizer/report/headline.h"

#include <gmock/gmock.h>

#include "optimizer/report/report.h"
#include "tests/optimizer/report/report_scenario.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Headline : public ReportScenario {};

TEST_F(Headline, NamesTheDegreesOfABaseline) {
  OptimizeOptions options;
  options.plan = kDataParallel;
  Make(ResidualModel(8, 64, 128, 256), 2, 4, options);
  EXPECT_THAT(report_.headline, StartsWith("data 8"));
  const WeightDegrees degrees = MostUsedDegrees(result_.lowered.mapped, report_.times);
  EXPECT_EQ(degrees.data, 8);
  EXPECT_EQ(degrees.tensor, 1);
  EXPECT_EQ(degrees.share, 1);
  options.plan = kGrid;
  options.grid = GridRequest{.degrees = {.tensor = 2}};
  Make(ResidualModel(8, 64, 128, 256), 2, 4, options);
  EXPECT_THAT(report_.headline, StartsWith("tensor 2 x data 4"));
}

TEST_F(Headline, OfOneDevice) {
  Make(ResidualModel(2, 8, 16, 32), 1, 1);
  EXPECT_THAT(report_.headline, StartsWith("one device: "));
}

TEST_F(Headline, SaysWhatDoesNotFit) {
  Make(ResidualModel(2, 8, 16, 32), 1, 2);
  result_.fits = false;
  EXPECT_THAT(HeadlineOf(result_, report_.times, cost_->machine()), HasSubstr("(it does not fit)"));
}

// The rows of one product are split over two devices, and the columns of another.
TEST(MostUsedDegrees, CountTheTimeOfTheirCalls) {
  Graph graph;
  const Operator rows(OpKind::kPartition, {{"axis", int64_t{0}}, {"degree", int64_t{2}}});
  const Operator columns(OpKind::kPartition, {{"axis", int64_t{1}}, {"degree", int64_t{2}}});
  const Operator copies(OpKind::kReplicate, {{"degree", int64_t{2}}});
  const TensorRef x = graph.AddInput("x", SequentialType({4, 4}));
  const auto add = [&](const Operator& op, std::vector<TensorRef> inputs) {
    return graph.AddOp(op, std::move(inputs)).value();
  };
  const auto product = [&](const Operator& of_x, const Operator& of_weight, std::string name) {
    const TensorRef weight = graph.AddWeight(name, SequentialType({4, 4}));
    return add(Operator(OpKind::kMatMul, {}), {add(of_x, {x}), add(of_weight, {weight})});
  };
  const TensorRef by_rows = product(rows, copies, "v"), by_columns = product(copies, columns, "w");
  graph.AddOutput("y", by_rows);
  graph.AddOutput("z", by_columns);
  MappedGraph mapped;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    mapped.views.push_back(RowMajorView(graph.node(id).outputs[0]));
  }
  mapped.graph = graph;
  std::vector<NodeTimes> times(graph.num_nodes());
  times[by_rows.node.value].forward_us = 3;
  times[by_columns.node.value].forward_us = 1;
  const WeightDegrees most = MostUsedDegrees(mapped, times);
  EXPECT_EQ(most.data, 2);
  EXPECT_EQ(most.tensor, 1);
  EXPECT_DOUBLE_EQ(most.share, 0.75);
  times[by_columns.node.value].forward_us = 9;
  EXPECT_EQ(MostUsedDegrees(mapped, times).tensor, 2);
}

}  // namespace
}  // namespace isomer
