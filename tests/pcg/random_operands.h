// Random operands that an example call takes: numbers for values, valid indices for indices.
#ifndef ISOMER_TESTS_PCG_RANDOM_OPERANDS_H_
#define ISOMER_TESTS_PCG_RANDOM_OPERANDS_H_

#include <random>
#include <type_traits>
#include <vector>

#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/number.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/operator_traits.h"

namespace isomer {

// Floats: at least 0.2 from zero, where many operators have a kink, and up to 2. Integers: indices
// are 0 to 3 (the tables of examples have at least 4 rows), other numbers 1 to 4. Over the prime
// field: any, but for indices and bools.
template <typename T>
Array<T> RandomOperand(const ExampleCall& call, size_t operand, std::mt19937_64& random) {
  const TensorType& type = call.operands[operand];
  const OpKind kind = call.op.kind();
  Array<T> array(type.Sizes());
  for (T& value : array.data) {
    const uint64_t bits = random();
    if (type.dtype == DataType::kBool) {
      value = Number<T>::FromDouble(bits & 1 ? 1 : 0);
    } else if (IsIndexOperand(kind, static_cast<int>(operand))) {
      value = Number<T>::FromDouble(static_cast<double>(bits % 4));
    } else if constexpr (std::is_same_v<T, PrimeField>) {
      value = PrimeField::FromRaw(bits % PrimeField::kPrime);
    } else if (IsInteger(type.dtype)) {
      value = static_cast<T>(bits % 4 + 1);
    } else {
      value = std::uniform_real_distribution<T>(0.2, 2.0)(random);
      if ((bits & 1) && !TraitsOf(kind).takes_positive_numbers) value = -value;
    }
  }
  return array;
}

template <typename T>
std::vector<Array<T>> RandomOperands(const ExampleCall& call, std::mt19937_64& random) {
  std::vector<Array<T>> operands;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    operands.push_back(RandomOperand<T>(call, o, random));
  }
  return operands;
}

template <typename T>
Array<T> RandomArray(std::vector<int64_t> shape, std::mt19937_64& random) {
  return RandomOperand<T>({"", Operator(OpKind::kAdd), {SequentialType(std::move(shape))}}, 0,
                          random);
}

}  // namespace isomer

#endif  // ISOMER_TESTS_PCG_RANDOM_OPERANDS_H_
