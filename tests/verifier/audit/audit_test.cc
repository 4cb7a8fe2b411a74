// The verdicts on the examples of both formats, and how they are reported.
#include "verifier/audit/audit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/verifier/rule_from_text.h"
#include "verifier/audit/read_rules.h"
#include "verifier/audit/report.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

std::vector<ForeignRule> Examples(ForeignFormat format) {
  const std::string folder = absl::StrCat(ISOMER_SOURCE_DIR, "/tests/data/audit/");
  auto rules = format == ForeignFormat::kTaso ? ReadTasoRules(folder + "taso.textproto")
                                              : ReadUnityRules(folder + "unity.json");
  EXPECT_TRUE(rules.ok()) << rules.status();
  return *std::move(rules);
}

struct Expected {
  AuditVerdict verdict;
  std::string says;  // part of the reason or of the conditions; "-": there is neither
};

void ExpectVerdicts(ForeignFormat format, const std::map<std::string, Expected>& expected) {
  AuditOptions options;
  options.format = format;
  Prover prover;
  const std::vector<ForeignRule> rules = Examples(format);
  EXPECT_EQ(rules.size(), expected.size());
  for (const ForeignRule& rule : rules) {
    SCOPED_TRACE(rule.name);
    const AuditResult result = AuditRule(rule, options, &prover);
    const Expected& wanted = expected.at(rule.name);
    std::string said = result.reason;
    for (const std::string& condition : result.conditions) absl::StrAppend(&said, condition, "; ");
    EXPECT_EQ(AuditVerdictName(result.verdict), AuditVerdictName(wanted.verdict)) << said;
    if (wanted.says == "-") {
      EXPECT_EQ(said, "");
    } else {
      EXPECT_TRUE(absl::StrContains(said, wanted.says)) << said;
    }
  }
}

TEST(Audit, ExamplesOfTaso) {
  using enum AuditVerdict;
  ExpectVerdicts(ForeignFormat::kTaso,
                 {{"rule 0", {kProved, "-"}},
                  {"rule 1", {kProved, "-"}},
                  {"rule 2", {kRefuted, "in the source and"}},
                  {"rule 3", {kRefuted, "in the source and"}},
                  {"rule 4", {kChecked, "convolutions have one group"}},
                  {"rule 5", {kChecked, "size(x3,-4) == size(x1,-4)"}},
                  {"rule 6", {kChecked, "-"}},
                  {"rule 7", {kIllTyped, "mapped output 0 of the target"}},
                  {"rule 8", {kOutside, "target operator 0 (OP_CONSTANT_POOL)"}}});
}

TEST(Audit, ExamplesOfUnity) {
  using enum AuditVerdict;
  ExpectVerdicts(ForeignFormat::kUnity,
                 {{"partitions_commute", {kProved, "-"}},
                  {"data_parallel_add", {kProved, "2*degree divides size(x0,-2)"}},
                  {"sum_of_partials", {kProved, "-"}},
                  {"relu_of_partial_sums", {kIllTyped, "target: "}},
                  {"relu_of_a_sum", {kRefuted, "in the source and"}},
                  {"concat_along_a_partitioned_dim", {kIllTyped, "source: "}},
                  {"even_split", {kProved, "size(x1,-1) == size(x0,-1)"}},
                  {"reduce_along_a_logical_dim", {kRefuted, "in the source and"}},
                  {"embedding_by_rows", {kOutside, "(OP_EMBEDDING)"}}});
}

// Dim 1 is the rows of a matrix, and the batch of a stack of matrices, along which both operands
// would have to be partitioned.
TEST(Audit, RankIsAConditionWhereItMatters) {
  const ForeignTensor x{-1, 0}, y{-2, 0};
  auto parallel = [](const std::string& type, ForeignTensor of, int64_t dim) {
    return ForeignOperator{type, {of}, {{"PM_PARALLEL_DIM", dim}, {"PM_PARALLEL_DEGREE", 2}}};
  };
  const ForeignRule rule{"r",
                         {{"OP_MATMUL", {x, y}, {}}},
                         {parallel("OP_PARTITION", x, 1),
                          parallel("OP_REPLICATE", y, 0),
                          {"OP_MATMUL", {{0, 0}, {1, 0}}, {}},
                          parallel("OP_COMBINE", {2, 0}, 1)},
                         {{{0, 0}, {3, 0}}}};
  AuditOptions options;
  options.format = ForeignFormat::kUnity;
  Prover prover;
  const AuditResult result = AuditRule(rule, options, &prover);
  EXPECT_EQ(result.verdict, AuditVerdict::kProved) << result.reason;
  EXPECT_EQ(result.conditions,
            (std::vector<std::string>{"2*degree divides size(x0,-2)", "the tensors have rank 2"}));
}

