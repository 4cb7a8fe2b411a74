// The table of types with known answers: what a call's operand types make of it.
#include "pcg/ir/type_inference.h"

#include <gtest/gtest.h>

#include <ostream>

#include "absl/strings/match.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/parallel_operator.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;

struct Case {
  std::string name;
  Operator op;
  std::vector<std::string> operands;
  std::string result;  // the type of output 0; empty: a type error
  std::string reason;  // what the error must say
};

Operator Conv(int64_t groups = 1) {
  return Operator(OpKind::kConv2d, {{"stride", Ints{1, 1}},
                                    {"padding", Ints{1, 1, 1, 1}},
                                    {"dilation", Ints{1, 1}},
                                    {"groups", groups}});
}

Operator Pool(OpKind kind) {
  Operator op(kind,
              {{"kernel", Ints{2, 2}}, {"stride", Ints{2, 2}}, {"padding", Ints{0, 0, 0, 0}}});
  if (kind == OpKind::kAvgPool) op.Set("count_include_pad", int64_t{0});
  return op;
}

Operator Strided(Operator op, Ints stride, Ints padding) {
  op.Set("stride", std::move(stride));
  op.Set("padding", std::move(padding));
  return op;
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.op.ToString(); }

std::vector<Case> Cases() {
  const Operator softmax(OpKind::kSoftmax, {{"axis", int64_t{-1}}});
  const Operator concat(OpKind::kConcat, {{"axis", int64_t{0}}});
  const Operator transpose(OpKind::kTranspose, {{"perm", Ints{1, 0}}});
  const Operator scale(OpKind::kScale, {{"factor", 0.5}});
  auto reshape = [](Ints shape) { return Operator(OpKind::kReshape, {{"shape", shape}}); };
  auto sum = [](Ints axes) {
    return Operator(OpKind::kReduceSum, {{"axes", axes}, {"keepdims", int64_t{0}}});
  };
  return {
      {"CombineDegree3By3", Combine(0, 3), {"f32[6:3]"}, "f32[6]", ""},
      {"CombineDegree3By4", Combine(0, 4), {"f32[6:3]"}, "", "does not divide"},
      {"ReplicateC2By4", Replicate(4), {"f32[6] c2"}, "f32[6] c8", ""},
      {"ReduceP3By3", Reduce(3), {"f32[6] p3"}, "f32[6]", ""},
      {"ReduceP3By4", Reduce(4), {"f32[6] p3"}, "", "does not divide"},
      {"PartitionSize18Degree3By4", Partition(0, 4), {"f32[18:3]"}, "", "12 does not divide"},
      {"PartitionLastAxis", Partition(-1, 2), {"f32[3,4]"}, "f32[3,4:2]", ""},
      {"PartitionNoSuchAxis", Partition(2, 2), {"f32[3,4]"}, "", "axis 2"},
      {"PipelineThenSequence", Pipeline(0, 4), {"f32[8,2]"}, "f32[2,2] mb4", ""},
      {"BatchUndoes", Batch(0, 4), {"f32[2,2] mb4"}, "f32[8,2]", ""},
      {"BatchOfOtherLength", Batch(0, 2), {"f32[2,2] mb4"}, "", "4 micro-batches"},
      {"AddOfPartials", OpKind::kAdd, {"f32[4] p4", "f32[4] p4"}, "f32[4] p4", ""},
      {"AddCountsACopyFourTimes", OpKind::kAdd, {"f32[4] p4", "f32[4] c4"}, "", "not linear"},
      {"AddBroadcastBiasNeedsCopies", OpKind::kAdd, {"f32[8:2,4]", "f32[4]"}, "", "copies"},
      {"AddBroadcastBias", OpKind::kAdd, {"f32[8:2,4]", "f32[4] c2"}, "f32[8:2,4]", ""},
      {"ReluOfPartials", OpKind::kRelu, {"f32[4] p2"}, "", "not linear"},
      {"SoftmaxOfPartials", softmax, {"f32[4,4] p2"}, "", "not linear"},
      {"MaxPoolOfPartials", Pool(OpKind::kMaxPool), {"f32[1,1,4,4] p2"}, "", "not linear"},
      {"AvgPoolOfPartials", Pool(OpKind::kAvgPool), {"f32[1,1,4,4] p2"}, "f32[1,1,2,2] p2", ""},
      {"ScaleOfPartials", scale, {"f32[4] p2"}, "f32[4] p2", ""},
      {"TransposeOfPartials", transpose, {"f32[4:2,6] p2"}, "f32[6,4:2] p2", ""},
      {"MatMulFirstPartial", OpKind::kMatMul, {"f32[2,3] p2", "f32[3,4] c2"}, "f32[2,4] p2", ""},
      {"MatMulBothPartial", OpKind::kMatMul, {"f32[2,3] p2", "f32[3,4] p2"}, "", "not linear"},
      {"MatMulRowsAndContraction",
       OpKind::kMatMul,
       {"f32[8:2,8:4]", "f32[8:4,3] c2"},
       "f32[8:2,3] p4",
       ""},
      {"MatMulContractionDisagrees", OpKind::kMatMul, {"f32[8,8:4]", "f32[8:2,3]"}, "", "dim k"},
      {"MatMulPartialTimesContraction",
       OpKind::kMatMul,
       {"f32[8,8:2] p3", "f32[8:2,3] c3"},
       "f32[8,3] p6",
       ""},
      {"MatMulSizesDisagree", OpKind::kMatMul, {"f32[8,8]", "f32[4,3]"}, "", "8 in operand 0"},
      {"MatMulBatchedByWeight",
       OpKind::kMatMul,
       {"f32[4:2,8,6]", "f32[6,3] c2"},
       "f32[4:2,8,3]",
       ""},
      {"SoftmaxOverPartitionedDim", softmax, {"f32[4,4:2]"}, "", "cannot be partitioned"},
      {"SoftmaxBesidePartitionedDim", softmax, {"f32[4:2,4]"}, "f32[4:2,4]", ""},
      {"ConcatAlongPartitionedDim", concat, {"f32[4:2]", "f32[4:2]"}, "", "cannot be partitioned"},
      {"ConvInputChannels", Conv(), {"f32[1,4:2,5,5] c1", "f32[6,4:2,3,3]"}, "f32[1,6,5,5] p2", ""},
      {"ConvKernelPartitionedOnChannels",
       Conv(),
       {"f32[2,4:2,5,5]", "f32[6,4:2,1,1]"},
       "f32[2,6,7,7] p2",
       ""},
      {"ConvSpatial", Conv(), {"f32[1,4,6:2,5]", "f32[6,4,3,3] c2"}, "f32[1,6,6:2,5]", ""},
      {"ConvSpatialKernelNeedsCopies", Conv(), {"f32[1,4,6:2,5]", "f32[6,4,3,3]"}, "", "copies"},
      {"ConvSpatialBothWithChannels",
       Conv(),
       {"f32[2:2,4:2,6:2,6:3]", "f32[6,4:2,3,3] c12"},
       "f32[2:2,6,6:2,6:3] p2",
       ""},
      {"ConvSpatialOutputDoesNotDivide",
       Strided(Conv(), {2, 2}, {0, 0, 1, 1}),
       {"f32[1,4,6:2,6]", "f32[6,4,3,3] c2"},
       "",
       "degree 2 does not divide dim y of size 3"},
      {"ConvSpatialStrided",
       Strided(Conv(), {2, 1}, {0, 0, 1, 1}),
       {"f32[1,4,8:4,6]", "f32[6,4,3,3] c4"},
       "f32[1,6,4:4,5]",
       ""},
      {"ConvSpatialGroups",
       Conv(4),
       {"f32[1,8:2,6:3,5]", "f32[8:2,2,3,3] c3"},
       "f32[1,8:2,6:3,5]",
       ""},
      {"ConvKernelHeight", Conv(), {"f32[1,4,6,5]", "f32[6,4,2:2,3]"}, "", "cannot be partitioned"},
      {"MaxPoolSpatial", Pool(OpKind::kMaxPool), {"f32[1,1,8:2,8:4]"}, "f32[1,1,4:2,4:4]", ""},
      {"AvgPoolSpatial", Pool(OpKind::kAvgPool), {"f32[1,1,8,8:4] p2"}, "f32[1,1,4,4:4] p2", ""},
      {"MaxPoolSpatialTooFar", Pool(OpKind::kMaxPool), {"f32[1,1,8,8:8]"}, "", "does not divide"},
      {"ConvGroups", Conv(4), {"f32[1,8:2,5,5]", "f32[8:2,2,3,3]"}, "f32[1,8:2,5,5]", ""},
      {"ConvWithinGroups", Conv(2), {"f32[1,8:4,5,5]", "f32[8:4,4,3,3]"}, "", "does not divide"},
      {"EmbeddingFeature", OpKind::kEmbedding, {"f32[10,8:4]", "i64[6] c4"}, "f32[6,8:4]", ""},
      {"EmbeddingVocabulary", OpKind::kEmbedding, {"f32[10:2,8]", "i64[6] c2"}, "f32[6,8] p2", ""},
      {"EmbeddingOfFloats", OpKind::kEmbedding, {"f32[10,8]", "f32[6]"}, "", "not i64"},
      {"CrossEntropyBatch", OpKind::kCrossEntropy, {"f32[8:4,10]", "i64[8:4]"}, "f32[] p4", ""},
      {"ReduceSumOverPartitioned", sum({1}), {"f32[8:2,4:4]"}, "f32[8:2] p4", ""},
      {"SplitHeads", reshape({2, 3, 4, 5}), {"f32[2,3,20:4]"}, "f32[2,3,4:4,5]", ""},
      {"SplitHeadsTooFar", reshape({2, 3, 4, 5}), {"f32[2,3,20:10]"}, "", "does not divide"},
      {"MergeHeads", reshape({2, 3, 20}), {"f32[2,3,4:2,5]"}, "f32[2,3,20:2]", ""},
      {"MergeInnerDim", reshape({2, 3, 20}), {"f32[2,3,4,5:5]"}, "", "cannot be partitioned"},
      {"FlattenBatch", reshape({6, 20}), {"f32[2:2,3,4,5]"}, "f32[6:2,20]", ""},
      {"IncommensurableReshape", reshape({6, 4}), {"f32[4:2,6]"}, "", "cannot be partitioned"},
      {"BesideIncommensurable", reshape({2, 6, 4}), {"f32[2:2,4,6]"}, "f32[2:2,6,4]", ""},
      {"WithinIncommensurable", reshape({2, 6, 4}), {"f32[2,4:2,6]"}, "", "cannot be partitioned"},
  };
}

