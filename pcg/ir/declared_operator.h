// Operators that users declare, beside the list in operator.h.
//
// They are operators like the others: kinds of their own, read by name, with types, values,
// gradients, shardings and costs from a declaration. Programs read them from a file
// (pcg/operators/declared/operator_file.h) before anything else: what is kept of all operators,
// such as examples, is made when it is first asked for.
#ifndef ISOMER_PCG_IR_DECLARED_OPERATOR_H_
#define ISOMER_PCG_IR_DECLARED_OPERATOR_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/operator_traits.h"

namespace isomer {

// An integer or a number, and the values that it may have.
struct DeclaredAttribute {
  std::string name;
  bool is_number = false;       // else an integer
  std::optional<double> value;  // that it has where a call does not say
  double least = 0, most = 0;   // inclusive

  AttributeValue Of(double number) const;  // of its type
};

struct DeclaredOperator {
  std::string name;
  int operands = 0;
  std::vector<DeclaredAttribute> attributes = {};
  OperatorTraits traits = {};              // but for the examples
  std::vector<std::string> examples = {};  // calls, as ParseCall reads them
  std::string text;                        // the declaration, as it was read: its digest is of this
  std::string onnx_domain, onnx_name;      // of the node that is this operator; empty: none
  std::function<absl::StatusOr<Declaration>(const Operator&, absl::Span<const Shape>)> declare = {};
};

// From here on there is an operator of that name. Errors: the name is taken, there are too many.
absl::StatusOr<OpKind> AddDeclaredOperator(DeclaredOperator declared);

const std::vector<DeclaredOperator>& DeclaredOperators();
// REQUIRES: !IsBuiltIn(kind).
const DeclaredOperator& DeclaredOperatorOf(OpKind kind);
// Nothing: no operator is declared for such nodes.
std::optional<OpKind> DeclaredForOnnx(absl::string_view domain, absl::string_view op_type);

// Of what the operator of that name means, by its declaration; 0 for those that are not declared.
uint64_t DeclarationDigest(OpKind kind);
// Of all that are declared, in any order; 0: none is.
uint64_t DeclaredOperatorsDigest();

// Fills in defaults of a declared operator's attributes; an error names what is missing, unknown,
// of another type or out of range.
absl::Status NormalizeDeclaredAttributes(Operator* op);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_DECLARED_OPERATOR_H_
