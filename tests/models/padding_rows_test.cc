#include "models/padding_rows.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"

namespace isomer {
namespace {

using testing::ElementsAre;

// where(indices == 1, value, embedding(table, indices)); `sizes` of the condition.
struct PaddedEmbedding {
  std::vector<float> value = {7, 8};
  float row = 1;
  std::vector<int64_t> sizes = {2, 2, 1};
  bool has_weights = true;

  Model Build() const {
    Model model;
    Graph& graph = model.graph;
    const TensorRef indices = graph.AddInput("indices", SequentialType({2, 2}, DataType::kInt64));
    const TensorRef table = graph.AddWeight("table", SequentialType({3, 2}, DataType::kFloat32));
    const TensorRef number = graph.AddConstant("row", SequentialType({}, DataType::kInt64));
    const TensorRef padding = graph.AddConstant("padding", SequentialType({2}, DataType::kFloat32));
    model.weights["row"] = std::vector<float>{row};
    model.weights["padding"] = value;
    if (has_weights) model.weights["table"] = {5, 6, 7, 8, 0, 0};
    const TensorRef rows = *graph.AddOp(OpKind::kEmbedding, {table, indices});
    const TensorRef equal = *graph.AddOp(OpKind::kEqual, {indices, number});
    const TensorRef is_row = *graph.AddOp({OpKind::kReshape, {{"shape", sizes}}}, {equal});
    graph.AddOutput("y", *graph.AddOp(OpKind::kWhere, {is_row, padding, rows}));
    return model;
  }
};

std::vector<std::string> Kinds(const Model& model) {
  std::vector<std::string> kinds;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    kinds.emplace_back(model.graph.node(id).op.name());
  }
  return kinds;
}

TEST(OmitPaddingRows, WhatTheTableHasIsNotPutInItsPlace) {
  Model model = PaddedEmbedding{}.Build();  // of a row that is not zero
  EXPECT_EQ(OmitPaddingRows(&model), 1);
  EXPECT_THAT(Kinds(model), ElementsAre("input", "weight", "embedding"));
  EXPECT_EQ(model.weights.size(), 1u);
  EXPECT_TRUE(model.graph.Validate().ok());
}

TEST(OmitPaddingRows, OthersStay) {
  for (const PaddedEmbedding& padded :
       {PaddedEmbedding{.value = {7, 9}}, PaddedEmbedding{.row = 2}, PaddedEmbedding{.row = 3},
        PaddedEmbedding{.row = -1}, PaddedEmbedding{.row = 9e18F}, PaddedEmbedding{.sizes = {2, 2}},
        PaddedEmbedding{.has_weights = false}}) {
    Model model = padded.Build();
    const int nodes = model.graph.num_nodes();
    EXPECT_EQ(OmitPaddingRows(&model), 0);
    EXPECT_EQ(model.graph.num_nodes(), nodes);
  }
}

}  // namespace
}  // namespace isomer