class TypeInferenceTest : public testing::TestWithParam<Case> {};

TEST_P(TypeInferenceTest, GivesTheKnownAnswer) {
  const Case& c = GetParam();
  std::vector<TensorType> operands;
  for (const std::string& text : c.operands) {
    absl::StatusOr<TensorType> type = ParseTensorType(text);
    ASSERT_TRUE(type.ok()) << type.status();
    operands.push_back(*type);
  }
  Operator op = c.op;
  ASSERT_TRUE(NormalizeAttributes(&op).ok());
  absl::StatusOr<std::vector<TensorType>> result = InferTypes(op, operands);
  if (!c.result.empty()) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ((*result)[0].ToString(), c.result);
  } else {
    ASSERT_FALSE(result.ok()) << (*result)[0].ToString();
    EXPECT_TRUE(absl::StrContains(result.status().message(), c.reason)) << result.status();
    EXPECT_TRUE(absl::StrContains(result.status().message(), op.name())) << result.status();
  }
}

INSTANTIATE_TEST_SUITE_P(Table, TypeInferenceTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// Attention with two head shards: q, k, v at two copies, weights split by heads, the output is a
// partial sum, and the output bias is added once, after Reduce.
TEST(TypeInference, AttentionSplitByHeads) {
  Graph g;
  const TensorRef x = g.AddInput("x", SequentialType({2, 4, 8}));
  const TensorRef xs = *g.AddOp(Replicate(2), {x});
  auto project = [&](const char* name) {
    const TensorRef w = g.AddWeight(name, SequentialType({8, 8}));
    const TensorRef ws = *g.AddOp(Partition(1, 2), {w});
    const TensorRef y = *g.AddOp(OpKind::kMatMul, {xs, ws});
    const TensorRef heads =
        *g.AddOp(Operator(OpKind::kReshape, {{"shape", Ints{2, 4, 4, 2}}}), {y});
    return *g.AddOp(Operator(OpKind::kTranspose, {{"perm", Ints{0, 2, 1, 3}}}), {heads});
  };
  const TensorRef q = project("wq"), k = project("wk"), v = project("wv");
  const TensorRef kt = *g.AddOp(Operator(OpKind::kTranspose, {{"perm", Ints{0, 1, 3, 2}}}), {k});
  const TensorRef scores = *g.AddOp(OpKind::kMatMul, {q, kt});
  EXPECT_EQ(g.type(scores).ToString(), "f32[2,4:2,4,4]");
  const TensorRef weights = *g.AddOp(OpKind::kSoftmax, {scores});
  const TensorRef mixed = *g.AddOp(OpKind::kMatMul, {weights, v});
  const TensorRef back =
      *g.AddOp(Operator(OpKind::kTranspose, {{"perm", Ints{0, 2, 1, 3}}}), {mixed});
  const TensorRef merged = *g.AddOp(Operator(OpKind::kReshape, {{"shape", Ints{2, 4, 8}}}), {back});
  const TensorRef wo = *g.AddOp(Partition(0, 2), {g.AddWeight("wo", SequentialType({8, 8}))});
  const TensorRef out = *g.AddOp(OpKind::kMatMul, {merged, wo});
  EXPECT_EQ(g.type(out).ToString(), "f32[2,4,8] p2");
  const TensorRef bias = g.AddWeight("b", SequentialType({8}));
  EXPECT_FALSE(g.AddOp(OpKind::kAdd, {out, bias}).ok());
  const TensorRef reduced = *g.AddOp(Reduce(2), {out});
  EXPECT_TRUE(g.AddOp(OpKind::kAdd, {reduced, bias}).ok());
}

TEST(TypeInference, OperandTypesForInvertsInferSharding) {
  const std::vector<TensorType> logical = {SequentialType({4, 8, 6}), SequentialType({6, 3})};
  // Iteration dims of this MatMul: b0, m, n, k.
  absl::StatusOr<std::vector<TensorType>> types =
      OperandTypesFor(OpKind::kMatMul, logical, {2, 1, 3, 2}, 5);
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_EQ((*types)[0].ToString(), "f32[4:2,8,6:2] c15");
  EXPECT_EQ((*types)[1].ToString(), "f32[6:2,3:3] c10");
  absl::StatusOr<Sharding> sharding = InferSharding(OpKind::kMatMul, *types);
  ASSERT_TRUE(sharding.ok()) << sharding.status();
  EXPECT_EQ(sharding->outputs[0].ToString(), "f32[4:2,8,3:3] c5 p2");
}

TEST(TypeInference, SpatialDegreeMustDivideOutputAndOperand) {
  // 9 rows become 4: neither 2 nor 3 divides both.
  const std::vector<TensorType> logical = {SequentialType({1, 4, 9, 8}),
                                           SequentialType({2, 4, 3, 3})};
  const Operator conv = Strided(Conv(), {2, 1}, {0, 1, 0, 1});
  for (int64_t degree : {2, 3}) {
    // Iteration dims: n, o, c, y, x, ry, rx.
    const auto types = OperandTypesFor(conv, logical, {1, 1, 1, degree});
    EXPECT_FALSE(types.ok() && InferSharding(conv, *types).ok()) << degree;
  }
  const auto types = OperandTypesFor(conv, logical, {1, 1, 1, 1, 4});
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_EQ((*types)[0].ToString(), "f32[1,4,9,8:4]");
  EXPECT_EQ((*types)[1].ToString(), "f32[2,4,3,3] c4");
}

// Which rows a task has: (operand size, kernel, stride, dilation, padding, degree) -> boxes.
struct HaloCase {
  int64_t size, kernel, stride, dilation, begin, end, degree;
  std::vector<std::pair<int64_t, int64_t>> rows;
};

TEST(TypeInference, TasksHaveTheirPieceWithItsHalo) {
  const HaloCase cases[] = {
      {8, 3, 1, 1, 1, 1, 4, {{0, 3}, {1, 5}, {3, 7}, {5, 8}}},
      {8, 3, 1, 1, 2, 0, 2, {{0, 4}, {2, 8}}},                  // all of the padding on one side
      {8, 3, 1, 1, 0, 2, 2, {{0, 6}, {4, 8}}},                  // shifted the other way
      {8, 3, 2, 1, 1, 0, 2, {{0, 4}, {3, 8}}},                  // stride 2: one row before
      {8, 2, 2, 1, 0, 0, 4, {{0, 2}, {2, 4}, {4, 6}, {6, 8}}},  // no halo
      {8, 1, 2, 1, 0, 0, 2, {{0, 4}, {4, 8}}},                  // reads less than it has
      {8, 3, 1, 2, 2, 2, 2, {{0, 6}, {2, 8}}},                  // dilated
      {4, 1, 1, 1, 6, 6, 4, {{0, 1}, {0, 2}, {2, 4}, {3, 4}}},  // the outer tasks read padding only
      {12, 9, 1, 1, 4, 4, 4, {{0, 7}, {0, 10}, {2, 12}, {5, 12}}},  // beyond the neighbour
  };
  for (const HaloCase& c : cases) {
    SCOPED_TRACE(testing::Message() << "size " << c.size << " kernel " << c.kernel << " stride "
                                    << c.stride << " padding " << c.begin << "," << c.end);
    Operator conv(OpKind::kConv2d, {{"stride", Ints{1, c.stride}},
                                    {"padding", Ints{0, c.begin, 0, c.end}},
                                    {"dilation", Ints{1, c.dilation}},
                                    {"groups", int64_t{1}}});
    const auto types = OperandTypesFor(
        conv, {SequentialType({1, 1, 1, c.size}), SequentialType({1, 1, 1, c.kernel})},
        {1, 1, 1, 1, c.degree});
    ASSERT_TRUE(types.ok()) << types.status();
    const auto sharding = InferSharding(conv, *types);
    ASSERT_TRUE(sharding.ok()) << sharding.status();
    for (int64_t at = 0; at < c.degree; ++at) {
      const Sharding::Task task = sharding->TaskOfOutputShard({0, 0, 0, at}, 0);
      const Box box = sharding->OperandBox(task, 0);
      EXPECT_EQ(std::make_pair(box.origin[3], box.origin[3] + box.shape[3]), c.rows[at]) << at;
      EXPECT_EQ(sharding->OperandBox(task, 1).shape, (Ints{1, 1, 1, c.kernel}));
    }
  }
}

}  // namespace
}  // namespace isomer
