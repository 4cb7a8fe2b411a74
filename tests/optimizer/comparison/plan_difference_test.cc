#include "optimizer/comparison/plan_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "optimizer/comparison/plan_summary.h"
#include "optimizer/proposal/baselines.h"
#include "tests/optimizer/report/report_scenario.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

PlanSummary MadeUp(const std::string& name, double attention_us, double feed_forward_us) {
  PlanSummary plan;
  plan.name = name;
  plan.operators["layer*/attention/query"].compute_us = attention_us;
  plan.operators["layer*/attention/query"].calls["linear"] = 2;
  plan.operators["layer*/feed_forward"].compute_us = feed_forward_us;
  plan.compute_us = attention_us + feed_forward_us;
  plan.step_us = plan.compute_us;
  plan.settings = {{"micro-batches", "1"}};
  return plan;
}

double SumOf(const PlanDifference& difference) {
  double us = 0;
  for (const PlanDifference::Block& block : difference.blocks) {
    double of_block = 0;
    for (const PlanDifference::Part& part : block.parts) of_block += part.us;
    EXPECT_NEAR(of_block, block.us, 1e-9) << block.name;
    us += block.us;
  }
  return us;
}

TEST(BlockName, FoldsLayersOfZooAndExporters) {
  EXPECT_EQ(BlockName("layer12/attention/query"), "layer*/attention/query");
  EXPECT_EQ(BlockName("/encoder/layer.11/output"), "encoder/layer.*/output");
  EXPECT_EQ(BlockName("encoder.layer.11.output"), "encoder/layer.*/output");
  EXPECT_EQ(BlockName("/"), "/");
  EXPECT_EQ(BlockName("7"), "*");
}

TEST(BlocksOf, AreAsFineAsMayBeShown) {
  PlanSummary plan;
  for (const char* name : {"a/x/1", "a/y/2", "b/x/3", "b/y/4"}) {
    plan.operators[name].compute_us = 1;
  }
  EXPECT_EQ(BlocksOf({&plan}, 4)[0].size(), 4u);
  EXPECT_EQ(BlocksOf({&plan}, 2)[0].at("a").compute_us, 2);
  // Finer where it takes longer; what has one part goes on to the next.
  plan.operators["b/x/3"].exposed_us["all_reduce"] = 3;
  plan.operators["c/x/4/i"].compute_us = plan.operators["c/x/4/j"].compute_us = 0.5;
  const auto blocks = BlocksOf({&plan}, 4)[0];
  std::vector<std::string> names;
  for (const auto& [name, block] : blocks) names.push_back(name);
  EXPECT_THAT(names, testing::ElementsAre("a", "b/x/3", "b/y/4", "c/x/4"));
  // However many there are, they are shown by their first parts.
  EXPECT_EQ(BlocksOf({&plan}, 1)[0].size(), 3u);
}

// A product and its sum in one plan are one fused call, by another name, in the other.
TEST(BlocksOf, WhatCancelsStaysTogether) {
  PlanSummary a, b;
  a.operators["layer*/mlp/fused"].compute_us = 10;
  b.operators["layer*/mlp/product"].compute_us = 9;
  b.operators["layer*/mlp/sum"].compute_us = 2;
  a.operators["layer*/attention/query"].compute_us = 1;
  b.operators["layer*/attention/query"].compute_us = 2;
  b.operators["layer*/attention/key"].compute_us = 3;
  std::vector<std::string> names;
  const auto blocks = BlocksOf({&a, &b}, 12);
  for (const auto& [name, block] : blocks[1]) names.push_back(name);
  EXPECT_THAT(names,
              testing::ElementsAre("layer*/attention/key", "layer*/attention/query", "layer*/mlp"));
}

// Names that end where others go on.
TEST(BlocksOf, ABlockMayBeAnOperatorOfAnother) {
  PlanSummary a, b;
  a.operators["layer*"].compute_us = 1;
  b.operators["layer*/query"].compute_us = 4;
  const auto blocks = BlocksOf({&a, &b}, 12);
  EXPECT_EQ(blocks[0].at("layer*").compute_us, 1);
  EXPECT_EQ(blocks[1].at("layer*/query").compute_us, 4);
}

TEST(DifferenceOf, IsSortedAndSaysWhatIsDoneOtherwise) {
  const PlanSummary a = MadeUp("a.plan", 10, 20);
  PlanSummary b = MadeUp("b.plan", 11, 50);
  b.operators["layer*/attention/query"].calls = {{"matmul", 2}, {"add", 1}};
  const PlanDifference difference = DifferenceOf(a, b);
  ASSERT_EQ(difference.blocks.size(), 2u);
  EXPECT_EQ(difference.blocks[0].name, "layer*/feed_forward");
  EXPECT_EQ(difference.blocks[0].us, 30);
  EXPECT_EQ(difference.blocks[1].parts[0].cause, "1 more add, 2 fewer linear, 2 more matmul");
  EXPECT_NEAR(SumOf(difference), 31, 1e-9);
}

