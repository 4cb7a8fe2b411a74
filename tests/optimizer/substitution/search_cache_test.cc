#include "optimizer/substitution/search_cache.h"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

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

// All that costs depend on, once.
struct Inputs {
  Machine machine = TestMachine(2, 4);
  CostOptions options;
  Profile profile;

  uint64_t Digest() const {
    const RuleSet rules;
    const RuleIndex index(rules);
    const CostModel cost(machine, &profile);
    return DigestOfCosts(CostTables(index, cost, options), index.algebra());
  }
};

TEST(DigestOfCosts, IsAnotherForEachFieldThatChanges) {
  Inputs same;
  same.machine.unit_kinds = {0};
  same.machine.kinds[0].flops_per_us_of[DataType::kBFloat16] = 1;
  same.profile.kernels["matmul"] = {1, 1, 1, 1, 1, 1, 1, 1, "matmul"};
  same.profile.tables["fill"] = SizeTable({{1, 1, 1, 1, 1}});
  const std::vector<std::function<void(Inputs*)>> changes = {
      [](Inputs* in) { in->machine.name += "x"; },
      [](Inputs* in) { in->machine.kinds[0].name += "x"; },
      [](Inputs* in) { in->machine.kinds[0].flops_per_us *= 2; },
      [](Inputs* in) { in->machine.kinds[0].flops_per_us_of[DataType::kBFloat16] = 2; },
      [](Inputs* in) { in->machine.kinds[0].flops_per_us_of[DataType::kFloat16] = 1; },
      [](Inputs* in) { in->machine.kinds[0].memory_bytes_per_us *= 2; },
      [](Inputs* in) { in->machine.kinds[0].memory_bytes += 1; },
      [](Inputs* in) { in->machine.kinds[0].launch_us += 1e-9; },
      [](Inputs* in) { in->machine.kinds[0].host_bytes_per_us += 1; },
      [](Inputs* in) { in->machine.kinds.push_back(in->machine.kinds[0]); },
      [](Inputs* in) { in->machine.levels[0].name += "x"; },
      [](Inputs* in) { in->machine.levels[0].count *= 2; },
      [](Inputs* in) { in->machine.levels[0].bytes_per_us *= 1.0000001; },
      [](Inputs* in) { in->machine.levels[1].latency_us += 1e-9; },
      [](Inputs* in) { in->machine.levels[0].shared ^= true; },
      [](Inputs* in) { in->machine.levels[0].through ^= true; },
      [](Inputs* in) { in->machine.levels[0].reduces ^= true; },
      [](Inputs* in) { in->machine.kind_level = -1; },
      [](Inputs* in) {
        in->machine.unit_kinds = {0, 0};
      },
      [](Inputs* in) { in->machine.nccl ^= true; },
      [](Inputs* in) { in->machine.one_stream ^= true; },
      [](Inputs* in) { in->options.training ^= true; },
      [](Inputs* in) { in->options.precision = DataType::kBFloat16; },
      [](Inputs* in) { in->options.optimizer = OptimizerKind::kAdam; },
      [](Inputs* in) { in->options.num_devices = 4; },
      [](Inputs* in) { in->options.first_device = 4; },
      [](Inputs* in) { in->options.moments = 2; },
      [](Inputs* in) { in->options.update_method = UpdateMethod::kSharded; },
      [](Inputs* in) { in->options.gradient_sums = DataType::kBFloat16; },
      [](Inputs* in) { in->options.clips ^= true; },
      [](Inputs* in) { in->options.averages ^= true; },
      [](Inputs* in) { in->options.updates_together ^= true; },
      [](Inputs* in) { in->options.max_axes = 2; },
      [](Inputs* in) { in->options.max_choices = 2; },
      [](Inputs* in) { in->options.halves ^= true; },
      [](Inputs* in) { in->options.sync_weight = 0.5; },
      [](Inputs* in) { in->options.us_per_byte = 1e-9; },
      [](Inputs* in) { in->profile.device.backend = "x"; },
      [](Inputs* in) { in->profile.device.processor = "x"; },
      [](Inputs* in) { in->profile.device.libraries = "x"; },
      [](Inputs* in) { in->profile.device.busy_devices = 2; },
      [](Inputs* in) { in->profile.device.pinned ^= true; },
      [](Inputs* in) { in->profile.models = {"x"}; },
      [](Inputs* in) { in->profile.kernels["matmul"].median_us = 2; },
      [](Inputs* in) { in->profile.kernels["matmul"].flops = 2; },
      [](Inputs* in) { in->profile.kernels["matmul"].bytes = 2; },
      [](Inputs* in) { in->profile.kernels["matmul"].workspace_bytes = 2; },
      [](Inputs* in) { in->profile.kernels["matmul"].library_bytes = 2; },
      [](Inputs* in) { in->profile.kernels["matmul"].family = "x"; },
      [](Inputs* in) { in->profile.kernels["x"] = {}; },
      [](Inputs* in) {
        in->profile.tables["fill"] = SizeTable({{1, 2, 1, 1, 1}});
      },
      [](Inputs* in) { in->profile.tables["x"] = {}; },
      [](Inputs* in) { in->profile.task_overhead_us = 1; },
  };
  std::map<uint64_t, size_t> seen = {{same.Digest(), changes.size()}};
  for (size_t c = 0; c < changes.size(); ++c) {
    Inputs changed = same;
    changes[c](&changed);
    const auto [at, is_new] = seen.emplace(changed.Digest(), c);
    EXPECT_TRUE(is_new) << "change " << c << " has the digest of " << at->second;
  }
  EXPECT_EQ(same.Digest(), Inputs(same).Digest());
}

// A machine by names: its links and paths.
TEST(DigestOfCosts, KnowsTopologies) {
  const auto digest_of = [](double rate, bool direct) {
    Topology topology;
    for (const char* name : {"a", "b", "c"}) topology.AddDevice(name);
    const LinkId ab = topology.AddLink("ab", {rate, 1}), bc = topology.AddLink("bc", {rate, 1});
    topology.AddArc(0, 1, ab);
    topology.AddArc(1, 0, ab);
    topology.AddArc(1, 2, bc);
    topology.AddArc(2, 1, bc);
    if (direct) {
      topology.AddArc(0, 2, ab);
      topology.AddArc(2, 0, ab);
    }
    EXPECT_EQ(topology.FindPaths({}), absl::OkStatus());
    Digest digest;
    digest.Add(topology);
    return digest.value();
  };
  EXPECT_EQ(digest_of(1, false), digest_of(1, false));
  EXPECT_NE(digest_of(1, false), digest_of(2, false));
  EXPECT_NE(digest_of(1, false), digest_of(1, true));
}

}  // namespace
}  // namespace isomer
