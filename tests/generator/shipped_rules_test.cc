// rules/default.rules as a whole: proved and distinct. That they are true of random numbers is
// tested in check_rules_test.cc.
#include "tests/generator/shipped_rules.h"

#include <gtest/gtest.h>

#include <set>

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

}  // namespace
}  // namespace isomer
