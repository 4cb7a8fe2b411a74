#include "pcg/ir/examples.h"

#include <algorithm>
#include <string>
#include <utility>

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
    {"Linear", "linear f32[4,6] f32[6,2]"},
    {"LinearBias", "linear f32[2,4,6] f32[6,2] f32[2]"},
    {"LinearRelu", "linear(activation=1) f32[4,6] f32[6,2]"},
    {"LinearGelu", "linear(activation=2) f32[4,6] f32[6,2] f32[2]"},
    {"LinearTanh", "linear(activation=3) f32[4,6] f32[6,2] f32[2]"},
    {"LinearSigmoid", "linear(activation=4) f32[4,6] f32[6,2] f32[2]"},
    {"LinearSwish", "linear(activation=5) f32[4,6] f32[6,2] f32[2]"},
    {"Conv1d", "conv1d(stride=[1],padding=[1,1],dilation=[1]) f32[2,4,6] f32[6,4,3]"},
    {"Conv1dCausal", "conv1d(stride=[1],padding=[4,0],dilation=[2]) f32[2,2,6] f32[4,2,3]"},
    {"Conv2d", "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1]) f32[2,4,4,4] f32[6,4,3,3]"},
    {"Conv2dStrided",
     "conv2d(stride=[2,1],padding=[0,1,1,0],dilation=[1,1]) f32[2,2,5,4] f32[2,2,3,2]"},
    {"Conv2dGroups",
     "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1],groups=2) f32[2,4,3,3] f32[6,2,3,3]"},
    {"Conv2dDilated",
     "conv2d(stride=[1,2],padding=[2,0,1,1],dilation=[2,1]) f32[2,2,5,4] f32[2,2,3,2]"},
    {"Conv2dDepthwise",
     "conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1],groups=4) f32[2,4,3,3] f32[4,1,3,3]"},
    {"Conv3d",
     "conv3d(stride=[1,1,1],padding=[1,1,0,0,1,0],dilation=[1,1,1]) f32[2,2,2,4,3] f32[4,2,2,3,1]"},
    {"Conv3dStrided",
     "conv3d(stride=[2,1,2],padding=[0,1,1,1,0,1],dilation=[1,2,1],groups=2) f32[2,2,3,3,4] "
     "f32[2,1,2,2,3]"},
    {"ConvTranspose1d",
     "conv_transpose(stride=[2],padding=[1,1],dilation=[1],output_padding=[1]) f32[2,4,4] "
     "f32[4,6,3]"},
    {"ConvTranspose2d",
     "conv_transpose(stride=[2,1],padding=[0,1,1,0],dilation=[1,2],output_padding=[1,0]) "
     "f32[2,4,3,2] f32[4,2,3,2]"},
    {"ConvTransposeGroups",
     "conv_transpose(stride=[2,2],padding=[0,0,0,0],dilation=[1,1],output_padding=[0,0],groups=2) "
     "f32[2,4,2,2] f32[4,2,2,2]"},
    {"ConvTranspose3d",
     "conv_transpose(stride=[1,2,1],padding=[1,0,0,0,0,1],dilation=[1,1,1],"
     "output_padding=[0,0,0]) f32[2,2,2,2,3] f32[2,2,2,3,2]"},
    // Elementwise, two operands.
    {"Add", "add f32[4,6] f32[4,6]"},
    {"AddInts", "add i64[4,6] i64[4,6]"},
    {"AddBroadcast", "add f32[2,4,6] f32[6]"},
    {"Sub", "sub f32[4,6] f32[4,6]"},
    {"SubBroadcast", "sub f32[4,1] f32[2,4,6]"},
    {"Mul", "mul f32[4,6] f32[1,6]"},
    {"MulInts", "mul i32[4,6] i32[6]"},
    {"Div", "div f32[4,6] f32[4,6]"},
    {"Maximum", "maximum f32[4,6] f32[4,6]"},
    {"MaximumBool", "maximum bool[4,6] bool[4,6]"},
    {"Minimum", "minimum f32[4,6] f32[4,6]"},
    {"MinimumBool", "minimum bool[4,6] bool[6]"},
    {"Pow", "pow f32[4,6] f32[4,1]"},
    {"Equal", "equal f32[4,6] f32[4,6]"},
    {"EqualInts", "equal i64[4,6] i64[6]"},
    {"Less", "less f32[4,6] f32[1,6]"},
    {"LessEqual", "less_equal f32[4,6] f32[4,6]"},
    // Elementwise, one operand.
    {"Scale", "scale(factor=0.3) f32[4,6]"},
    {"Relu", "relu f32[4,6]"},
    {"Gelu", "gelu f32[4,6]"},
    {"GeluTanh", "gelu_tanh(slope=0.796875,cubic=0.044715) f32[4,6]"},
    {"Tanh", "tanh f32[4,6]"},
    {"Sigmoid", "sigmoid f32[4,6]"},
    {"Exp", "exp f32[4,6]"},
    {"Swish", "swish f32[4,6]"},
    {"HardSwish", "hard_swish f32[4,6]"},
    {"HardSigmoid", "hard_sigmoid(alpha=0.75,beta=0.5) f32[4,6]"},
    {"LeakyRelu", "leaky_relu(alpha=0.125) f32[4,6]"},
    {"Elu", "elu(alpha=1.5) f32[4,6]"},
    {"Softplus", "softplus f32[4,6]"},
    {"Clip", "clip(min=-0.5,max=1.25) f32[4,6]"},
    {"ClipInts", "clip(min=2,max=3) i64[4,6]"},
    {"Log", "log f32[4,6]"},
    {"Sqrt", "sqrt f32[4,6]"},
    {"Reciprocal", "reciprocal f32[4,6]"},
    {"Erf", "erf f32[4,6]"},
    {"Sin", "sin f32[4,6]"},
    {"Cos", "cos f32[4,6]"},
    {"Atan", "atan f32[4,6]"},
    {"Abs", "abs f32[4,6]"},
    {"Sign", "sign f32[4,6]"},
    {"Floor", "floor f32[4,6]"},
    {"Ceil", "ceil f32[4,6]"},
    {"Round", "round f32[4,6]"},
    {"Not", "not bool[4,6]"},
    {"Cast", "cast(to=0) f32[4,6]"},
    {"CastToInt64", "cast(to=1) i32[4,6]"},
    {"CastToFloat32", "cast(to=0) i64[4,6]"},
    {"CastToBool", "cast(to=5) i64[4,6]"},
    // Elementwise, others.
    {"Where", "where bool[4,6] f32[4,6] f32[4,6]"},
    {"WhereBroadcast", "where bool[4,1] f32[2,4,6] f32[6]"},
    {"WhereInts", "where bool[4,6] i64[4,6] i64[6]"},
    {"Dropout", "dropout(rate=0.5) f32[4,6] i64[]"},
    {"DropoutSalt", "dropout(rate=0.25,salt=7) f32[2,4,6] i64[]"},
    // Normalisation.
    {"Softmax", "softmax f32[2,4,6]"},
    {"SoftmaxFirstAxis", "softmax(axis=0) f32[4,6]"},
    {"LogSoftmax", "log_softmax f32[2,4,6]"},
    {"LogSoftmaxFirstAxis", "log_softmax(axis=0) f32[4,6]"},
    {"LayerNorm", "layer_norm(epsilon=0.01) f32[2,4,6] f32[6] f32[6]"},
    {"RmsNorm", "rms_norm(epsilon=0.01) f32[2,4,6] f32[6]"},
    {"GroupNorm", "group_norm(groups=2,epsilon=0.01) f32[2,4,2,2] f32[4] f32[4]"},
    {"InstanceNorm", "group_norm(groups=4,epsilon=0.01) f32[2,4,6] f32[4] f32[4]"},
    {"BatchNorm", "batch_norm(epsilon=0.01) f32[2,4,2,2] f32[4] f32[4] f32[4] f32[4]"},
    {"BatchNormTraining", "batch_norm_training(epsilon=0.01) f32[4,4,2,2] f32[4] f32[4]"},
    {"BatchNormTrainingFeatures", "batch_norm_training(epsilon=0.01) f32[6,4] f32[4] f32[4]"},
    // Pooling and reduction.
    {"MaxPool", "max_pool(kernel=[3,3],stride=[2,2],padding=[1,1,0,0]) f32[2,2,6,6]"},
    {"MaxPool1d", "max_pool(kernel=[2],stride=[2],padding=[0,0]) f32[2,4,6]"},
    {"MaxPool3d", "max_pool(kernel=[2,3,1],stride=[1,2,1],padding=[1,0,0,0,1,0]) f32[2,2,2,4,2]"},
    {"AvgPool", "avg_pool(kernel=[3,3],stride=[2,2],padding=[1,1,1,1]) f32[2,2,5,5]"},
    {"AvgPool1d", "avg_pool(kernel=[3],stride=[1],padding=[0,2]) f32[2,4,6]"},
    {"AvgPool3d", "avg_pool(kernel=[2,2,2],stride=[2,1,2],padding=[0,0,0,0,0,0]) f32[2,2,4,3,2]"},
    {"AvgPoolCountingPad",
     "avg_pool(kernel=[3,3],stride=[2,2],padding=[1,1,1,1],count_include_pad=1) f32[2,2,5,5]"},
    {"AdaptiveAvgPool", "adaptive_avg_pool(output=[3,2]) f32[2,2,4,5]"},
    {"AdaptiveAvgPoolGlobal", "adaptive_avg_pool(output=[1,1]) f32[2,4,3,3]"},
    {"AdaptiveAvgPoolMixed", "adaptive_avg_pool(output=[2,3]) f32[2,2,4,5]"},
    {"AdaptiveAvgPool1d", "adaptive_avg_pool(output=[4]) f32[2,4,6]"},
    {"ReduceSum", "reduce_sum(axes=[0,-1],keepdims=0) f32[4,6,2]"},
    {"ReduceMeanKeepingDims", "reduce_mean(axes=[1]) f32[4,6,2]"},
    {"ReduceMax", "reduce_max(axes=[1],keepdims=0) f32[4,6,2]"},
    {"ReduceMaxInts", "reduce_max(axes=[0,1]) i64[4,6]"},
    {"ReduceMin", "reduce_min(axes=[-1]) f32[4,6]"},
    {"ReduceProd", "reduce_prod(axes=[0,2],keepdims=0) f32[2,4,2]"},
    {"ArgMax", "argmax(axis=1) f32[4,6,2]"},
    {"ArgMaxLast", "argmax(axis=-1,keepdims=0,last=1) i64[4,6]"},
    {"ArgMin", "argmin(axis=0,keepdims=0) f32[4,6]"},
    {"TopK", "topk(k=3) f32[4,6]"},
    {"TopKSmallest", "topk(k=2,axis=0,largest=0) f32[6,4]"},
    {"TopKInts", "topk(k=4) i64[4,6]"},
    {"CumSum", "cumsum(axis=1) f32[4,6]"},
    {"CumSumExclusive", "cumsum(axis=0,exclusive=1) f32[6,4]"},
    {"CumSumReverse", "cumsum(axis=-1,reverse=1) f32[4,6]"},
    // Layout.
    {"Transpose", "transpose(perm=[2,0,1]) f32[4,6,2]"},
    {"ReshapeSplit", "reshape(shape=[4,2,3,2]) f32[4,6,2]"},
    {"ReshapeMerge", "reshape(shape=[24,2]) f32[4,6,2]"},
    {"ReshapeIncommensurable", "reshape(shape=[6,4]) f32[4,6]"},
    {"Concat", "concat(axis=1) f32[4,6] f32[4,2] f32[4,1]"},
    {"Split", "split(axis=1,sizes=[2,4]) f32[4,6]"},
    {"Slice", "slice(starts=[0,1],sizes=[4,2],steps=[1,3]) f32[4,6]"},
    {"SliceBackwards", "slice(starts=[3,0],sizes=[4,6],steps=[-1,1]) f32[4,6]"},
    {"SliceInts", "slice(starts=[0,2],sizes=[4,4],steps=[1,1]) i64[4,6]"},
    {"Pad", "pad(padding=[0,1,0,2]) f32[4,6]"},
    {"PadCutting", "pad(padding=[0,-1,0,2]) f32[4,6]"},
    {"PadValue", "pad(padding=[1,0,1,0],value=-0.5) f32[4,6]"},
    {"PadReflect", "pad(padding=[0,2,1,0,3,2],mode=1) f32[2,4,3]"},
    {"PadEdge", "pad(padding=[0,2,1,0,3,2],mode=2) f32[2,4,3]"},
    {"PadWrap", "pad(padding=[0,2,1,0,3,2],mode=3) f32[2,4,3]"},
    {"Expand", "expand(shape=[2,4,6]) f32[4,1]"},
    {"TriluUpper", "trilu(upper=1) f32[2,4,6]"},
    {"TriluLower", "trilu(upper=0,k=1) f32[4,6]"},
    {"TriluBool", "trilu(upper=1,k=-1) bool[4,4]"},
    // Look-ups.
    {"Embedding", "embedding f32[4,6] i64[2,6]"},
    {"EmbeddingBag", "embedding_bag f32[4,6] i64[4,2]"},
    {"EmbeddingBagMean", "embedding_bag(mean=1) f32[4,6] i32[2,4]"},
    {"Gather", "gather(axis=1) f32[2,4,6] i64[2,4]"},
    {"GatherOne", "gather(axis=0) f32[4,6] i64[]"},
    {"GatherInts", "gather(axis=-1) i64[2,4] i64[6]"},
    {"GatherMatMul", "gather_matmul f32[4,6] f32[4,6,8] i64[4]"},
    {"GatherMatMulMany", "gather_matmul f32[2,4,6] f32[4,6,2] i64[2,4]"},
    {"GatherElements", "gather_elements(axis=1) f32[2,4,6] i64[2,2,6]"},
    {"GatherElementsFewer", "gather_elements(axis=-1) f32[4,6] i64[2,4]"},
    {"ScatterElements", "scatter_elements(axis=0) f32[4,6] i64[6,6] f32[6,6]"},
    {"ScatterElementsFewer", "scatter_elements(axis=1) f32[4,6] i64[2,3] f32[2,3]"},
    {"ScatterElementsAdd", "scatter_elements(axis=1,reduction=1) f32[4,6] i64[4,4] f32[4,4]"},
    {"ScatterElementsMul", "scatter_elements(axis=1,reduction=2) f32[4,6] i64[4,4] f32[4,4]"},
    {"ScatterElementsMax", "scatter_elements(axis=1,reduction=3) f32[4,6] i64[4,4] f32[4,4]"},
    {"ScatterElementsMin", "scatter_elements(axis=1,reduction=4) f32[4,6] i32[4,4] f32[4,4]"},
    {"ScatterElementsInts", "scatter_elements(axis=0,reduction=1) i64[4,6] i64[2,6] i64[2,6]"},
    {"OneHot", "one_hot(depth=4) i64[4,6]"},
    {"OneHotFirstAxis", "one_hot(depth=6,axis=0) i32[4]"},
    // Attention, recurrent cells, mixture of experts.
    {"Attention", "attention(scale=0.5) f32[2,2,4,4] f32[2,2,6,4] f32[2,2,6,2]"},
    {"AttentionCausal", "attention(scale=0.5,causal=1) f32[2,2,4,4] f32[2,2,4,4] f32[2,2,4,2]"},
    {"AttentionCausalWithPast",
     "attention(scale=0.5,causal=1) f32[2,2,2,4] f32[2,2,4,4] f32[2,2,4,2]"},
    {"AttentionGroupedHeads", "attention(scale=0.5) f32[2,4,2,4] f32[2,2,4,4] f32[2,2,4,2]"},
    {"AttentionMask", "attention(scale=0.5) f32[2,4,2,2] f32[2,2,4,2] f32[2,2,4,2] f32[2,4,2,4]"},
    {"AttentionMaskBroadcast",
     "attention(scale=0.5,causal=1) f32[2,2,4,2] f32[2,2,4,2] f32[2,2,4,2] f32[2,1,1,4]"},
    {"AttentionMaskOfScores",
     "attention(scale=0.5) f32[2,2,4,2] f32[2,2,6,2] f32[2,2,6,2] f32[4,6]"},
    {"CappedAttention",
     "capped_attention(scale=0.5,cap=1.5) f32[2,2,4,4] f32[2,2,6,4] f32[2,2,6,2]"},
    {"CappedAttentionCausal",
     "capped_attention(scale=0.5,cap=2,causal=1) f32[2,2,4,4] f32[2,2,4,4] f32[2,2,4,2]"},
    {"CappedAttentionGroupedHeads",
     "capped_attention(scale=0.5,cap=2,causal=1) f32[2,4,2,4] f32[2,2,4,4] f32[2,2,4,2]"},
    {"CappedAttentionMask",
     "capped_attention(scale=0.5,cap=1.5) f32[2,4,2,2] f32[2,2,4,2] f32[2,2,4,2] f32[2,4,2,4]"},
    {"CappedAttentionMaskBroadcast",
     "capped_attention(scale=0.5,cap=2,causal=1) f32[2,2,4,2] f32[2,2,4,2] f32[2,2,4,2] "
     "f32[2,1,1,4]"},
    {"CappedAttentionMaskOfScores",
     "capped_attention(scale=0.5,cap=1.5) f32[2,2,4,2] f32[2,2,6,2] f32[2,2,6,2] f32[4,6]"},
    {"Rotary", "rotary f32[2,2,4,6] f32[4,3] f32[4,3]"},
    {"RotaryInterleaved", "rotary(interleaved=1) f32[2,2,4,6] f32[4,3] f32[4,3]"},
    {"LstmCell", "lstm_cell f32[2,4,6] f32[2,6]"},
    {"LstmCellOneSample", "lstm_cell f32[4,6] f32[6]"},
    {"GruCell", "gru_cell f32[4,3,6] f32[4,3,6] f32[4,6]"},
    {"GruCellTwoDims", "gru_cell f32[2,2,3,4] f32[2,2,3,4] f32[2,2,4]"},
    {"Top2Gating", "top2_gating(capacity=3) f32[2,6,4] i64[]"},
    {"Top2GatingGreedy", "top2_gating(capacity=2,random=0) f32[2,6,3] i64[]"},
    // Losses.
    {"CrossEntropy", "cross_entropy f32[2,4,6] i64[2,4]"},
    {"MeanSquaredError", "mse f32[4,6] f32[4,6]"},
    {"BinaryCrossEntropy", "binary_cross_entropy f32[4,6] f32[4,6]"},
};

ExampleCall Parse(const Row& row) {
  absl::StatusOr<OperatorCall> call = ParseCall(row.call);
  ISOMER_CHECK(call.ok());
  return {row.name, std::move(call->op), std::move(call->operands)};
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

std::vector<OperatorCall> WithExamples(OpKind kind, std::vector<OperatorCall> calls) {
  for (OperatorCall example : ExamplesOf(kind)) {
    if (std::find(calls.begin(), calls.end(), example) == calls.end()) {
      calls.push_back(std::move(example));
    }
  }
  return calls;
}

void CallsByKind::Add(absl::string_view text) {
  absl::StatusOr<OperatorCall> call = ParseCall(text);
  ISOMER_CHECK(call.ok());
  calls_[static_cast<size_t>(call->op.kind())].push_back(*std::move(call));
}

void CallsByKind::AddExamplesOfOthers() {
  for (OpKind kind : kAllOpKinds) {
    std::vector<OperatorCall>& calls = calls_[static_cast<size_t>(kind)];
    if (calls.empty()) calls = WithExamples(kind);
  }
}

}  // namespace isomer
