// The grammar of operator_file.h, by recursive descent.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pcg/operators/declared/lexer.h"
#include "pcg/operators/declared/operator_file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int kMostNesting = 64;       // of parentheses: each is a call of the parser
constexpr double kMostInteger = 1e15;  // that a double holds, with room for sums
constexpr int kMostDecimals = 15;      // powers of ten that a double holds

constexpr absl::string_view kReservedNames[] = {
    "operator", "dims",   "require", "onnx", "example", "sum",  "product", "over", "size", "in",
    "where",    "inside", "padded",  "max",  "min",     "abs",  "sigmoid", "relu", "exp",  "log",
    "sqrt",     "tanh",   "erf",     "sin",  "cos",     "atan", "floor",   "round"};

bool IsReservedName(absl::string_view name) {
  return std::find(std::begin(kReservedNames), std::end(kReservedNames), name) !=
         std::end(kReservedNames);
}

// The functions of one value that are a ScalarOp.
std::optional<ScalarOp> FunctionNamed(absl::string_view name) {
  for (const ScalarOp op :
       {ScalarOp::kExp, ScalarOp::kLog, ScalarOp::kSqrt, ScalarOp::kTanh, ScalarOp::kErf,
        ScalarOp::kSin, ScalarOp::kCos, ScalarOp::kAtan, ScalarOp::kFloor, ScalarOp::kRound}) {
    if (name == ScalarOpName(op)) return op;
  }
  return std::nullopt;
}

// 0 of "Y" and "Y0", 12 of "Y12"; -1: not the name of an output.
int OutputNamed(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "Y")) return -1;
  int output = 0;
  if (name.empty()) return 0;
  if (name.size() > 2 || !absl::SimpleAtoi(name, &output)) return -1;
  return output;
}

class OperatorParser {
 public:
  explicit OperatorParser(std::vector<Word> words) : words_(std::move(words)) {}

  absl::StatusOr<std::vector<OperatorSyntax>> Run() {
    std::vector<OperatorSyntax> operators;
    while (word().kind != Word::Kind::kEnd) {
      ISOMER_ASSIGN_OR_RETURN(OperatorSyntax syntax, ParseOperatorSyntax());
      operators.push_back(std::move(syntax));
    }
    if (operators.empty()) return ErrorAt({}, "no operator is declared");
    return operators;
  }

 private:
  const Word& word() const { return words_[at_]; }
  bool IsAt(absl::string_view text) const { return IsAhead(0, text); }
  bool IsAhead(size_t words, absl::string_view text) const {
    const Word& ahead = words_[std::min(at_ + words, words_.size() - 1)];
    return ahead.kind != Word::Kind::kEnd && ahead.kind != Word::Kind::kRestOfLine &&
           ahead.text == text;
  }
  bool Consume(absl::string_view text) {
    if (!IsAt(text)) return false;
    ++at_;
    return true;
  }
  absl::Status Missing(absl::string_view what) const {
    return ErrorAt(word().place, absl::StrCat(what, " is expected, not ",
                                              word().kind == Word::Kind::kEnd
                                                  ? word().text
                                                  : absl::StrCat("'", word().text, "'")));
  }
  absl::Status Expect(absl::string_view text) {
    return Consume(text) ? absl::OkStatus() : Missing(absl::StrCat("'", text, "'"));
  }
  // A name that is not of the language.
  absl::StatusOr<std::string> Name(absl::string_view what) {
    if (word().kind != Word::Kind::kName || IsReservedName(word().text)) return Missing(what);
    return words_[at_++].text;
  }

  absl::StatusOr<OperatorSyntax> ParseOperatorSyntax() {
    const size_t first = at_;
    OperatorSyntax syntax;
    syntax_ = &syntax;
    ISOMER_RETURN_IF_ERROR(Expect("operator"));
    syntax.place = word().place;
    ISOMER_ASSIGN_OR_RETURN(syntax.name, Name("the operator's name"));
    ISOMER_RETURN_IF_ERROR(ParseParameters());
    do {
      ISOMER_RETURN_IF_ERROR(ParseOperand());
    } while (Consume(","));
    while (word().kind != Word::Kind::kEnd && !IsAt("operator")) {
      ISOMER_RETURN_IF_ERROR(ParseClause());
    }
    if (syntax.examples.empty()) {
      return ErrorAt(syntax.place, absl::StrCat("operator ", syntax.name, " has no example"));
    }
    syntax.text = absl::StrJoin(words_.begin() + static_cast<std::ptrdiff_t>(first),
                                words_.begin() + static_cast<std::ptrdiff_t>(at_), " ",
                                [](std::string* out, const Word& w) { out->append(w.text); });
    return syntax;
  }

