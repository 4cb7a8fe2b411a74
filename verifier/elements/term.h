// Terms: what the two sides of a rule compute, with symbolic sizes.
//
// A term is an operator applied to terms; variables are the rule's inputs. Terms are held in a
// pool, each once, and each with its logical shape, so that an ill-typed term does not exist.
// Axes count from the end, as in rules, so that a term reads the same at every rank.
#ifndef ISOMER_VERIFIER_ELEMENTS_TERM_H_
#define ISOMER_VERIFIER_ELEMENTS_TERM_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/operator.h"
#include "rules/language/rule.h"

namespace isomer {

// An operator as a function symbol: one output of one operator with its attributes.
struct Symbol {
  OpKind kind = OpKind::kInput;
  int index = 0;                // the output; of a variable (kInput): which
  std::vector<int64_t> axes;    // Concat, Split: [axis]; Transpose: the two exchanged, ascending
  std::vector<Extent> sizes;    // Split
  NumberExpr factor;            // Scale
  std::vector<Attribute> rest;  // of other operators, and of a Transpose that has no axes here: all
                                // attributes as they are
  static Symbol Variable(int index) { return {OpKind::kInput, index, {}, {}, {}, {}}; }
  // "x0", "matmul", "concat{-1}", "split{-1,[s0,s1]}.1".
  std::string ToString() const;
};

using TermId = int;
inline constexpr TermId kNoTerm = -1;

struct Term {
  Symbol symbol;
  std::vector<TermId> arguments;
  Shape shape;
};

class TermPool {
 public:
  TermId Variable(int index, const Shape& shape);
  // The term, or the error of type inference.
  absl::StatusOr<TermId> Apply(const Symbol& symbol, const std::vector<TermId>& arguments);
  const Term& operator[](TermId id) const { return terms_[id]; }
  int size() const { return static_cast<int>(terms_.size()); }
  // "matmul(x0, concat{-1}(x1, x2))".
  std::string ToString(TermId id) const;

 private:
  TermId Intern(Symbol symbol, std::vector<TermId> arguments, Shape shape);
  std::vector<Term> terms_;
  std::map<std::string, TermId> ids_;
};

// The operator of a symbol on operands of the given ranks. A factor with variables becomes the
// constant that EncodedConstant() gives, to be recognised in the declaration's body.
absl::StatusOr<Operator> OperatorOf(const Symbol& symbol, absl::Span<const Shape> operands);

// Marked constants stand for NumberExprs with variables: doubles that no program writes.
double EncodedConstant(const NumberExpr& number);
// The expression a constant stands for; an unmarked one for itself.
NumberExpr NumberOf(double constant);

// The shape of one output of a symbol. Parallel operators keep the shape of operand 0.
absl::StatusOr<Shape> ShapeOf(const Symbol& symbol, absl::Span<const Shape> operands);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_ELEMENTS_TERM_H_
