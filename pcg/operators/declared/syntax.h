// What a file of declared operators says, before any sizes are known (operator_file.h has the
// language).
#ifndef ISOMER_PCG_OPERATORS_DECLARED_SYNTAX_H_
#define ISOMER_PCG_OPERATORS_DECLARED_SYNTAX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pcg/ir/declaration.h"
#include "pcg/ir/declared_operator.h"

namespace isomer {

// Where it is in the file; both count from 1.
struct SourcePlace {
  int line = 1;
  int column = 1;
};

// An integer of sizes and attributes, or an index of these and iteration dims.
struct IntegerSyntax {
  enum class Kind { kNumber, kName, kSizeOf, kAdd, kSubtract, kMultiply, kDivide, kModulo };
  Kind kind = Kind::kNumber;
  SourcePlace place;
  int64_t number = 0;
  std::string name;
  std::vector<IntegerSyntax> parts;  // two, of what has two sides
};

// "[.., s, p*size(e)+e]".
struct IndicesSyntax {
  SourcePlace place;
  bool has_leading_dims = false;  // ".."
  std::vector<IntegerSyntax> indices;
};

// What is computed for an element.
struct ValueSyntax {
  enum class Kind {
    kNumber,  // numerator / denominator
    kName,    // an attribute, or the coordinate of a dim
    kSizeOf,
    kLoad,
    kPadded,     // a load that is 0 outside of the tensor
    kInside,     // 1 inside of the tensor, else 0
    kScalar,     // `scalar` of the parts
    kAtMost,     // of two parts: a <= b
    kLeast,      // min of two parts
    kMagnitude,  // abs of one part
    kSigmoid,    // of one part
  };
  Kind kind = Kind::kNumber;
  SourcePlace place;
  ScalarOp scalar = ScalarOp::kAdd;
  double numerator = 0, denominator = 1;
  std::string name;
  IndicesSyntax indices;
  std::vector<ValueSyntax> parts;
};

struct OperandSyntax {
  std::string name;
  SourcePlace place;
  bool has_leading_dims = false;
  std::vector<std::string> dims;
};

struct DimSyntax {
  std::string name;
  SourcePlace place;
  IntegerSyntax size;
};

struct RequirementSyntax {
  enum class Kind { kEqual, kLess, kAtMost };
  Kind kind = Kind::kEqual;
  SourcePlace place;
  IntegerSyntax left, right;
  std::string text;  // as it is written
};

struct StatementSyntax {
  std::string name;
  SourcePlace place;
  int output = -1;
  IndicesSyntax indices;
  Reduction reduction = Reduction::kNone;
  std::vector<std::string> reduced;
  ValueSyntax value;
};

struct ExampleSyntax {
  SourcePlace place;
  std::string call;
};

struct OperatorSyntax {
  std::string name;
  SourcePlace place;
  std::vector<DeclaredAttribute> attributes;
  std::vector<OperandSyntax> operands;
  std::vector<DimSyntax> dims;
  std::vector<RequirementSyntax> requirements;
  std::vector<StatementSyntax> statements;
  std::vector<ExampleSyntax> examples;
  std::string onnx_domain, onnx_name;
  std::string text;  // its words, one space between them

  bool HasLeadingDims() const;
  bool IsAttribute(const std::string& attribute) const;
  // Of an operand or a dim statement.
  bool IsDim(const std::string& dim) const;
};

}  // namespace isomer

#endif  // ISOMER_PCG_OPERATORS_DECLARED_SYNTAX_H_
