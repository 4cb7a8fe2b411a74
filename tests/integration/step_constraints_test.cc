// Plans of the search do as a user says of the step, whoever proposed them, or one line says why
// not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/load.h"
#include "models/loss.h"
#include "optimizer/proposal/recompute.h"
#include "optimizer/search/optimizer.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/support/data_path.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"
#include "tests/optimizer/plan_holds.h"

namespace isomer {
namespace {

using testing::HasSubstr;

constexpr char kGpt[] = "zoo:gpt?layers=2&hidden=64&heads=4&vocabulary=128&seq=16&batch=16";

class StepConstraints : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto rules = LoadRules(DataPath("rules/default.rules"));
    ASSERT_TRUE(rules.ok()) << rules.status();
    rules_ = std::make_unique<RuleSet>(*std::move(rules));
    index_ = std::make_unique<RuleIndex>(*rules_);
  }

  StepConstraints() {
    options_.search.budget = 10;
    options_.choose_update_method = true;
    options_.choose_buckets = true;
    options_.policy.walk_work = 0;
  }

  void Load(const std::string& spec, int64_t devices = 8, int64_t nodes = 1,
            int64_t memory_bytes = 0) {
    auto model = LoadAnyModel(spec, {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    if (options_.training) {
      ASSERT_TRUE(AttachLoss(&model_, "auto").ok());
    }
    auto machine = LoadMachine("dgx_h100", nodes, devices);
    ASSERT_TRUE(machine.ok()) << machine.status();
    if (memory_bytes > 0) machine->kinds[0].memory_bytes = memory_bytes;
    cost_.emplace(*std::move(machine));
  }

  absl::StatusOr<OptimizeResult> Search(const std::string& text) {
    auto constraints = ParseConstraints(text, "mine.txt");
    if (!constraints.ok()) return constraints.status();
    OptimizeOptions options = options_;
    options.constraints = *std::move(constraints);
    return Optimize(model_, *index_, *cost_, options);
  }

  std::string ErrorOf(const std::string& step) {
    const std::string error(Search("step { " + step + " }").status().message());
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    return error;
  }

  // By the plan's own schedule of all devices and micro-batches.
  void ExpectDoes(const Plan& plan, const std::string& text) {
    const Constraints::OfStep step = ParseConstraints(text, "mine.txt")->step;
    ExpectPlanHolds(plan, *rules_);
    const int64_t moments = NumMicroBatches(plan.graph, plan.views).value();
    EXPECT_EQ(moments, step.micro_batches.value_or(moments));
    PipelineStages stages;
    if (moments > 1) {
      const auto lowered = LowerPlan(plan);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      stages = StagesOf(lowered->schedule);
      EXPECT_FALSE(MixesMicroBatches(lowered->schedule));
    }
    EXPECT_EQ(stages.num_stages, step.stages.value_or(stages.num_stages));
    EXPECT_EQ(stages.num_chunks, step.chunks.value_or(stages.num_chunks));
    EXPECT_EQ(plan.update.method, step.update.value_or(plan.update.method));
    EXPECT_TRUE(plan.update.methods.empty());
    if (!step.recompute) return;
    EXPECT_EQ(plan.recomputed, RecomputedNodes(*step.recompute, plan.graph));
    EXPECT_EQ(plan.recomputed.empty(), *step.recompute == RecomputeMode::kNone);
  }

  void SearchAndExpect(const std::string& step) {
    SCOPED_TRACE(step);
    const std::string text = "step { " + step + " }";
    const auto result = Search(text);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->fits);
    ExpectDoes(result->plan, text);
  }

  static std::unique_ptr<RuleSet> rules_;
  static std::unique_ptr<RuleIndex> index_;
  Model model_;
  std::optional<CostModel> cost_;
  OptimizeOptions options_;
};
std::unique_ptr<RuleSet> StepConstraints::rules_;
std::unique_ptr<RuleIndex> StepConstraints::index_;

TEST_F(StepConstraints, EachFieldAlone) {
  ASSERT_NO_FATAL_FAILURE(Load(kGpt));
  for (const char* step :
       {"stages: 1", "stages: 2", "stages: 4", "stages: 8", "chunks: 1", "chunks: 2",
        "micro_batches: 1", "micro_batches: 2", "micro_batches: 4", "micro_batches: 16",
        "update: \"all_reduce\"", "update: \"sharded\"", "update: \"sharded_gradients\"",
        "update: \"sharded_weights\"", "update: \"owner\"", "recompute: \"none\"",
        "recompute: \"selective\"", "recompute: \"full\""}) {
    SearchAndExpect(step);
  }
}

// Any two values of stages, micro-batches and recomputation meet, with each update.
TEST_F(StepConstraints, FieldsTogether) {
  ASSERT_NO_FATAL_FAILURE(Load(kGpt));
  const std::vector<std::string> pipelines = {"",           "stages: 1 ", "stages: 2 ",
                                              "stages: 4 ", "stages: 8 ", "stages: 2 chunks: 2 "};
  const std::vector<std::string> micro_batches = {"", "micro_batches: 2 ", "micro_batches: 8 "};
  const std::vector<std::string> recompute = {"", "recompute: \"selective\"",
                                              "recompute: \"full\""};
  for (size_t p = 0; p < pipelines.size(); ++p) {
    for (size_t m = 0; m < micro_batches.size(); ++m) {
      for (const char* update : {"", "update: \"sharded_weights\" "}) {
        const std::string step =
            absl::StrCat(pipelines[p], micro_batches[m], update, recompute[(p + m) % 3]);
        if (!step.empty()) SearchAndExpect(step);
      }
    }
  }
}

// What the step is to be does not depend on what the tables find fastest, or on what fits.
TEST_F(StepConstraints, MemoryIsReducedByWhatIsLeftFree) {
  ASSERT_NO_FATAL_FAILURE(
      Load("zoo:gpt?layers=2&hidden=64&heads=4&vocabulary=128&seq=64&batch=64"));
  options_.update.optimizer = OptimizerKind::kAdam;
  const auto free = Optimize(model_, *index_, *cost_, options_);
  ASSERT_TRUE(free.ok()) << free.status();
  for (const char* step :
       {"recompute: \"none\"", "update: \"all_reduce\"", "micro_batches: 1", "stages: 1",
        "stages: 2 recompute: \"none\"", "micro_batches: 4 update: \"sharded\"",
        "micro_batches: 1 update: \"all_reduce\" recompute: \"none\""}) {
    SCOPED_TRACE(step);
    const std::string text = absl::StrCat("step { ", step, " }");
    for (int64_t percent : {60, 15}) {
      SCOPED_TRACE(percent);
      Load("zoo:gpt?layers=2&hidden=64&heads=4&vocabulary=128&seq=64&batch=64", 8, 1,
           free->plan.predicted_peak_bytes * percent / 100);
      const auto result = Search(text);
      ASSERT_TRUE(result.ok()) << result.status();
      ExpectDoes(result->plan, text);
    }
  }
}

TEST_F(StepConstraints, EveryStrategyDoesSo) {
  ASSERT_NO_FATAL_FAILURE(Load(kGpt));
  for (Strategy strategy : {Strategy::kSequential, Strategy::kMcmc}) {
    options_.strategy = strategy;
    options_.search.budget = strategy == Strategy::kMcmc ? 200 : 10;
    for (const char* step :
         {"stages: 2", "micro_batches: 4", "recompute: \"full\"", "update: \"sharded\"",
          "micro_batches: 1 recompute: \"selective\" update: \"sharded_weights\"",
          "stages: 4 micro_batches: 8 update: \"sharded\" recompute: \"full\""}) {
      SearchAndExpect(step);
    }
  }
}

// No proposer but one, and none but the rest.
TEST_F(StepConstraints, WhoeverProposesThePlan) {
  ASSERT_NO_FATAL_FAILURE(Load(kGpt, 4));
  options_.policy.walk_work = SearchPolicy().walk_work;
  for (const char* without : {"joint_search", "updates", "walks"}) {
    options_.without = {without};
    SearchAndExpect("update: \"sharded\" recompute: \"full\"");
    SearchAndExpect("micro_batches: 4 recompute: \"selective\"");
  }
  options_.without = {"grids"};
  SearchAndExpect("update: \"sharded\" recompute: \"full\"");
}

TEST_F(StepConstraints, OnSeveralNodesAndTheWholeMachine) {
  ASSERT_NO_FATAL_FAILURE(Load(kGpt, 4, 2));
  SearchAndExpect("stages: 2 micro_batches: 4 update: \"sharded\"");
  SearchAndExpect("stages: 8 micro_batches: 2");  // fewer than stages
  options_.whole_machine = true;
  SearchAndExpect("micro_batches: 4");
  SearchAndExpect("recompute: \"full\"");
}

// A micro-batch of two samples for eight devices, of a model without pairs of products.
TEST_F(StepConstraints, MicroBatchesMayHaveFewerSamplesThanThereAreDevices) {
  ASSERT_NO_FATAL_FAILURE(Load("zoo:lenet?batch=8"));
  SearchAndExpect("micro_batches: 4");
  SearchAndExpect("stages: 2 micro_batches: 8");
  ASSERT_NO_FATAL_FAILURE(Load("zoo:mlp"));
  SearchAndExpect("stages: 2");
  SearchAndExpect("micro_batches: 2 stages: 1");
}

// Rounds of more micro-batches than stages, a last one of fewer, or one of fewer in all.
TEST_F(StepConstraints, ChunksTakeAnyNumberOfMicroBatches) {
  ASSERT_NO_FATAL_FAILURE(
      Load("zoo:gpt?layers=12&hidden=32&heads=4&vocabulary=64&seq=8&batch=120"));
  for (const char* step :
       {"stages: 2 chunks: 2 micro_batches: 3", "stages: 2 chunks: 3 micro_batches: 15",
        "stages: 4 chunks: 2 micro_batches: 5", "stages: 4 chunks: 2 micro_batches: 2",
        "stages: 4 chunks: 3 micro_batches: 6", "chunks: 2 micro_batches: 5"}) {
    SearchAndExpect(step);
  }
  ASSERT_NO_FATAL_FAILURE(Load("zoo:gpt?layers=8&hidden=32&heads=4&vocabulary=64&seq=8&batch=6"));
  SearchAndExpect("stages: 4 chunks: 2");
  SearchAndExpect("chunks: 2 micro_batches: 3");
}

TEST_F(StepConstraints, OneThereIsWhateverTheTime) {
  ASSERT_NO_FATAL_FAILURE(Load(kGpt));
  options_.search.time_limit_s = 1e-9;
  for (const char* step : {"stages: 4", "micro_batches: 8 update: \"sharded_gradients\"",
                           "recompute: \"full\"", "update: \"owner\""}) {
    SearchAndExpect(step);
  }
}

TEST_F(StepConstraints, SplitsAndBoundNodesAreKeptBesides) {
  ASSERT_NO_FATAL_FAILURE(Load(kGpt));
  const std::string split =
      "tensor { name: \"layer*/feed_forward/intermediate/product\" split { dim: -1 degree: 2 } }\n";
  for (const std::string& text :
       {split + "step { stages: 2 micro_batches: 4 }", split + "step { micro_batches: 4 }",
        split + "step { recompute: \"full\" update: \"sharded\" }",
        std::string("node { name: \"layer1/*\" stage: 1 }\nstep { stages: 4 micro_batches: 8 }"),
        std::string("node { name: \"layer1/*\" stage: 1 }\nstep { micro_batches: 2 }"),
        std::string("node { name: \"layer1/*\" stage: 1 }\nstep { recompute: \"full\" }")}) {
    SCOPED_TRACE(text);
    const auto result = Search(text);
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectDoes(result->plan, text);
    const bool is_bound = text.find("stage: 1") != std::string::npos;
    EXPECT_TRUE(!is_bound || (result->pipeline.has_value() && result->pipeline->stages > 1));
    if (is_bound) continue;
    const Graph& graph = result->plan.graph;
    int found = 0;
    for (int i = 0; i < graph.num_nodes(); ++i) {
      const Node& node = graph.node(i);
      if (IsParallel(node.op.kind()) || node.inputs.empty() ||
          node.name.find("feed_forward/intermediate/product") == std::string::npos) {
        continue;
      }
      ++found;
      EXPECT_EQ(node.outputs[0].dims.back().degree, 2) << node.name;
    }
    EXPECT_EQ(found, 2);
  }
}

// Where devices are named there is no pipeline for micro-batches.
TEST_F(StepConstraints, DevicesOfOperatorsAreKeptBesides) {
  ASSERT_NO_FATAL_FAILURE(Load(kGpt));
  const std::string name = "layer0/feed_forward/intermediate/product";
  const std::string text =
      "node { name: \"" + name + "\" devices { first: 4 count: 4 } }\nstep { micro_batches: 2 }";
  const auto result = Search(text);
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectDoes(result->plan, text);
  const Graph& graph = result->plan.graph;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    if (node.name != name || IsParallel(node.op.kind()) || node.inputs.empty()) continue;
    for (int64_t device : DevicesOf(result->plan.views[i], node.outputs[0])) EXPECT_GE(device, 4);
  }
}

