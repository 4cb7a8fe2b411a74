// Counterexamples of classic false rules come down to a few elements.
#include "verifier/refutation/shrink.h"

#include <gtest/gtest.h>

#include "pcg/ir/plan.h"
#include "tests/verifier/rule_from_text.h"
#include "tests/verifier/true_rules.h"
#include "verifier/proving/judge_rules.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

struct FalseRule {
  std::string name, text;
  std::vector<std::vector<int>> ranks;
  // Of the smallest counterexample: its inputs, and its variables but for attributes.
  std::string inputs;
  std::map<std::string, int64_t> variables;
  // Attributes of `op` that are variables.
  OpKind op = OpKind::kInput;
  std::vector<std::string> attributes = {};
};

Rule RuleOf(const FalseRule& from) {
  Rule rule = RuleFromText(from.text, from.ranks);
  for (const std::string& name : from.attributes) {
    rule.variables.push_back({name, VariableKind::kAttribute});
    for (Pattern* side : {&rule.source, &rule.target}) {
      for (PatternNode& node : side->nodes) {
        if (node.kind == from.op) node.attributes.push_back({name, AttributeVariable{name}});
      }
    }
  }
  SetId(&rule);
  return rule;
}

class ShrinkTo : public testing::TestWithParam<FalseRule> {};

TEST_P(ShrinkTo, TheSmallest) {
  const Rule rule = RuleOf(GetParam());
  Prover prover;
  const Judgement judgement = prover.Judge(rule);
  ASSERT_EQ(judgement.record.verdict, ProofRecord::Verdict::kRefuted) << judgement.record.note;
  const Counterexample shrunk = Shrink(rule, *judgement.counterexample);
  EXPECT_TRUE(Replay(rule, shrunk).ok()) << shrunk.Summary();
  EXPECT_LE(Magnitude(rule, shrunk.binding), Magnitude(rule, judgement.counterexample->binding));
  std::string inputs;
  for (const TensorType& type : shrunk.binding.inputs) inputs += type.ToString() + "; ";
  EXPECT_EQ(inputs, GetParam().inputs) << shrunk.Summary();
  EXPECT_EQ(shrunk.binding.variables, GetParam().variables);
  for (const auto& input : shrunk.inputs) {
    for (const std::vector<double>& part : input) {
      for (double value : part) EXPECT_LE(std::abs(value), 5) << "no small integer";
    }
  }
}

const std::vector<std::vector<int>> kAny = {{1}, {2}, {3}}, kPairs = {{1, 1}, {2, 2}, {3, 3}};

INSTANTIATE_TEST_SUITE_P(
    ClassicBugs, ShrinkTo,
    testing::Values(FalseRule{"ReduceCommutedWithRelu",
                              "relu(reduce(x0; degree=d)) -> reduce(relu(x0); degree=d)",
                              kAny,
                              "f32[1] p2; ",
                              {{"d", 2}}},
                    FalseRule{"BiasOncePerShard",
                              "add(reduce(x0; degree=2), x1) -> "
                              "reduce(add(x0, concat_partials(x1, x1)); degree=2)",
                              kPairs,
                              "f32[1] p2; f32[1]; ",
                              {}},
                    FalseRule{
                        "ConcatOnAShardedAxis",
                        "partition(concat(x0, x1; axis=a); axis=a, degree=d) -> "
                        "concat(partition(x0; axis=a, degree=d), partition(x1; axis=a, degree=d); "
                        "axis=a)",
                        kPairs,
                        "f32[1]; f32[1]; ",
                        {{"a", -1}, {"d", 2}}},
                    FalseRule{"MaxPoolOfPartialSums",
                              "max_pool(reduce(x0; degree=d)) -> reduce(max_pool(x0); degree=d)",
                              {{4}},
                              "f32[1,1,1,1] p2; ",
                              {{"d", 2}},
                              OpKind::kMaxPool,
                              {"kernel", "padding", "stride"}},
                    FalseRule{"DropoutWithDifferentMasks",
                              "concat(dropout(x0, x2), dropout(x1, x2); axis=a) -> "
                              "dropout(concat(x0, x1; axis=a), x2)",
                              {{1, 1, 0}, {2, 2, 0}},
                              "f32[1]; f32[1]; i64[]; ",
                              {{"a", -1}},
                              OpKind::kDropout,
                              {"rate", "salt"}},
                    FalseRule{"RowsCombinedAsColumns",
                              "matmul(x0, x1) -> combine(matmul(replicate(x0; degree=d), "
                              "partition(x1; axis=-1, degree=d)); axis=-2, degree=d)",
                              {{2, 2}, {3, 3}, {3, 2}},
                              "f32[1,1]; f32[1,1]; ",
                              {{"d", 2}}}),
    [](const auto& info) { return info.param.name; });

TEST(ShrinkOfMutants, IsACounterexampleNoLargerThanTheFirst) {
  Prover prover;
  int64_t before = 0, after = 0;
  for (const MutatedRule& mutant : Mutants()) {
    SCOPED_TRACE(mutant.change + ": " + mutant.rule.ToString());
    const Judgement judgement = prover.Judge(mutant.rule);
    ASSERT_TRUE(judgement.counterexample.has_value());
    const Counterexample shrunk = Shrink(mutant.rule, *judgement.counterexample);
    EXPECT_TRUE(Replay(mutant.rule, shrunk).ok());
    EXPECT_EQ(shrunk.kind, judgement.counterexample->kind);
    before += Magnitude(mutant.rule, judgement.counterexample->binding);
    after += Magnitude(mutant.rule, shrunk.binding);
    EXPECT_LE(Magnitude(mutant.rule, shrunk.binding), 40) << shrunk.Summary();
  }
  RecordProperty("magnitude_before", static_cast<int>(before));
  RecordProperty("magnitude_after", static_cast<int>(after));
  EXPECT_LT(after, before);
}

TEST(JudgeRules, ReportsAndSavesTheShrunkCounterexample) {
  const Rule rule =
      RuleFromText("relu(reduce(x0; degree=d)) -> reduce(relu(x0); degree=d)", {{1}, {2}});
  JudgeOptions options;
  options.counterexample_dir = testing::TempDir();
  const absl::StatusOr<JudgedRules> judged = JudgeRules({rule}, options);
  ASSERT_TRUE(judged.ok()) << judged.status();
  EXPECT_EQ(judged->records[0].verdict, ProofRecord::Verdict::kRefuted);
  EXPECT_NE(judged->records[0].note.find("x0 : f32[1] p2"), std::string::npos)
      << judged->records[0].note;
  const auto model = LoadModel(testing::TempDir() + "/" + rule.id + ".source.txt");
  ASSERT_TRUE(model.ok()) << model.status();
}

}  // namespace
}  // namespace isomer
