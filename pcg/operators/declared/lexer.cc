#include "pcg/operators/declared/lexer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace isomer {
namespace {

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNameRest(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// The longest symbol that `text` begins with; "": none.
absl::string_view SymbolAt(absl::string_view text) {
  for (const absl::string_view symbol : {"..", "==", "<=", ">=", "(", ")", "[", "]", ",", "=", ":",
                                         "+", "-", "*", "/", "%", "^", "<", ">"}) {
    if (absl::StartsWith(text, symbol)) return symbol;
  }
  return "";
}

class Lexer {
 public:
  explicit Lexer(absl::string_view text) : rest_(text) {}

  absl::StatusOr<std::vector<Word>> Run() {
    while (true) {
      SkipBlanks();
      if (rest_.empty()) {
        words_.push_back(
            {.kind = Word::Kind::kEnd, .text = "the end of the file", .place = place_});
        return std::move(words_);
      }
      if (IsNameStart(rest_[0])) {
        Name();
      } else if (absl::ascii_isdigit(rest_[0])) {
        Take(Word::Kind::kNumber, NumberLength());
      } else if (const absl::string_view symbol = SymbolAt(rest_); !symbol.empty()) {
        Take(Word::Kind::kSymbol, symbol.size());
      } else {
        return ErrorAt(place_,
                       absl::ascii_isprint(rest_[0])
                           ? absl::StrCat("'", rest_.substr(0, 1), "' is not of the language")
                           : "what is no ASCII text");
      }
    }
  }

 private:
  void Skip(size_t length) {
    for (; length > 0; --length) {
      place_ = rest_[0] == '\n' ? SourcePlace{place_.line + 1, 1}
                                : SourcePlace{place_.line, place_.column + 1};
      rest_.remove_prefix(1);
    }
  }

  void SkipBlanks() {
    while (!rest_.empty()) {
      if (rest_[0] == '#') {
        Skip(std::min(rest_.find('\n'), rest_.size()));
      } else if (absl::ascii_isspace(rest_[0])) {
        Skip(1);
      } else {
        return;
      }
    }
  }

  void Take(Word::Kind kind, size_t length) {
    words_.push_back({kind, std::string(rest_.substr(0, length)), place_});
    Skip(length);
  }

  void Name() {
    size_t length = 1;
    while (length < rest_.size() && IsNameRest(rest_[length])) ++length;
    Take(Word::Kind::kName, length);
    const std::string& name = words_.back().text;
    if (name != "example" && name != "onnx") return;
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) Skip(1);
    Take(Word::Kind::kRestOfLine, std::min(rest_.find_first_of("#\n"), rest_.size()));
    absl::StripTrailingAsciiWhitespace(&words_.back().text);
  }

  // Digits, a point and digits, an exponent; of "0.5..2" only "0.5".
  size_t NumberLength() const {
    size_t n = 0;
    const auto digits = [&] {
      while (n < rest_.size() && absl::ascii_isdigit(rest_[n])) ++n;
    };
    digits();
    if (n + 1 < rest_.size() && rest_[n] == '.' && absl::ascii_isdigit(rest_[n + 1])) {
      ++n;
      digits();
    }
    if (n < rest_.size() && (rest_[n] == 'e' || rest_[n] == 'E')) {
      size_t first = n + 1;
      if (first < rest_.size() && (rest_[first] == '-' || rest_[first] == '+')) ++first;
      if (first < rest_.size() && absl::ascii_isdigit(rest_[first])) {
        n = first;
        digits();
      }
    }
    return n;
  }

  absl::string_view rest_;
  SourcePlace place_;
  std::vector<Word> words_;
};

}  // namespace

absl::Status ErrorAt(const SourcePlace& place, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(place.line, ":", place.column, ": ", text));
}

absl::StatusOr<std::vector<Word>> WordsOf(absl::string_view text) { return Lexer(text).Run(); }

}  // namespace isomer