TEST_F(StepConstraints, WhatNoPlanDoesIsRefusedWithTheReason) {
  ASSERT_NO_FATAL_FAILURE(Load(kGpt));
  EXPECT_EQ(ErrorOf("stages: 7"), "mine.txt:1: stages: 7: they do not divide 8 devices");
  EXPECT_EQ(ErrorOf("stages: 16"), "mine.txt:1: stages: 16: they do not divide 8 devices");
  EXPECT_EQ(ErrorOf("micro_batches: 3"),
            "mine.txt:1: micro_batches: 3: they do not divide the batch of 16");
  EXPECT_EQ(ErrorOf("micro_batches: 32"), "mine.txt:1: micro_batches: 32: the batch is 16");
  EXPECT_THAT(ErrorOf("stages: 8 chunks: 100"),
              HasSubstr("mine.txt:1: stages: 8, chunks: 100: gpt has "));
  EXPECT_THAT(ErrorOf("chunks: 1048576"), HasSubstr("chunks: 1048576: gpt has "));
  // Sums of residual blocks are read behind the next chunk.
  EXPECT_EQ(ErrorOf("chunks: 3"),
            "mine.txt:1: chunks: 3: cut into chunks of stages that divide 8 devices, results of "
            "one pass over the next");
  EXPECT_EQ(ErrorOf("stages: 8 chunks: 2 recompute: \"full\""),
            "mine.txt:1: stages: 8, chunks: 2, recompute: full: cut into chunks of 8 stages, "
            "results of one pass over the next");
  options_.whole_machine = true;
  EXPECT_EQ(ErrorOf("stages: 2"), "mine.txt:1: stages: 2: --whole_machine has no pipelines");
  options_.whole_machine = false;
  options_.without = {"grids"};
  EXPECT_EQ(
      ErrorOf("micro_batches: 2"),
      "mine.txt:1: micro_batches: 2: --without=grids leaves out all plans with micro-batches");
  options_.without = {};
  options_.steps_between_flushes = 4;
  EXPECT_EQ(ErrorOf("stages: 1"),
            "mine.txt:1: stages: 1: --steps_between_flushes=4 is for pipelines");
  EXPECT_EQ(ErrorOf("micro_batches: 1"),
            "mine.txt:1: micro_batches: 1: --steps_between_flushes=4 is for pipelines");
  SearchAndExpect("stages: 2 micro_batches: 4");
  options_.steps_between_flushes = 1;
  options_.choose_update_method = false;
  options_.update.method = UpdateMethod::kOwner;
  EXPECT_EQ(ErrorOf("update: \"sharded\""),
            "mine.txt:1: update: sharded: --update=owner says otherwise");
  SearchAndExpect("update: \"owner\"");
  options_.strategy = Strategy::kExhaustive;
  EXPECT_EQ(ErrorOf("update: \"owner\""),
            "mine.txt:1: update: owner: --search=exhaustive knows no constraints");
}

