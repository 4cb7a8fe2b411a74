// Terms that a hostile rule may be made of, and what fractions, maxima and sums are on paper.
#ifndef ISOMER_TESTS_UNSOUND_HOSTILE_TERMS_H_
#define ISOMER_TESTS_UNSOUND_HOSTILE_TERMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rules/language/rule.h"

namespace isomer {

// A call of one output, or an input of the rule.
struct DrawnTerm {
  std::optional<OpKind> kind;  // none: an input
  int input = 0;
  std::vector<AttributePattern> attributes = {};
  std::vector<DrawnTerm> operands = {};
  friend bool operator==(const DrawnTerm&, const DrawnTerm&) = default;
};

DrawnTerm DrawnCall(OpKind kind, std::vector<DrawnTerm> operands,
                    std::vector<AttributePattern> attributes = {});
DrawnTerm Scaled(DrawnTerm term, double factor);
AttributePattern DrawnNumber(const char* name, double value);
AttributePattern DrawnInteger(const char* name, int64_t value);
AttributePattern DrawnIntegers(const char* name, const std::vector<int64_t>& values);

// What may stand for a term t.
struct Temptation {
  const char* what;
  DrawnTerm term;
};

// The one of this number, with two other terms, a factor other than 0, and an axis; where t is a
// call, with its operands. Some are t wherever they are defined, others at most of the time.
Temptation TemptingFraction(const DrawnTerm& t, const DrawnTerm& u, const DrawnTerm& w,
                            double factor, int which);
Temptation TemptingReduction(const DrawnTerm& t, const DrawnTerm& u, int64_t axis, int which);
inline constexpr int kTemptingFractions = 12, kTemptingReductions = 10;

}  // namespace isomer

#endif  // ISOMER_TESTS_UNSOUND_HOSTILE_TERMS_H_
