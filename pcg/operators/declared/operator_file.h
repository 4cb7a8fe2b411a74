// Files in which users declare operators.
//
//     # Rotary embedding with a scale (Su et al., 2021).
//     operator scaled_rope(scale=1.0 in 0.0625..16.0)
//       x[.., s, d], cosine[s, e], sine[s, e]
//       dims p = 2
//       require d == 2*size(e)
//       Y[.., s, p*size(e)+e] = scale * (x[.., s, p*size(e)+e] * cosine[s, e]
//                               + (p*2 - 1) * x[.., s, (1-p)*size(e)+e] * sine[s, e])
//       onnx com.example ScaledRope
//       example scaled_rope(scale=0.5) f32[2,4,6] f32[4,3] f32[4,3]
//
// - `operator NAME(attributes)`: each `name=value` or `name`, with `in LEAST..MOST`. One that is
//   written with a point is a number, else it is an integer.
// - Operands with their dims. A dim of one name has one size; `..` stands for any dims in front,
// the
//   same in all that have it.
// - `dims NAME = SIZE, ..`: further dims, of sizes made of `+ - * /` of sizes, integers and integer
//   attributes; divisions without a remainder.
// - `require A == B` (or <, <=) of sizes.
// - Statements `NAME[indices] = value` or `NAME[indices] = sum over DIMS: value`, of `sum`, `max`
// and
//   `product`. Outputs are `Y`, or `Y0`, `Y1`, ..; others are intermediates. Values are made of
//   numbers, attributes, dims (their coordinates), `size(DIM)`, loads, `+ - * / ^ < <= > >= ==`,
//   functions of one (exp log sqrt tanh erf sin cos atan floor round abs sigmoid relu), max, min,
//   `where(condition, yes, no)`. An index is affine in dims, then perhaps `/ N` and `% N`. A load
//   has to be inside of its tensor; `padded X[..]` is 0 outside, `inside X[..]` says whether it is.
// - `onnx DOMAIN NAME`: nodes of ONNX that are the operator.
// - `example CALL`, at least one: calls with which tests, the generator and the prover try it; with
//   sizes that 2 divides, where a dim may be split.
//
// Operands hold values of one floating-point type. Which dims may be split, gradients, FLOPs and
// proofs follow from the statements, as for all operators.
#ifndef ISOMER_PCG_OPERATORS_DECLARED_OPERATOR_FILE_H_
#define ISOMER_PCG_OPERATORS_DECLARED_OPERATOR_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/operators/declared/syntax.h"

namespace isomer {

// Errors name line and column: "3:12: ']' is expected, not 'end'".
absl::StatusOr<std::vector<OperatorSyntax>> ParseOperators(absl::string_view text);

// What `syntax` means on operands of these shapes.
absl::StatusOr<Declaration> Instantiate(const OperatorSyntax& syntax, const Operator& op,
                                        absl::Span<const Shape> shapes);

// Declares the operators of a text, and tries their examples. Errors as above.
absl::Status DeclareOperators(absl::string_view text);
// The same of a file; errors begin with its name. "" is no file.
absl::Status LoadOperators(const std::string& path);

}  // namespace isomer

#endif  // ISOMER_PCG_OPERATORS_DECLARED_OPERATOR_FILE_H_