TEST_F(StepConstraints, WhatModelsDoNotHaveIsRefusedWithTheReason) {
  ASSERT_NO_FATAL_FAILURE(
      Load("zoo:resnext50?blocks1=1&blocks2=1&blocks3=1&blocks4=1&groups=4&group_width=16&stem=4&"
           "side=20&classes=16&batch=16"));
  EXPECT_THAT(ErrorOf("stages: 2"), HasSubstr("stages: 2: resnext50 needs all samples at once"));
  EXPECT_THAT(ErrorOf("micro_batches: 2"), HasSubstr("micro_batches: 2: resnext50 needs all"));
  ASSERT_NO_FATAL_FAILURE(Load("zoo:gpt?layers=1&hidden=32&heads=4&vocabulary=64&seq=8&batch=1"));
  EXPECT_EQ(ErrorOf("stages: 2"), "mine.txt:1: stages: 2: the batch is 1");
  ASSERT_NO_FATAL_FAILURE(Load("zoo:gpt?layers=1&hidden=32&heads=4&vocabulary=64&seq=8&batch=6"));
  EXPECT_EQ(ErrorOf("stages: 4 micro_batches: 4"),
            "mine.txt:1: micro_batches: 4: they do not divide the batch of 6");
  ASSERT_NO_FATAL_FAILURE(Load(kGpt, 1));
  EXPECT_EQ(ErrorOf("chunks: 2"), "mine.txt:1: chunks: 2: there is one device");
  options_.training = false;
  ASSERT_NO_FATAL_FAILURE(Load(kGpt));
  EXPECT_EQ(ErrorOf("recompute: \"none\""),
            "mine.txt:1: recompute: none: it is for --mode=training");
  EXPECT_EQ(ErrorOf("update: \"sharded\""),
            "mine.txt:1: update: sharded: it is for --mode=training");
}

