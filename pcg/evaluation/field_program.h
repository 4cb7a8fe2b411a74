// A call at one shape as straight-line code over the prime field.
//
// The generator evaluates one operator at one shape millions of times, on a few dozen elements. The
// reference evaluator walks loops and strides each time; this code has none left: it is what the
// reference evaluator did once, over numbers that record (traced_number.h), ordered so that steps
// of one kind that do not wait for each other run in one loop.
#ifndef ISOMER_PCG_EVALUATION_FIELD_PROGRAM_H_
#define ISOMER_PCG_EVALUATION_FIELD_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/evaluation/prime_field.h"
#include "pcg/ir/declaration.h"

namespace isomer {

class FieldProgram {
 public:
  // REQUIRES: the sizes of `declaration` are known. Errors: Unimplemented if values decide which
  // elements are read or which branch is taken (look-ups, comparisons).
  static absl::StatusOr<FieldProgram> Compile(const Declaration& declaration);
  // Computes only elements `wanted` of each output, in that order.
  static absl::StatusOr<FieldProgram> Compile(const Declaration& declaration,
                                              const std::vector<std::vector<int64_t>>& wanted);

  // The elements of operands (row-major) in, those of outputs out. `scratch` is grown as needed and
  // may serve all programs of a thread.
  void Run(absl::Span<const PrimeField* const> operands, absl::Span<PrimeField* const> outputs,
           std::vector<PrimeField>* scratch) const;

  // Elements of each operand and output.
  const std::vector<int64_t>& operand_sizes() const { return operand_sizes_; }
  const std::vector<int64_t>& output_sizes() const { return output_sizes_; }

 private:
  // Steps [begin, end) are one operation; step s writes slot first_result_ + s. A sum of products
  // is one step, with a term for each product; other steps are a term each.
  struct Group {
    ScalarOp op;
    bool sums;  // of products
    int32_t begin, end;
    int32_t first_term;
  };
  static absl::StatusOr<FieldProgram> Compile(const Declaration& declaration,
                                              const std::vector<std::vector<int64_t>>* wanted);
  void RunGroup(const Group& group, PrimeField* slots) const;
  void RunSums(const Group& group, PrimeField* slots) const;

  std::vector<int64_t> operand_sizes_, output_sizes_;
  std::vector<PrimeField> constants_;  // slots 0, 1, ..; then those of the operands
  std::vector<int32_t> a_, b_;         // slots, per term
  std::vector<int32_t> term_end_;      // per step
  std::vector<Group> groups_;
  std::vector<std::vector<int32_t>> output_slots_;
  int32_t first_result_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_PCG_EVALUATION_FIELD_PROGRAM_H_
