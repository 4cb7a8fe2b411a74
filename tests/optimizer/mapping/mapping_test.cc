#include "optimizer/mapping/mapping.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "optimizer/mapping/mapping_bound.h"
#include "optimizer/mapping/mapping_branches.h"
#include "optimizer/mapping/mapping_enumeration.h"
#include "optimizer/mapping/mapping_memo.h"

namespace isomer {
namespace {

CostTable Table(int rows, int cols, std::vector<float> us) {
  CostTable table(rows, cols, 0);
  table.us = std::move(us);
  return table;
}

float Least(const MappingSolution& solution) {
  return *std::min_element(solution.table().us.begin(), solution.table().us.end());
}

TEST(Mapping, CrossingForFiveStaysOnOneView) {
  const CostTable crossing = Table(2, 2, {0, 5, 5, 0});
  MappingProblem problem;
  problem.nodes = {{{1, 3}, {}}, {{4, 1}, {}}};
  problem.edges = {{0, 1, &crossing}};
  const MappingSolution solution = SolveMapping(problem);
  EXPECT_EQ(Least(solution), 4);
  EXPECT_EQ(solution.Choices(0, 0), (std::vector<int>{1, 1}));
}

TEST(Mapping, CrossingForOneChangesViews) {
  const CostTable crossing = Table(2, 2, {0, 1, 1, 0});
  MappingProblem problem;
  problem.nodes = {{{1, 3}, {}}, {{4, 1}, {}}};
  problem.edges = {{0, 1, &crossing}};
  const MappingSolution solution = SolveMapping(problem);
  EXPECT_EQ(Least(solution), 3);
  EXPECT_EQ(solution.Choices(0, 0), (std::vector<int>{0, 1}));
}

// 0 -> {1, 2} -> 3: on the whole machine a branch takes 10, on half of it 12.
TEST(Mapping, BranchesRunSideBySideOnHalves) {
  const CostTable free13 = Table(1, 3, {0, 0, 0}), free31 = Table(3, 1, {0, 0, 0});
  MappingProblem problem;
  problem.nodes = {{{1}, {}},
                   {{10, 12, 12}, {Share::kWhole, Share::kLower, Share::kUpper}},
                   {{10, 12, 12}, {Share::kWhole, Share::kLower, Share::kUpper}},
                   {{1}, {}}};
  problem.edges = {{0, 1, &free13}, {0, 2, &free13}, {1, 3, &free31}, {2, 3, &free31}};
  problem.terminals = {0, 3};
  const MappingSolution solution = SolveMapping(problem);
  EXPECT_EQ(Least(solution), 14);
  const std::vector<int> choices = solution.Choices(0, 0);
  EXPECT_NE(choices[1], 0);
  EXPECT_NE(choices[2], 0);
  EXPECT_NE(choices[1], choices[2]);
}

// {0, 1, 2} -> 3: on the whole machine a branch takes 10, on half of it 12 (the last: 30).
TEST(Mapping, BranchesThatOnlyMeetRunSideBySideOnHalves) {
  const CostTable free31 = Table(3, 1, {0, 0, 0});
  const std::vector<Share> shares = {Share::kWhole, Share::kLower, Share::kUpper};
  MappingProblem problem;
  problem.nodes = {
      {{10, 12, 12}, shares}, {{10, 12, 12}, shares}, {{10, 30, 30}, shares}, {{1}, {}}};
  problem.edges = {{0, 3, &free31}, {1, 3, &free31}, {2, 3, &free31}};
  for (const std::vector<int>& terminals : {std::vector<int>{3}, std::vector<int>{}}) {
    problem.terminals = terminals;
    EXPECT_EQ(Least(SolveMapping(problem)), 10 + 10 + 10 + 1);
    const MappingSolution solution = SolveWithConcurrentBranches(problem);
    EXPECT_EQ(Least(solution), 12 + 10 + 1);
    const std::vector<int> choices = solution.Choices(0, 0);
    EXPECT_EQ(choices[0] + choices[1], 1 + 2);
    EXPECT_EQ(choices[2], 0);
  }
}

float CostOf(const MappingProblem& problem, const std::vector<int>& choices) {
  float us = 0;
  for (size_t n = 0; n < problem.nodes.size(); ++n) us += problem.nodes[n].us[choices[n]];
  for (const auto& edge : problem.edges) us += edge.table->at(choices[edge.from], choices[edge.to]);
  return us;
}

// Least cost for each choice of the terminals, by trying everything.
CostTable Exhaustive(const MappingProblem& problem) {
  const auto& t = problem.terminals;
  const int rows = t.empty() ? 1 : static_cast<int>(problem.nodes[t[0]].us.size());
  const int cols = t.size() < 2 ? 1 : static_cast<int>(problem.nodes[t[1]].us.size());
  CostTable best(rows, cols, kImpossibleUs);
  std::vector<int> choices(problem.nodes.size(), 0);
  while (true) {
    float& us = best.at(t.empty() ? 0 : choices[t[0]], t.size() < 2 ? 0 : choices[t[1]]);
    us = std::min(us, CostOf(problem, choices));
    size_t n = 0;
    while (n < choices.size() && ++choices[n] == static_cast<int>(problem.nodes[n].us.size())) {
      choices[n++] = 0;
    }
    if (n == choices.size()) return best;
  }
}

struct RandomProblem {
  MappingProblem problem;
  std::vector<CostTable> tables;
};

// `skips`: edges between any two nodes, so that most graphs are not series-parallel.
RandomProblem MakeProblem(std::mt19937* random, int nodes, bool skips) {
  RandomProblem r;
  auto number = [&](int limit) { return static_cast<int>((*random)() % limit); };
  for (int n = 0; n < nodes; ++n) {
    MappingProblem::MappingNode node;
    for (int k = 0; k < 2 + number(2); ++k) node.us.push_back(static_cast<float>(number(50)));
    r.problem.nodes.push_back(node);
  }
  std::vector<std::pair<int, int>> edges;
  for (int n = 1; n < nodes; ++n) edges.emplace_back(number(n), n);
  for (int extra = 0; skips && extra < nodes; ++extra) {
    const int a = number(nodes - 1);
    edges.emplace_back(a, a + 1 + number(nodes - 1 - a));
  }
  r.tables.reserve(edges.size());
  for (const auto& [from, to] : edges) {
    CostTable table(static_cast<int>(r.problem.nodes[from].us.size()),
                    static_cast<int>(r.problem.nodes[to].us.size()), 0);
    for (float& us : table.us) us = number(8) == 0 ? kImpossibleUs : static_cast<float>(number(40));
    r.tables.push_back(table);
    r.problem.edges.push_back({from, to, &r.tables.back()});
  }
  return r;
}

void ExpectExhaustive(unsigned seed, bool skips, int num_terminals) {
  std::mt19937 random(seed);
  RandomProblem r = MakeProblem(&random, 4 + static_cast<int>(seed % 4), skips);
  if (num_terminals > 0) r.problem.terminals.push_back(0);
  if (num_terminals > 1) {
    r.problem.terminals.push_back(static_cast<int>(r.problem.nodes.size()) - 1);
  }
  const MappingSolution solution = SolveMapping(r.problem);
  ASSERT_TRUE(solution.exact());
  const CostTable expected = Exhaustive(r.problem);
  ASSERT_EQ(solution.table().us.size(), expected.us.size());
  for (int row = 0; row < expected.rows; ++row) {
    for (int col = 0; col < expected.cols; ++col) {
      if (expected.at(row, col) >= kImpossibleUs) {
        EXPECT_GE(solution.table().at(row, col), kImpossibleUs) << "seed " << seed;
        continue;
      }
      EXPECT_FLOAT_EQ(solution.table().at(row, col), expected.at(row, col)) << "seed " << seed;
      const std::vector<int> choices = solution.Choices(row, col);
      EXPECT_FLOAT_EQ(CostOf(r.problem, choices), expected.at(row, col)) << "seed " << seed;
    }
  }
}

TEST(Mapping, EnumerationFindsWhatTheDynamicProgramFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    RandomProblem r = MakeProblem(&random, 7, round % 2 == 1);
    if (round % 3 > 0) r.problem.terminals = {0};
    if (round % 3 > 1) r.problem.terminals.push_back(6);
    const MappingSolution all = EnumerateMappings(r.problem, Deadline());
    EXPECT_TRUE(all.exact());
    EXPECT_EQ(all.table().us, SolveMapping(r.problem).table().us) << round;
    for (int first = 0; first < all.table().rows; ++first) {
      for (int second = 0; second < all.table().cols; ++second) {
        EXPECT_EQ(CostOf(r.problem, all.Choices(first, second)), all.table().at(first, second));
      }
    }
  }
}

// 3^30 assignments.
TEST(Mapping, EnumerationThatIsCutShortHasASolutionThatIsNotExact) {
  std::mt19937 random(3);
  const RandomProblem r = MakeProblem(&random, 30, false);
  const MappingSolution found = EnumerateMappings(r.problem, Deadline::In(1e-3));
  EXPECT_FALSE(found.exact());
  EXPECT_EQ(CostOf(r.problem, found.Choices(0, 0)), Least(found));
}

TEST(Mapping, TreesEqualExhaustiveEnumeration) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    for (int terminals : {0, 1, 2}) ExpectExhaustive(seed, false, terminals);
  }
}