  // "(scale=1.0 in 0.1..8.0, groups)".
  absl::Status ParseParameters() {
    if (!Consume("(")) return absl::OkStatus();
    while (!Consume(")")) {
      if (!syntax_->attributes.empty()) ISOMER_RETURN_IF_ERROR(Expect(","));
      const SourcePlace place = word().place;
      DeclaredAttribute attribute;
      ISOMER_ASSIGN_OR_RETURN(attribute.name, Name("an attribute's name"));
      if (syntax_->IsAttribute(attribute.name)) {
        return ErrorAt(place, absl::StrCat("attribute '", attribute.name, "' is there twice"));
      }
      if (Consume("=")) {
        ISOMER_ASSIGN_OR_RETURN(attribute.value, ParseBound(&attribute.is_number));
      }
      ISOMER_RETURN_IF_ERROR(Expect("in"));
      ISOMER_ASSIGN_OR_RETURN(attribute.least, ParseBound(&attribute.is_number));
      ISOMER_RETURN_IF_ERROR(Expect(".."));
      ISOMER_ASSIGN_OR_RETURN(attribute.most, ParseBound(&attribute.is_number));
      if (attribute.least > attribute.most) {
        return ErrorAt(place, absl::StrCat("attribute '", attribute.name, "' has no values"));
      }
      const double value = attribute.value.value_or(attribute.least);
      if (value < attribute.least || value > attribute.most) {
        return ErrorAt(place, absl::StrCat("attribute '", attribute.name,
                                           "' is not in its range where a call does not say"));
      }
      if (IsListAttribute(attribute.name) ||
          (IsNumberAttribute(attribute.name) && !attribute.is_number)) {
        return ErrorAt(place, absl::StrCat("attribute '", attribute.name, "' is a ",
                                           IsListAttribute(attribute.name) ? "list" : "number",
                                           " of other operators"));
      }
      syntax_->attributes.push_back(std::move(attribute));
    }
    return absl::OkStatus();
  }

  // A number with its sign; `*is_number` if it has a point.
  absl::StatusOr<double> ParseBound(bool* is_number) {
    const bool negative = Consume("-");
    if (word().kind != Word::Kind::kNumber) return Missing("a number");
    double value = 0;
    const SourcePlace place = word().place;
    if (word().text.find_first_of(".eE") != std::string::npos) *is_number = true;
    if (!absl::SimpleAtod(words_[at_++].text, &value) || !(value <= kMostInteger)) {
      return ErrorAt(place, "the number is too large");
    }
    return negative ? -value : value;
  }

  absl::Status ParseOperand() {
    OperandSyntax operand;
    operand.place = word().place;
    ISOMER_ASSIGN_OR_RETURN(operand.name, NewTensor("an operand's name"));
    if (OutputNamed(operand.name) >= 0) {
      return ErrorAt(operand.place, absl::StrCat("'", operand.name, "' is the name of an output"));
    }
    ISOMER_RETURN_IF_ERROR(Expect("["));
    while (!Consume("]")) {
      if (operand.has_leading_dims || !operand.dims.empty()) ISOMER_RETURN_IF_ERROR(Expect(","));
      const SourcePlace place = word().place;
      if (Consume("..")) {
        if (operand.has_leading_dims || !operand.dims.empty()) {
          return ErrorAt(place, "'..' stands in front of all dims");
        }
        operand.has_leading_dims = true;
        continue;
      }
      ISOMER_ASSIGN_OR_RETURN(std::string dim, Name("a dim's name"));
      ISOMER_RETURN_IF_ERROR(CheckDimName(dim, place));
      operand.dims.push_back(std::move(dim));
    }
    syntax_->operands.push_back(std::move(operand));
    return absl::OkStatus();
  }

