// Rules of several files: more of them make no plan worse.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/substitution/search.h"
#include "pcg/support/data_path.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

using ::testing::ElementsAreArray;
using ::testing::SizeIs;

RuleSet Indexed(std::vector<Rule> rules, std::vector<size_t> file_ends) {
  RuleSet set;
  set.rules = std::move(rules);
  set.file_ends = std::move(file_ends);
  set.BuildIndex();
  return set;
}

std::vector<std::string> IdsOf(const std::vector<const Rule*>& rules) {
  std::vector<std::string> ids;
  for (const Rule* rule : rules) ids.push_back(rule->id);
  return ids;
}

class RuleFiles : public testing::Test {
 protected:
  RuleFiles()
      : model_(ThreeProducts(64, 16)),
        machine_(TestMachine(1, 1)),
        rules_(LoadRules(DataPath("rules/default.rules")).value().rules) {
    machine_.kinds[0].launch_us = 20;  // Algebra saves launches.
    std::shuffle(rules_.begin(), rules_.end(), random_);
  }

  double Search(const RuleSet& rules, int64_t budget) const {
    const RuleIndex index(rules);
    const CostModel cost(machine_);
    CostTables tables(index, cost, {.updates_together = false});
    HierarchicalSearcher searcher(model_.graph, {.budget = budget}, index);
    const auto result = searcher.Search(&tables, Deadline());
    EXPECT_TRUE(result.ok()) << result.status();
    return result->us;
  }

  Model model_;
  Machine machine_;
  std::vector<Rule> rules_;
  std::mt19937 random_{1};
};

TEST_F(RuleFiles, EachOneGoesOnFromThoseBefore) {
  const size_t half = rules_.size() / 2;
  const RuleSet both = Indexed(rules_, {half, half, rules_.size()});
  const RuleSet first = Indexed({rules_.begin(), rules_.begin() + half}, {});
  const RuleIndex index(both), of_first(first);
  const auto by_files = index.AlgebraByFiles();
  ASSERT_THAT(by_files, SizeIs(2));  // The one in the middle adds nothing.
  EXPECT_THAT(IdsOf(by_files[0]), ElementsAreArray(IdsOf(of_first.algebra())));
  EXPECT_THAT(IdsOf(by_files[1]), ElementsAreArray(IdsOf(index.algebra())));
  EXPECT_THAT(of_first.AlgebraByFiles(), SizeIs(1));
}

TEST_F(RuleFiles, MoreRulesMakeNoPlanWorse) {
  int worse_as_one = 0;
  for (int round = 0; round < 16; ++round) {
    std::shuffle(rules_.begin(), rules_.end(), random_);
    const size_t end = 1 + random_() % rules_.size();
    const auto budget = static_cast<int64_t>(1 + random_() % 6);
    const double first = Search(Indexed({rules_.begin(), rules_.begin() + end}, {}), budget);
    const double two = Search(Indexed(rules_, {end, rules_.size()}), budget);
    const double as_one = Search(Indexed(rules_, {}), budget);
    EXPECT_LE(two, first) << "round " << round;
    EXPECT_LE(two, as_one) << "round " << round;
    worse_as_one += as_one > first;
  }
  EXPECT_GT(worse_as_one, 0);  // Else nothing was tried.
}

}  // namespace
}  // namespace isomer