TEST(Mapping, GraphsOfAnyStructureEqualExhaustiveEnumeration) {
  for (unsigned seed = 100; seed < 200; ++seed) {
    for (int terminals : {0, 1, 2}) ExpectExhaustive(seed, true, terminals);
  }
}

// What is too large to try everything is solved within the gap that it reports.
TEST(Mapping, LargeCoresStayWithinTheirGap) {
  int exact = 0, solved = 0;
  for (unsigned seed = 300; seed < 360; ++seed) {
    std::mt19937 random(seed);
    RandomProblem r = MakeProblem(&random, 9, true);
    if (seed % 2 == 0) r.problem.terminals.push_back(8);
    const MappingSolution bounded = SolveMapping(r.problem, {.max_conditions = 1});
    const MappingSolution full = SolveMapping(r.problem);
    if (Least(full) >= kImpossibleUs) continue;
    ++solved;
    EXPECT_LE(Least(full), Least(bounded) * 1.0001f) << "seed " << seed;
    EXPECT_LE(Least(bounded) * (1 - bounded.gap()), Least(full) * 1.0001f) << "seed " << seed;
    exact += bounded.exact();
    if (Least(bounded) >= kImpossibleUs) continue;
    const auto& us = bounded.table().us;
    const int at = static_cast<int>(std::min_element(us.begin(), us.end()) - us.begin());
    EXPECT_FLOAT_EQ(CostOf(r.problem, bounded.Choices(at, 0)), Least(bounded)) << "seed " << seed;
  }
  EXPECT_GT(solved, 30);
  EXPECT_GT(exact, solved / 4);
}

