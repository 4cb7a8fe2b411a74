// Operators: one closed list. A new operator is one line here, one declaration in pcg/operators/.
#ifndef ISOMER_PCG_OPERATOR_H_
#define ISOMER_PCG_OPERATOR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pcg/declaration.h"
#include "pcg/extent.h"

namespace isomer {

// (kind, name in text, fewest operands, most operands, attributes)
// Attributes are separated by spaces; `name=value` has a default, `name?` may be absent.
#define ISOMER_OPERATORS(V)                                                                    \
  /* Leaves of a graph. */                                                                     \
  V(Input, "input", 0, 0, "")                                                                  \
  V(Weight, "weight", 0, 0, "")                                                                \
  /* Contractions. */                                                                          \
  V(MatMul, "matmul", 2, 2, "")                                                                \
  V(Conv2d, "conv2d", 2, 2, "stride padding dilation groups=1")                                \
  /* Elementwise. */                                                                           \
  V(Add, "add", 2, 2, "")                                                                      \
  V(Sub, "sub", 2, 2, "")                                                                      \
  V(Mul, "mul", 2, 2, "")                                                                      \
  V(Div, "div", 2, 2, "")                                                                      \
  V(Scale, "scale", 1, 1, "factor")                                                            \
  V(Relu, "relu", 1, 1, "")                                                                    \
  V(Gelu, "gelu", 1, 1, "")                                                                    \
  V(Tanh, "tanh", 1, 1, "")                                                                    \
  V(Sigmoid, "sigmoid", 1, 1, "")                                                              \
  V(Exp, "exp", 1, 1, "")                                                                      \
  V(Swish, "swish", 1, 1, "")                                                                  \
  /* Normalisation. */                                                                         \
  V(Softmax, "softmax", 1, 1, "axis=-1")                                                       \
  V(LayerNorm, "layer_norm", 3, 3, "epsilon")                                                  \
  V(BatchNorm, "batch_norm", 5, 5, "epsilon")                                                  \
  /* Pooling and reduction. */                                                                 \
  V(MaxPool, "max_pool", 1, 1, "kernel stride padding")                                        \
  V(AvgPool, "avg_pool", 1, 1, "kernel stride padding count_include_pad=0")                    \
  V(ReduceSum, "reduce_sum", 1, 1, "axes keepdims=1")                                          \
  V(ReduceMean, "reduce_mean", 1, 1, "axes keepdims=1")                                        \
  /* Layout. */                                                                                \
  V(Transpose, "transpose", 1, 1, "perm")                                                      \
  V(Reshape, "reshape", 1, 1, "shape")                                                         \
  V(Concat, "concat", 2, 64, "axis")                                                           \
  V(Split, "split", 1, 1, "axis sizes")                                                        \
  V(Embedding, "embedding", 2, 2, "")                                                          \
  /* Losses. */                                                                                \
  V(CrossEntropy, "cross_entropy", 2, 2, "")                                                   \
  V(MeanSquaredError, "mse", 2, 2, "")                                                         \
  /* Parallel operators: identities on values, they act on types (pcg/parallel_operator.h). */ \
  V(Partition, "partition", 1, 1, "axis degree")                                               \
  V(Combine, "combine", 1, 1, "axis degree")                                                   \
  V(Replicate, "replicate", 1, 1, "degree")                                                    \
  V(Reduce, "reduce", 1, 1, "degree")                                                          \
  V(Pipeline, "pipeline", 1, 1, "axis degree")                                                 \
  V(Batch, "batch", 1, 1, "axis degree")                                                       \
  V(ConcatPartials, "concat_partials", 2, 64, "")

enum class OpKind {
#define V(kind, name, min, max, attributes) k##kind,
  ISOMER_OPERATORS(V)
#undef V
};

inline constexpr OpKind kAllOpKinds[] = {
#define V(kind, name, min, max, attributes) OpKind::k##kind,
    ISOMER_OPERATORS(V)
#undef V
};

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

  // "matmul", "transpose(perm=[1,0])".
  std::string ToString() const;
  uint64_t Hash() const;
  friend bool operator==(const Operator&, const Operator&) = default;

 private:
  OpKind kind_;
  std::vector<Attribute> attributes_;
};

// Fills in defaults; an error names a missing, unknown or ill-typed attribute.
absl::Status NormalizeAttributes(Operator* op);

int MinOperands(OpKind kind);
int MaxOperands(OpKind kind);
bool IsLeaf(OpKind kind);      // Input, Weight
bool IsParallel(OpKind kind);  // Partition ... ConcatPartials
// A one-to-one relabelling of elements: Transpose, Reshape, Concat, Split.
bool IsLayout(OpKind kind);
bool IsLoss(OpKind kind);

// The meaning of `op` on operands of logical shapes `shapes`; an error says which operand, dim and
// sizes do not fit. Shapes may be symbolic where the operator allows it. Leaves and parallel
// operators have no declaration.
absl::StatusOr<Declaration> Declare(const Operator& op, absl::Span<const Shape> shapes);

// `axis` counted from the front, or an error if it is not one of `rank` dims.
absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank);

}  // namespace isomer

#endif  // ISOMER_PCG_OPERATOR_H_
