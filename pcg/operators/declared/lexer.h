// The words of a file of operators.
#ifndef ISOMER_PCG_OPERATORS_DECLARED_LEXER_H_
#define ISOMER_PCG_OPERATORS_DECLARED_LEXER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/operators/declared/syntax.h"

namespace isomer {

struct Word {
  enum class Kind { kName, kNumber, kSymbol, kRestOfLine, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;
  SourcePlace place;
};

// "3:12: `text`".
absl::Status ErrorAt(const SourcePlace& place, absl::string_view text);

// Ends with a word of kind kEnd. What follows `example` or `onnx` on its line is one word.
absl::StatusOr<std::vector<Word>> WordsOf(absl::string_view text);

}  // namespace isomer

#endif  // ISOMER_PCG_OPERATORS_DECLARED_LEXER_H_
