// Equations between small terms as text, evaluated at definite shapes:
//   "matmul(add(x,y),z) = add(matmul(x,z),matmul(y,z))"
// Lower-case letters are tensors; in braces, letters are attributes that a binding gives: axes
// ("a", "-1", "a^uv": a after u and v were exchanged), sizes of parts ("S"), factors ("f", "fg",
// "f+1"); ".0" is an output. "trigger => left = right" says of the equation where it is sought.
// verifier/lemma.h has a reader of its own for the same texts: the two opinions share none.
#ifndef ISOMER_VERIFIER_EXHAUSTIVE_EQUATION_H_
#define ISOMER_VERIFIER_EXHAUSTIVE_EQUATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "verifier/exhaustive/compare.h"

namespace isomer {

struct EquationBinding {
  std::map<char, std::vector<int64_t>> shapes;
  std::map<char, int64_t> axes;  // counted from the end
  std::map<char, std::vector<int64_t>> sizes;
  std::map<char, double> factors;
  // "x[2,3] y[3,1] a=-1 S=[1,2]"
  std::string ToString() const;
};

// Errors: the text is none, or its sides do not type-check at the binding.
absl::StatusOr<Comparison> CompareEquation(absl::string_view text, const EquationBinding& binding);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_EXHAUSTIVE_EQUATION_H_
