#include "pcg/ir/examples.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_split.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

ExampleCall Parse(const ExampleRow& row) {
  ExampleCall example;
  example.name = row.name;
  std::vector<std::string> words = absl::StrSplit(row.call, ' ', absl::SkipEmpty());
  absl::StatusOr<Operator> op = ParseOperator(words[0]);
  ISOMER_CHECK(op.ok());
  example.op = *std::move(op);
  for (size_t i = 1; i < words.size(); ++i) {
    absl::StatusOr<TensorType> type = ParseTensorType(words[i]);
    ISOMER_CHECK(type.ok());
    example.operands.push_back(*std::move(type));
  }
  return example;
}

}  // namespace

const std::vector<ExampleCall>& Examples() {
  static const auto* const examples = [] {
    auto* parsed = new std::vector<ExampleCall>;
    for (OpKind kind : kAllOpKinds) {
      for (const ExampleRow& row : TraitsOf(kind).examples) parsed->push_back(Parse(row));
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

}  // namespace isomer