// Tensors of two element types, or partitioned in two ways, are nothing that TASO has.
TEST(Audit, WhatTheFormatHasNotRefutesNothing) {
  const ForeignTensor x{-1, 0}, y{-2, 0};
  const ForeignRule rule{"r",
                         {{"OP_RELU", {x}, {}}, {"OP_RELU", {y}, {}}},
                         {{"OP_CONCAT", {x, y}, {{"PM_AXIS", 0}, {"PM_NUMDIM", 2}}},
                          {"OP_RELU", {{0, 0}}, {}},
                          {"OP_SPLIT", {{1, 0}}, {{"PM_AXIS", 0}, {"PM_NUM_OUTPUTS", 2}}}},
                         {{{0, 0}, {2, 0}}, {{1, 0}, {2, 1}}}};
  Prover prover;
  const AuditResult result = AuditRule(rule, {}, &prover);
  EXPECT_EQ(result.verdict, AuditVerdict::kProved) << result.reason;
  EXPECT_EQ(result.conditions, (std::vector<std::string>{"size(x1,-1) == size(x0,-1)"}));
  EXPECT_EQ(result.here_also,
            (std::vector<std::string>{"no tensor is partitioned, copied or a partial sum"}));
}

// Our types hold a tensor twice along a dim only if the dim was whole; that FlexFlow may have it
// otherwise is no fault of the rule, which is judged as one of arrays. But pieces of what is not
// partitioned nobody has.
TEST(Audit, TypesThatAreNarrowerThanTheFormatsRefuteNothing) {
  auto parallel = [](const std::string& type, int of, int64_t dim) {
    return ForeignOperator{type, {{of, 0}}, {{"PM_PARALLEL_DIM", dim}, {"PM_PARALLEL_DEGREE", 2}}};
  };
  AuditOptions options;
  options.format = ForeignFormat::kUnity;
  Prover prover;
  const ForeignRule twice{"twice",
                          {parallel("OP_REPLICATE", -1, 1), parallel("OP_REPLICATE", 0, 1)},
                          {parallel("OP_REPLICATE", -1, 1), parallel("OP_REPLICATE", 0, 1)},
                          {{{1, 0}, {1, 0}}}};
  const AuditResult result = AuditRule(twice, options, &prover);
  EXPECT_EQ(result.verdict, AuditVerdict::kProved) << result.reason;
  EXPECT_TRUE(result.as_arrays);
  const ForeignRule bare{"bare",
                         {parallel("OP_PARTITION", -1, 1), parallel("OP_REDUCE", 0, 1)},
                         {parallel("OP_REDUCE", -1, 1)},
                         {{{1, 0}, {0, 0}}}};
  EXPECT_EQ(AuditRule(bare, options, &prover).verdict, AuditVerdict::kRefuted);
}