TEST_F(StepConstraints, OfInferenceStagesAndMicroBatches) {
  options_.training = false;
  ASSERT_NO_FATAL_FAILURE(Load(kGpt));
  SearchAndExpect("stages: 2 micro_batches: 4");
  SearchAndExpect("micro_batches: 4");
}

// They take no notice, and are no plans then.
TEST_F(StepConstraints, BaselinesThatDoOtherwiseAreReported) {
  ASSERT_NO_FATAL_FAILURE(Load(kGpt));
  GridRequest compared;
  compared.degrees.tensor = 2;
  options_.grid = compared;
  options_.grid_name = "team.txt";
  const auto result = Search("step { stages: 2 }");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->origin, kFound);
  EXPECT_THAT(result->ignoring,
              testing::UnorderedElementsAre(kDataParallel, kZero3, kMegatron, "team.txt"));
  EXPECT_GT(result->baselines.at("team.txt").step_us, 0);
  EXPECT_GT(result->baselines.at(kDataParallel).step_us, 0);
  options_.grid.reset();
  options_.plan = kDataParallel;
  const auto asked = Search("step { recompute: \"full\" }");
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_TRUE(asked->plan.recomputed.empty());
  EXPECT_THAT(asked->ignoring, testing::ElementsAre(kDataParallel));
}

