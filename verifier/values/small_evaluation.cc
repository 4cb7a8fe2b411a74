#include "verifier/values/small_evaluation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/partial_field.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "verifier/values/evaluation_bound.h"

namespace isomer {
namespace {

Extent SmallSize(const Extent& extent, uint64_t seed) {
  Extent size = extent.constant();
  for (const auto& [symbol, coefficient] : extent.terms()) {
    const uint64_t drawn = HashCombine(seed, static_cast<uint64_t>(symbol)) % 3;
    size += Extent(static_cast<int64_t>(drawn) + 1) * coefficient;
  }
  return size;
}

// Evaluates terms with every symbol replaced by a small size.
class SmallEvaluator {
 public:
  SmallEvaluator(const TermPool& pool, uint64_t seed) : pool_(pool), seed_(seed) {}

  absl::StatusOr<Array<PartialField>> Evaluate(TermId id) {
    const Term& term = pool_[id];
    if (term.symbol.kind == OpKind::kInput) return RandomInput(term);
    std::vector<Array<PartialField>> arguments;
    std::vector<Shape> shapes;
    for (TermId argument : term.arguments) {
      ISOMER_ASSIGN_OR_RETURN(Array<PartialField> value, Evaluate(argument));
      shapes.emplace_back(value.shape.begin(), value.shape.end());
      arguments.push_back(std::move(value));
    }
    if (term.symbol.kind == OpKind::kConcatPartials) return Sum(arguments);
    if (IsParallel(term.symbol.kind)) return arguments[0];
    Symbol symbol = term.symbol;
    for (Extent& size : symbol.sizes) size = SmallSize(size, seed_);
    symbol.factor = {ValueOf(symbol.factor), {}};
    for (Attribute& attribute : symbol.rest) {
      if (auto* number = std::get_if<double>(&attribute.value))
        *number = ValueOf(NumberOf(*number));
    }
    ISOMER_ASSIGN_OR_RETURN(const Operator op, OperatorOf(symbol, shapes));
    ISOMER_ASSIGN_OR_RETURN(const Declaration d, Declare(op, shapes));
    std::vector<const Array<PartialField>*> operands;
    for (const Array<PartialField>& argument : arguments) operands.push_back(&argument);
    ISOMER_RETURN_IF_ERROR(ExpectFewPoints(d));
    ISOMER_ASSIGN_OR_RETURN(std::vector<Array<PartialField>> outputs,
                            isomer::Evaluate<PartialField>(d, FullBox(d), operands));
    return outputs[symbol.index];
  }

 private:
  Array<PartialField> RandomInput(const Term& term) const {
    std::vector<int64_t> shape;
    for (const Extent& size : term.shape) shape.push_back(SmallSize(size, seed_).value());
    Array<PartialField> array(shape);
    for (int64_t i = 0; i < array.size(); ++i) {
      const uint64_t bits =
          HashCombine(seed_, static_cast<uint64_t>(term.symbol.index), static_cast<uint64_t>(i));
      array.data[i] = PrimeField::FromRaw(bits % PrimeField::kPrime);
    }
    return array;
  }

  // A variable is the same number wherever it occurs, and a power of two, so that products are
  // exact.
  double ValueOf(const NumberExpr& number) const {
    double value = number.constant;
    for (const std::string& variable : number.variables) {
      value = std::ldexp(value, static_cast<int>(HashBytes(variable, seed_) % 5 + 1));
    }
    return value;
  }

  static Array<PartialField> Sum(const std::vector<Array<PartialField>>& parts) {
    Array<PartialField> sum = parts[0];
    for (size_t p = 1; p < parts.size(); ++p) {
      for (int64_t i = 0; i < sum.size(); ++i) sum.data[i] += parts[p].data[i];
    }
    return sum;
  }

  const TermPool& pool_;
  const uint64_t seed_;
};

}  // namespace

absl::StatusOr<bool> EqualAtSmallSizes(const TermPool& pool, TermId a, TermId b, uint64_t seed) {
  SmallEvaluator evaluator(pool, seed);
  ISOMER_ASSIGN_OR_RETURN(const Array<PartialField> left, evaluator.Evaluate(a));
  ISOMER_ASSIGN_OR_RETURN(const Array<PartialField> right, evaluator.Evaluate(b));
  return left.shape == right.shape &&
         std::equal(left.data.begin(), left.data.end(), right.data.begin(), MayBeEqual);
}

}  // namespace isomer
