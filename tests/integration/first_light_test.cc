// From an ONNX file to a proved plan that runs: what the first user does, with the programs.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/plan.h"
#include "pcg/support/file.h"
#include "rules/language/rule.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using Json = google::protobuf::Value;

Json ReadJson(const std::string& path) {
  google::protobuf::Value value;
  const std::string text = ReadFile(path).value_or("");
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &value).ok()) << text;
  return value;
}

const Json& At(const Json& json, const std::string& key) {
  static const Json& none = *new Json;
  const auto& fields = json.struct_value().fields();
  EXPECT_TRUE(fields.contains(key)) << key << " is missing in " << json.ShortDebugString();
  return fields.contains(key) ? fields.at(key) : none;
}

// Runs isomer-optimize with the arguments; returns its JSON summary.
Json Optimize(std::vector<std::string> arguments, const std::string& plan) {
  const std::string json = absl::StrCat(plan, ".json");
  arguments.push_back("--out=" + plan);
  arguments.push_back("--json=" + json);
  const ProgramResult result = RunBinary("isomer-optimize", arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"what is split", "Predicted", "data_parallel", "stopped: "}) {
    EXPECT_TRUE(absl::StrContains(result.out, part)) << part << " is missing:\n" << result.out;
  }
  return ReadJson(json);
}

void ExpectNoSlowerThanBaselines(const Json& summary) {
  const double step_us = At(summary, "predicted_step_us").number_value();
  EXPECT_GT(step_us, 0);
  for (const char* baseline : {"data_parallel", "megatron"}) {
    const Json& prediction = At(At(summary, "baselines"), baseline);
    EXPECT_LE(step_us, At(prediction, "predicted_step_us").number_value() * (1 + 1e-9)) << baseline;
  }
}

// The steps of the plan's derivation by kind: with or without parallel operators (those without a
// rule have none). It may do without the latter where `branches` run beside each other, each whole.
void ExpectAlgebraAndParallelism(const std::string& path, bool branches = false) {
  absl::StatusOr<Plan> plan = LoadPlan(path);
  ASSERT_TRUE(plan.ok()) << plan.status();
  absl::StatusOr<RuleSet> rules = LoadRules(SourceFile("rules/default.rules"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  int algebra = 0, parallel = 0;
  for (const DerivationStep& step : plan->steps) {
    if (step.rule.empty()) {
      ++algebra;
      continue;
    }
    const Rule* rule = rules->Find(step.rule);
    ASSERT_NE(rule, nullptr) << step.rule;
    bool acts_on_types = false;
    for (const Pattern* side : {&rule->source, &rule->target}) {
      for (const PatternNode& node : side->nodes) acts_on_types |= IsParallel(node.kind);
    }
    ++(acts_on_types ? parallel : algebra);
  }
  EXPECT_GT(algebra, 0);
  std::set<int64_t> devices;
  for (const MachineView& view : plan->views) devices.insert(view.start);
  EXPECT_TRUE(parallel > 0 || (branches && devices.size() > 1));
}

std::vector<std::string> TwoNodesOf(int devices, const std::string& model,
                                    const std::string& machine = "dgx_h100") {
  return {model, "--machine=" + machine, "--nodes=2", absl::StrCat("--devices_per_node=", devices),
          "--whole_machine"};
}

TEST(FirstLight, NarrowEncoderIsOptimisedCertifiedAndRuns) {
  const std::string plan = ScratchFile("encoder.plan");
  // Of a GPU it takes what its launches take, so that one is fastest.
  ExpectNoSlowerThanBaselines(
      Optimize(TwoNodesOf(2, SourceFile("models/data/bert_tiny.onnx"), "laptop_cpu"), plan));
  ExpectAlgebraAndParallelism(plan, /*branches=*/true);
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
  const std::string json = ScratchFile("run.json");
  const ProgramResult run =
      RunBinary("isomer-run", {plan, "--backend=cpu", "--check", "--steps=2", "--json=" + json});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_LE(At(At(ReadJson(json), "check"), "max_rel_error").number_value(), 1e-4);
}

TEST(FirstLight, WideEncoderBeatsDataParallelism) {
  const std::string plan = ScratchFile("bert_large.plan");
  const Json summary = Optimize(TwoNodesOf(4, "zoo:bert_large"), plan);
  ExpectNoSlowerThanBaselines(summary);
  EXPECT_LT(At(summary, "predicted_step_us").number_value(),
            At(At(At(summary, "baselines"), "data_parallel"), "predicted_step_us").number_value());
  ExpectAlgebraAndParallelism(plan);
}

TEST(FirstLight, DigitsLearnEquallyOnOneTwoAndFourDevices) {
  std::vector<std::vector<double>> losses;
  for (int devices : {1, 2, 4}) {
    const std::string plan = ScratchFile(absl::StrCat("digits", devices, ".plan"));
    Optimize({SourceFile("models/data/digits_cnn.onnx"), "--machine=laptop_cpu", "--nodes=1",
              absl::StrCat("--devices_per_node=", devices)},
             plan);
    const std::string json = ScratchFile("run.json");
    const ProgramResult run = RunBinary(
        "isomer-run", {plan, "--data=" + SourceFile("models/data/digits.csv"), "--epochs=8",
                       "--learning_rate=0.06", "--noshuffle", "--json=" + json});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const Json summary = ReadJson(json);
    EXPECT_GE(At(At(summary, "metrics"), "test_accuracy").number_value(), 0.95);
    losses.emplace_back();
    for (const Json& loss : At(summary, "loss").list_value().values()) {
      losses.back().push_back(loss.number_value());
    }
    EXPECT_EQ(losses.back().size(), 8u * 22u);
  }
  for (size_t run : {1, 2}) {
    ASSERT_EQ(losses[run].size(), losses[0].size());
    for (size_t step = 0; step < losses[0].size(); ++step) {
      EXPECT_NEAR(losses[run][step], losses[0][step], 1e-3 * std::abs(losses[0][step]))
          << (run == 1 ? 2 : 4) << " devices, step " << step;
    }
  }
}

}  // namespace
}  // namespace isomer