  // Leading dims are named i0, i1, ...
  absl::Status CheckDimName(const std::string& dim, const SourcePlace& place) const {
    int number = 0;
    if (dim[0] == 'i' && absl::SimpleAtoi(dim.substr(1), &number)) {
      return ErrorAt(place, absl::StrCat("'", dim, "' is the name of a leading dim"));
    }
    if (syntax_->IsAttribute(dim)) {
      return ErrorAt(place, absl::StrCat("'", dim, "' is an attribute"));
    }
    return absl::OkStatus();
  }

  bool IsTensor(const std::string& name) const {
    return std::any_of(syntax_->operands.begin(), syntax_->operands.end(),
                       [&](const OperandSyntax& operand) { return operand.name == name; }) ||
           std::any_of(syntax_->statements.begin(), syntax_->statements.end(),
                       [&](const StatementSyntax& s) { return s.name == name; });
  }
  absl::StatusOr<std::string> NewTensor(absl::string_view what) {
    const SourcePlace place = word().place;
    ISOMER_ASSIGN_OR_RETURN(std::string name, Name(what));
    if (IsTensor(name)) return ErrorAt(place, absl::StrCat("'", name, "' is there twice"));
    return name;
  }

  absl::Status ParseClause() {
    if (Consume("dims")) return ParseDims();
    if (Consume("require")) return ParseRequirement();
    if (IsAt("example") || IsAt("onnx")) return ParseRestOfLine();
    return ParseStatement();
  }

  absl::Status ParseDims() {
    do {
      DimSyntax dim;
      dim.place = word().place;
      ISOMER_ASSIGN_OR_RETURN(dim.name, Name("a dim's name"));
      ISOMER_RETURN_IF_ERROR(CheckDimName(dim.name, dim.place));
      if (syntax_->IsDim(dim.name)) {
        return ErrorAt(dim.place, absl::StrCat("dim '", dim.name, "' is there twice"));
      }
      ISOMER_RETURN_IF_ERROR(Expect("="));
      ISOMER_ASSIGN_OR_RETURN(dim.size, ParseInteger(0));
      syntax_->dims.push_back(std::move(dim));
    } while (Consume(","));
    return absl::OkStatus();
  }

  absl::Status ParseRequirement() {
    RequirementSyntax requirement;
    requirement.place = word().place;
    const size_t first = at_;
    ISOMER_ASSIGN_OR_RETURN(requirement.left, ParseInteger(0));
    if (Consume("==")) {
      requirement.kind = RequirementSyntax::Kind::kEqual;
    } else if (Consume("<=")) {
      requirement.kind = RequirementSyntax::Kind::kAtMost;
    } else if (Consume("<")) {
      requirement.kind = RequirementSyntax::Kind::kLess;
    } else {
      return Missing("'==', '<' or '<='");
    }
    ISOMER_ASSIGN_OR_RETURN(requirement.right, ParseInteger(0));
    for (size_t w = first; w < at_; ++w) absl::StrAppend(&requirement.text, words_[w].text);
    syntax_->requirements.push_back(std::move(requirement));
    return absl::OkStatus();
  }

