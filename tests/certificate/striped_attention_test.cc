// Causal attention of a sequence in the order of stripes: each step that brings a model into that
// order is shown equal, and nothing that is next to it is.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/certificate/side_of_graph.h"
#include "verifier/certificate/equal_sides.h"

namespace isomer {
namespace {

// Of sequences of `size` in dim `axis`, which are in the order of `stripes` or get to be.
struct StripedOrder {
  int axis;
  int64_t size, stripes;

  TensorRef Natural(Graph* graph, TensorRef x) const {
    return Exchanged(graph, x, stripes, size / stripes);
  }
  TensorRef Striped(Graph* graph, TensorRef x) const {
    return Exchanged(graph, x, size / stripes, stripes);
  }

 private:
  // Of the dim as [first, second] the transposed.
  TensorRef Exchanged(Graph* graph, TensorRef x, int64_t first, int64_t second) const {
    const std::vector<int64_t> sizes = graph->type(x).Sizes();
    std::vector<int64_t> split = sizes, perm;
    split[axis] = first;
    split.insert(split.begin() + axis + 1, second);
    for (size_t i = 0; i < split.size(); ++i) perm.push_back(static_cast<int64_t>(i));
    std::swap(perm[axis], perm[axis + 1]);
    x = graph->AddOp(Operator(OpKind::kReshape, {{"shape", split}}), {x}).value();
    x = graph->AddOp(Operator(OpKind::kTranspose, {{"perm", perm}}), {x}).value();
    return graph->AddOp(Operator(OpKind::kReshape, {{"shape", sizes}}), {x}).value();
  }
};

struct StripedCase {
  Operator op{OpKind::kAttention, {{"scale", 0.5}, {"causal", int64_t{1}}}};
  int64_t heads = 2, key_heads = 2, length = 6, stripes = 3;
  std::vector<int64_t> fourth = {};  // sinks
  // What is done with these: of as many stripes as the sequence has, unless it is to be wrong.
  int64_t causal = stripes, of_queries = stripes, of_keys = stripes, of_values = stripes,
          of_result = stripes;
};

StripedCase OfStripes(int64_t length, int64_t stripes) {
  StripedCase c;
  c.length = length;
  c.stripes = c.causal = c.of_queries = c.of_keys = c.of_values = c.of_result = stripes;
  return c;
}

constexpr int64_t kSamples = 2, kHeadSize = 2, kValueSize = 3;
constexpr int kSequence = 2;

// Leaves are in the order of stripes; `natural`: attention is of them in the order of the sequence.
Graph AttentionOf(const StripedCase& c, bool natural) {
  Graph graph;
  const auto add = [&](const std::string& name, std::vector<int64_t> sizes) {
    return graph.AddInput(name, SequentialType(std::move(sizes), DataType::kFloat32));
  };
  std::vector<TensorRef> leaves = {add("q", {kSamples, c.heads, c.length, kHeadSize}),
                                   add("k", {kSamples, c.key_heads, c.length, kHeadSize}),
                                   add("v", {kSamples, c.key_heads, c.length, kValueSize})};
  if (!c.fourth.empty()) leaves.push_back(add("fourth", c.fourth));
  const auto order = [&](int64_t stripes) { return StripedOrder{kSequence, c.length, stripes}; };
  Operator op = c.op;
  if (natural) {
    leaves[0] = order(c.of_queries).Natural(&graph, leaves[0]);
    leaves[1] = order(c.of_keys).Natural(&graph, leaves[1]);
    leaves[2] = order(c.of_values).Natural(&graph, leaves[2]);
  } else {
    op.Set("causal", c.causal);
  }
  TensorRef y = graph.AddOp(op, leaves).value();
  if (!natural) y = order(c.of_result).Natural(&graph, y);
  graph.AddOutput("y", y);
  return graph;
}

bool IsProved(const StripedCase& c) {
  std::set<std::string> lemmas;
  const ConcreteSide natural = SideOfGraph(AttentionOf(c, true)),
                     striped = SideOfGraph(AttentionOf(c, false));
  return EqualSides(natural, striped, &lemmas).ok();
}

bool IsTrueInNumbers(const StripedCase& c) {
  const std::vector<double> natural = OutputOfRandomLeaves(AttentionOf(c, true), 1),
                            striped = OutputOfRandomLeaves(AttentionOf(c, false), 1);
  for (size_t i = 0; i < natural.size(); ++i) {
    if (std::abs(natural[i] - striped[i]) > 1e-9) return false;
  }
  return true;
}

TEST(StripedAttentionTest, IsProvedWhereNumbersAgree) {
  int false_ones = 0;
  for (const int64_t length : {4, 6, 8, 12}) {
    for (int64_t stripes = 2; stripes <= length; ++stripes) {
      if (length % stripes != 0) continue;
      EXPECT_TRUE(IsTrueInNumbers(OfStripes(length, stripes))) << length << " in " << stripes;
      EXPECT_TRUE(IsProved(OfStripes(length, stripes))) << length << " in " << stripes;
      for (int64_t other = 1; other <= length; ++other) {
        if (length % other != 0 || other == stripes) continue;
        std::vector<StripedCase> wrong(5, OfStripes(length, stripes));
        wrong[0].causal = other;
        wrong[1].of_queries = other;
        wrong[2].of_keys = other;
        wrong[3].of_values = other;
        wrong[4].of_result = other;
        for (size_t w = 0; w < wrong.size(); ++w) {
          EXPECT_EQ(IsProved(wrong[w]), IsTrueInNumbers(wrong[w]))
              << length << " in " << stripes << ", and in " << other << " (" << w << ")";
          false_ones += !IsTrueInNumbers(wrong[w]);
        }
      }
    }
  }
  EXPECT_GT(false_ones, 50);
}

TEST(StripedAttentionTest, LongSequencesAreProvedAsShortOnes) {
  for (const int64_t stripes : {2, 16, 1024}) {
    StripedCase c = OfStripes(1 << 20, stripes);
    EXPECT_TRUE(IsProved(c)) << stripes;
    c.causal = 2 * stripes;
    EXPECT_FALSE(IsProved(c)) << stripes;
  }
}

TEST(StripedAttentionTest, HeadsThatShareKeys) {
  StripedCase c;
  c.heads = 6;
  EXPECT_TRUE(IsProved(c));
}

TEST(StripedAttentionTest, CappedScores) {
  StripedCase c;
  c.op = Operator(OpKind::kCappedAttention, {{"scale", 0.5}, {"causal", int64_t{1}}, {"cap", 3.0}});
  EXPECT_TRUE(IsProved(c));
  c.causal = 2;
  EXPECT_FALSE(IsProved(c));
}

TEST(StripedAttentionTest, SinksAndWindows) {
  for (const int64_t window : {0, 1, 2, 4}) {
    StripedCase c;
    c.op = Operator(OpKind::kSinkAttention,
                    {{"scale", 0.5}, {"causal", int64_t{1}}, {"window", window}});
    c.fourth = {2};
    EXPECT_TRUE(IsTrueInNumbers(c)) << window;
    EXPECT_TRUE(IsProved(c)) << window;
    c.causal = 2;
    EXPECT_FALSE(IsProved(c)) << window;
  }
}

}  // namespace
}  // namespace isomer
