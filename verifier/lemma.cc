#include "verifier/lemma.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/exact_number.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// term := letter | name [ "{" attributes "}" ] "(" term, .. ")" [ "." digit ]
class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  absl::StatusOr<TermPattern> Term() {
    Skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '_')) ++at_;
    const absl::string_view word = text_.substr(begin, at_ - begin);
    TermPattern term;
    if (word.size() == 1 && Peek() != '(') {
      term.letter = word[0];
      return term;
    }
    ISOMER_ASSIGN_OR_RETURN(term.kind, ParseOpKind(word));
    if (Take('{')) {
      const size_t close = text_.find('}', at_);
      if (close == text_.npos) return Error("no closing brace");
      term.attributes = absl::StrSplit(text_.substr(at_, close - at_), ',');
      at_ = close + 1;
      if (term.kind == OpKind::kTranspose && term.attributes.size() == 1) {
        const std::string pair = term.attributes[0];
        term.attributes = {pair.substr(0, 1), pair.substr(1)};
      }
    }
    if (!Take('(')) return Error("no arguments");
    do {
      ISOMER_ASSIGN_OR_RETURN(TermPattern argument, Term());
      term.arguments.push_back(std::move(argument));
    } while (Take(','));
    if (!Take(')')) return Error("no closing parenthesis");
    if (Take('.')) {
      if (!absl::ascii_isdigit(Peek())) return Error("no output number");
      term.index = text_[at_++] - '0';
    }
    return term;
  }

  bool AtEnd() {
    Skip();
    return at_ == text_.size();
  }

 private:
  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(char c) {
    Skip();
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("lemma '", text_, "' at ", at_, ": ", what));
  }

  absl::string_view text_;
  size_t at_ = 0;
};

absl::StatusOr<TermPattern> ParseTerm(absl::string_view text) {
  Parser parser(text);
  ISOMER_ASSIGN_OR_RETURN(TermPattern term, parser.Term());
  if (!parser.AtEnd()) {
    return absl::InvalidArgumentError(absl::StrCat("lemma '", text, "': text after the term"));
  }
  return term;
}

int64_t Exchanged(int64_t axis, int64_t u, int64_t v) {
  return axis == u ? v : axis == v ? u : axis;
}

// The axis that "-1", "a" or "a^uv" stands for, if its letters are bound.
std::optional<int64_t> AxisOf(const std::string& text, const LemmaBinding& binding) {
  int64_t number;
  if (absl::SimpleAtoi(text, &number)) return number;
  auto bound = [&](char letter) -> std::optional<int64_t> {
    auto at = binding.axes.find(letter);
    if (at == binding.axes.end()) return std::nullopt;
    return at->second;
  };
  const std::optional<int64_t> axis = bound(text[0]);
  if (text.size() == 1 || !axis) return axis;
  const std::optional<int64_t> u = bound(text[2]), v = bound(text[3]);
  if (!u || !v) return std::nullopt;
  return Exchanged(*axis, *u, *v);
}

// The factor that "2", "f" or "fg" stands for, if its letters are bound and nothing is rounded.
std::optional<NumberExpr> FactorOf(const std::string& text, const LemmaBinding& binding) {
  NumberExpr factor;
  if (absl::SimpleAtod(text, &factor.constant)) return factor;
  factor.constant = 1;
  if (text.size() == 3 && text[1] == '+') {  // Of known numbers only.
    const std::optional<NumberExpr> a = FactorOf(text.substr(0, 1), binding);
    const std::optional<NumberExpr> b = FactorOf(text.substr(2), binding);
    if (!a || !b || !a->variables.empty() || !b->variables.empty()) return std::nullopt;
    if (!std::isfinite(a->constant) || !std::isfinite(b->constant)) return std::nullopt;
    const ExactNumber sum =
        ExactNumber::FromDouble(a->constant) + ExactNumber::FromDouble(b->constant);
    if (!sum.AsDouble().has_value()) return std::nullopt;
    factor.constant = *sum.AsDouble();
    return factor;
  }
  for (char letter : text) {
    auto at = binding.factors.find(letter);
    if (at == binding.factors.end()) return std::nullopt;
    const std::optional<double> product = ExactProduct({factor.constant, at->second.constant});
    if (!product.has_value()) return std::nullopt;
    factor.constant = *product;
    factor.variables.insert(factor.variables.end(), at->second.variables.begin(),
                            at->second.variables.end());
  }
  std::sort(factor.variables.begin(), factor.variables.end());
  return factor;
}

bool BindAxis(const std::string& text, int64_t value, LemmaBinding* binding, Deferred* deferred) {
  if (text.size() == 1 && absl::ascii_isalpha(text[0])) {
    return binding->axes.emplace(text[0], value).first->second == value;
  }
  if (const std::optional<int64_t> known = AxisOf(text, *binding)) return *known == value;
  deferred->emplace_back(text, value);
  return true;
}

}  // namespace

