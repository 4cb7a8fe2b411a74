// Models of one operator with windows, partitioned over any of its dims, and the same undivided.
#ifndef ISOMER_TESTS_PCG_SCHEDULE_SPATIAL_GRAPHS_H_
#define ISOMER_TESTS_PCG_SCHEDULE_SPATIAL_GRAPHS_H_

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "pcg/ir/parallel_operator.h"
#include "pcg/ir/type_inference.h"
#include "pcg/schedule/lowering/lower.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {

struct SpatialCase {
  std::string name;
  std::string op;                          // text form
  std::vector<std::string> operands;       // types; all are weights, so that all have gradients
  std::map<std::string, int64_t> degrees;  // by iteration dim
};
inline void PrintTo(const SpatialCase& c, std::ostream* out) { *out << c.name; }

// The parallel operators that take `at` to type `to`.
inline TensorRef Redistributed(Graph* graph, TensorRef at, const TensorType& to) {
  auto add = [&](Operator op) { at = graph->AddOp(std::move(op), {at}).value(); };
  const TensorType from = graph->type(at);
  if (from.partials > to.partials) add(Reduce(from.partials / to.partials));
  for (int i = 0; i < from.rank(); ++i) {
    if (from.dims[i].degree > 1 && to.dims[i].degree == 1) add(Combine(i, from.dims[i].degree));
  }
  for (int i = 0; i < from.rank(); ++i) {
    if (from.dims[i].degree == 1 && to.dims[i].degree > 1) add(Partition(i, to.dims[i].degree));
  }
  if (to.copies > from.copies) add(Replicate(to.copies / from.copies));
  return at;
}

// loss = mse(op(weights..), target), with the call's iteration dims of these degrees.
inline Graph SpatialGraph(const SpatialCase& c, bool parallel) {
  const Operator op = ParseOperator(c.op).value();
  std::vector<TensorType> logical;
  std::vector<Shape> shapes;
  for (const std::string& text : c.operands) {
    logical.push_back(ParseTensorType(text).value());
    shapes.push_back(logical.back().GlobalShape());
  }
  const Declaration declaration = Declare(op, shapes).value();
  std::vector<int64_t> degrees;
  size_t named = 0;
  for (const IterationDim& dim : declaration.dims) {
    const auto found = c.degrees.find(dim.name);
    named += found != c.degrees.end();
    degrees.push_back(parallel && found != c.degrees.end() ? found->second : 1);
  }
  EXPECT_EQ(named, c.degrees.size()) << "a dim is misspelt";
  const auto types = OperandTypesFor(op, logical, degrees);
  EXPECT_TRUE(types.ok()) << types.status();
  Graph graph;
  std::vector<TensorRef> operands;
  for (size_t o = 0; o < logical.size(); ++o) {
    operands.push_back(graph.AddWeight("w" + std::to_string(o), logical[o]));
  }
  const std::vector<int64_t> sizes = InferTypes(op, logical).value()[0].Sizes();
  TensorRef target = graph.AddInput("target", SequentialType(sizes));
  for (size_t o = 0; o < logical.size(); ++o) {
    operands[o] = Redistributed(&graph, operands[o], (*types)[o]);
  }
  TensorRef y = graph.AddOp(op, operands).value();
  TensorType whole_sums = graph.type(y);
  whole_sums.partials = 1;
  y = Redistributed(&graph, y, whole_sums);
  target = Redistributed(&graph, target, graph.type(y));
  TensorRef loss = graph.AddOp(OpKind::kMeanSquaredError, {y, target}).value();
  loss = Redistributed(&graph, loss, SequentialType({}));
  graph.AddOutput("y", y);
  graph.AddOutput("loss", loss);
  return graph;
}

inline int64_t DevicesOf(const SpatialCase& c) {
  int64_t devices = 1;
  for (const auto& [dim, degree] : c.degrees) devices *= degree;
  return devices;
}