TEST_F(StepConstraints, ProgramsKnowThem) {
  const std::string constraints = ScratchFile("step.txt"), plan = ScratchFile("step.plan");
  const auto optimize = [&](const std::string& text, std::vector<std::string> flags = {}) {
    EXPECT_TRUE(WriteFileAtomically(constraints, text).ok());
    flags.insert(flags.end(),
                 {kGpt, "--machine=laptop_cpu", "--nodes=1", "--devices_per_node=8",
                  "--constraints=" + constraints, "--out=" + plan, "--budget=1", "--cache=false"});
    return RunBinary("isomer-optimize", flags);
  };
  const ProgramResult made =
      optimize("step { stages: 2 micro_batches: 8 update: \"sharded\" recompute: \"full\" }");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("2 stages, 8 micro-batches ("));
  EXPECT_THAT(made.out, HasSubstr("operators are computed again"));
  EXPECT_THAT(made.out, HasSubstr("without your constraints"));
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
  const ProgramResult run = RunBinary("isomer-run", {plan, "--check", "--steps=1"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const ProgramResult large =
      optimize("step { recompute: \"none\" }", {"--device_memory_gib=0.0002", "--loss_alone"});
  EXPECT_EQ(large.exit_code, 1);
  EXPECT_THAT(large.err, HasSubstr("; " + constraints + ":1: recompute: none\n"));
  for (const auto& [text, flag, why] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"\nstep { stages: 7 }", "", ":2: stages: 7: they do not divide 8 devices"},
           {"step { update: \"sharded\" }", "--update=owner",
            ":1: update: sharded: --update=owner says otherwise"},
           {"step { micro_batches: 0 }", "", ":1: micro_batches: 0: it is a number from 1 to "}}) {
    const ProgramResult refused = flag.empty() ? optimize(text) : optimize(text, {flag});
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(constraints + why));
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
}

}  // namespace
}  // namespace isomer
