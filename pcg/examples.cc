#include "pcg/examples.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_split.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

struct Row {
  const char* name;
  const char* call;  // operator(attributes) followed by the types of its operands
};

constexpr Row kRows[] = {
    // Contractions.
    {"MatMul", "matmul f32[4,6] f32[6,2]"},
    {"MatMulBatched", "matmul f32[2,4,6] f32[2,6,2]"},
    {"MatMulByWeight", "matmul f32[2,4,6] f32[6,2]"},
    {"MatMulBroadcastBatch", "matmul f32[1,4,6] f32[2,6,2]"},
    {"Conv2d", "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1]) f32[2,4,4,4] f32[6,4,3,3]"},
    {"Conv2dStrided",
     "conv2d(stride=[2,1],padding=[0,1,1,0],dilation=[1,1]) f32[2,2,5,4] f32[2,2,3,2]"},
    {"Conv2dGroups",
     "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1],groups=2) f32[2,4,3,3] f32[6,2,3,3]"},
    // Elementwise, two operands.
    {"Add", "add f32[4,6] f32[4,6]"},
    {"AddBroadcast", "add f32[2,4,6] f32[6]"},
    {"SubBroadcast", "sub f32[4,1] f32[2,4,6]"},
    {"Mul", "mul f32[4,6] f32[1,6]"},
    {"Div", "div f32[4,6] f32[4,6]"},
    {"Maximum", "maximum f32[4,6] f32[4,6]"},
    {"Minimum", "minimum f32[4,6] f32[4,6]"},
    // Elementwise, one operand.
    {"Scale", "scale(factor=0.3) f32[4,6]"},
    {"Relu", "relu f32[4,6]"},
    {"Gelu", "gelu f32[4,6]"},
    {"Tanh", "tanh f32[4,6]"},
    {"Sigmoid", "sigmoid f32[4,6]"},
    {"Exp", "exp f32[4,6]"},
    {"Swish", "swish f32[4,6]"},
    {"LeakyRelu", "leaky_relu(alpha=0.125) f32[4,6]"},
    // Normalisation.
    {"Softmax", "softmax f32[2,4,6]"},
    {"SoftmaxFirstAxis", "softmax(axis=0) f32[4,6]"},
    {"LayerNorm", "layer_norm(epsilon=0.01) f32[2,4,6] f32[6] f32[6]"},
    {"BatchNorm", "batch_norm(epsilon=0.01) f32[2,4,2,2] f32[4] f32[4] f32[4] f32[4]"},
    // Pooling and reduction.
    {"MaxPool", "max_pool(kernel=[3,3],stride=[2,2],padding=[1,1,0,0]) f32[2,2,6,6]"},
    {"AvgPool", "avg_pool(kernel=[3,3],stride=[2,2],padding=[1,1,1,1]) f32[2,2,5,5]"},
    {"AvgPoolCountingPad",
     "avg_pool(kernel=[3,3],stride=[2,2],padding=[1,1,1,1],count_include_pad=1) f32[2,2,5,5]"},
    {"ReduceSum", "reduce_sum(axes=[0,-1],keepdims=0) f32[4,6,2]"},
    {"ReduceMeanKeepingDims", "reduce_mean(axes=[1]) f32[4,6,2]"},
    // Layout.
    {"Transpose", "transpose(perm=[2,0,1]) f32[4,6,2]"},
    {"ReshapeSplit", "reshape(shape=[4,2,3,2]) f32[4,6,2]"},
    {"ReshapeMerge", "reshape(shape=[24,2]) f32[4,6,2]"},
    {"ReshapeIncommensurable", "reshape(shape=[6,4]) f32[4,6]"},
    {"Concat", "concat(axis=1) f32[4,6] f32[4,2] f32[4,1]"},
    {"Split", "split(axis=1,sizes=[2,4]) f32[4,6]"},
    // Look-ups.
    {"Embedding", "embedding f32[4,6] i64[2,6]"},
    // Losses.
    {"CrossEntropy", "cross_entropy f32[2,4,6] i64[2,4]"},
    {"MeanSquaredError", "mse f32[4,6] f32[4,6]"},
};

ExampleCall Parse(const Row& row) {
  ExampleCall example;
  example.name = row.name;
  std::vector<std::string> words = absl::StrSplit(row.call, ' ', absl::SkipEmpty());
  absl::StatusOr<Operator> op = ParseOperator(words[0]);
  ISOMER_CHECK(op.ok());
  example.op = *std::move(op);
  for (size_t i = 1; i < words.size(); ++i) {
    absl::StatusOr<TensorType> type = ParseTensorType(words[i]);
    ISOMER_CHECK(type.ok());
    example.operands.push_back(*std::move(type));
  }
  return example;
}

}  // namespace

const std::vector<ExampleCall>& Examples() {
  static const auto* const examples = [] {
    auto* parsed = new std::vector<ExampleCall>;
    for (const Row& row : kRows) parsed->push_back(Parse(row));
    return parsed;
  }();
  return *examples;
}

std::vector<ExampleCall> ExamplesOf(OpKind kind) {
  std::vector<ExampleCall> examples;
  std::copy_if(Examples().begin(), Examples().end(), std::back_inserter(examples),
               [kind](const ExampleCall& example) { return example.op.kind() == kind; });
  return examples;
}

}  // namespace isomer
