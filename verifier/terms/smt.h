// Z3 behind one wall: the question that proofs of types come down to.
#ifndef ISOMER_VERIFIER_TERMS_SMT_H_
#define ISOMER_VERIFIER_TERMS_SMT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pcg/ir/extent.h"

namespace isomer {

// "z3 4.8.12".
std::string SolverName();

enum class SmtVerdict { kValid, kInvalid, kUnknown };

// Linear arithmetic over exponents, which are non-negative integer variables (the symbols of an
// Extent).
struct ExponentFact {
  enum class Kind {
    kEqual,       // left == right
    kAtMost,      // left <= right
    kAboveLeast,  // left >= the least of `parts`: the exponent of a prime in a sum
  };
  Kind kind = Kind::kEqual;
  Extent left, right;
  std::vector<Extent> parts;
  std::string text;  // what it says, for messages
};
struct ExponentAnswer {
  SmtVerdict verdict = SmtVerdict::kUnknown;
  std::map<int, int64_t> model;  // values at which the hypotheses hold and a conclusion does not
  int failed = -1;               // that conclusion
};
// Do `hypotheses` imply all of `conclusions`?
ExponentAnswer DecideExponents(const std::vector<ExponentFact>& hypotheses,
                               const std::vector<ExponentFact>& conclusions);
// Values at which `hypotheses` hold and each of `alternatives` fails; empty if there are none.
std::map<int, int64_t> RefuteAll(const std::vector<ExponentFact>& hypotheses,
                                 const std::vector<std::vector<ExponentFact>>& alternatives);
// Values at which all of `facts` hold, the sum of all variables smallest first; up to `count`.
std::vector<std::map<int, int64_t>> SolveExponents(const std::vector<ExponentFact>& facts,
                                                   int count);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_TERMS_SMT_H_
