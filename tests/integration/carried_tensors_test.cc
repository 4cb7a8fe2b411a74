// A decoder, every layer of which uses what the encoder left, is cut into pieces all the same.
#include "optimizer/substitution/carried_tensors.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "models/loss.h"
#include "models/zoo/zoo.h"
#include "optimizer/substitution/search.h"
#include "pcg/support/data_path.h"
#include "tests/optimizer/plan_holds.h"

namespace isomer {
namespace {

class CarriedTensors : public testing::Test {
 protected:
  static const RuleSet& Rules() {
    static const RuleSet* rules = new RuleSet(LoadRules(DataPath("rules/default.rules")).value());
    return *rules;
  }

  // Six layers of encoder and of decoder; each mixture has a loss that is used at the end, and
  // draws other random numbers.
  static Model EncoderAndDecoder() {
    Model model = BuildZooModel(
                      "gshard_moe?experts=16&layers=12&hidden=64&intermediate=128&heads=16&"
                      "head_size=4&vocabulary=64&seq=16&batch=64")
                      .value();
    EXPECT_EQ(AttachLoss(&model, "auto"), absl::OkStatus());
    return model;
  }

  SearchResult SearchOn(const Model& model, bool split, int64_t budget) {
    SearchOptions options;
    options.split = split;
    options.budget = budget;
    return HierarchicalSearch(model.graph, options, &tables_).value();
  }

  const RuleIndex index_{Rules()};
  const CostModel cost_{LoadMachine("dgx_h100", 1, 8).value()};
  CostTables tables_{index_, cost_, {.training = true}};
};

TEST_F(CarriedTensors, LayersOfADecoderAreEqualPieces) {
  const Model model = EncoderAndDecoder();
  RuleMatcher matcher(index_.algebra());
  const auto pieces = SplitGraph(model.graph, 5, nullptr, &matcher);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  std::map<uint64_t, int> repeats;
  std::set<TensorRef> made;
  int most = 0;
  for (const Piece& piece : *pieces) {
    EXPECT_TRUE(piece.graph.Validate().ok());
    most = std::max(most, ++repeats[piece.key]);
    for (const Piece::CarriedIn& carried : piece.carried_in) {
      EXPECT_TRUE(made.count(carried.tensor)) << "used before any piece made it";
    }
    for (const Piece::CarriedOut& carried : piece.carried_out) {
      EXPECT_GE(carried.uses, 1);
      made.insert(carried.tensor);
    }
  }
  EXPECT_GE(pieces->size(), 12u);
  EXPECT_GE(most, 2);
  // What the encoder leaves, and losses of mixtures.
  EXPECT_GE(made.size(), 4u);
}

TEST_F(CarriedTensors, PiecesMakeOnePlanThatHolds) {
  const Model model = EncoderAndDecoder();
  const SearchResult found = SearchOn(model, /*split=*/true, /*budget=*/40);
  EXPECT_FALSE(found.mapped.steps.empty());
  const auto plan = DerivePlan(model, found.mapped, /*training=*/true, &tables_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectPlanHolds(*plan, Rules());
}

TEST_F(CarriedTensors, HoldingThemInOnePlaceCostsLittle) {
  const Model model = EncoderAndDecoder();
  const SearchResult whole = SearchOn(model, /*split=*/false, /*budget=*/0);
  const SearchResult pieces = SearchOn(model, /*split=*/true, /*budget=*/0);
  EXPECT_EQ(whole.pieces, 1);
  // By pieces, the transpose of the table that embeds and gives logits counts as loaded.
  EXPECT_NEAR(pieces.us, whole.us, 0.01 * whole.us);
  EXPECT_FALSE(pieces.exact_mappings);
}

// A table that also makes the logits: transposed before all layers, as exporters have it. Nothing
// computes that in inference, and so no piece carries it out.
TEST_F(CarriedTensors, WhatIsMadeOfWeightsAloneMovesNowhereInInference) {
  Graph graph;
  const TensorRef table = graph.AddWeight("table", SequentialType({64, 32}));
  const TensorRef turned =
      graph.AddOp({OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}}}, {table}).value();
  const TensorRef tokens = graph.AddInput("tokens", SequentialType({2, 16}, DataType::kInt64));
  TensorRef y = graph.AddOp(OpKind::kEmbedding, {table, tokens}).value();
  for (int layer = 0; layer < 100; ++layer) {
    const auto times = [&](const char* name, TensorRef x) {
      const TensorRef weight = graph.AddWeight(absl::StrCat(name, layer), SequentialType({32, 32}));
      return graph.AddOp(OpKind::kMatMul, {x, weight}).value();
    };
    const TensorRef hidden = graph.AddOp(OpKind::kTanh, {times("in", y)}).value();
    y = graph.AddOp(OpKind::kAdd, {y, times("out", hidden)}).value();
  }
  graph.AddOutput("y", graph.AddOp(OpKind::kMatMul, {y, turned}).value());
  CostTables tables(index_, cost_, {.training = false});
  SearchOptions options;
  options.split = true;
  options.budget = 20;
  const auto result = HierarchicalSearch(graph, options, &tables);
  EXPECT_TRUE(result.ok()) << result.status();
}

}  // namespace
}  // namespace isomer
