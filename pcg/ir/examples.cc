#include "pcg/ir/examples.h"

#include <algorithm>
#include <string>
#include <utility>

#include "pcg/ir/declared_operator.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

ExampleCall Parse(const ExampleRow& row) {
  absl::StatusOr<OperatorCall> call = ParseCall(row.call);
  ISOMER_CHECK(call.ok());
  return {row.name, std::move(call->op), std::move(call->operands)};
}

}  // namespace

const std::vector<ExampleCall>& Examples() {
  static const auto* const examples = [] {
    auto* parsed = new std::vector<ExampleCall>;
    for (OpKind kind : AllOpKinds()) {
      for (const ExampleRow& row : TraitsOf(kind).examples) parsed->push_back(Parse(row));
      if (IsBuiltIn(kind)) continue;
      const DeclaredOperator& declared = DeclaredOperatorOf(kind);
      for (const std::string& call : declared.examples) {
        parsed->push_back(Parse({declared.name.c_str(), call.c_str()}));
      }
    }
    return parsed;
  }();
  return *examples;
}

std::vector<ExampleCall> ExamplesOf(OpKind kind) {
  std::vector<ExampleCall> examples;
  std::copy_if(Examples().begin(), Examples().end(), std::back_inserter(examples),
               [kind](const ExampleCall& example) { return example.op.kind() == kind; });
  return examples;
}

std::vector<OperatorCall> WithExamples(OpKind kind, std::vector<OperatorCall> calls) {
  for (OperatorCall example : ExamplesOf(kind)) {
    if (std::find(calls.begin(), calls.end(), example) == calls.end()) {
      calls.push_back(std::move(example));
    }
  }
  return calls;
}

void CallsByKind::Add(absl::string_view text) {
  absl::StatusOr<OperatorCall> call = ParseCall(text);
  ISOMER_CHECK(call.ok());
  calls_[static_cast<size_t>(call->op.kind())].push_back(*std::move(call));
}

void CallsByKind::AddExamplesOfOthers() {
  for (OpKind kind : AllOpKinds()) {
    std::vector<OperatorCall>& calls = calls_[static_cast<size_t>(kind)];
    if (calls.empty()) calls = WithExamples(kind);
  }
}

}  // namespace isomer
