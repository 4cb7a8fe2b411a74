#include "optimizer/substitution/splitting.h"

#include <set>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "tests/optimizer/example_models.h"

namespace isomer {
namespace {

TEST(Splitting, RepeatedBlocksAreEqualPieces) {
  const Model model = ResidualModel(6, 8, 16, 32);
  const auto pieces = SplitGraph(model.graph, 5);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  ASSERT_EQ(pieces->size(), 7u);  // six blocks and the loss
  std::set<uint64_t> keys;
  for (const Piece& piece : *pieces) keys.insert(piece.key);
  // The first block's input needs no gradient; the last block's output is an output of the model.
  EXPECT_EQ(keys.size(), 4u);
  for (size_t p = 0; p + 1 < pieces->size(); ++p) {
    EXPECT_EQ((*pieces)[p].out, (*pieces)[p + 1].in);
    EXPECT_TRUE((*pieces)[p].graph.Validate().ok());
  }
}

TEST(Splitting, ASkipForbidsTheCutsBelowIt) {
  const Model model = ResidualModel(2, 8, 16, 32);
  const auto pieces = SplitGraph(model.graph, 1);
  ASSERT_TRUE(pieces.ok());
  int cuts = 0;
  for (const Piece& piece : *pieces) {
    if (!piece.has_out) continue;
    ++cuts;
    // Within the second block its input stays alive up to the sum. (The first block's is fed.)
    const Node& node = model.graph.node(piece.out.node);
    if (node.name.rfind("block1", 0) == 0) {
      EXPECT_EQ(node.name, "block1/residual");
    }
  }
  EXPECT_EQ(cuts, 6);  // five in the first block, one behind the second
}

// y = x (w1 .. w6), the products of weights first: in inference they are made when they are loaded.
TEST(Splitting, NothingIsCutBehindWhatIsMadeOfWeightsAlone) {
  Graph graph;
  TensorRef product = graph.AddWeight("w0", SequentialType({8, 8}));
  for (int i = 1; i <= 6; ++i) {
    const TensorRef weight = graph.AddWeight(absl::StrCat("w", i), SequentialType({8, 8}));
    product = graph.AddOp(OpKind::kMatMul, {product, weight}).value();
  }
  TensorRef y = graph.AddInput("x", SequentialType({8, 8}));
  y = graph.AddOp(OpKind::kMatMul, {y, product}).value();
  for (int i = 0; i < 6; ++i) y = graph.AddOp(OpKind::kRelu, {y}).value();
  graph.AddOutput("y", y);
  const auto pieces = SplitGraph(graph, 1);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  EXPECT_GT(pieces->size(), 1u);
  for (const Piece& piece : *pieces) {
    if (!piece.has_out) continue;
    EXPECT_GE(piece.out.node.value, 13) << piece.graph.ToString();
  }
}

}  // namespace
}  // namespace isomer
