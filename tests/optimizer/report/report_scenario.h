// A plan of a small network, with its report.
#ifndef ISOMER_TESTS_OPTIMIZER_REPORT_REPORT_SCENARIO_H_
#define ISOMER_TESTS_OPTIMIZER_REPORT_REPORT_SCENARIO_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "optimizer/report/report.h"
#include "optimizer/search/optimizer.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {

class ReportScenario : public testing::Test {
 protected:
  void Make(Model model, int64_t nodes, int64_t devices, OptimizeOptions options = {}) {
    model_ = std::move(model);
    rules_ = ExampleRules(model_.graph);
    rules_.BuildIndex();
    index_ = std::make_unique<RuleIndex>(rules_);
    cost_ = std::make_unique<CostModel>(TestMachine(nodes, devices));
    options.keep_baselines = true;
    auto result = Optimize(model_, *index_, *cost_, options);
    ASSERT_TRUE(result.ok()) << result.status();
    result_ = *std::move(result);
    auto report = ReportOf(result_, rules_, *cost_);
    ASSERT_TRUE(report.ok()) << report.status();
    report_ = *std::move(report);
  }
  // 2 stages of 4 micro-batches, each 2-way tensor and 2-way data parallel.
  void MakePipeline() {
    OptimizeOptions options;
    options.plan = kGrid;
    options.grid = GridRequest{.degrees = {.tensor = 2}, .stages = 2, .micro_batch_size = 8};
    Make(ResidualModel(8, 64, 128, 256), 2, 4, options);
  }

  Model model_;
  RuleSet rules_;
  std::unique_ptr<RuleIndex> index_;
  std::unique_ptr<CostModel> cost_;
  OptimizeResult result_;
  Report report_;
};

}  // namespace isomer

#endif  // ISOMER_TESTS_OPTIMIZER_REPORT_REPORT_SCENARIO_H_
