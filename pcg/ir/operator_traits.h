// Facts about an operator that its declaration does not tell. Each operator has one row of them,
// such as kMatMulTraits, beside its declaration in pcg/operators/. Every member has a default, so a
// row says only what is special. Code that needs such a fact calls TraitsOf instead of listing
// operators.
#ifndef ISOMER_PCG_IR_OPERATOR_TRAITS_H_
#define ISOMER_PCG_IR_OPERATOR_TRAITS_H_

#include <initializer_list>

#include "pcg/ir/operator.h"

namespace isomer {

// Operators of one class are alike to code that chooses algorithms, costs or samples for them.
enum class OperatorClass {
  kOther,
  kUnary,                  // an elementwise function of one operand
  kBinary,                 // of two, which are broadcast
  kProduct,                // a matrix product
  kConvolution,            // of one to three spatial dims
  kTransposedConvolution,  // of one to three spatial dims
  kAttention,              // scaled dot-product attention, capped or not
  kPooling,                // by windows that move over an image
  kReduction,              // over the dims that the attribute `axes` lists
  kLayout,                 // a one-to-one relabelling of elements
  kLookUp,                 // operand 0 is a table whose rows operand 1 selects
  kLoss,                   // a scalar, the mean over all samples
};

// The types of operands that hold neither indices nor a condition. All of them have one type.
enum class OperandTypes { kFloats, kNumbers, kAnything };

// How many values an index may have.
enum class IndexDomain {
  kSeed,      // any integer: it seeds random numbers
  kRows,      // size of the first dim of operand 0
  kMatrices,  // size of the first dim of operand 1
  kPlaces,    // size of the last dim but one of operand 0
  kClasses,   // size of the last dim of operand 0
  kAxis,      // size of the dim of operand 0 that the attribute `axis` names
  kDepth,     // the attribute `depth`
};

enum class ResultType {
  kOfOperands,  // the type of the operands that hold values; float32 if there are none
  kBool,
  kInt64,
  kFloat32,
  kOfAttribute,  // the attribute `to`
};

// When a call on integers makes integers or truth values that are not what the declaration says
// over the reals, but that rounded.
enum class IntegerRounding {
  kNever,
  kAlways,
  kByNumbers,      // an attribute that is a number is a fraction
  kByTypes,        // the result has another type than the operand
  kOfSumsOfBools,  // truth values are added: true and true are true, not two
};

// A call that is tried in tests, by the generator and by the prover: see pcg/ir/examples.h.
struct ExampleRow {
  const char* name;
  const char* call;  // operator(attributes) followed by the types of its operands
};

struct OperatorTraits {
  OperatorClass op_class = OperatorClass::kOther;

  // Types.
  OperandTypes takes = OperandTypes::kFloats;
  int index_operand = -1;  // holds indices or a seed, of an integer type
  IndexDomain index_domain = IndexDomain::kSeed;
  int condition_operand = -1;      // holds truth values, which choose between the others
  bool axis_is_of_result = false;  // the attribute `axis` counts dims of the result
  int most_outputs = 1;
  ResultType result = ResultType::kOfOperands;  // of the first output
  ResultType other_results = ResultType::kOfOperands;

  // Values.
  bool is_commutative = false;
  // It divides by an operand, or takes its logarithm or root: random operands are drawn positive.
  bool takes_positive_numbers = false;
  IntegerRounding rounding = IntegerRounding::kNever;
  bool needs_float32 = false;  // computed in float32 in models of lower precision, too
  // Operands that scale: if they are weights, they are one before training.
  std::initializer_list<int> scales = {};
  // The attribute that only decides which random numbers are drawn.
  const char* salt = nullptr;

  // Costs.
  // Not random, and about as much work as reading the operands: the host may do it.
  bool is_cheap = true;
  bool gradient_reads_result = false;  // in place of the operands
  // Float32 numbers that the forward kernel saves for the gradient, per row of operand 0.
  int saved_per_row = 0;
  bool attributes_change_time = true;  // of its kernels
  // Images that it reads and writes may all have their channels innermost in memory. Convolutions,
  // reductions and pointwise operators need not say so.
  bool takes_channels_last = false;

  // At least one for each of its forms, with sizes that 2 divides where a dim can be partitioned.
  std::initializer_list<ExampleRow> examples = {};
};

namespace internal {
extern const OperatorTraits* const kTraitsOfOperators[];  // by OpKind; pcg/operators/declare.cc
const OperatorTraits& TraitsOfDeclared(OpKind kind);      // declared_operator.cc
}  // namespace internal

inline const OperatorTraits& TraitsOf(OpKind kind) {
  return IsBuiltIn(kind) ? *internal::kTraitsOfOperators[static_cast<int>(kind)]
                         : internal::TraitsOfDeclared(kind);
}

// The two operands may be exchanged.
inline bool IsCommutative(OpKind kind) { return TraitsOf(kind).is_commutative; }
inline bool IsReduction(OpKind kind) {
  return TraitsOf(kind).op_class == OperatorClass::kReduction;
}
inline bool IsConditionOperand(OpKind kind, int operand) {
  return TraitsOf(kind).condition_operand == operand;
}

}  // namespace isomer

#endif  // ISOMER_PCG_IR_OPERATOR_TRAITS_H_