inline Schedule LoweredSpatial(const SpatialCase& c) {
  const Graph graph = SpatialGraph(c, true);
  absl::StatusOr<Schedule> schedule =
      LowerGraph(graph, ViewsOf(graph), TrainingOptions(DevicesOf(c)));
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

inline std::vector<SpatialCase> SpatialCases() {
  const std::string plain = "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1])";
  const std::string strided = "conv2d(stride=[2,2],padding=[1,1,0,0],dilation=[1,1])";
  const std::string max_pool = "max_pool(kernel=[3,3],stride=[2,2],padding=[1,1,0,0])";
  const std::string avg_pool = "avg_pool(kernel=[3,3],stride=[1,1],padding=[1,1,1,1]";
  const std::vector<std::string> image = {"f32[2,4,8,8]", "f32[6,4,3,3]"};
  return {
      {"ConvRows", plain, image, {{"y", 2}}},
      {"ConvRowsOneOrTwoEach", plain, image, {{"y", 8}}},
      {"ConvColumns", plain, image, {{"x", 4}}},
      {"ConvRowsAndColumns", plain, image, {{"y", 2}, {"x", 4}}},
      {"ConvSamplesRowsAndColumns", plain, image, {{"n", 2}, {"y", 2}, {"x", 2}}},
      {"ConvRowsAndContraction", plain, image, {{"c", 2}, {"y", 2}, {"x", 2}}},
      {"ConvRowsAndOutputChannels", plain, image, {{"o", 2}, {"y", 4}}},
      {"ConvStrided", strided, image, {{"y", 2}, {"x", 4}}},
      {"ConvStrideWithoutHalo",
       "conv2d(stride=[2,2],padding=[0,0,0,0],dilation=[1,1])",
       {"f32[1,2,8,8]", "f32[2,2,2,1]"},
       {{"y", 4}, {"x", 2}}},
      {"ConvDilated",
       "conv2d(stride=[1,1],padding=[2,2,2,2],dilation=[2,2])",
       image,
       {{"y", 2}, {"x", 2}}},
      {"ConvAsymmetricPadding",
       "conv2d(stride=[1,1],padding=[2,0,0,2],dilation=[1,1])",
       image,
       {{"y", 4}, {"x", 2}}},
      {"ConvGroups",
       "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1],groups=2)",
       {"f32[2,4,8,8]", "f32[6,2,3,3]"},
       {{"g", 2}, {"y", 2}, {"x", 2}}},
      {"ConvBeyondTheNeighbour",
       "conv2d(stride=[1,1],padding=[3,3,3,3],dilation=[1,1])",
       {"f32[1,2,8,8]", "f32[2,2,7,7]"},
       {{"y", 8}}},
      {"ConvOfPaddingAlone",
       "conv2d(stride=[1,1],padding=[6,0,6,0],dilation=[1,1])",
       {"f32[1,2,4,4]", "f32[2,2,1,1]"},
       {{"y", 4}, {"x", 2}}},
      {"ConvOfOneDim",
       "conv1d(stride=[1],padding=[2,1],dilation=[1])",
       {"f32[2,4,8]", "f32[6,4,4]"},
       {{"x", 4}, {"n", 2}}},
      {"ConvOfThreeDims",
       "conv3d(stride=[1,2,1],padding=[1,1,1,1,0,1],dilation=[1,1,1])",
       {"f32[1,2,4,4,4]", "f32[2,2,3,3,3]"},
       {{"z", 2}, {"y", 2}, {"x", 2}}},
      {"ConvTranspose",
       "conv_transpose(stride=[2,1],padding=[1,1,1,1],dilation=[1,1],output_padding=[0,0])",
       {"f32[1,2,4,4]", "f32[2,2,4,3]"},
       {{"y", 2}, {"x", 2}}},
      {"MaxPool", max_pool, {"f32[2,4,8,8]"}, {{"y", 2}, {"x", 4}}},
      {"MaxPoolSamplesAndChannels", max_pool, {"f32[2,4,8,8]"}, {{"n", 2}, {"c", 2}, {"y", 2}}},
      {"MaxPoolOfOneDim",
       "max_pool(kernel=[3],stride=[1],padding=[1,1])",
       {"f32[2,4,8]"},
       {{"x", 4}}},
      {"AvgPool", avg_pool + ")", {"f32[2,4,8,8]"}, {{"y", 4}, {"x", 2}}},
      {"AvgPoolCountingPad", avg_pool + ",count_include_pad=1)", {"f32[2,4,8,8]"}, {{"y", 2}}},
      {"AvgPoolOfThreeDims",
       "avg_pool(kernel=[3,2,1],stride=[1,2,1],padding=[1,0,0,1,0,0])",
       {"f32[1,2,4,4,4]"},
       {{"z", 2}, {"y", 2}, {"x", 2}}},
  };
}

}  // namespace isomer

#endif  // ISOMER_TESTS_PCG_SCHEDULE_SPATIAL_GRAPHS_H_
