// rules/default.rules as a whole: proved, distinct, and true of random numbers at shapes and
// degrees that generation did not use (multiples of 5).
#include "tests/generator/shipped_rules.h"

#include <gtest/gtest.h>

#include <set>

#include "generator/bases.h"
#include "generator/settle.h"
#include "generator/trial.h"

namespace isomer {

const RuleSet& ShippedRules() {
  static const RuleSet* const kRules = [] {
    auto rules = LoadRules(std::string(ISOMER_SOURCE_DIR) + "/rules/default.rules");
    EXPECT_TRUE(rules.ok()) << rules.status();
    auto* result = new RuleSet(rules.ok() ? *rules : RuleSet());
    result->BuildIndex();
    return result;
  }();
  return *kRules;
}

namespace {

TEST(ShippedRules, AreManyDistinctAndProved) {
  const RuleSet& rules = ShippedRules();
  EXPECT_GE(rules.rules.size(), 150u);
  std::set<uint64_t> digests;
  for (const Rule& rule : rules.rules) {
    EXPECT_EQ(rule.proof.verdict, ProofRecord::Verdict::kProved) << rule.ToString();
    EXPECT_TRUE(digests.insert(rule.Digest()).second) << rule.ToString();
    Rule named = rule;
    SetId(&named);
    EXPECT_EQ(named.id, rule.id) << "the rule was changed after it got its id";
    EXPECT_FALSE(rule.origin.empty());
  }
}

TEST(ShippedRules, TextAndBinaryAreTheSameRules) {
  const auto text = LoadRules(std::string(ISOMER_SOURCE_DIR) + "/rules/default.txt");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->Digest(), ShippedRules().Digest());
}

// Bindings that the rule admits, spread over its rank vectors.
std::vector<Binding> Trials(const Rule& rule, int count, TypeOracle* oracle, Random* random) {
  constexpr int64_t kUnit = 5;
  const std::vector<Binding> bases = BasesOf(rule, kUnit, oracle);
  std::vector<Binding> trials;
  const int per_base = bases.empty() ? 0 : count / static_cast<int>(bases.size()) + 1;
  for (int round = 0; round < 40 && static_cast<int>(trials.size()) < count; ++round) {
    for (const Binding& base : bases) {
      Rule one = rule;
      std::vector<int> ranks;
      for (const TensorType& type : base.inputs) ranks.push_back(type.rank());
      one.ranks = {ranks};
      SampleOptions options{.small = true, .unit = kUnit};
      // The shapes of sample calls are fixed; they are split by what divides them.
      for (const RuleVariable& v : rule.variables) {
        if (v.kind == VariableKind::kAttribute) options.unit = 0;
      }
      for (Binding& binding : DrawAdmitted(one, base, per_base, options, oracle, random)) {
        trials.push_back(std::move(binding));
      }
    }
  }
  return trials;
}

// Rules first, first + step, ..
void TryRules(size_t first, size_t step) {
  constexpr int kTrials = 100;
  TypeOracle oracle;
  Random random(20 + first);
  const RuleSet& rules = ShippedRules();
  for (size_t r = first; r < rules.rules.size(); r += step) {
    const Rule& rule = rules.rules[r];
    const std::vector<Binding> trials = Trials(rule, kTrials, &oracle, &random);
    EXPECT_GE(trials.size(), static_cast<size_t>(kTrials)) << rule.ToString();
    for (const Binding& binding : trials) {
      ASSERT_TRUE(TypesAgree(rule, binding, &oracle)) << rule.ToString();
      const auto exact = ValuesAgree(rule, binding, &random);
      ASSERT_TRUE(!exact.ok() || *exact) << rule.ToString();
      const auto close = LargestRelativeDifference(rule, binding, &random);
      ASSERT_LT(close.value_or(0), 1e-9) << rule.ToString();
    }
  }
}

TEST(ShippedRules, HoldOnRandomNumbersFirstQuarter) { TryRules(0, 4); }
TEST(ShippedRules, HoldOnRandomNumbersSecondQuarter) { TryRules(1, 4); }
TEST(ShippedRules, HoldOnRandomNumbersThirdQuarter) { TryRules(2, 4); }
TEST(ShippedRules, HoldOnRandomNumbersFourthQuarter) { TryRules(3, 4); }

}  // namespace
}  // namespace isomer