// Copies that are summed, and pieces of the replica dim: no tensors of ours, but arrays.
TEST(Audit, TheReplicaDimAsADim) {
  using enum AuditVerdict;
  auto parallel = [](const std::string& type, ForeignTensor of, int64_t dim) {
    return ForeignOperator{type, {of}, {{"PM_PARALLEL_DIM", dim}, {"PM_PARALLEL_DEGREE", 2}}};
  };
  const ForeignTensor x{-1, 0}, y{-2, 0}, first{0, 0}, second{1, 0}, third{2, 0};
  const ForeignOperator add{"OP_EW_ADD", {x, y}, {}},
      joined{"OP_CONCAT", {x, y}, {{"PM_AXIS", 0}, {"PM_NUMDIM", 3}}};
  const struct {
    ForeignRule rule;
    AuditVerdict verdict;
    std::string says;
  } cases[] = {
      {{"sum of copies",
        {parallel("OP_PARTITION", x, 1), parallel("OP_REPLICATE", first, 0),
         parallel("OP_REDUCE", second, 0)},
        {parallel("OP_REPLICATE", x, 0), parallel("OP_REDUCE", first, 0),
         parallel("OP_PARTITION", second, 1)},
        {{third, third}}},
       kProved,
       ""},
      {{"cut along another dim",
        {parallel("OP_PARTITION", x, 1), parallel("OP_REPLICATE", first, 0),
         parallel("OP_REDUCE", second, 0)},
        {parallel("OP_REPLICATE", x, 0), parallel("OP_REDUCE", first, 0),
         parallel("OP_PARTITION", second, 2)},
        {{third, third}}},
       kIllTyped,
       "the values agree, the degrees do not: mapped output 0: no degrees fit"},
      {{"a sum of copies is no copy",
        {parallel("OP_REPLICATE", x, 0), parallel("OP_REDUCE", first, 0)},
        {{"OP_IDENTITY", {x}, {}}},
        {{second, first}}},
       kRefuted,
       "in the source and"},
      {{"only of what has no replicas",
        {add},
        {joined, parallel("OP_PARTITION", first, 0), parallel("OP_REDUCE", second, 0)},
        {{first, third}}},
       kRefuted,
       "input -1 in 2 x 1 x 1 pieces: target operator 0 (OP_CONCAT) does not fit"},
      {{"of what was repeated twice",
        {parallel("OP_REPLICATE", x, 0), parallel("OP_REPLICATE", first, 1),
         parallel("OP_REDUCE", second, 0)},
        {parallel("OP_REPLICATE", x, 1), parallel("OP_REPLICATE", first, 1),
         parallel("OP_REDUCE", second, 1)},
        {{third, third}}},
       kProved,
       ""},
      {{"of two ranks",
        {{"OP_CONCAT", {x, x}, {{"PM_AXIS", 0}, {"PM_NUMDIM", 3}}},
         {"OP_SPLIT", {first}, {{"PM_AXIS", 0}, {"PM_NUM_OUTPUTS", 2}}},
         {"OP_CONCAT", {y, y}, {{"PM_AXIS", 3}, {"PM_NUMDIM", 4}}}},
        {{"OP_IDENTITY", {x}, {}}, {"OP_CONCAT", {y, y}, {{"PM_AXIS", 3}, {"PM_NUMDIM", 4}}}},
        {{second, first}, {third, second}}},
       kUnknown,
       "its inputs have several ranks"},
      {{"relu of both",
        {{"OP_RELU", {x}, {}},
         {"OP_RELU", {y}, {}},
         {"OP_CONCAT", {first, second}, {{"PM_AXIS", 0}, {"PM_NUMDIM", 3}}}},
        {joined, {"OP_RELU", {first}, {}}},
        {{third, second}}},
       kProved,
       ""},
  };
  AuditOptions options;
  options.format = ForeignFormat::kUnity;
  Prover prover;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.rule.name);
    const AuditResult result = AuditRule(c.rule, options, &prover);
    EXPECT_EQ(AuditVerdictName(result.verdict), AuditVerdictName(c.verdict)) << result.reason;
    EXPECT_TRUE(result.as_arrays);
    EXPECT_EQ(result.values_differ, absl::StrContains(c.says, "in the source and"));
    EXPECT_TRUE(absl::StrContains(result.reason, c.says)) << result.reason;
  }
}

RuleSet RulesOf(std::vector<Rule> rules) {
  RuleSet set;
  for (Rule& rule : rules) {
    SetId(&rule);
    set.rules.push_back(std::move(rule));
  }
  set.BuildIndex();
  return set;
}

TEST(Audit, DerivableInAsManyStepsAsAreAllowed) {
  const RuleSet known =
      RulesOf({RuleFromText("partition(partition(x0; axis=i, degree=d); axis=j, degree=e) -> "
                            "partition(partition(x0; axis=j, degree=e); axis=i, degree=d)",
                            {{2}}, {NotEqual(IntExpr::Variable("i"), IntExpr::Variable("j"))})});
  AuditOptions options;
  options.format = ForeignFormat::kUnity;
  options.rules = &known;
  auto partition = [](ForeignTensor x, int64_t dim) {
    return ForeignOperator{
        "OP_PARTITION", {x}, {{"PM_PARALLEL_DIM", dim}, {"PM_PARALLEL_DEGREE", 2}}};
  };
  const ForeignTensor x{-1, 0}, first{0, 0}, second{1, 0};
  const ForeignRule twice{"twice",
                          {partition(x, 1), partition(first, 2), partition(second, 2)},
                          {partition(x, 2), partition(first, 2), partition(second, 1)},
                          {{{2, 0}, {2, 0}}}};
  Prover prover;
  options.derivation.max_steps = 1;
  options.derivation.saturation.iterations = 0;
  AuditResult result = AuditRule(twice, options, &prover);
  EXPECT_EQ(result.verdict, AuditVerdict::kProved) << result.reason;
  EXPECT_EQ(RuleOriginName(result.origin), "new");
  options.derivation.max_steps = 2;
  result = AuditRule(twice, options, &prover);
  EXPECT_EQ(RuleOriginName(result.origin), "derivable");
  EXPECT_EQ(result.steps.size(), 2u);
}

