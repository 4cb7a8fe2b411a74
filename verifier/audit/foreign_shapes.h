// Logical shapes in a foreign rule, with sizes that are symbols until an operator ties them.
#ifndef ISOMER_VERIFIER_AUDIT_FOREIGN_SHAPES_H_
#define ISOMER_VERIFIER_AUDIT_FOREIGN_SHAPES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/extent.h"
#include "rules/language/rule.h"
#include "verifier/audit/foreign_rule.h"
#include "verifier/terms/size_unification.h"

namespace isomer {

// Where a Concat joined a tensor along an axis, and where it had joined what it joined: what
// TASO's Split goes by. At most one element.
struct Seam {
  Extent at;  // size of the left part
  std::vector<Seam> left, right;
  friend bool operator==(const Seam&, const Seam&) = default;
};
using Seams = std::vector<Seam>;

// A tensor of a rule: what computes it in our pattern, and what is known of its shape. A tensor
// without dims is a number, which rules have as a variable.
struct TypedTensor {
  PatternRef ref;
  Shape shape;
  std::vector<Seams> seams;  // per axis
  std::string number = "";   // the variable; then the rest is empty
  bool copied = false;       // the rule replicated it, or what it is made of
  int rank() const { return static_cast<int>(shape.size()); }
};

// The symbol of an input's size along an axis, and the first of an operator's own; how messages
// call sizes: "size(x0,1)", with axes from the front as the formats have them.
inline constexpr int kMaxRank = 8, kSymbolsPerOperator = 16;
int InputSymbol(int input, int axis);
int OperatorSymbol(bool of_source, int op);
std::string SizeText(const Extent& size);

// A tensor without seams.
TypedTensor PlainTensor(PatternRef ref, Shape shape);

// Ties sizes: what two operators say of one size must agree. While it does not, `conflict` holds
// the first pair, and an error is returned; unified, the rule is read again.
class SizeTies {
 public:
  explicit SizeTies(const Substitution* known) : known_(known) {}
  absl::Status Equal(const Extent& a, const Extent& b);
  absl::Status Equal(const Shape& a, const Shape& b);  // ranks too
  Extent Resolved(const Extent& extent) const { return Substituted(extent, *known_); }
  const std::optional<SizeConflict>& conflict() const { return conflict_; }

 private:
  const Substitution* known_;
  std::optional<SizeConflict> conflict_;
};

// Seams of a tensor made elementwise of two, or joined along another axis: those that agree.
Seams Agreeing(const Seams& a, const Seams& b);

// The pieces of `tensor` along `axis`, which a Split into `parts` makes: sizes and seams. With
// seams, the outermost are taken apart, the last part first; without, sizes are `fresh` symbols.
struct TensorPiece {
  Extent size;
  Seams seams;
};
absl::StatusOr<std::vector<TensorPiece>> SplitAtSeams(const TypedTensor& tensor, int axis,
                                                      int parts, int fresh, SizeTies* ties);
// Equal pieces.
absl::StatusOr<std::vector<TensorPiece>> SplitEvenly(const TypedTensor& tensor, int axis, int parts,
                                                     int fresh, SizeTies* ties);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_FOREIGN_SHAPES_H_