absl::StatusOr<Lemma> ParseLemma(absl::string_view id, absl::string_view text) {
  Lemma lemma;
  lemma.id = std::string(id);
  lemma.text = std::string(text);
  const std::vector<absl::string_view> implication = absl::StrSplit(text, " => ");
  if (implication.size() == 2) {
    ISOMER_ASSIGN_OR_RETURN(lemma.trigger, ParseTerm(implication[0]));
  }
  const std::vector<absl::string_view> sides = absl::StrSplit(implication.back(), " = ");
  if (implication.size() > 2 || sides.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("lemma '", text, "' is no equation"));
  }
  ISOMER_ASSIGN_OR_RETURN(lemma.left, ParseTerm(sides[0]));
  ISOMER_ASSIGN_OR_RETURN(lemma.right, ParseTerm(sides[1]));
  return lemma;
}

namespace {

// Of a pattern like "linear{1}(x,y)".
std::vector<Attribute> ActivationOf(const TermPattern& pattern) {
  int64_t activation = 0;
  ISOMER_CHECK(absl::SimpleAtoi(pattern.attributes[0], &activation));
  return {{"activation", activation}};
}

}  // namespace

bool BindAttributes(const TermPattern& pattern, const Symbol& symbol, LemmaBinding* binding,
                    Deferred* deferred) {
  if (pattern.index != symbol.index) return false;
  switch (symbol.kind) {
    case OpKind::kConcat:
      return BindAxis(pattern.attributes[0], symbol.axes[0], binding, deferred);
    case OpKind::kSplit: {
      if (!BindAxis(pattern.attributes[0], symbol.axes[0], binding, deferred)) return false;
      const char letter = pattern.attributes[1][0];
      return binding->sizes.emplace(letter, symbol.sizes).first->second == symbol.sizes;
    }
    case OpKind::kTranspose:
      return BindAxis(pattern.attributes[0], symbol.axes[0], binding, deferred) &&
             BindAxis(pattern.attributes[1], symbol.axes[1], binding, deferred);
    case OpKind::kScale: {
      const std::string& text = pattern.attributes[0];
      if (const std::optional<NumberExpr> known = FactorOf(text, *binding)) {
        return *known == symbol.factor;
      }
      if (text.size() != 1) return false;  // A product is not factored.
      binding->factors[text[0]] = symbol.factor;
      return true;
    }
    case OpKind::kLinear:
      return symbol.rest == ActivationOf(pattern);
    default:
      return true;
  }
}

bool SolveDeferred(const Deferred& deferred, LemmaBinding* binding) {
  for (const auto& [text, value] : deferred) {
    auto u = binding->axes.find(text[2]), v = binding->axes.find(text[3]);
    if (u == binding->axes.end() || v == binding->axes.end()) return false;
    // An exchange is its own inverse.
    const int64_t axis = Exchanged(value, u->second, v->second);
    if (binding->axes.emplace(text[0], axis).first->second != axis) return false;
  }
  return true;
}

absl::StatusOr<TermId> Instantiate(const TermPattern& pattern, const LemmaBinding& binding,
                                   TermPool* pool) {
  auto unbound = [](absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat("nothing is bound to ", what));
  };
  if (pattern.letter != 0) {
    auto at = binding.tensors.find(pattern.letter);
    if (at == binding.tensors.end()) return unbound(std::string(1, pattern.letter));
    return at->second;
  }
  Symbol symbol{pattern.kind, pattern.index, {}, {}, {}, {}};
  for (const std::string& text : pattern.attributes) {
    if (pattern.kind == OpKind::kLinear) {
      symbol.rest = ActivationOf(pattern);
    } else if (pattern.kind == OpKind::kScale) {
      const std::optional<NumberExpr> factor = FactorOf(text, binding);
      if (!factor) return unbound(text);
      symbol.factor = *factor;
    } else if (absl::ascii_isupper(text[0])) {
      auto at = binding.sizes.find(text[0]);
      if (at == binding.sizes.end()) return unbound(text);
      symbol.sizes = at->second;
    } else {
      const std::optional<int64_t> axis = AxisOf(text, binding);
      if (!axis) return unbound(text);
      symbol.axes.push_back(*axis);
    }
  }
  if (pattern.kind == OpKind::kTranspose) std::sort(symbol.axes.begin(), symbol.axes.end());
  std::vector<TermId> arguments;
  for (const TermPattern& argument : pattern.arguments) {
    ISOMER_ASSIGN_OR_RETURN(const TermId id, Instantiate(argument, binding, pool));
    arguments.push_back(id);
  }
  return pool->Apply(symbol, arguments);
}

}  // namespace isomer