TEST(DifferenceOf, EqualPlansDifferInNothing) {
  const PlanSummary a = MadeUp("a.plan", 10, 20), b = MadeUp("b.plan", 10, 20);
  EXPECT_TRUE(DifferenceOf(a, b).blocks.empty());
  EXPECT_EQ(DifferenceText(a, b), "as fast as b.plan\n");
}

TEST(DifferenceText, SaysWhoFits) {
  PlanSummary a = MadeUp("a.plan", 10, 20), b = MadeUp("b.plan", 20, 40);
  EXPECT_THAT(DifferenceText(a, b), HasSubstr("30 us a step (50.0 %) faster than b.plan\n"));
  EXPECT_THAT(DifferenceText(b, a), HasSubstr("30 us a step (100.0 %) slower than a.plan\n"));
  b.fits = false;
  EXPECT_THAT(DifferenceText(a, b), HasSubstr("faster than b.plan, which does not fit\n"));
  EXPECT_THAT(DifferenceText(b, a), HasSubstr("slower than a.plan; but it does not fit\n"));
  a.fits = false;
  EXPECT_THAT(DifferenceText(a, b), HasSubstr("; neither fits\n"));
}

TEST(SideBySideText, ShowsSettingsThatDiffer) {
  const PlanSummary a = MadeUp("a.plan", 10, 20);
  PlanSummary b = MadeUp("b.plan", 10, 20);
  EXPECT_THAT(SideBySideText(a, b), Not(HasSubstr("micro-batches")));
  b.settings[0].second = "4";
  EXPECT_THAT(SideBySideText(a, b), HasSubstr("micro-batches"));
}

class PlanDifferences : public ReportScenario {
 protected:
  PlanSummary Summary() const {
    const auto summary =
        SummaryOf("plan", result_, report_.explanation, report_.times, cost_->machine());
    EXPECT_TRUE(summary.ok()) << summary.status();
    return *summary;
  }
  static double PartsOf(const PlanSummary& plan) {
    double us = plan.compute_us + plan.bubble_us + plan.idle_us;
    for (const auto& [kind, of_kind] : plan.exposed_us) us += of_kind;
    return us;
  }
  // Blocks add up to the parts of the step.
  static void ExpectWhole(const PlanSummary& plan) {
    EXPECT_NEAR(PartsOf(plan), plan.step_us, 1e-6 * plan.step_us) << plan.name;
    double compute_us = 0;
    std::map<std::string, double> exposed_us;
    for (const auto& [name, block] : plan.operators) {
      compute_us += block.compute_us;
      for (const auto& [kind, us] : block.exposed_us) exposed_us[kind] += us;
    }
    EXPECT_NEAR(compute_us, plan.compute_us, 1e-6 * plan.step_us) << plan.name;
    ASSERT_EQ(exposed_us.size(), plan.exposed_us.size()) << plan.name;
    for (const auto& [kind, us] : plan.exposed_us) {
      EXPECT_NEAR(exposed_us.at(kind), us, 1e-6 * plan.step_us) << plan.name << " " << kind;
    }
  }
};

TEST_F(PlanDifferences, AddUpToTheDifferenceOfTheSteps) {
  Make(ResidualModel(2, 64, 128, 256), 2, 2);
  const PlanSummary plan = Summary();
  ExpectWhole(plan);
  int compared = 0;
  for (const auto& [name, baseline] : result_.baseline_plans) {
    const auto other = SummaryOf(name, baseline, *cost_);
    ASSERT_TRUE(other.ok()) << name << ": " << other.status();
    ExpectWhole(*other);
    EXPECT_NEAR(SumOf(DifferenceOf(plan, *other)), other->step_us - plan.step_us,
                1e-6 * plan.step_us)
        << name;
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

TEST_F(PlanDifferences, APipelineWaitsInItsBubble) {
  MakePipeline();
  const PlanSummary plan = Summary();
  ExpectWhole(plan);
  EXPECT_GT(plan.bubble_us, 0);
  EXPECT_GT(plan.sent_bytes(), 0);
  EXPECT_THAT(plan.settings,
              testing::Contains(std::pair<std::string, std::string>("pipeline stages", "2")));
}

// Data parallelism: each of n devices sends 2 (n - 1) / n of every gradient.
TEST_F(PlanDifferences, WhatADeviceSendsIsThatOfTheAlgorithm) {
  OptimizeOptions options;
  options.plan = kDataParallel;
  Make(ResidualModel(2, 64, 128, 256), 1, 2, options);
  const PlanSummary plan = Summary();
  int64_t weight_bytes = 0;
  for (const Schedule::HostTensor& parameter : result_.lowered.schedule.parameters) {
    const TensorType& type = result_.lowered.mapped.graph.type(parameter.tensor);
    int64_t bytes = BytesPerElement(type.dtype);
    for (const Dim& dim : type.dims) bytes *= dim.size;
    weight_bytes += bytes;
  }
  std::map<std::string, double> sent;
  for (const auto& [name, block] : plan.operators) {
    for (const auto& [kind, bytes] : block.sent_bytes) sent[kind] += bytes;
  }
  EXPECT_NEAR(sent.at("all_reduce of gradients of weights"), weight_bytes, 1e-6 * weight_bytes);
}

}  // namespace
}  // namespace isomer
