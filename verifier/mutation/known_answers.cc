#include "verifier/mutation/known_answers.h"

#include <cmath>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pcg/evaluation/number.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/data_path.h"
#include "pcg/support/file.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool TakesPositiveNumbers(const ExampleCall& call) {
  return TraitsOf(call.op.kind()).takes_positive_numbers;
}

uint64_t DigestOf(double value) {
  if (std::isnan(value)) return 1;
  if (std::isinf(value)) return value > 0 ? 2 : 3;
  // Nine digits: what other compilers and libraries agree on.
  return HashBytes(absl::StrFormat("%.8e", value + 0.0));
}
uint64_t DigestOf(PrimeField value) { return value.raw(); }

template <typename T>
absl::StatusOr<uint64_t> DigestOfOutputs(const ExampleCall& call, const Declaration& d,
                                         uint64_t seed) {
  const std::vector<Array<T>> operands = DrawOperands<T>(call, seed);
  std::vector<const Array<T>*> pointers;
  for (const Array<T>& operand : operands) pointers.push_back(&operand);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Array<T>> outputs,
                          Evaluate<T>(d, FullBox(d), pointers));
  uint64_t digest = 0;
  for (const Array<T>& output : outputs) {
    for (int64_t size : output.shape) digest = HashCombine(digest, static_cast<uint64_t>(size));
    for (const T& value : output.data) digest = HashCombine(digest, DigestOf(value));
  }
  return digest;
}

}  // namespace

template <typename T>
std::vector<Array<T>> DrawOperands(const ExampleCall& call, uint64_t seed) {
  std::vector<Array<T>> operands;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    const TensorType& type = call.operands[o];
    Array<T> array(type.Sizes());
    for (int64_t i = 0; i < array.size(); ++i) {
      const uint64_t bits = HashCombine(seed, o, static_cast<uint64_t>(i));
      T& value = array.data[i];
      if (type.dtype == DataType::kBool) {
        value = Number<T>::FromDouble(static_cast<double>(bits % 2));
      } else if (IsIndexOperand(call.op.kind(), static_cast<int>(o))) {
        value = Number<T>::FromDouble(static_cast<double>(bits % 4));
      } else if (!IsFloat(type.dtype)) {  // Some zeros and ties, some large.
        value = Number<T>::FromDouble(static_cast<double>(bits % 2 ? bits / 2 % 4 : bits % 1000));
      } else if (seed % 2 == 0) {  // Ties, which comparisons and maxima decide.
        const double size = static_cast<double>(bits / 2 % 3 + 1);
        const bool negative = (bits & 1) && !TakesPositiveNumbers(call);
        value = Number<T>::FromDouble(negative ? -size : size);
      } else if constexpr (std::is_same_v<T, PrimeField>) {
        value = PrimeField::FromRaw(bits % PrimeField::kPrime);
      } else {
        value = 0.2 + static_cast<double>(bits >> 11) * 0x1p-53 * 1.8;
        if ((bits & 1) && !TakesPositiveNumbers(call)) value = -value;
      }
    }
    operands.push_back(std::move(array));
  }
  return operands;
}
template std::vector<Array<double>> DrawOperands<double>(const ExampleCall&, uint64_t);
template std::vector<Array<PrimeField>> DrawOperands<PrimeField>(const ExampleCall&, uint64_t);

absl::StatusOr<std::string> AnswerOf(const ExampleCall& call, const Declaration& d) {
  uint64_t digest = 0;
  for (uint64_t seed = 101; seed < 109; ++seed) {
    ISOMER_ASSIGN_OR_RETURN(const uint64_t field, DigestOfOutputs<PrimeField>(call, d, seed));
    ISOMER_ASSIGN_OR_RETURN(const uint64_t real, DigestOfOutputs<double>(call, d, seed));
    digest = HashCombine(digest, field, real);
  }
  std::vector<std::string> dims, linear;
  for (size_t v = 0; v < d.dims.size(); ++v) {
    if (!d.IsPartitionable(static_cast<int>(v))) continue;
    dims.push_back(absl::StrCat(d.dims[v].name, ":", DimKindName(d.dims[v].kind)));
  }
  for (int o = 0; o < d.num_operands(); ++o) {
    std::vector<bool> subset(d.num_operands(), false);
    subset[o] = true;
    if (d.IsLinearIn(subset)) linear.push_back(absl::StrCat(o));
  }
  return absl::StrCat(DigestString(digest), " dims ", absl::StrJoin(dims, ","), " linear ",
                      absl::StrJoin(linear, ","));
}

absl::StatusOr<std::string> KnownAnswersText() {
  std::string text =
      "# What the declarations of the example calls compute (verifier/mutation/known_answers.h).\n";
  for (const ExampleCall& call : Examples()) {
    ISOMER_ASSIGN_OR_RETURN(const Declaration d, DeclarationOf(call));
    ISOMER_ASSIGN_OR_RETURN(const std::string answer, AnswerOf(call, d));
    absl::StrAppend(&text, call.name, " ", answer, "\n");
  }
  return text;
}

absl::StatusOr<std::map<std::string, std::string>> LoadKnownAnswers() {
  const std::string path = DataPath("verifier/mutation/known_answers.txt");
  ISOMER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::map<std::string, std::string> answers;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    answers[entry.first] = entry.second;
  }
  return answers;
}

}  // namespace isomer
