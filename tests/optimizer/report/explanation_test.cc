#include "optimizer/report/explanation.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/report/timeline_svg.h"
#include "pcg/schedule/lowering/lower.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

// x (4 x 4) times w on two devices: data parallel, or with the sum dim split.
class Explaining : public testing::Test {
 protected:
  void Load(int64_t hidden, bool training) {
    const TensorRef x = graph_.AddInput("x", SequentialType({4, hidden}));
    const TensorRef w = graph_.AddWeight("w", SequentialType({hidden, hidden}));
    const TensorRef t = graph_.AddInput("t", SequentialType({4, hidden}));
    const auto add = [&](Operator op, std::vector<TensorRef> in, std::string name) {
      return graph_.AddOp(std::move(op), std::move(in), std::move(name)).value();
    };
    const Operator part(OpKind::kPartition, {{"axis", int64_t{0}}, {"degree", int64_t{2}}});
    const Operator copy(OpKind::kReplicate, {{"degree", int64_t{2}}});
    const TensorRef y = add(OpKind::kMatMul, {add(part, {x}, ""), add(copy, {w}, "")}, "product");
    const TensorRef loss = add(OpKind::kMeanSquaredError, {y, add(part, {t}, "")}, "mse");
    graph_.AddOutput("loss", add(Operator(OpKind::kReduce, {{"degree", int64_t{2}}}), {loss}, ""));
    std::vector<MachineView> views;
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      views.push_back(RowMajorView(graph_.node(i).outputs[0]));
    }
    ScheduleOptions options;
    options.training = training;
    options.num_devices = 2;
    options.loss = "loss";
    auto schedule = LowerGraph(graph_, views, options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    schedule_ = *std::move(schedule);
    simulation_ = Simulate(cost_, graph_, schedule_);
    explanation_ = Explain(cost_, graph_, schedule_, simulation_);
  }

  static Machine SlowLinks() {
    Machine machine = TestMachine(1, 2);
    machine.levels[0].bytes_per_us = 1e3;
    return machine;
  }

  CostModel cost_{SlowLinks()};
  Graph graph_;
  Schedule schedule_;
  Simulation simulation_;
  Explanation explanation_;
};

TEST_F(Explaining, TheCriticalPathIsAsLongAsTheStep) {
  Load(64, true);
  EXPECT_NEAR(explanation_.compute_us + explanation_.communication_us, simulation_.step_us, 1e-3);
  for (size_t i = 1; i < explanation_.critical_path.size(); ++i) {
    const CriticalTask& critical = explanation_.critical_path[i];
    EXPECT_EQ(critical.wait.task, explanation_.critical_path[i - 1].task);
    EXPECT_EQ(simulation_.timeline.end[critical.wait.task],
              simulation_.timeline.start[critical.task]);
  }
}

TEST_F(Explaining, SynchronisingALargeWeightBoundsTheStep) {
  Load(2048, true);
  EXPECT_NE(explanation_.bound.find("Communication bounds the step"), std::string::npos)
      << explanation_.bound;
  EXPECT_NE(explanation_.bound.find("all_reduce of gradients of weights"), std::string::npos)
      << explanation_.bound;
}

TEST_F(Explaining, BytesOfAnAllReduceCrossTheLinksOfItsRing) {
  Load(2048, true);
  const double bytes =
      std::accumulate(explanation_.link_bytes.begin(), explanation_.link_bytes.end(), 0.0);
  // Two devices send the buffer once each, over the one's up and the other's down link.
  EXPECT_NEAR(bytes, 2 * 2 * 2048.0 * 2048 * 4, 100);
}

TEST_F(Explaining, BusyTimesAreThoseOfTheTasks) {
  Load(64, false);
  EXPECT_GT(explanation_.device_compute_us[0], 0);
  EXPECT_LE(explanation_.device_compute_us[0], simulation_.step_us);
  EXPECT_DOUBLE_EQ(explanation_.device_compute_us[0], explanation_.device_compute_us[1]);
}

TEST_F(Explaining, TheTimelineIsDrawn) {
  Load(64, true);
  const std::string svg = TimelineSvg(graph_, schedule_, simulation_, cost_.machine());
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_NE(svg.find(">device 1</text>"), std::string::npos);
  EXPECT_NE(svg.find(">compute</text>"), std::string::npos);
  EXPECT_NE(svg.find("backward of matmul product"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST(ExplainingNothing, NothingIsSaid) {
  const CostModel cost(TestMachine(1, 2));
  const Explanation explanation = Explain(cost, Graph(), Schedule(), Simulation());
  EXPECT_EQ(explanation.bound, "Nothing takes any time.");
  EXPECT_EQ(ExplanationText(explanation, cost.machine(), 0), "");
}

}  // namespace
}  // namespace isomer
