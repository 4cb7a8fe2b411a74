#include "optimizer/sharding/batch_dims.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/optimizer/example_models.h"

namespace isomer {
namespace {

// Every call of an example that has one batch dim in every tensor that calls make.
TEST(BatchDims, AreFollowedThroughProductsAndSums) {
  const Model model = ResidualModel(2, 12, 16, 32);
  const std::vector<int> dims = BatchDims(model.graph);
  for (int i = 0; i < model.graph.num_nodes(); ++i) {
    const bool leaf = IsLeaf(model.graph.node(i).op.kind());
    EXPECT_EQ(dims[i], leaf ? -1 : 0) << model.graph.Label(NodeId{i});
  }
  EXPECT_EQ(BatchSize(model.graph), 12);
}

// Behind a Reshape the batch is the outer part of a dim; behind a Transpose it is another one.
TEST(BatchDims, AreFollowedThroughReshapesAndTransposes) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({8, 3, 4}));
  const TensorRef w = graph.AddWeight("w", SequentialType({4, 4}));
  const TensorRef rows =
      graph.AddOp({OpKind::kReshape, {{"shape", std::vector<int64_t>{24, 4}}}}, {x}).value();
  const TensorRef product = graph.AddOp(OpKind::kMatMul, {rows, w}).value();
  const TensorRef turned =
      graph.AddOp({OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}}}, {product}).value();
  const TensorRef y = graph.AddOp(OpKind::kRelu, {turned}).value();
  graph.AddOutput("y", y);
  const std::vector<int> dims = BatchDims(graph);
  EXPECT_EQ(dims[product.node.value], 0);
  EXPECT_EQ(dims[y.node.value], 1);
  EXPECT_EQ(dims[w.node.value], -1);
  EXPECT_EQ(BatchSize(graph), 8);
}

// Its outer part has the role, and once both parts are one dim again, in whichever order, that dim.
TEST(DimRoles, OfASequenceThatIsTakenApartComeBack) {
  Graph graph;
  const auto reshape = [&](TensorRef x, std::vector<int64_t> shape) {
    return graph.AddOp({OpKind::kReshape, {{"shape", std::move(shape)}}}, {x}).value();
  };
  const TensorRef x = graph.AddInput("x", SequentialType({2, 12, 5}));
  const TensorRef apart = reshape(x, {2, 4, 3, 5});
  const TensorRef turned =
      graph.AddOp({OpKind::kTranspose, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}}, {apart})
          .value();
  const TensorRef joined = reshape(turned, {2, 12, 5});
  // Of the outer part and something else nothing comes back.
  const TensorRef other = reshape(apart, {2, 4, 15});
  for (const TensorRef y : {joined, other}) graph.AddOutput("y", y);
  const DimRoles roles = RolesOf(graph);
  const auto kNone = DimRole::kNone, kBatch = DimRole::kBatch, kSequence = DimRole::kSequence,
             kWithin = DimRole::kWithinSequence;
  EXPECT_EQ(roles.of(apart), std::vector({kBatch, kSequence, kWithin, kNone}));
  EXPECT_EQ(roles.of(turned), std::vector({kBatch, kWithin, kSequence, kNone}));
  EXPECT_EQ(roles.of(joined), std::vector({kBatch, kSequence, kNone}));
  EXPECT_EQ(roles.of(other)[1], kSequence);
  EXPECT_NE(roles.of(other)[2], kSequence);
}

// Weights among themselves know no batch.
TEST(BatchDims, OfWhatIsMadeOfWeightsAreNone) {
  Graph graph;
  const TensorRef w = graph.AddWeight("w", SequentialType({4, 4}));
  const TensorRef y = graph.AddOp(OpKind::kRelu, {w}).value();
  graph.AddOutput("y", y);
  EXPECT_EQ(BatchDims(graph)[y.node.value], -1);
  EXPECT_EQ(BatchSize(graph), 1);
}

// x - mean(x) over samples needs all of them; x - mean(x) of each does not, nor does a loss.
TEST(MixesSamples, WhereStatisticsOfABatchComeBack) {
  EXPECT_FALSE(MixesSamples(ResidualModel(2, 12, 16, 32).graph));
  for (int64_t axis : {0, 1}) {
    Graph graph;
    const TensorRef x = graph.AddInput("x", SequentialType({8, 4}));
    const TensorRef mean =
        graph.AddOp({OpKind::kReduceMean, {{"axes", std::vector<int64_t>{axis}}}}, {x}).value();
    graph.AddOutput("y", graph.AddOp(OpKind::kSub, {x, mean}).value());
    EXPECT_EQ(MixesSamples(graph), axis == 0);
  }
}

}  // namespace
}  // namespace isomer
