// One operator of a foreign rule as calls of ours.
#ifndef ISOMER_VERIFIER_AUDIT_TRANSLATE_OPERATOR_H_
#define ISOMER_VERIFIER_AUDIT_TRANSLATE_OPERATOR_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verifier/audit/foreign_rule.h"
#include "verifier/audit/foreign_shapes.h"

namespace isomer {

// An attribute that is a list of constants.
AttributePattern IntegersAttribute(std::string name, const std::vector<int64_t>& values);

// Adds calls to a pattern. Sizes in attributes are kept beside it until all sizes are known.
class OperatorTranslator {
 public:
  // `arrays`: Reading::arrays. `groups`: of every convolution; 0: they follow from the operands'
  // channels.
  OperatorTranslator(ForeignFormat format, bool arrays, int64_t groups, SizeTies* ties,
                     Pattern* pattern)
      : format_(format), arrays_(arrays), groups_(groups), ties_(ties), pattern_(pattern) {}

  // Adds pieces, where they are tensors that were repeated, as sums of what was repeated: more
  // calls, of sizes that a rule can name.
  void UseFinePieces() { fine_pieces_ = true; }

  // The outputs of `op`. `fresh`: symbols from it on are the operator's own.
  // Errors: InvalidArgument: ill-typed; Unimplemented: not among our operators; Unknown: its
  // meaning depends on sizes in a way that rules cannot state.
  absl::StatusOr<std::vector<TypedTensor>> Translate(const ForeignOperator& op,
                                                     const std::vector<TypedTensor>& operands,
                                                     int fresh);

  // Of a Split's node, the sizes of its parts.
  struct SplitSizes {
    int node;
    std::vector<Extent> sizes;
  };
  const std::vector<SplitSizes>& split_sizes() const { return split_sizes_; }
  bool has_convolutions() const { return has_convolutions_; }
  // Some call is typed in fewer cases than the operator that it stands for.
  bool narrower() const { return narrower_; }

 private:
  using Result = absl::StatusOr<std::vector<TypedTensor>>;

  Result Dispatch(const ForeignOperator& op, const std::vector<TypedTensor>& operands, int fresh);
  PatternRef Emit(OpKind kind, std::vector<PatternRef> inputs,
                  std::vector<AttributePattern> attributes = {});
  // `x` through a call that keeps its shape.
  TypedTensor Unary(OpKind kind, const TypedTensor& x,
                    std::vector<AttributePattern> attributes = {});
  absl::StatusOr<TypedTensor> Activated(const ForeignOperator& op, TypedTensor x);
  // The axis from the front that a dim of the format is.
  absl::StatusOr<int> AxisOf(int64_t dim, int rank) const;
  absl::Status CheckNumDims(const ForeignOperator& op, int rank) const;

  Result Binary(OpKind kind, const TypedTensor& a, const TypedTensor& b);
  Result ScalarMul(const TypedTensor& x, const TypedTensor& scalar);
  Result MatMul(const ForeignOperator& op, const TypedTensor& a, const TypedTensor& b);
  // Linear's weight is [out,in].
  TypedTensor SwapLastDims(const TypedTensor& x);
  Result Concat(const ForeignOperator& op, const std::vector<TypedTensor>& operands);
  Result Split(const ForeignOperator& op, const TypedTensor& x, int fresh);
  Result Transpose(const ForeignOperator& op, const TypedTensor& x);
  Result Convolution(const ForeignOperator& op, const TypedTensor& x, const TypedTensor& w);
  Result Pool(OpKind kind, const ForeignOperator& op, const TypedTensor& x);
  Result Enlarge(const ForeignOperator& op, const std::vector<TypedTensor>& operands);
  // Whether dim 0 is that of replicas, and no dim of ours.
  bool HasReplicaDim() const { return format_ == ForeignFormat::kUnity && !arrays_; }
  Result Parallel(OpKind kind, const ForeignOperator& op, const TypedTensor& x, int fresh);
  TypedTensor RepeatAlong(const TypedTensor& x, int axis, int64_t times);
  absl::StatusOr<TypedTensor> AddPieces(const TypedTensor& x, int axis, int64_t pieces, int fresh);

  struct Window {
    std::vector<AttributePattern> attributes;  // padding, stride
    Extent sizes[2];
  };
  absl::StatusOr<Window> SlideWindow(const ForeignOperator& op, const TypedTensor& x) const;

  const ForeignFormat format_;
  const bool arrays_;
  const int64_t groups_;
  SizeTies* const ties_;
  Pattern* const pattern_;
  std::vector<SplitSizes> split_sizes_;
  bool has_convolutions_ = false, fine_pieces_ = false;
  bool narrower_ = false;
};

// The parameter of an operator, or an error that says that it is missing.
absl::StatusOr<int64_t> Parameter(const ForeignOperator& op, const std::string& name);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_TRANSLATE_OPERATOR_H_