TEST(Mapping, NoAssignmentIsBelowTheBoundOfMessagePassing) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    RandomProblem r = MakeProblem(&random, 7, true);
    PairwiseProblem pairwise;
    for (const auto& node : r.problem.nodes) pairwise.us.push_back(node.us);
    for (const auto& edge : r.problem.edges) {
      pairwise.edges.push_back({edge.from, edge.to, edge.table});
    }
    const double least = Exhaustive(r.problem).at(0, 0);
    const double few = BoundPairwise(pairwise, 1).us, many = BoundPairwise(pairwise, 20).us;
    EXPECT_LE(many, least * 1.0001) << "seed " << seed;
    EXPECT_LE(few, many * 1.0001) << "seed " << seed;
  }
}

// A chain in which one node changes: what does not contain it comes from the memo, and is the same.
TEST(Mapping, MemoGivesWhatIsMadeAnew) {
  MappingProblem chain;
  for (int n = 0; n < 32; ++n) {
    chain.nodes.push_back({{1, 2, static_cast<float>(n % 5)}, {}});
  }
  CostTable table(3, 3, 1);
  table.at(0, 1) = 0;
  table.at(2, 0) = 4;
  for (int n = 0; n + 1 < 32; ++n) chain.edges.push_back({n, n + 1, &table});
  chain.terminals = {0, 31};
  MappingMemo memo;
  SolveMapping(chain, {.memo = &memo});
  const int64_t made = memo.misses();
  chain.nodes[17].us = {7, 0, 3};
  const MappingSolution with = SolveMapping(chain, {.memo = &memo});
  EXPECT_LE(memo.misses() - made, 8);
  const MappingSolution without = SolveMapping(chain);
  EXPECT_EQ(with.table().us, without.table().us);
  EXPECT_EQ(with.Choices(1, 2), without.Choices(1, 2));
}

