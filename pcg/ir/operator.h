// Operators: one list. A new operator is one line here, one declaration in pcg/operators/. Users
// declare further ones in a file (declared_operator.h).
#ifndef ISOMER_PCG_IR_OPERATOR_H_
#define ISOMER_PCG_IR_OPERATOR_H_

#include <bitset>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/extent.h"

namespace isomer {

// (kind, name in text, fewest operands, most operands, attributes, declared by)
// Attributes are separated by spaces; `name=value` has a default. `Declare` + the last column is
// the function of pcg/operators/ that states what the operator means.
#define ISOMER_OPERATORS(V)                                                                       \
  /* Leaves of a graph. A constant is a weight that is not trained. */                            \
  V(Input, "input", 0, 0, "", Nothing)                                                            \
  V(Weight, "weight", 0, 0, "", Nothing)                                                          \
  V(Constant, "constant", 0, 0, "", Nothing)                                                      \
  /* Contractions. */                                                                             \
  V(MatMul, "matmul", 2, 2, "", MatMul)                                                           \
  V(Linear, "linear", 2, 3, "activation=0", Linear)                                               \
  V(Conv1d, "conv1d", 2, 2, "stride padding dilation groups=1", Convolution)                      \
  V(Conv2d, "conv2d", 2, 2, "stride padding dilation groups=1", Convolution)                      \
  V(Conv3d, "conv3d", 2, 2, "stride padding dilation groups=1", Convolution)                      \
  V(ConvTranspose, "conv_transpose", 2, 2, "stride padding dilation output_padding groups=1",     \
    ConvTranspose)                                                                                \
  /* Elementwise, two operands. */                                                                \
  V(Add, "add", 2, 2, "", Binary)                                                                 \
  V(Sub, "sub", 2, 2, "", Binary)                                                                 \
  V(Mul, "mul", 2, 2, "", Binary)                                                                 \
  V(Div, "div", 2, 2, "", Binary)                                                                 \
  V(Maximum, "maximum", 2, 2, "", Binary)                                                         \
  V(Minimum, "minimum", 2, 2, "", Binary)                                                         \
  V(Pow, "pow", 2, 2, "", Binary)                                                                 \
  V(Equal, "equal", 2, 2, "", Binary)                                                             \
  V(Less, "less", 2, 2, "", Binary)                                                               \
  V(LessEqual, "less_equal", 2, 2, "", Binary)                                                    \
  /* Elementwise, one operand. */                                                                 \
  V(Scale, "scale", 1, 1, "factor", Unary)                                                        \
  V(Relu, "relu", 1, 1, "", Unary)                                                                \
  V(Gelu, "gelu", 1, 1, "", Unary)                                                                \
  V(GeluTanh, "gelu_tanh", 1, 1, "slope cubic", Unary)                                            \
  V(Tanh, "tanh", 1, 1, "", Unary)                                                                \
  V(Sigmoid, "sigmoid", 1, 1, "", Unary)                                                          \
  V(Exp, "exp", 1, 1, "", Unary)                                                                  \
  V(Swish, "swish", 1, 1, "", Unary)                                                              \
  V(HardSwish, "hard_swish", 1, 1, "", Unary)                                                     \
  V(HardSigmoid, "hard_sigmoid", 1, 1, "alpha beta", Unary)                                       \
  V(LeakyRelu, "leaky_relu", 1, 1, "alpha", Unary)                                                \
  V(Elu, "elu", 1, 1, "alpha", Unary)                                                             \
  V(Softplus, "softplus", 1, 1, "", Unary)                                                        \
  V(Clip, "clip", 1, 1, "min max", Unary)                                                         \
  V(Log, "log", 1, 1, "", Unary)                                                                  \
  V(Sqrt, "sqrt", 1, 1, "", Unary)                                                                \
  V(Reciprocal, "reciprocal", 1, 1, "", Unary)                                                    \
  V(Erf, "erf", 1, 1, "", Unary)                                                                  \
  V(Sin, "sin", 1, 1, "", Unary)                                                                  \
  V(Cos, "cos", 1, 1, "", Unary)                                                                  \
  V(Atan, "atan", 1, 1, "", Unary)                                                                \
  V(Abs, "abs", 1, 1, "", Unary)                                                                  \
  V(Sign, "sign", 1, 1, "", Unary)                                                                \
  V(Floor, "floor", 1, 1, "", Unary)                                                              \
  V(Ceil, "ceil", 1, 1, "", Unary)                                                                \
  V(Round, "round", 1, 1, "", Unary)                                                              \
  V(Not, "not", 1, 1, "", Unary)                                                                  \
  V(Cast, "cast", 1, 1, "to", Unary)                                                              \
  V(Where, "where", 3, 3, "", Where)                                                              \
  V(Dropout, "dropout", 2, 2, "rate salt=0", Dropout)                                             \
  /* Normalisation. */                                                                            \
  V(Softmax, "softmax", 1, 1, "axis=-1", Softmax)                                                 \
  V(LogSoftmax, "log_softmax", 1, 1, "axis=-1", Softmax)                                          \
  V(LayerNorm, "layer_norm", 3, 3, "epsilon", LayerNorm)                                          \
  V(RmsNorm, "rms_norm", 2, 2, "epsilon", RmsNorm)                                                \
  V(GroupNorm, "group_norm", 3, 3, "groups epsilon", GroupNorm)                                   \
  V(BatchNorm, "batch_norm", 5, 5, "epsilon", BatchNorm)                                          \
  V(BatchNormTraining, "batch_norm_training", 3, 3, "epsilon", BatchNormTraining)                 \
  /* Pooling and reduction. */                                                                    \
  V(MaxPool, "max_pool", 1, 1, "kernel stride padding", Pool)                                     \
  V(AvgPool, "avg_pool", 1, 1, "kernel stride padding count_include_pad=0", Pool)                 \
  V(AdaptiveAvgPool, "adaptive_avg_pool", 1, 1, "output", AdaptivePool)                           \
  V(ReduceSum, "reduce_sum", 1, 1, "axes keepdims=1", Reduction)                                  \
  V(ReduceMean, "reduce_mean", 1, 1, "axes keepdims=1", Reduction)                                \
  V(ReduceMax, "reduce_max", 1, 1, "axes keepdims=1", Reduction)                                  \
  V(ReduceMin, "reduce_min", 1, 1, "axes keepdims=1", Reduction)                                  \
  V(ReduceProd, "reduce_prod", 1, 1, "axes keepdims=1", Reduction)                                \
  V(ArgMax, "argmax", 1, 1, "axis keepdims=1 last=0", ArgMax)                                     \
  V(ArgMin, "argmin", 1, 1, "axis keepdims=1 last=0", ArgMax)                                     \
  V(TopK, "topk", 1, 1, "k axis=-1 largest=1", TopK)                                              \
  V(CumSum, "cumsum", 1, 1, "axis exclusive=0 reverse=0", CumSum)                                 \
  /* Layout. */                                                                                   \
  V(Transpose, "transpose", 1, 1, "perm", Transpose)                                              \
  V(Reshape, "reshape", 1, 1, "shape", Reshape)                                                   \
  V(Concat, "concat", 2, 64, "axis", Concat)                                                      \
  V(Split, "split", 1, 1, "axis sizes", Split)                                                    \
  V(Slice, "slice", 1, 1, "starts sizes steps", Slice)                                            \
  V(Pad, "pad", 1, 1, "padding mode=0 value=0", Pad)                                              \
  V(Expand, "expand", 1, 1, "shape", Expand)                                                      \
  V(Trilu, "trilu", 1, 1, "upper k=0", Trilu)                                                     \
  /* Look-ups: operand 1 holds indices. */                                                        \
  V(Embedding, "embedding", 2, 2, "", Embedding)                                                  \
  V(EmbeddingBag, "embedding_bag", 2, 2, "mean=0", EmbeddingBag)                                  \
  V(Gather, "gather", 2, 2, "axis", Gather)                                                       \
  V(GatherElements, "gather_elements", 2, 2, "axis", GatherElements)                              \
  V(GatherMatMul, "gather_matmul", 3, 3, "", GatherMatMul)                                        \
  V(GatherRows, "gather_rows", 2, 2, "", GatherRows)                                              \
  V(GatherSum, "gather_sum", 3, 3, "", GatherSum)                                                 \
  V(ScatterElements, "scatter_elements", 3, 3, "axis reduction=0", ScatterElements)               \
  V(OneHot, "one_hot", 1, 1, "depth axis=-1", OneHot)                                             \
  /* Attention, recurrent cells, mixture of experts. */                                           \
  V(Attention, "attention", 3, 4, "scale causal=0", Attention)                                    \
  V(CappedAttention, "capped_attention", 3, 4, "scale cap causal=0", Attention)                   \
  V(SinkAttention, "sink_attention", 4, 4, "scale causal=0 window=0", Attention)                  \
  V(Rotary, "rotary", 3, 3, "interleaved=0", Rotary)                                              \
  V(LstmCell, "lstm_cell", 2, 2, "", LstmCell)                                                    \
  V(GruCell, "gru_cell", 3, 3, "", GruCell)                                                       \
  V(Top2Gating, "top2_gating", 2, 2, "capacity random=1 salt=0", Top2Gating)                      \
  V(TopKRouting, "topk_routing", 1, 2, "k capacity", TopKRouting)                                 \
  /* Losses. */                                                                                   \
  V(CrossEntropy, "cross_entropy", 2, 2, "", CrossEntropy)                                        \
  V(MeanSquaredError, "mse", 2, 2, "", MeanSquaredError)                                          \
  V(BinaryCrossEntropy, "binary_cross_entropy", 2, 2, "", BinaryCrossEntropy)                     \
  /* Parallel operators: identities on values, they act on types (pcg/ir/parallel_operator.h). */ \
  V(Partition, "partition", 1, 1, "axis degree", Nothing)                                         \
  V(Combine, "combine", 1, 1, "axis degree", Nothing)                                             \
  V(Replicate, "replicate", 1, 1, "degree", Nothing)                                              \
  V(Reduce, "reduce", 1, 1, "degree", Nothing)                                                    \
  V(Pipeline, "pipeline", 1, 1, "axis degree", Nothing)                                           \
  V(Batch, "batch", 1, 1, "axis degree", Nothing)                                                 \
  V(ConcatPartials, "concat_partials", 2, 64, "", Nothing)

enum class OpKind {
#define V(kind, name, min, max, attributes, declared_by) k##kind,
  ISOMER_OPERATORS(V)
#undef V
};

inline constexpr int kNumBuiltInOpKinds = 0
#define V(kind, name, min, max, attributes, declared_by) +1
    ISOMER_OPERATORS(V)
#undef V
    ;
// Kinds from kNumBuiltInOpKinds on are those that users declare (declared_operator.h).
inline constexpr int kMostDeclaredOperators = 32;
inline constexpr int kNumOpKinds = kNumBuiltInOpKinds + kMostDeclaredOperators;

// Those of the list, and those that are declared.
absl::Span<const OpKind> AllOpKinds();
inline bool IsBuiltIn(OpKind kind) { return static_cast<int>(kind) < kNumBuiltInOpKinds; }

using OpKindSet = std::bitset<kNumOpKinds>;

absl::string_view OpName(OpKind kind);
absl::StatusOr<OpKind> ParseOpKind(absl::string_view name);

// An attribute: an integer, a number, or a list of integers. Sizes that rules may leave symbolic
// (Split) are Extents.
using AttributeValue = std::variant<int64_t, double, std::vector<int64_t>, std::vector<Extent>>;
std::string AttributeText(const AttributeValue& value);

struct Attribute {
  std::string name;
  AttributeValue value;
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

// An operator with its attributes, as a call site has it. Axes may be negative (from the end).
class Operator {
 public:
  Operator(OpKind kind = OpKind::kInput) : kind_(kind) {}  // NOLINT
  Operator(OpKind kind, std::vector<Attribute> attributes);

