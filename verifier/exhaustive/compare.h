// Two ways to compute the same tensors, compared element by element.
#ifndef ISOMER_VERIFIER_EXHAUSTIVE_COMPARE_H_
#define ISOMER_VERIFIER_EXHAUSTIVE_COMPARE_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/hash.h"
#include "verifier/exhaustive/elements.h"
#include "verifier/exhaustive/interpret.h"

namespace isomer {

enum class Agreement {
  kSymbolic,  // for all values of the operands
  kNumeric,   // at some points: the polynomials are different, or look so
  kNone,
};

struct LemmaComparison {
  Agreement agreement = Agreement::kSymbolic;
  std::string difference;  // of kNone: the first element that differs
};

// The tensors that an experiment starts from: symbols, or numbers drawn from a seed. Indices are
// integers in both, the same in both.
template <typename Elements>
class Operands {
 public:
  using Value = typename Elements::Value;

  Operands(Elements* elements, uint64_t index_seed, uint64_t seed)
      : e_(*elements), index_seed_(index_seed), seed_(seed) {}
  Elements& elements() { return e_; }

  // Tensor number `tensor`; of indices below `index_limit`, if that is positive.
  SparseTensor<Value> Make(int64_t tensor, std::vector<int64_t> shape, DataType dtype,
                           int64_t index_limit = 0) {
    SparseTensor<Value> made{std::move(shape), {}};
    int64_t size = 1;
    for (int64_t s : made.shape) size *= s;
    for (int64_t i = 0; i < size; ++i) {
      if (index_limit > 0) {
        const uint64_t drawn =
            HashCombine(index_seed_, static_cast<uint64_t>(tensor), static_cast<uint64_t>(i));
        made.elements.push_back(
            e_.Integer(static_cast<int64_t>((drawn >> 9) % static_cast<uint64_t>(index_limit))));
      } else {
        made.elements.push_back(Draw(tensor * (int64_t{1} << 24) + i, dtype));
      }
    }
    return made;
  }

 private:
  Value Draw(int64_t name, DataType dtype) {
    if constexpr (std::is_same_v<Elements, SymbolicElements>) {
      return e_.Symbol(name, dtype == DataType::kBool);
    } else {
      const uint64_t drawn = HashCombine(seed_, static_cast<uint64_t>(name)) >> 7;
      if (dtype == DataType::kBool) return static_cast<double>(drawn % 2);
      if (!IsFloat(dtype)) return static_cast<double>(drawn % 7) - 3;
      // Few values, so that some are equal; of some seeds all positive, for log and sqrt.
      const double value = static_cast<double>(drawn % 17 + 1) / 4;
      return seed_ % 2 == 0 ? value : value - 2.25;
    }
  }

  Elements& e_;
  const uint64_t index_seed_, seed_;
};

template <typename Value>
using TensorPair = std::pair<SparseTensor<Value>, SparseTensor<Value>>;

// "" if the pairs are equal.
template <typename Elements>
std::string FirstDifference(const std::vector<TensorPair<typename Elements::Value>>& pairs,
                            Elements* elements);

// Runs an experiment, an object with a template method
//   absl::StatusOr<std::vector<TensorPair<Value>>> operator()(Operands<Elements>*) const
// in symbols, and where these differ in numbers. A failed precondition (a task that reads what it
// does not hold) is a difference; other errors say that the experiment cannot be made.
template <typename Experiment>
absl::StatusOr<LemmaComparison> Compare(const Experiment& experiment, uint64_t index_seed = 1) {
  constexpr uint64_t kPoints = 12;
  LemmaComparison comparison;
  {
    SymbolicElements elements;
    Operands<SymbolicElements> operands(&elements, index_seed, 0);
    auto pairs = experiment(&operands);
    if (absl::IsFailedPrecondition(pairs.status())) {
      return LemmaComparison{Agreement::kNone, std::string(pairs.status().message())};
    }
    if (!pairs.ok()) return pairs.status();
    comparison.difference = FirstDifference(*pairs, &elements);
    if (comparison.difference.empty()) return comparison;
  }
  comparison.agreement = Agreement::kNone;
  for (uint64_t seed = 1; seed <= kPoints; ++seed) {
    NumericElements elements;
    Operands<NumericElements> operands(&elements, index_seed, seed);
    auto pairs = experiment(&operands);
    if (!pairs.ok()) return pairs.status();
    const std::string difference = FirstDifference(*pairs, &elements);
    if (difference.empty()) continue;
    comparison.difference = difference;
    return comparison;
  }
  comparison.agreement = Agreement::kNumeric;
  return comparison;
}

// That the tasks of `op` on operands of these types make what the whole call makes, each from
// nothing but what it holds. Errors: the types do not fit.
absl::StatusOr<LemmaComparison> ComparePieces(const Operator& op,
                                              const std::vector<TensorType>& types,
                                              uint64_t index_seed = 1);
// The same of tasks that `sharding` makes, whatever it is.
absl::StatusOr<LemmaComparison> ComparePieces(const Operator& op,
                                              const std::vector<TensorType>& types,
                                              const Sharding& sharding, uint64_t index_seed);

// op(x + y) = op(x) + op(y) and op(f * x) = f * op(x), where x are the operands in `linear`.
absl::StatusOr<LemmaComparison> CompareLinear(const Operator& op,
                                              const std::vector<TensorType>& types,
                                              const std::vector<bool>& linear);

// The outputs of two graphs, whose leaves are the same inputs in the same order. Parallel operators
// are identities.
absl::StatusOr<LemmaComparison> CompareGraphs(const Graph& left, const Graph& right,
                                              uint64_t index_seed = 1);

// How many points the statements of a declaration go over: what interpreting it costs.
int64_t PointsOf(const Declaration& declaration);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_EXHAUSTIVE_COMPARE_H_