  absl::Status ParseRestOfLine() {
    const bool is_example = words_[at_++].text == "example";
    const Word& rest = words_[at_++];
    if (is_example) {
      syntax_->examples.push_back({rest.place, rest.text});
      return absl::OkStatus();
    }
    const std::vector<std::string> parts =
        absl::StrSplit(rest.text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (parts.size() != 2) return ErrorAt(rest.place, "'DOMAIN NAME' is expected after 'onnx'");
    syntax_->onnx_domain = parts[0];
    syntax_->onnx_name = parts[1];
    return absl::OkStatus();
  }

  absl::Status ParseStatement() {
    StatementSyntax statement;
    statement.place = word().place;
    ISOMER_ASSIGN_OR_RETURN(statement.name, NewTensor("a statement"));
    if (syntax_->IsDim(statement.name) || syntax_->IsAttribute(statement.name)) {
      return ErrorAt(statement.place, absl::StrCat("'", statement.name, "' is there twice"));
    }
    statement.output = OutputNamed(statement.name);
    const auto outputs = std::count_if(syntax_->statements.begin(), syntax_->statements.end(),
                                       [](const StatementSyntax& s) { return s.output >= 0; });
    if (statement.output >= 0 && statement.output != outputs) {
      return ErrorAt(statement.place,
                     absl::StrCat("Y", outputs, " is the next output, not ", statement.name));
    }
    ISOMER_ASSIGN_OR_RETURN(statement.indices, ParseIndices());
    ISOMER_RETURN_IF_ERROR(Expect("="));
    if (IsAhead(1, "over")) ISOMER_RETURN_IF_ERROR(ParseReduction(&statement));
    ISOMER_ASSIGN_OR_RETURN(statement.value, ParseValue(0));
    syntax_->statements.push_back(std::move(statement));
    return absl::OkStatus();
  }

  absl::Status ParseReduction(StatementSyntax* statement) {
    if (Consume("sum")) {
      statement->reduction = Reduction::kSum;
    } else if (Consume("max")) {
      statement->reduction = Reduction::kMax;
    } else if (Consume("product")) {
      statement->reduction = Reduction::kProduct;
    } else {
      return Missing("sum, max or product");
    }
    ISOMER_RETURN_IF_ERROR(Expect("over"));
    do {
      ISOMER_ASSIGN_OR_RETURN(std::string dim, Name("a dim's name"));
      statement->reduced.push_back(std::move(dim));
    } while (Consume(","));
    return Expect(":");
  }

  absl::StatusOr<IndicesSyntax> ParseIndices() {
    IndicesSyntax indices;
    indices.place = word().place;
    ISOMER_RETURN_IF_ERROR(Expect("["));
    while (!Consume("]")) {
      if (indices.has_leading_dims || !indices.indices.empty()) ISOMER_RETURN_IF_ERROR(Expect(","));
      const SourcePlace place = word().place;
      if (Consume("..")) {
        if (indices.has_leading_dims || !indices.indices.empty()) {
          return ErrorAt(place, "'..' stands in front of all dims");
        }
        if (!syntax_->HasLeadingDims()) return ErrorAt(place, "no operand has '..'");
        indices.has_leading_dims = true;
        continue;
      }
      ISOMER_ASSIGN_OR_RETURN(IntegerSyntax index, ParseInteger(0));
      indices.indices.push_back(std::move(index));
    }
    return indices;
  }

  absl::Status CheckNesting(int depth) const {
    return depth < kMostNesting ? absl::OkStatus() : ErrorAt(word().place, "too many parentheses");
  }

  static IntegerSyntax Of(IntegerSyntax::Kind kind, const SourcePlace& place, IntegerSyntax a,
                          IntegerSyntax b) {
    IntegerSyntax syntax;
    syntax.kind = kind;
    syntax.place = place;
    syntax.parts.push_back(std::move(a));
    syntax.parts.push_back(std::move(b));
    return syntax;
  }

  // Sums of products; each side of `+` and `-`.
  absl::StatusOr<IntegerSyntax> ParseInteger(int depth) {
    ISOMER_RETURN_IF_ERROR(CheckNesting(depth));
    const SourcePlace start = word().place;
    IntegerSyntax left;
    left.place = start;
    if (!IsAt("-")) {
      ISOMER_ASSIGN_OR_RETURN(left, ParseIntegerProduct(depth));
    }
    while (IsAt("+") || IsAt("-")) {
      const Word sign = words_[at_++];
      ISOMER_ASSIGN_OR_RETURN(IntegerSyntax right, ParseIntegerProduct(depth));
      left = Of(sign.text == "+" ? IntegerSyntax::Kind::kAdd : IntegerSyntax::Kind::kSubtract,
                sign.place, std::move(left), std::move(right));
    }
    return left;
  }

  absl::StatusOr<IntegerSyntax> ParseIntegerProduct(int depth) {
    ISOMER_ASSIGN_OR_RETURN(IntegerSyntax left, ParseIntegerFactor(depth));
    while (IsAt("*") || IsAt("/") || IsAt("%")) {
      const Word sign = words_[at_++];
      ISOMER_ASSIGN_OR_RETURN(IntegerSyntax right, ParseIntegerFactor(depth));
      left = Of(sign.text == "*"   ? IntegerSyntax::Kind::kMultiply
                : sign.text == "/" ? IntegerSyntax::Kind::kDivide
                                   : IntegerSyntax::Kind::kModulo,
                sign.place, std::move(left), std::move(right));
    }
    return left;
  }

  absl::StatusOr<IntegerSyntax> ParseIntegerFactor(int depth) {
    IntegerSyntax syntax;
    syntax.place = word().place;
    if (Consume("-")) {
      ISOMER_RETURN_IF_ERROR(CheckNesting(depth));
      ISOMER_ASSIGN_OR_RETURN(IntegerSyntax negated, ParseIntegerFactor(depth + 1));
      return Of(IntegerSyntax::Kind::kSubtract, syntax.place, syntax, std::move(negated));
    }
    if (Consume("(")) {
      ISOMER_ASSIGN_OR_RETURN(syntax, ParseInteger(depth + 1));
      ISOMER_RETURN_IF_ERROR(Expect(")"));
      return syntax;
    }
    if (word().kind == Word::Kind::kNumber) {
      if (!absl::SimpleAtoi(word().text, &syntax.number) ||
          static_cast<double>(syntax.number) > kMostInteger) {
        return ErrorAt(word().place, absl::StrCat("'", word().text, "' is not an integer here"));
      }
      ++at_;
      return syntax;
    }
    syntax.kind = IsAt("size") ? IntegerSyntax::Kind::kSizeOf : IntegerSyntax::Kind::kName;
    ISOMER_ASSIGN_OR_RETURN(syntax.name, ParseSizeOrName("a dim, a size or an integer"));
    return syntax;
  }

  // "size(NAME)" or "NAME".
  absl::StatusOr<std::string> ParseSizeOrName(absl::string_view what) {
    if (!Consume("size")) return Name(what);
    ISOMER_RETURN_IF_ERROR(Expect("("));
    ISOMER_ASSIGN_OR_RETURN(std::string name, Name("a dim's name"));
    ISOMER_RETURN_IF_ERROR(Expect(")"));
    return name;
  }

  static ValueSyntax Of(ValueSyntax::Kind kind, ScalarOp scalar, const SourcePlace& place,
                        std::vector<ValueSyntax> parts) {
    ValueSyntax syntax;
    syntax.kind = kind;
    syntax.scalar = scalar;
    syntax.place = place;
    syntax.parts = std::move(parts);
    return syntax;
  }
  static ValueSyntax Of(ScalarOp scalar, const SourcePlace& place, std::vector<ValueSyntax> parts) {
    return Of(ValueSyntax::Kind::kScalar, scalar, place, std::move(parts));
  }

  absl::StatusOr<ValueSyntax> ParseValue(int depth) {
    ISOMER_RETURN_IF_ERROR(CheckNesting(depth));
    ISOMER_ASSIGN_OR_RETURN(ValueSyntax left, ParseSum(depth));
    if (!(IsAt("<") || IsAt("<=") || IsAt(">") || IsAt(">=") || IsAt("=="))) return left;
    const Word sign = words_[at_++];
    ISOMER_ASSIGN_OR_RETURN(ValueSyntax right, ParseSum(depth));
    if (sign.text[0] == '>') std::swap(left, right);
    if (sign.text == "==") return Of(ScalarOp::kEqual, sign.place, {left, right});
    if (sign.text.size() == 1) return Of(ScalarOp::kLess, sign.place, {left, right});
    return Of(ValueSyntax::Kind::kAtMost, ScalarOp::kLess, sign.place, {left, right});
  }

  absl::StatusOr<ValueSyntax> ParseSum(int depth) {
    ISOMER_ASSIGN_OR_RETURN(ValueSyntax left, ParseProduct(depth));
    while (IsAt("+") || IsAt("-")) {
      const Word sign = words_[at_++];
      ISOMER_ASSIGN_OR_RETURN(ValueSyntax right, ParseProduct(depth));
      left = Of(sign.text == "+" ? ScalarOp::kAdd : ScalarOp::kSub, sign.place,
                {std::move(left), std::move(right)});
    }
    return left;
  }

  absl::StatusOr<ValueSyntax> ParseProduct(int depth) {
    ISOMER_ASSIGN_OR_RETURN(ValueSyntax left, ParsePower(depth));
    while (IsAt("*") || IsAt("/")) {
      const Word sign = words_[at_++];
      ISOMER_ASSIGN_OR_RETURN(ValueSyntax right, ParsePower(depth));
      left = Of(sign.text == "*" ? ScalarOp::kMul : ScalarOp::kDiv, sign.place,
                {std::move(left), std::move(right)});
    }
    return left;
  }

  // "-a", "a", "a ^ b".
  absl::StatusOr<ValueSyntax> ParsePower(int depth) {
    const SourcePlace place = word().place;
    if (Consume("-")) {
      ISOMER_RETURN_IF_ERROR(CheckNesting(depth + 1));
      ISOMER_ASSIGN_OR_RETURN(ValueSyntax negated, ParsePower(depth + 1));
      ValueSyntax minus_one;
      minus_one.place = place;
      minus_one.numerator = -1;
      return Of(ScalarOp::kMul, place, {std::move(negated), std::move(minus_one)});
    }
    ISOMER_ASSIGN_OR_RETURN(ValueSyntax base, ParseFactor(depth));
    const SourcePlace sign = word().place;
    if (!Consume("^")) return base;
    ISOMER_RETURN_IF_ERROR(CheckNesting(depth + 1));
    ISOMER_ASSIGN_OR_RETURN(ValueSyntax exponent, ParsePower(depth + 1));
    return Of(ScalarOp::kPow, sign, {std::move(base), std::move(exponent)});
  }

  absl::StatusOr<ValueSyntax> ParseFactor(int depth) {
    ValueSyntax syntax;
    syntax.place = word().place;
    if (Consume("(")) {
      ISOMER_ASSIGN_OR_RETURN(syntax, ParseValue(depth + 1));
      ISOMER_RETURN_IF_ERROR(Expect(")"));
      return syntax;
    }
    if (word().kind == Word::Kind::kNumber) return ParseNumber();
    if (word().kind == Word::Kind::kName && IsAhead(1, "(") && !IsAt("size")) {
      return ParseFunction(depth);
    }
    if (IsAt("padded") || IsAt("inside")) {
      syntax.kind = IsAt("padded") ? ValueSyntax::Kind::kPadded : ValueSyntax::Kind::kInside;
      ++at_;
      return ParseLoad(std::move(syntax));
    }
    if (IsAhead(1, "[")) {
      syntax.kind = ValueSyntax::Kind::kLoad;
      return ParseLoad(std::move(syntax));
    }
    syntax.kind = IsAt("size") ? ValueSyntax::Kind::kSizeOf : ValueSyntax::Kind::kName;
    ISOMER_ASSIGN_OR_RETURN(syntax.name, ParseSizeOrName("a value"));
    return syntax;
  }

  absl::StatusOr<ValueSyntax> ParseLoad(ValueSyntax syntax) {
    const SourcePlace place = word().place;
    ISOMER_ASSIGN_OR_RETURN(syntax.name, Name("a tensor's name"));
    if (!IsTensor(syntax.name)) {
      return ErrorAt(place, absl::StrCat("there is no '", syntax.name, "' yet"));
    }
    ISOMER_ASSIGN_OR_RETURN(syntax.indices, ParseIndices());
    return syntax;
  }

  // Decimals are fractions: 0.1 is 1 / 10.
  absl::StatusOr<ValueSyntax> ParseNumber() {
    ValueSyntax syntax;
    syntax.place = word().place;
    std::string digits = words_[at_++].text;
    const size_t exponent_at = std::min(digits.find_first_of("eE"), digits.size());
    int exponent = 0;
    bool ok =
        exponent_at == digits.size() || absl::SimpleAtoi(digits.substr(exponent_at + 1), &exponent);
    digits.resize(exponent_at);
    if (const size_t point = digits.find('.'); point != std::string::npos) {
      exponent = std::max(exponent, -1000) - static_cast<int>(digits.size() - point - 1);
      digits.erase(point, 1);
    }
    ok = ok && absl::SimpleAtod(digits, &syntax.numerator) && std::abs(exponent) <= kMostDecimals;
    if (ok && exponent > 0) syntax.numerator *= std::pow(10.0, exponent);
    if (ok && exponent < 0) syntax.denominator = std::pow(10.0, -exponent);
    if (!ok || syntax.numerator > kMostInteger) {
      return ErrorAt(syntax.place, "the number has more than 15 digits; write it as a quotient");
    }
    const double quotient = syntax.numerator / syntax.denominator;
    if (quotient * syntax.denominator == syntax.numerator &&
        std::ldexp(quotient, 40) == std::floor(std::ldexp(quotient, 40))) {
      syntax.numerator = quotient;  // a sum of powers of two
      syntax.denominator = 1;
    }
    return syntax;
  }

  absl::StatusOr<ValueSyntax> ParseFunction(int depth) {
    const Word name = words_[at_++];
    std::vector<ValueSyntax> parts;
    ISOMER_RETURN_IF_ERROR(Expect("("));
    do {
      ISOMER_ASSIGN_OR_RETURN(ValueSyntax part, ParseValue(depth + 1));
      parts.push_back(std::move(part));
    } while (Consume(","));
    ISOMER_RETURN_IF_ERROR(Expect(")"));
    const auto with = [&](size_t takes, ValueSyntax::Kind kind,
                          ScalarOp scalar) -> absl::StatusOr<ValueSyntax> {
      if (parts.size() == takes) return Of(kind, scalar, name.place, std::move(parts));
      return ErrorAt(name.place, absl::StrCat("'", name.text, "' takes ", takes, " values, not ",
                                              parts.size()));
    };
    using Kind = ValueSyntax::Kind;
    if (const auto function = FunctionNamed(name.text)) return with(1, Kind::kScalar, *function);
    if (name.text == "max") return with(2, Kind::kScalar, ScalarOp::kMax);
    if (name.text == "min") return with(2, Kind::kLeast, ScalarOp::kMax);
    if (name.text == "abs") return with(1, Kind::kMagnitude, ScalarOp::kMax);
    if (name.text == "sigmoid") return with(1, Kind::kSigmoid, ScalarOp::kTanh);
    if (name.text == "where") return with(3, Kind::kScalar, ScalarOp::kWhere);
    if (name.text == "relu") {
      ValueSyntax zero;
      zero.place = name.place;
      parts.push_back(zero);
      if (parts.size() == 2) return with(2, Kind::kScalar, ScalarOp::kMax);
      return ErrorAt(name.place, "'relu' takes 1 value");
    }
    return ErrorAt(name.place, absl::StrCat("there is no function '", name.text, "'"));
  }

  std::vector<Word> words_;
  size_t at_ = 0;
  OperatorSyntax* syntax_ = nullptr;
};

}  // namespace

bool OperatorSyntax::HasLeadingDims() const {
  return std::any_of(operands.begin(), operands.end(),
                     [](const OperandSyntax& operand) { return operand.has_leading_dims; });
}

bool OperatorSyntax::IsAttribute(const std::string& attribute) const {
  return std::any_of(attributes.begin(), attributes.end(),
                     [&](const DeclaredAttribute& a) { return a.name == attribute; });
}

bool OperatorSyntax::IsDim(const std::string& dim) const {
  return std::any_of(operands.begin(), operands.end(),
                     [&](const OperandSyntax& operand) {
                       return std::find(operand.dims.begin(), operand.dims.end(), dim) !=
                              operand.dims.end();
                     }) ||
         std::any_of(dims.begin(), dims.end(), [&](const DimSyntax& d) { return d.name == dim; });
}

absl::StatusOr<std::vector<OperatorSyntax>> ParseOperators(absl::string_view text) {
  ISOMER_ASSIGN_OR_RETURN(std::vector<Word> words, WordsOf(text));
  return OperatorParser(std::move(words)).Run();
}

}  // namespace isomer
