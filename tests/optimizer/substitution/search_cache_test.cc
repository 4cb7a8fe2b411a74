#include "optimizer/substitution/search_cache.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "optimizer/substitution/search.h"
#include "pcg/support/file.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

std::string FreshFolder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  return folder;
}

DerivationStep SomeStep() {
  DerivationStep step;
  step.rule = "r0123456789ab^-1";
  step.nodes = {{3}, {7}};
  step.inputs = {{{1}, 0}, {{2}, 1}};
  step.variables = {{"i", -1}};
  step.numbers = {{"f", 0.125}};
  return step;
}

TEST(SearchCache, HoldsWhatWasPut) {
  const std::string folder = FreshFolder("holds");
  {
    SearchCache cache(folder, 5);
    EXPECT_EQ(cache.Find(1), nullptr);
    cache.Put(1, {{SomeStep()}, {SomeStep(), SomeStep()}});
    cache.Put(2, {});
    ASSERT_TRUE(cache.Save().ok());
  }
  SearchCache cache(folder, 5);
  ASSERT_NE(cache.Find(1), nullptr);
  EXPECT_EQ(*cache.Find(1),
            (std::vector<SearchCache::Steps>{{SomeStep()}, {SomeStep(), SomeStep()}}));
  ASSERT_NE(cache.Find(2), nullptr);
  EXPECT_TRUE(cache.Find(2)->empty());
  EXPECT_EQ(SearchCache(folder, 6).Find(1), nullptr);
  EXPECT_EQ(SearchCache("", 5).Find(1), nullptr);
}

TEST(SearchCache, ADamagedFileIsIgnoredWithANote) {
  const std::string folder = FreshFolder("damaged");
  SearchCache cache(folder, 5);
  cache.Put(1, {{SomeStep()}});
  ASSERT_TRUE(cache.Save().ok());
  std::string contents = ReadFile(cache.path()).value();
  contents[contents.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(cache.path(), contents).ok());
  SearchCache damaged(folder, 5);
  EXPECT_EQ(damaged.Find(1), nullptr);
  EXPECT_NE(damaged.note().find(damaged.path()), std::string::npos) << damaged.note();
}

class SearchWithCache : public testing::Test {
 protected:
  SearchWithCache()
      : model_(ThreeProducts(64, 16)),
        rules_(ExampleRules(model_.graph)),
        index_(rules_),
        cost_(SlowToLaunch()) {}

  static Machine SlowToLaunch() {
    Machine machine = TestMachine(1, 2);
    machine.kinds[0].launch_us = 20;
    return machine;
  }

  SearchResult Search(const std::string& folder, double sync_weight = 0) {
    SearchOptions options;
    options.cache_folder = folder;
    // Algebra saves launches.
    CostTables tables(index_, cost_, {.updates_together = false, .sync_weight = sync_weight});
    HierarchicalSearcher searcher(model_.graph, options, index_);
    auto result = searcher.Search(&tables, Deadline());
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  Model model_;
  RuleSet rules_;
  RuleIndex index_;
  CostModel cost_;
};

TEST_F(SearchWithCache, TheSecondRunMapsLessAndFindsTheSame) {
  const std::string folder = FreshFolder("second");
  const SearchResult first = Search(folder), second = Search(folder), alone = Search("");
  EXPECT_EQ(first.remembered_pieces, 0);
  EXPECT_EQ(second.remembered_pieces, second.distinct_pieces);
  EXPECT_LE(second.candidates, first.candidates);
  EXPECT_FALSE(first.mapped.steps.empty());
  EXPECT_EQ(second.mapped.steps, first.mapped.steps);
  EXPECT_EQ(second.us, first.us);
  EXPECT_EQ(alone.mapped.steps, first.mapped.steps);
}

TEST_F(SearchWithCache, OtherCostsAreAnotherSearch) {
  const std::string folder = FreshFolder("costs");
  Search(folder);
  EXPECT_EQ(Search(folder, /*sync_weight=*/1).remembered_pieces, 0);
}

}  // namespace
}  // namespace isomer
