#include "optimizer/page/report_page.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "optimizer/page/step_bars.h"
#include "optimizer/page/timeline_json.h"
#include "optimizer/page/traffic_json.h"
#include "optimizer/report/shown_devices.h"
#include "tests/optimizer/report/report_scenario.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReportPage : public ReportScenario {
 protected:
  std::string Data() const {
    BaselineSummaries baselines(result_, *cost_);
    const auto json = PageJson(result_, report_, rules_, *cost_, &baselines);
    EXPECT_TRUE(json.ok()) << json.status();
    return json->PrintCompact();
  }
  std::vector<StepBar> Bars() const {
    BaselineSummaries baselines(result_, *cost_);
    const auto bars = StepBarsOf(result_, report_, *cost_, &baselines);
    EXPECT_TRUE(bars.ok()) << bars.status();
    return *bars;
  }
};

// Names come from files of others.
TEST(JsonInHtml, NamesDoNotBreakOut) {
  Json json;
  json["model"] = "</script><script>alert(1)</script>";
  json["name"] = "<!--<script>";
  const std::string text = JsonInHtml(json);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_THAT(text, HasSubstr("\\u003c/script>\\u003cscript>alert(1)"));
}

TEST(PageWith, WhatIsPutInIsNotLookedAtAgain) {
  if (!CheckHasPage().ok()) GTEST_SKIP() << CheckHasPage();
  Json json;
  json["model"] = "{{STYLE}}{{SCRIPTS}}";
  const std::string page = PageWith(json, "</title><b>", "<i>{{DATA}}</i>");
  EXPECT_THAT(page, HasSubstr("{\"model\":\"{{STYLE}}{{SCRIPTS}}\"}"));
  EXPECT_THAT(page, HasSubstr("<title>&lt;/title&gt;&lt;b&gt;"));
  EXPECT_THAT(page, HasSubstr("&lt;i&gt;{{DATA}}&lt;/i&gt;"));
  // One that ends the data, and one that ends the scripts.
  int ends = 0;
  for (size_t at = page.find("</script"); at != std::string::npos;
       at = page.find("</script", at + 1))
    ++ends;
  EXPECT_EQ(ends, 2);
  EXPECT_THAT(page, Not(HasSubstr("http://localhost")));
}

TEST_F(ReportPage, SaysWhatTheReportSays) {
  Make(ResidualModel(2, 64, 128, 256), 1, 2);
  EXPECT_THAT(Data(), HasSubstr("\"report\":" + report_.json.PrintCompact()));
  EXPECT_EQ(report_.text.rfind(report_.headline + "\n", 0), 0u);
  EXPECT_THAT(report_.json.PrintCompact(), HasSubstr("\"headline\":\"" + report_.headline));
}

TEST_F(ReportPage, PartsOfEachBarAreItsStep) {
  Make(ResidualModel(2, 64, 128, 256), 1, 2);
  const std::vector<StepBar> bars = Bars();
  ASSERT_GE(bars.size(), 3u);
  EXPECT_EQ(bars[0].kind, StepBar::Kind::kPlan);
  EXPECT_EQ(bars[0].step_us, result_.plan.predicted_step_us);
  for (const StepBar& bar : bars) {
    if (bar.kind == StepBar::Kind::kBound) continue;
    ASSERT_TRUE(bar.parts.has_value()) << bar.name;
    const StepParts& parts = *bar.parts;
    EXPECT_NEAR(parts.compute + parts.exposed_communication + parts.bubble + parts.idle, 1, 1e-9)
        << bar.name;
    EXPECT_GT(parts.compute, 0) << bar.name;
    if (bar.kind != StepBar::Kind::kBaseline) continue;
    EXPECT_EQ(bar.step_us, result_.baselines.at(bar.name).step_us);
  }
}

