// Being written.
#include "pcg/operators/operators.h"

namespace isomer {

absl::StatusOr<Declaration> DeclareDropout(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareLstmCell(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareGruCell(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareTop2Gating(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}
absl::StatusOr<Declaration> DeclareBinaryCrossEntropy(const Operator&, absl::Span<const Shape>) {
  return absl::UnimplementedError("pending");
}

}  // namespace isomer
