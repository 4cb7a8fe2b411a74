// Arithmetic and memory traffic of calls, counted from declarations. The cost model of the
// optimizer, the schedule and the reports all take them from here.
#ifndef ISOMER_PCG_PROFILE_WORK_H_
#define ISOMER_PCG_PROFILE_WORK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/type_inference.h"

namespace isomer {

struct Work {
  double flops = 0;
  int64_t bytes = 0;  // read and written, every buffer counted once
};

// What a call leaves for its own gradient, and nobody else: what it found out about many elements,
// so that the gradient need not look at them once more. Of softmaxes, attention's scores and
// logits, the maximum of each row and the sum of exp(x - maximum); of norms the means and
// reciprocal deviations: one or two numbers for each row of operand 0, none of which is ever split,
// in float32. (Not the logarithm of both, as in Dao et al., "FlashAttention", 2022: next to a
// maximum of -1e9, which masks are made of, it is nothing but that, and every probability is 1.) Or
// what a product and its bias are in front of a GELU or Swish, as large as output 0 and of its type
// (cuBLASLt's GELU_AUX). A task of a training step writes it beside its outputs.
struct SavedForGradient {
  int64_t elements = 0;
  DataType dtype = DataType::kFloat32;
  int64_t bytes() const { return elements * BytesPerElement(dtype); }
};
// Of a task with these parts of operand 0 and of output 0; absent: nothing.
std::optional<SavedForGradient> SavedBy(const Operator& op, const Declaration& declaration,
                                        const TensorType& operand, const TensorType& output);
// It is the second.
bool SavesPreActivation(const Operator& op);
// Of one task of a call; 0: nothing.
int64_t SavedBytes(const Operator& op, const Sharding& sharding,
                   absl::Span<const TensorType> operands);

// One task of a call. FLOPs: over all statements, iterations times arithmetic instructions (of the
// body, and one for a reduction), so a MatMul counts 2*m*n*k; a look-up counts its selected dim
// once, and reads only the rows it selects. Operators that only move elements count no FLOPs. A
// ScatterElements that replaces elements writes over operand 0 where `saves` is false: a state that
// is written in place (pcg/schedule/memory/carries.h); that others are copied first is not counted.
// `operands` are the types of the call's operands. `saves`: for a gradient to come.
Work ForwardWork(const Operator& op, const Sharding& sharding,
                 absl::Span<const TensorType> operands, bool saves = false);

// The gradients of operands 0 and 1 are products, each of the other operand with the gradient of
// the output: two kernels, which may run one without the other.
bool GradientsAreProducts(const Operator& op);

// The gradient of one task: for every operand whose gradient is wanted, a pass like the forward's
// over the statements that the operand goes into; reads what NeedsOfGradient says, and the
// gradients of the outputs, and what the forward task saved. Where gradients are products each
// reads what it is of.
Work GradientWork(const Operator& op, const Sharding& sharding,
                  absl::Span<const TensorType> operands, const std::vector<bool>& wanted);

// Which values of the forward pass the gradient of a call reads, and so must be kept.
struct GradientNeeds {
  std::vector<bool> operands, outputs;
};
// Operators that are linear in all their float operands together need none of them. Those whose
// derivative is a cheap function of the result (relu, tanh, sigmoid, exp, softmaxes) need the
// result instead of the operand. So does Linear with such an activation, besides both sides of its
// product. BatchNormTraining reads the statistics that it made beside its operands.
GradientNeeds NeedsOfGradient(const Operator& op, const Declaration& declaration,
                              absl::Span<const TensorType> operands);

}  // namespace isomer

#endif  // ISOMER_PCG_PROFILE_WORK_H_
