#include "pcg/ir/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/finite_cast.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

MappedGraph InBFloat16(const std::string& text, const std::string& loss = "loss") {
  const Graph graph = Parsed(text);
  auto mapped = ApplyPrecision(graph, ViewsOf(graph), loss, DataType::kBFloat16);
  EXPECT_TRUE(mapped.ok()) << mapped.status();
  return mapped.ok() ? *std::move(mapped) : MappedGraph();
}

// The types of the first outputs of all nodes of a kind.
std::multiset<DataType> TypesOf(const Graph& graph, OpKind kind) {
  std::multiset<DataType> types;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node(id).op.kind() == kind) types.insert(graph.node(id).outputs[0].dtype);
  }
  return types;
}

using Types = std::multiset<DataType>;
constexpr DataType kF32 = DataType::kFloat32, kBF16 = DataType::kBFloat16;

TEST(Precision, Float32ChangesNothing) {
  const Graph graph = Parsed(kMlp);
  const auto mapped = ApplyPrecision(graph, ViewsOf(graph), "loss", DataType::kFloat32);
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->graph.ToString(), graph.ToString());
}

TEST(Precision, ComputesLowAndKeepsWeightsLossAndOutputs) {
  const Graph graph = InBFloat16(kMlp).graph;
  EXPECT_EQ(TypesOf(graph, OpKind::kMatMul), (Types{kBF16, kBF16}));
  EXPECT_EQ(TypesOf(graph, OpKind::kRelu), Types{kBF16});
  EXPECT_EQ(TypesOf(graph, OpKind::kWeight), (Types{kF32, kF32}));
  EXPECT_EQ(TypesOf(graph, OpKind::kCrossEntropy), Types{kF32});
  // x, w1, w2 down; the logits up, once for the loss and the output.
  EXPECT_EQ(TypesOf(graph, OpKind::kCast), (Types{kBF16, kBF16, kBF16, kF32}));
  for (const auto& output : graph.outputs()) EXPECT_EQ(graph.type(output.tensor).dtype, kF32);
}

TEST(Precision, WhatIsTrainedAndSummedIsInFloat32AndWhatDevicesComputeWithIsLow) {
  for (const ParallelCase& c : ParallelCases()) {
    SCOPED_TRACE(c.name);
    Plan plan;
    plan.graph = Parsed(c.parallel);
    plan.views = ViewsOf(plan.graph, c.strides);
    plan.num_devices = c.num_devices;
    plan.model.loss = "loss";
    plan.precision = kBF16;
    const auto lowered = LowerPlan(plan);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    if (c.name == "WeightsAsOutputs") {  // Outputs are in float32, and so these weights stay.
      for (const auto& parameter : lowered->schedule.parameters) {
        EXPECT_EQ(lowered->mapped.graph.type(parameter.tensor).dtype, kF32);
      }
      continue;
    }
    for (const Task& task : lowered->schedule.tasks) {
      if (task.kind != TaskKind::kUpdate) continue;
      EXPECT_EQ(lowered->schedule.buffers[task.reads[0]].role, BufferRole::kMaster);
      EXPECT_EQ(lowered->schedule.buffers[task.writes[0]].dtype, kBF16);
    }
    for (const Task& task : lowered->schedule.tasks) {
      if (task.kind != TaskKind::kAllReduce || task.reads != task.writes) continue;
      EXPECT_EQ(lowered->schedule.buffers[task.reads[0]].dtype, kF32);
    }
    for (const auto& parameter : lowered->schedule.parameters) {
      EXPECT_EQ(lowered->mapped.graph.type(parameter.tensor).dtype, kBF16);
    }
  }
}

TEST(Precision, LookUpsInFloat32TablesCastTheRows) {
  const Graph graph = InBFloat16(R"(
%0 = input "i" : i64[8]
%1 = weight "table" : f32[100,4]
%2 = weight "w" : f32[4,4]
%3 = embedding(%1, %0) : f32[8,4]
%4 = matmul(%3, %2) : f32[8,4]
output "y" = %4
)",
                                 "")
                          .graph;
  EXPECT_EQ(TypesOf(graph, OpKind::kEmbedding), Types{kF32});
  EXPECT_EQ(TypesOf(graph, OpKind::kMatMul), Types{kBF16});
}

