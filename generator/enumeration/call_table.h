// Calls of a configuration's operators on its types: each is type-checked and compiled once.
#ifndef ISOMER_GENERATOR_ENUMERATION_CALL_TABLE_H_
#define ISOMER_GENERATOR_ENUMERATION_CALL_TABLE_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "generator/assignments/type_oracle.h"
#include "pcg/evaluation/field_program.h"
#include "pcg/evaluation/prime_field.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// What a call does to meanings, the values with partial sums added up. Compiled when first wanted,
// by any thread: many calls are planned that have no terms, or are never wanted as a whole.
class MeaningProgram {
 public:
  explicit MeaningProgram(Declaration declaration) : declaration_(std::move(declaration)) {}
  const Declaration& declaration() const { return declaration_; }
  // The samples of the outputs, and all elements. Null: values decide what is computed, and the
  // reference evaluator runs the declaration.
  const FieldProgram* sampled() const;
  const FieldProgram* whole() const;

 private:
  struct Compiled {
    std::once_flag once;
    std::optional<FieldProgram> program;
    const FieldProgram* get() const { return program.has_value() ? &*program : nullptr; }
  };
  const Declaration declaration_;
  mutable Compiled sampled_, whole_;
};

// Which elements of a tensor of `size` elements are its sample: a few, spread at random, always the
// same; all if they are few. Tensors that differ mostly differ there.
const std::vector<int64_t>& SamplePositions(int64_t size);

struct EnumeratedCall {
  Operator op;                    // fitted to the rank of its operands
  std::vector<int> output_types;  // numbers of types
  // Null: a parallel operator, whose meaning is the sum of those of its operands.
  const MeaningProgram* program = nullptr;
  std::vector<int64_t> operand_sizes, output_sizes;  // elements
  std::vector<int64_t> sample_sizes;                 // of outputs
};

class EnumeratedCalls {
 public:
  EnumeratedCalls(std::vector<Operator> operators, TypeOracle* oracle)
      : operators_(std::move(operators)), oracle_(oracle) {}

  int NumberOf(const TensorType& type);
  const TensorType& type(int number) const { return types_[number]; }
  const std::vector<Operator>& operators() const { return operators_; }

  // The call of operators()[op]; null if it does not type-check. The pointer stays good.
  const EnumeratedCall* Find(int op, const std::vector<int>& operand_types);

 private:
  std::unique_ptr<EnumeratedCall> Make(int op, const std::vector<int>& operand_types);
  const MeaningProgram* ProgramOf(const Operator& op, const std::vector<TensorType>& operands);

  const std::vector<Operator> operators_;
  TypeOracle* const oracle_;
  std::vector<TensorType> types_;
  std::map<std::string, int> numbers_;  // by text
  absl::flat_hash_map<std::vector<int>, std::unique_ptr<EnumeratedCall>> calls_;
  std::map<std::string, std::unique_ptr<MeaningProgram>> programs_;  // null: cannot be evaluated
};

// Values of the outputs, one behind the other. False: they cannot be evaluated. `scratch` serves
// one thread.
bool EvaluateMeaning(const EnumeratedCall& call, absl::Span<const PrimeField* const> operands,
                     std::vector<PrimeField>* outputs, std::vector<PrimeField>* scratch);
// The samples of the outputs, likewise: much less work for large tensors.
bool EvaluateSample(const EnumeratedCall& call, absl::Span<const PrimeField* const> operands,
                    std::vector<PrimeField>* outputs, std::vector<PrimeField>* scratch);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_CALL_TABLE_H_
