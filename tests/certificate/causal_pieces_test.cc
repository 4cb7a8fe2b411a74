// Causal attention, whole and in an early and a late piece.
//
// The early queries see early keys only, and those that none of them sees change nothing: their
// powers are zero, and if the largest score is another one, softmax does not tell. What is proved
// of the sizes here is compared with what the evaluator makes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/certificate/side_of_graph.h"
#include "verifier/certificate/equal_sides.h"

namespace isomer {
namespace {

// An attention and its pieces, which are true as they stand.
struct CausalPieces {
  Operator op{OpKind::kAttention, {{"scale", 0.5}, {"causal", int64_t{1}}}};
  int64_t heads = 2, key_heads = 2, queries = 4, keys = 4;
  // Early are queries 0 .. cut - 1, which get the first `early_keys`; the late ones do without the
  // first `late_start`.
  int64_t cut = 2, early_keys = 2, late_start = 0;
  std::vector<int64_t> fourth = {};  // sizes of a fourth operand, a mask or sinks; empty: none
  Operator late_op = op;
};

constexpr int64_t kBatch = 2, kFeatures = 2, kValues = 3;

// [start, start + size) of one dim, counted from the end, unless the tensor is broadcast there.
TensorRef Part(Graph* graph, TensorRef x, int dim, int64_t start, int64_t size) {
  std::vector<int64_t> sizes = graph->type(x).Sizes();
  const int axis = static_cast<int>(sizes.size()) + dim;
  if (axis < 0 || sizes[axis] == 1) return x;
  std::vector<int64_t> starts(sizes.size(), 0), steps(sizes.size(), 1);
  starts[axis] = start;
  sizes[axis] = size;
  return graph
      ->AddOp(Operator(OpKind::kSlice, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}),
              {x})
      .value();
}

std::vector<TensorRef> AddLeaves(const CausalPieces& c, Graph* graph) {
  const auto add = [&](const std::string& name, std::vector<int64_t> sizes) {
    return graph->AddInput(name, SequentialType(std::move(sizes), DataType::kFloat32));
  };
  std::vector<TensorRef> leaves = {add("q", {kBatch, c.heads, c.queries, kFeatures}),
                                   add("k", {kBatch, c.key_heads, c.keys, kFeatures}),
                                   add("v", {kBatch, c.key_heads, c.keys, kValues})};
  if (!c.fourth.empty()) leaves.push_back(add("fourth", c.fourth));
  return leaves;
}

Graph Whole(const CausalPieces& c) {
  Graph graph;
  graph.AddOutput("y", graph.AddOp(c.op, AddLeaves(c, &graph)).value());
  return graph;
}

Graph InPieces(const CausalPieces& c) {
  Graph graph;
  const std::vector<TensorRef> leaves = AddLeaves(c, &graph);
  const auto piece = [&](const Operator& op, int64_t first, int64_t queries, int64_t first_key,
                         int64_t keys) {
    std::vector<TensorRef> operands = {Part(&graph, leaves[0], -2, first, queries),
                                       Part(&graph, leaves[1], -2, first_key, keys),
                                       Part(&graph, leaves[2], -2, first_key, keys)};
    if (leaves.size() > 3) {
      const bool is_mask = op.kind() != OpKind::kSinkAttention;
      TensorRef fourth = leaves[3];
      if (is_mask) fourth = Part(&graph, fourth, -2, first, queries);
      if (is_mask) fourth = Part(&graph, fourth, -1, first_key, keys);
      operands.push_back(fourth);
    }
    return graph.AddOp(op, operands).value();
  };
  const TensorRef early = piece(c.op, 0, c.cut, 0, c.early_keys);
  const TensorRef late =
      piece(c.late_op, c.cut, c.queries - c.cut, c.late_start, c.keys - c.late_start);
  graph.AddOutput(
      "y", graph.AddOp(Operator(OpKind::kConcat, {{"axis", int64_t{2}}}), {early, late}).value());
  return graph;
}

bool IsProved(const CausalPieces& c) {
  std::set<std::string> lemmas;
  const ConcreteSide whole = SideOfGraph(Whole(c)), pieces = SideOfGraph(InPieces(c));
  return EqualSides(whole, pieces, &lemmas).ok();
}

bool IsEqualInNumbers(const CausalPieces& c) {
  const Graph whole = Whole(c), pieces = InPieces(c);
  for (const uint32_t seed : {1, 2}) {
    const std::vector<double> expected = OutputOfRandomLeaves(whole, seed),
                              found = OutputOfRandomLeaves(pieces, seed);
    for (size_t i = 0; i < expected.size(); ++i) {
      if (std::abs(expected[i] - found[i]) > 1e-9) return false;
    }
  }
  return true;
}

// Every cut, and every number of keys that a piece may get, right or wrong.
void ExpectProofsToAgreeWithNumbers(CausalPieces c, int64_t most) {
  int true_ones = 0, false_ones = 0;
  for (c.queries = 2; c.queries <= most; ++c.queries) {
    for (c.keys = c.queries; c.keys <= most + 1; ++c.keys) {
      for (c.cut = 1; c.cut < c.queries; ++c.cut) {
        for (c.early_keys = c.cut; c.early_keys <= c.keys; ++c.early_keys) {
          for (c.late_start = 0; c.late_start <= c.keys - (c.queries - c.cut); ++c.late_start) {
            const bool is_equal = IsEqualInNumbers(c);
            EXPECT_EQ(IsProved(c), is_equal)
                << c.op.ToString() << " of " << c.queries << " queries and " << c.keys
                << " keys, cut at " << c.cut << ": the first " << c.early_keys
                << " keys, and those from " << c.late_start;
            ++(is_equal ? true_ones : false_ones);
          }
        }
      }
    }
  }
  EXPECT_GT(true_ones, 0);
  EXPECT_GT(false_ones, true_ones);
}

TEST(CausalPiecesTest, ProofsAgreeWithNumbers) { ExpectProofsToAgreeWithNumbers({}, 4); }

TEST(CausalPiecesTest, OfSinksTheyDo) {
  CausalPieces c;
  c.fourth = {2};
  for (const int64_t window : {0, 1, 2}) {
    c.op = c.late_op = Operator(OpKind::kSinkAttention,
                                {{"scale", 0.5}, {"causal", int64_t{1}}, {"window", window}});
    ExpectProofsToAgreeWithNumbers(c, 3);
  }
}

TEST(CausalPiecesTest, LongSequencesAreProvedAsShortOnes) {
  CausalPieces c;
  c.queries = c.keys = 1 << 20;
  for (const int64_t cut : {1, 3, 1 << 19, (1 << 20) - 1}) {
    c.cut = c.early_keys = cut;
    EXPECT_TRUE(IsProved(c)) << cut;
    ++c.early_keys;
    EXPECT_FALSE(IsProved(c)) << cut;
  }
}

TEST(CausalPiecesTest, PiecesBecomeTheWhole) {
  CausalPieces c;
  for (const int64_t keys : {2, 3, 4}) {
    c.early_keys = keys;
    std::set<std::string> lemmas;
    EXPECT_EQ(EqualSides(SideOfGraph(InPieces(c)), SideOfGraph(Whole(c)), &lemmas).ok(), keys == 2);
  }
}

TEST(CausalPiecesTest, HeadsThatShareKeys) {
  CausalPieces c;
  c.heads = 6;
  EXPECT_TRUE(IsProved(c));
  c.early_keys = 3;
  EXPECT_FALSE(IsProved(c));
}

TEST(CausalPiecesTest, CappedScores) {
  CausalPieces c;
  c.op = c.late_op =
      Operator(OpKind::kCappedAttention, {{"scale", 0.5}, {"causal", int64_t{1}}, {"cap", 3.0}});
  EXPECT_TRUE(IsProved(c));
  c.late_op.Set("cap", 4.0);
  EXPECT_FALSE(IsProved(c));
}

TEST(CausalPiecesTest, MasksAreCutAlike) {
  CausalPieces c;
  c.keys = 6;
  c.early_keys = 4;
  for (const std::vector<int64_t>& mask : std::vector<std::vector<int64_t>>{
           {2, 2, 4, 6}, {2, 1, 1, 6}, {4, 6}, {1, 6}, {2, 1, 4, 1}}) {
    c.fourth = mask;
    c.early_keys = 4;
    EXPECT_TRUE(IsProved(c)) << mask.size();
    c.early_keys = 5;
    EXPECT_FALSE(IsProved(c)) << mask.size();
  }
}

// Each late query sees other keys than it would if the late ones were not causal; so do early ones.
TEST(CausalPiecesTest, WhatIsNotCausalHasNoEarlyKeys) {
  CausalPieces c;
  c.late_op.Set("causal", int64_t{0});
  EXPECT_FALSE(IsProved(c));
  c.op.Set("causal", int64_t{0});
  EXPECT_FALSE(IsProved(c));
  // With all keys each piece is as the whole, by theorem.
  c.early_keys = c.keys;
  EXPECT_TRUE(IsProved(c));
}

TEST(CausalPiecesTest, OtherScales) {
  CausalPieces c;
  c.late_op.Set("scale", 0.25);
  EXPECT_FALSE(IsProved(c));
}

}  // namespace
}  // namespace isomer