  OpKind kind() const { return kind_; }
  absl::string_view name() const { return OpName(kind_); }
  // Sorted by name.
  const std::vector<Attribute>& attributes() const { return attributes_; }
  const AttributeValue* Find(absl::string_view name) const;
  void Set(std::string name, AttributeValue value);

  // REQUIRES: the attribute is there with this type (ValidateAttributes was ok).
  int64_t Int(absl::string_view name) const;
  double Number(absl::string_view name) const;
  const std::vector<int64_t>& Ints(absl::string_view name) const;
  const std::vector<Extent>& Extents(absl::string_view name) const;

  // "matmul", "transpose(perm=[1,0])"; ParseOperator reads it back.
  std::string ToString() const;
  uint64_t Hash() const;
  friend bool operator==(const Operator&, const Operator&) = default;

 private:
  OpKind kind_;
  std::vector<Attribute> attributes_;
};

// Reads what ToString prints, with defaults filled in (graph_text.cc).
absl::StatusOr<Operator> ParseOperator(absl::string_view text);

// Fills in defaults; an error names a missing, unknown or ill-typed attribute.
absl::Status NormalizeAttributes(Operator* op);

// What an attribute of this name is, of every operator that has one: a number, a list, or else an
// integer.
bool IsNumberAttribute(absl::string_view name);
bool IsListAttribute(absl::string_view name);

int MinOperands(OpKind kind);
int MaxOperands(OpKind kind);
bool IsLeaf(OpKind kind);      // Input, Weight, Constant
bool IsStored(OpKind kind);    // Weight, Constant: the model holds the value
bool IsParallel(OpKind kind);  // Partition ... ConcatPartials
// A one-to-one relabelling of elements: Transpose, Reshape, Concat, Split.
bool IsLayout(OpKind kind);
bool IsLoss(OpKind kind);
// Operand `operand` of `kind` holds indices (int32 or int64), not values.
bool IsIndexOperand(OpKind kind, int operand);

// The meaning of `op` on operands of logical shapes `shapes`; an error says which operand, dim and
// sizes do not fit. Shapes may be symbolic where the operator allows it. Leaves and parallel
// operators have no declaration.
absl::StatusOr<Declaration> Declare(const Operator& op, absl::Span<const Shape> shapes);

// `axis` counted from the front, or an error if it is not one of `rank` dims.
absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_OPERATOR_H_