TEST(Mapping, MemoForgetsWhatIsOld) {
  MappingMemo memo(/*max_bytes=*/1000);
  for (uint64_t key = 0; key < 100; ++key) {
    memo.Insert(key, std::make_shared<const CostTable>(5, 5, static_cast<float>(key)));
  }
  EXPECT_EQ(memo.Find(0, 5, 5), nullptr);
  ASSERT_NE(memo.Find(99, 5, 5), nullptr);
  EXPECT_EQ(memo.Find(99, 5, 5)->at(0, 0), 99);
  EXPECT_EQ(memo.Find(99, 5, 4), nullptr);
}

// 0 -> {1, 2} -> 3: one branch has twice the work of the other, so that a third of the machine and
// two thirds of it suit them.
TEST(Mapping, UnequalBranchesTakeUnequalShares) {
  const Share third = static_cast<Share>(3), two_thirds = static_cast<Share>(4);
  const CostTable to(1, 5, 0), from(5, 1, 0);
  MappingProblem problem;
  const std::vector<Share> shares = {Share::kWhole, Share::kLower, Share::kUpper, third,
                                     two_thirds};
  problem.nodes = {
      {{1}, {}}, {{11, 12, 12, 13, 11.5}, shares}, {{21, 24, 24, 34, 14}, shares}, {{1}, {}}};
  problem.edges = {{0, 1, &to}, {0, 2, &to}, {1, 3, &from}, {2, 3, &from}};
  problem.splits = {{Share::kWhole, Share::kLower, Share::kUpper},
                    {Share::kWhole, third, two_thirds}};
  const MappingSolution solution = SolveMapping(problem);
  EXPECT_EQ(Least(solution), 16);
  EXPECT_EQ(solution.Choices(0, 0), (std::vector<int>{0, 3, 4, 0}));
}

// A dead end inside of a branch keeps to the branch's share.
TEST(Mapping, DeadEndsOfBranchesStayInTheirShare) {
  const std::vector<Share> shares = {Share::kWhole, Share::kLower, Share::kUpper};
  const CostTable to(1, 3, 0), from(3, 1, 0);
  CostTable within(3, 3, 100);
  for (int k = 0; k < 3; ++k) within.at(k, k) = 0;
  MappingProblem problem;
  problem.nodes = {
      {{1}, {}}, {{10, 12, 12}, shares}, {{10, 12, 12}, shares}, {{1}, {}}, {{2, 3, 3}, shares}};
  problem.edges = {{0, 1, &to}, {0, 2, &to}, {1, 3, &from}, {2, 3, &from}, {1, 4, &within}};
  const MappingSolution solution = SolveMapping(problem);
  const std::vector<int> choices = solution.Choices(0, 0);
  EXPECT_EQ(Least(solution), 17);
  EXPECT_EQ(choices[4], choices[1]);
}

}  // namespace
}  // namespace isomer