// Two nodes of the rule's pattern are one call of the foreign rule: no step of a derivation, and
// equal all the same.
TEST(Audit, DerivableBySaturation) {
  const RuleSet known = RulesOf(
      {RuleFromText("add(replicate(x0; degree=d), replicate(x1; degree=d)) -> "
                    "replicate(add(x0, x1); degree=d)",
                    {{2, 2}}),
       RuleFromText("relu(replicate(x0; degree=d)) -> replicate(relu(x0); degree=d)", {{2}})});
  AuditOptions options;
  options.format = ForeignFormat::kUnity;
  options.rules = &known;
  auto replicate = [](ForeignTensor x) {
    return ForeignOperator{
        "OP_REPLICATE", {x}, {{"PM_PARALLEL_DIM", 0}, {"PM_PARALLEL_DEGREE", 2}}};
  };
  const ForeignTensor x{-1, 0}, first{0, 0}, second{1, 0}, third{2, 0};
  const ForeignRule doubled{
      "doubled",
      {replicate(x), {"OP_EW_ADD", {first, first}, {}}, {"OP_RELU", {second}, {}}},
      {{"OP_EW_ADD", {x, x}, {}}, {"OP_RELU", {first}, {}}, replicate(second)},
      {{third, third}}};
  Prover prover;
  AuditResult result = AuditRule(doubled, options, &prover);
  EXPECT_EQ(result.verdict, AuditVerdict::kProved) << result.reason;
  EXPECT_EQ(RuleOriginName(result.origin), "derivable");
  EXPECT_TRUE(result.by_saturation);
  EXPECT_EQ(result.steps, (std::vector<std::string>{known.rules[0].id, known.rules[1].id}));
  const RuleSet one = RulesOf({known.rules[1]});
  options.rules = &one;
  result = AuditRule(doubled, options, &prover);
  EXPECT_EQ(RuleOriginName(result.origin), "new");
  EXPECT_FALSE(result.by_saturation);
}

TEST(Audit, CounterexampleIsWritten) {
  const std::string folder = testing::TempDir() + "/audit-counterexamples";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  AuditOptions options;
  options.counterexample_dir = folder;
  Prover prover;
  const ForeignRule rule = Examples(ForeignFormat::kTaso)[2];
  EXPECT_EQ(AuditRule(rule, options, &prover).verdict, AuditVerdict::kRefuted);
  for (const char* name : {"rule_2.txt", "rule_2.source.txt", "rule_2.target.txt"}) {
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat(folder, "/", name))) << name;
  }
}

// Broadcasting, which the formats do not have, would make cases without end of it.
TEST(Audit, ManyOperands) {
  constexpr int kOperands = 16;
  ForeignRule rule{"r", {}, {}, {{{kOperands - 2, 0}, {kOperands - 2, 0}}}};
  for (int i = 1; i < kOperands; ++i) {
    const ForeignTensor so_far{i - 2, 0}, first{-1, 0}, last{-kOperands, 0};
    rule.source.push_back({"OP_EW_ADD", {i == 1 ? first : so_far, {-1 - i, 0}}, {}});
    rule.target.push_back({"OP_EW_ADD", {i == 1 ? last : so_far, {i - kOperands, 0}}, {}});
  }
  Prover prover;
  const AuditResult result = AuditRule(rule, {}, &prover);
  EXPECT_EQ(result.verdict, AuditVerdict::kProved) << result.reason;
  EXPECT_TRUE(result.conditions.empty());
}

// Results pass between processes whole.
TEST(Audit, ProcessesAgreeWithOne) {
  const std::vector<ForeignRule> rules = Examples(ForeignFormat::kUnity);
  AuditOptions options;
  options.format = ForeignFormat::kUnity;
  const auto one = AuditRules(rules, options);
  options.jobs = 2;
  const auto two = AuditRules(rules, options);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(AuditText(rules, *one), AuditText(rules, *two));
  EXPECT_FALSE(NothingIsFalse(*one));
}

TEST(AuditReport, CountsAndExplains) {
  const std::vector<ForeignRule> rules(3);
  std::vector<AuditResult> results(3);
  results[0] = {.verdict = AuditVerdict::kProved,
                .reason = "",
                .conditions = {"a", "b"},
                .here_also = {"c"},
                .equation = "x0 -> x0",
                .origin = RuleOrigin::kDerivable,
                .steps = {"r1", "r2"}};
  results[1].verdict = AuditVerdict::kOutside;
  results[1].reason = "source operator 0 (OP_ANY): is no operator of ours";
  const std::string text = AuditText(rules, results);
  EXPECT_TRUE(absl::StrContains(text,
                                ": proved, derivable (r1, r2)\n    x0 -> x0\n"
                                "    holds if a, b\n    here also if c\n"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "outside                          1\n")) << text;
  EXPECT_TRUE(NothingIsFalse(results));
  const std::string json = AuditJson(rules, results).Print();
  EXPECT_TRUE(absl::StrContains(json, "\"derivable\": 1")) << json;
  EXPECT_TRUE(absl::StrContains(json, "\"verdict\": \"unknown\"")) << json;
}

}  // namespace
}  // namespace isomer
