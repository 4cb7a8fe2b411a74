// Comparing rules files: by what theorems say, in any order.
#include "generator/inspect/difference.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/generator/inspect/small_rules.h"

namespace isomer {
namespace {

RuleSet SetOf(std::vector<Rule> rules) {
  RuleSet set;
  for (Rule& rule : rules) SetId(&rule);
  set.rules = std::move(rules);
  return set;
}

TEST(Difference, OfEqualSetsIsEmptyWhateverTheOrder) {
  const RuleSet a = SetOf({RowsRule(), ReluRule(), AddRule(false)});
  const RuleSet b = SetOf({AddRule(false), RowsRule(), ReluRule()});
  const RuleSetDifference difference = Compare(a, b);
  EXPECT_TRUE(difference.empty());
  EXPECT_EQ(difference.same, 3);
}

TEST(Difference, TimesAndOriginsDoNotMatter) {
  Rule other = RowsRule();
  other.proof.seconds = 9;
  other.origin = "elsewhere";
  EXPECT_TRUE(Compare(SetOf({RowsRule()}), SetOf({other})).empty());
}

TEST(Difference, RulesOfOneFileOnly) {
  const RuleSet a = SetOf({RowsRule(), ReluRule()}), b = SetOf({AddRule(false), RowsRule()});
  const RuleSetDifference difference = Compare(a, b);
  ASSERT_EQ(difference.only_first.size(), 1u);
  EXPECT_EQ(difference.only_first[0]->id, ReluRule().id);
  ASSERT_EQ(difference.only_second.size(), 1u);
  EXPECT_EQ(difference.only_second[0]->id, AddRule(false).id);
  const std::string text = DifferenceText(difference);
  EXPECT_NE(text.find("- " + ReluRule().id), std::string::npos) << text;
  EXPECT_NE(text.find("+ " + AddRule(false).id), std::string::npos) << text;
}

TEST(Difference, OtherConditionsRanksOrDirectionOfTheSamePatterns) {
  Rule conditions = RowsRule(), ranks = RowsRule(), direction = ReluRule();
  conditions.conditions.clear();
  ranks.ranks.pop_back();
  direction.reversible = true;
  for (const auto& [before, after] :
       {std::pair(RowsRule(), conditions), std::pair(RowsRule(), ranks),
        std::pair(ReluRule(), direction)}) {
    const RuleSet a = SetOf({before}), b = SetOf({after});
    const RuleSetDifference difference = Compare(a, b);
    EXPECT_TRUE(difference.only_first.empty());
    EXPECT_TRUE(difference.only_second.empty());
    ASSERT_EQ(difference.other_conditions.size(), 1u);
    EXPECT_NE(DifferenceText(difference).find("\n  + " + b.rules[0].id), std::string::npos);
  }
}

TEST(Difference, OtherProofsOfTheSameTheorem) {
  Rule unproved = RowsRule(), lemmas = RowsRule();
  unproved.proof.verdict = ProofRecord::Verdict::kUnknown;
  lemmas.proof.lemmas.push_back("scale_of_scale");
  for (const Rule& other : {unproved, lemmas}) {
    const RuleSet a = SetOf({RowsRule()}), b = SetOf({other});
    const RuleSetDifference difference = Compare(a, b);
    EXPECT_EQ(difference.same, 1);
    EXPECT_EQ(difference.other_proofs.size(), 1u);
    EXPECT_FALSE(difference.empty());
  }
}

TEST(Difference, ARuleTwiceInOneFile) {
  const RuleSet twice = SetOf({RowsRule(), RowsRule()}), once = SetOf({RowsRule()});
  EXPECT_EQ(Compare(twice, once).only_first.size(), 1u);
  EXPECT_EQ(Compare(once, twice).only_second.size(), 1u);
}

}  // namespace
}  // namespace isomer
