// Being written.
#include "pcg/operators/operators.h"

namespace isomer {

absl::StatusOr<Declaration> DeclareWhere(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareArgMax(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareTopK(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareCumSum(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareSlice(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclarePad(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareExpand(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareTrilu(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareEmbeddingBag(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareGather(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareGatherElements(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareScatterElements(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareOneHot(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}

}  // namespace isomer
