#include "pcg/operators/declared/operator_file.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_call.h"
#include "pcg/ir/type_inference.h"
#include "pcg/operators/declared/lexer.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool Loads(const ValueSyntax& value) {
  return value.kind == ValueSyntax::Kind::kLoad || value.kind == ValueSyntax::Kind::kPadded ||
         std::any_of(value.parts.begin(), value.parts.end(), Loads);
}

// It divides by what it loads, or takes a logarithm, a root or a power of it.
bool IsPartialValue(const ValueSyntax& value) {
  if (value.kind == ValueSyntax::Kind::kScalar) {
    const bool divides = value.scalar == ScalarOp::kDiv && Loads(value.parts[1]);
    const bool is_partial_function = value.scalar == ScalarOp::kLog ||
                                     value.scalar == ScalarOp::kSqrt ||
                                     value.scalar == ScalarOp::kPow;
    if (divides || (is_partial_function && Loads(value.parts[0]))) return true;
  }
  return std::any_of(value.parts.begin(), value.parts.end(), IsPartialValue);
}

OperatorTraits TraitsOfSyntax(const OperatorSyntax& syntax) {
  OperatorTraits traits;
  traits.takes_positive_numbers =
      std::any_of(syntax.statements.begin(), syntax.statements.end(),
                  [](const StatementSyntax& s) { return IsPartialValue(s.value); });
  traits.most_outputs =
      static_cast<int>(std::count_if(syntax.statements.begin(), syntax.statements.end(),
                                     [](const StatementSyntax& s) { return s.output >= 0; }));
  return traits;
}

absl::Status TryExample(const OperatorSyntax& syntax, const ExampleSyntax& example) {
  const absl::StatusOr<OperatorCall> call = ParseCall(example.call);
  if (!call.ok()) return ErrorAt(example.place, call.status().message());
  if (call->op.name() != syntax.name) {
    return ErrorAt(example.place,
                   absl::StrCat("an example of ", call->op.name(), ", not of ", syntax.name));
  }
  const absl::Status typed = InferTypes(call->op, call->operands).status();
  if (typed.ok()) return absl::OkStatus();
  // It names the place in the declaration, or an operand of the example.
  return absl::ascii_isdigit(typed.message()[0]) ? typed : ErrorAt(example.place, typed.message());
}

absl::Status DeclareOne(const OperatorSyntax& syntax) {
  DeclaredOperator declared{.name = syntax.name,
                            .operands = static_cast<int>(syntax.operands.size()),
                            .attributes = syntax.attributes,
                            .traits = TraitsOfSyntax(syntax),
                            .text = syntax.text,
                            .onnx_domain = syntax.onnx_domain,
                            .onnx_name = syntax.onnx_name};
  for (const ExampleSyntax& example : syntax.examples) declared.examples.push_back(example.call);
  declared.declare = [shared = std::make_shared<const OperatorSyntax>(syntax)](
                         const Operator& op, absl::Span<const Shape> shapes) {
    return Instantiate(*shared, op, shapes);
  };
  const absl::Status added = AddDeclaredOperator(std::move(declared)).status();
  if (!added.ok()) return ErrorAt(syntax.place, added.message());
  for (const ExampleSyntax& example : syntax.examples) {
    ISOMER_RETURN_IF_ERROR(TryExample(syntax, example));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DeclareOperators(absl::string_view text) {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<OperatorSyntax> operators, ParseOperators(text));
  for (const OperatorSyntax& syntax : operators) ISOMER_RETURN_IF_ERROR(DeclareOne(syntax));
  return absl::OkStatus();
}

absl::Status LoadOperators(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const absl::Status declared = DeclareOperators(text);
  if (declared.ok()) return declared;
  return absl::Status(declared.code(), absl::StrCat(path, ":", declared.message()));
}

}  // namespace isomer