TEST_F(ReportPage, AUsersConfigurationIsABarOfItsOwn) {
  OptimizeOptions options;
  options.grid = GridRequest{.degrees = {.tensor = 2}};
  options.grid_name = "mine.txt";
  Make(ResidualModel(2, 64, 128, 256), 1, 2, options);
  const std::vector<StepBar> bars = Bars();
  const auto mine = std::find_if(bars.begin(), bars.end(),
                                 [](const StepBar& bar) { return bar.name == "mine.txt"; });
  ASSERT_NE(mine, bars.end());
  EXPECT_EQ(mine->kind, StepBar::Kind::kOwn);
  EXPECT_TRUE(mine->parts.has_value());
}

TEST_F(ReportPage, APipelineHasABubbleAndStages) {
  MakePipeline();
  ASSERT_TRUE(result_.pipeline.has_value());
  const std::vector<StepBar> bars = Bars();
  EXPECT_GT(bars[0].parts->bubble, 0);
  const std::vector<StageDevices> stages = StageDevicesOf(result_.lowered.schedule);
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].first, 0);
  EXPECT_EQ(stages[0].last, 3);
  EXPECT_EQ(stages[1].last, 7);
  EXPECT_THAT(report_.headline, HasSubstr("tensor 2 x pipeline 2 x data 2, 4 micro-batches"));
}

TEST_F(ReportPage, MemoryOfTheFullestDeviceIsThatOfThePlan) {
  MakePipeline();
  const std::string json = MemoryJson(*cost_, result_.lowered, result_.simulation).PrintCompact();
  EXPECT_THAT(json, HasSubstr("\"arena_bytes\":" + std::to_string(result_.simulation.peak_bytes)));
}

TEST_F(ReportPage, ItDoesNotGrowWithTheStep) {
  MakePipeline();
  const size_t small = Data().size();
  OptimizeOptions options;
  options.plan = kGrid;
  options.grid = GridRequest{.degrees = {.tensor = 2}, .stages = 2, .micro_batch_size = 1};
  Make(ResidualModel(32, 64, 128, 256), 2, 4, options);
  EXPECT_LT(Data().size(), 8 * small);
}

// What a device sends in a ring of four goes to its neighbour.
TEST(TrafficJson, ARingSendsToTheNext) {
  Machine machine;
  machine.levels = {{"node", 4, 100, 0}, {"cluster", 1, 100, 0}};
  Schedule schedule;
  schedule.options.num_devices = 4;
  Task task{TaskKind::kAllReduce, Phase::kForward, NodeId{0}};
  task.devices = std::vector<int32_t>{0, 1, 2, 3};
  task.bytes = 400;
  schedule.tasks.push_back(task);
  const std::string json = TrafficJson(CostModel(machine), schedule, Simulation()).PrintCompact();
  EXPECT_THAT(json, HasSubstr("{\"name\":\"device 1\",\"bytes\":[0,0,600,0],\"within_node\":600,"
                              "\"between_nodes\":0}"));
}

// Of a ring through two nodes of four devices, of which one is simulated, one in four messages
// leaves the node.
TEST(TrafficJson, SimulatedDevicesStandForThoseOfTheirRow) {
  Machine machine;
  machine.levels = {{"node", 4, 100, 0}, {"cluster", 10, 100, 0}};
  Schedule schedule;
  schedule.options.num_devices = 40;
  schedule.represented = {0};
  Task task{TaskKind::kAllReduce, Phase::kForward, NodeId{0}};
  task.devices = std::vector<int32_t>{0};
  task.bytes = 400;
  task.whole = 0;
  schedule.wholes.emplace_back();
  for (int32_t device = 0; device < 8; ++device) schedule.wholes[0].devices.push_back(device);
  schedule.tasks.push_back(task);
  const CostModel cost(machine);
  const std::string json = TrafficJson(cost, schedule, Simulation()).PrintCompact();
  EXPECT_THAT(json, HasSubstr("\"within_node\":525,\"between_nodes\":175"));
}

}  // namespace
}  // namespace isomer