TEST(Precision, WhatCountsAndWhatReducesToTheLossStaysFloat32) {
  const Graph graph = InBFloat16(R"(
%0 = input "i" : i64[8]
%1 = input "x" : f32[8]
%2 = cast(%0) {to=0} : f32[8]
%3 = scale(%2) {factor=2} : f32[8]
%4 = mul(%1, %3) : f32[8]
%5 = reduce_mean(%4) {axes=[0], keepdims=0} : f32[]
%6 = scale(%5) {factor=0.5} : f32[]
output "loss" = %6
)")
                          .graph;
  EXPECT_EQ(TypesOf(graph, OpKind::kMul), Types{kBF16});
  EXPECT_EQ(TypesOf(graph, OpKind::kScale), (Types{kF32, kF32}));
  EXPECT_EQ(TypesOf(graph, OpKind::kReduceMean), Types{kF32});
}

// A mask is what attention must not see times the lowest number of float32, which bfloat16 and
// float16 round to minus infinity. What is computed from values overflows as it does.
TEST(Precision, WhatIsCountedStaysFinite) {
  const std::string text = R"(
%0 = input "hidden" : i64[4]
%1 = constant "lowest" : f32[4]
%2 = input "x" : f32[4]
%3 = cast(%0) {to=0} : f32[4]
%4 = mul(%3, %1) : f32[4]
%5 = add(%2, %4) : f32[4]
%6 = add(%5, %1) : f32[4]
output "y" = %6
)";
  const Graph graph = InBFloat16(text, "").graph;
  int finite = 0, others = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node({id});
    if (node.op.kind() != OpKind::kCast || node.outputs[0].dtype != kBF16) continue;
    const bool is_of_x = graph.node(node.inputs[0].node).name == "x";
    EXPECT_EQ(IsFiniteCast(node.op), !is_of_x) << graph.Label({id});
    ++(is_of_x ? others : finite);
  }
  EXPECT_EQ(finite, 2);  // of the mask, and of the constant
  EXPECT_EQ(others, 1);
}

TEST(Precision, FiniteCastsTakeTheLargestNumberOfTheirType) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kMost = std::numeric_limits<float>::max();
  for (const auto& [low, largest] :
       {std::pair(kBF16, 0x1.FEp127), std::pair(DataType::kFloat16, 65504.0)}) {
    EXPECT_EQ(LargestNumber(low), largest);
    const absl::StatusOr<Declaration> d = Declare(FiniteCast(low), {Shape{6}});
    ASSERT_TRUE(d.ok()) << d.status();
    Array<double> x({6});
    x.data = {kMost, -kMost, kInfinity, -kInfinity, 1.5, std::nan("")};
    const auto y = Evaluate<double>(*d, FullBox(*d), {&x});
    ASSERT_TRUE(y.ok()) << y.status();
    const std::vector<double> expected = {largest, -largest, kInfinity, -kInfinity, 1.5};
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ((*y)[0].data[i], expected[i]) << i;
    EXPECT_TRUE(std::isnan((*y)[0].data[5]));
  }
}

// It is for low floats, and says no more than that.
TEST(Precision, FiniteCastsOfOtherTypesAreNone) {
  for (const char* attributes : {"finite=1, to=0", "finite=1, to=1", "finite=2, to=3"}) {
    const auto graph = ParseGraph(
        absl::StrCat("%0 = input \"x\" : f32[4]\n%1 = cast(%0) {", attributes, "} : f32[4]\n"));
    EXPECT_THAT(std::string(graph.status().message()),
                testing::HasSubstr("finite=1 is of low floats"))
        << attributes;
  }
}

