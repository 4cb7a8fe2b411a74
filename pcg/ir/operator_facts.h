// What an operator's declaration says about it, in the terms of the field: for documentation
// (runtime/profiler/operator_page.h), and for whoever asks what may be split.
#ifndef ISOMER_PCG_IR_OPERATOR_FACTS_H_
#define ISOMER_PCG_IR_OPERATOR_FACTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// The class of an iteration dim in FlexFlow's SOAP space (MLSys'19), where "O", placing whole
// operators, is the machine view's.
enum class SoapClass {
  kSample,     // a parallel dim that leads the first dim of the data
  kAttribute,  // another parallel dim of the data (or of the output alone)
  kParameter,  // a parallel dim of the weights of a contraction, or of a table, alone
  kSpatial,    // an attribute whose pieces need a halo of their neighbours
  kReduction,  // a sum dim: pieces give partial sums
  kWhole,      // not to be split
};
absl::string_view SoapClassName(SoapClass soap);

// Sums of products of many elements: where a network's arithmetic is. Attention is two of them.
bool IsContraction(OpKind kind);
// Of one to three spatial dims.
bool IsConvolution(OpKind kind);
// Of a convolution of images of these sizes, [batch, channels, d1, ..], with these filters: what it
// makes of a place, but for padding, it makes of one place and all of its channels.
bool HasPointFilters(const Operator& convolution, absl::Span<const int64_t> images,
                     absl::Span<const int64_t> filters);
// Scaled dot-product attention, capped or not.
bool IsAttention(OpKind kind);
// What is not random and costs the host about as much as reading its operands.
bool CanRunOnHost(OpKind kind);
// A cast to a float type.
bool IsFloatCast(const Operator& op);
// The leaves that the host has what a call takes from. kOther: none, or leaves that are not alike.
enum class HostLeaves { kOther, kInputs, kWeights, kConstants };
HostLeaves LeavesOf(OpKind leaf);
// Of the operands of a call; in inference weights and constants are alike.
HostLeaves Together(HostLeaves a, HostLeaves b, bool training);
// Whether the host makes the results of a call of tensors that it has, parallel operators apart:
// what depends on no data once, when a plan is loaded, in training from weights just what arranges
// them (their updates arrange alike) or casts them to another float type, where nothing else uses
// them; and of what is fed, indices are
// arranged, where `of_integers`.
bool IsMadeOnHost(const Operator& op, HostLeaves leaves, bool of_integers, bool used_once,
                  bool training);
// Results are the operand's elements in the order that they have there, of an operand of these
// sizes on its device: a Reshape, or a Transpose that moves dims of size 1 alone.
bool KeepsOrder(const Operator& op, absl::Span<const int64_t> sizes);
// Each element of the result depends on those at its place alone, of operands that are broadcast.
bool IsPointwise(const Declaration& d);
// Where elements are, not what they are: Partition, Combine, Replicate.
bool IsPlacement(OpKind kind);
// Operand 0 is a table whose rows operand 1 selects.
bool IsLookUp(OpKind kind);
// Beside its result, the call gives what it found of many elements, for its gradient and for
// running means: the mean and the variance of a batch. In float32, whatever its operands are in.
bool IsStatistic(OpKind kind, int output);
// Of the attribute `activation` of a Linear: 1, 2, ..; 0 is none.
inline constexpr OpKind kActivationsOfLinear[] = {OpKind::kRelu, OpKind::kGelu, OpKind::kTanh,
                                                  OpKind::kSigmoid, OpKind::kSwish};
// The operand holds neither indices nor the condition of a Where.
bool HoldsValues(OpKind kind, int operand);

// On operands of type `operand` the call makes integers or truth values that are not what its
// declaration says over the reals, but that rounded (EvaluateGraph truncates them): quotients,
// means, multiples by a fraction, casts, sums of truth values. No equation over the reals may be
// used on it. Attributes that `op` lacks are taken to be such that nothing is rounded.
bool RoundsIntegers(const Operator& op, DataType operand, DataType output);
// Whether calls of the kind may, with some attributes.
bool MayRoundIntegers(OpKind kind);

// False of a cast to integers: over the reals it is the identity, and what it rounds is not linear,
// so that partial sums do not pass through it, whatever its declaration says.
bool PassesPartials(const Operator& op);

// The class of dim `dim` of a call; kWhole if it is not partitionable. The data are operand 0, or
// the indices where that is a table.
SoapClass SoapClassOf(OpKind kind, const Declaration& declaration, int dim);

// Per operand: whether an output's derivative by it is not zero everywhere. Indices, comparisons,
// floor and round have none.
std::vector<bool> DifferentiableOperands(const Declaration& declaration);

// The smallest sets of operands in which the call is linear: partial sums of all operands of one
// set pass through. {{0}, {1}} for MatMul, {{0, 1}} for Add.
std::vector<std::vector<int>> LinearOperandSets(const Declaration& declaration);

// The attributes as ISOMER_OPERATORS lists them: "stride padding dilation groups=1".
std::string AttributeList(OpKind kind);

// The data types that the operands of a call may have that are neither indices nor the condition
// of a Where; empty if there are no such operands.
std::vector<DataType> ValueTypes(const Operator& op, const std::vector<TensorType>& operands);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_OPERATOR_FACTS_H_
