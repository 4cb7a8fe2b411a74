#include "optimizer/substitution/series_parallel.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

struct Case {
  const char* name;
  int nodes;
  std::vector<std::pair<int, int>> edges;
  const char* answer;  // null: not series-parallel
};

class SeriesParallelTable : public testing::TestWithParam<Case> {};

TEST_P(SeriesParallelTable, Decomposes) {
  const Case& c = GetParam();
  const auto found = DecomposeSeriesParallel(c.nodes, c.edges);
  ASSERT_EQ(found.has_value(), c.answer != nullptr);
  if (found.has_value()) {
    EXPECT_EQ(found->ToString(), c.answer);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, SeriesParallelTable,
    testing::Values(
        Case{"OneNode", 1, {}, "0"}, Case{"Fork", 3, {{0, 1}, {0, 2}}, "S(0, P(1, 2))"},
        Case{"TwoChains",
             6,
             {{0, 1}, {1, 3}, {3, 5}, {0, 2}, {2, 4}, {4, 5}},
             "S(0, P(S(1, 3), S(2, 4)), 5)"},
        Case{"CompleteBipartite", 4, {{0, 2}, {0, 3}, {1, 2}, {1, 3}}, "S(P(0, 1), P(2, 3))"},
        Case{"SkipsOverAChain", 4, {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}}, "S(0, 1, 2, 3)"},
        Case{"TheLetterN", 4, {{0, 2}, {1, 2}, {1, 3}}, nullptr}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isomer