// Gates in another order, as ONNX has them: the host puts them so, in float32, and one cast
// follows.
TEST(Precision, PartsOfAWeightThatAreUsedOnceAreArrangedBeforeTheyAreCast) {
  const std::string text = R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[6,4]
%2 = split(%1) {axis=0, sizes=[2,2,2]} : f32[2,4], f32[2,4], f32[2,4]
%3 = concat(%2.0, %2.2, %2.1) {axis=0} : f32[6,4]
%4 = transpose(%3) {perm=[1,0]} : f32[4,6]
%5 = matmul(%0, %4) : f32[8,6]
output "y" = %5
)";
  const Graph graph = InBFloat16(text, "").graph;
  EXPECT_EQ(TypesOf(graph, OpKind::kConcat), Types{kF32});
  EXPECT_EQ(TypesOf(graph, OpKind::kTranspose), Types{kF32});
  EXPECT_EQ(TypesOf(graph, OpKind::kCast), (Types{kBF16, kBF16, kF32}));
  // A part that is used twice is stored for itself.
  const Graph twice =
      InBFloat16(absl::StrReplaceAll(text, {{"%2.2, %2.1", "%2.2, %2.2"}}), "").graph;
  EXPECT_EQ(TypesOf(twice, OpKind::kConcat), Types{kBF16});
}

// What the weight is stored in, in training.
DataType StoredIn(const std::string& text) {
  const Graph graph = InBFloat16(text).graph;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node({id}).op.kind() != OpKind::kCast) continue;
    const TensorRef input = graph.node({id}).inputs[0];
    if (graph.node(input.node).name == "w") return graph.type({{id}, 0}).dtype;
  }
  return kF32;
}

// Casts stand right behind such weights, before what places and arranges them.
TEST(Precision, WeightsAreStoredLowIfAllTheirUsersComputeLow) {
  const std::string tied = R"(
%0 = input "i" : i64[8]
%1 = weight "w" : f32[8,4]
%2 = embedding(%1, %0) : f32[8,4]
%3 = transpose(%1) {perm=[1,0]} : f32[4,8]
%4 = matmul(%2, %3) : f32[8,8]
%5 = cross_entropy(%4, %0) : f32[]
output "loss" = %5
)";
  const Graph graph = InBFloat16(tied).graph;
  EXPECT_EQ(TypesOf(graph, OpKind::kEmbedding), Types{kBF16});
  EXPECT_EQ(TypesOf(graph, OpKind::kTranspose), Types{kBF16});
  EXPECT_EQ(TypesOf(graph, OpKind::kCast), (Types{kBF16, kF32}));
  EXPECT_EQ(StoredIn(tied), kBF16);
  // An output that is the weight, a loss on the weight itself.
  const auto with = [&](const std::string& from, const std::string& to) {
    return absl::StrReplaceAll(tied, {{from, to}});
  };
  EXPECT_EQ(TypesOf(InBFloat16(with("output \"loss\"", "output \"w\" = %1\noutput \"loss\"")).graph,
                    OpKind::kEmbedding),
            Types{kF32});
  const std::string penalty =
      with("output \"loss\" = %5", R"(%6 = reduce_sum(%1) {axes=[0,1], keepdims=0} : f32[]
%7 = add(%5, %6) : f32[]
output "loss" = %7)");
  const Graph penalised = InBFloat16(penalty).graph;
  EXPECT_EQ(TypesOf(penalised, OpKind::kEmbedding), Types{kF32});
}

// The host puts two weights side by side, of which one is used in float32, too.
TEST(Precision, WeightsThatAreArrangedTogetherAreOfOneType) {
  const Graph graph = InBFloat16(R"(
%0 = input "x" : f32[8,4]
%1 = weight "v" : f32[2,4]
%2 = weight "w" : f32[2,4]
%3 = replicate(%1) {degree=1} : f32[2,4]
%4 = concat(%3, %2) {axis=0} : f32[4,4]
%5 = matmul(%0, %4) : f32[8,4]
%6 = reduce_sum(%5) {axes=[0,1], keepdims=0} : f32[]
output "v" = %1
output "loss" = %6
)")
                          .graph;
  EXPECT_EQ(TypesOf(graph, OpKind::kConcat), Types{kF32});
}

TEST(Precision, NamesAreReadBack) {
  for (DataType dtype : {kF32, kBF16, DataType::kFloat16}) {
    EXPECT_EQ(*ParsePrecision(PrecisionName(dtype)), dtype);
  }
  EXPECT_EQ(ParsePrecision("int8").status().message(),
            "precision 'int8': there are float32, bfloat16 and float16");
}

}  // namespace
}  // namespace isomer
