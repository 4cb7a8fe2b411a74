#include "verifier/elements/term.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

std::string NumberText(const NumberExpr& number) {
  std::string text = AttributeText(number.constant);
  for (const std::string& variable : number.variables) absl::StrAppend(&text, "*", variable);
  return text;
}

struct NumberLess {
  bool operator()(const NumberExpr& a, const NumberExpr& b) const {
    return std::tie(a.constant, a.variables) < std::tie(b.constant, b.variables);
  }
};

// Marked constants are 2^-1000 * (2k+1) for the k-th expression.
struct MarkTable {
  std::map<NumberExpr, int, NumberLess> marks;
  std::vector<NumberExpr> numbers;
};
MarkTable& Marks() {
  static MarkTable* table = new MarkTable;
  return *table;
}

bool HasSizesOrAxes(OpKind kind) {
  return kind == OpKind::kConcat || kind == OpKind::kSplit || kind == OpKind::kTranspose;
}

}  // namespace

double EncodedConstant(const NumberExpr& number) {
  if (number.variables.empty()) return number.constant;
  MarkTable& table = Marks();
  auto [at, is_new] = table.marks.emplace(number, static_cast<int>(table.numbers.size()));
  if (is_new) table.numbers.push_back(number);
  return std::ldexp(2.0 * at->second + 1, -1000);
}

NumberExpr NumberOf(double constant) {
  const double mark = std::ldexp(constant, 1000);
  const MarkTable& table = Marks();
  if (constant != 0 && mark >= 1 && mark < 2.0 * static_cast<double>(table.numbers.size())) {
    return table.numbers[static_cast<int>((mark - 1) / 2)];
  }
  return {constant, {}};
}

std::string Symbol::ToString() const {
  if (kind == OpKind::kInput) return absl::StrCat("x", index);
  std::string text(OpName(kind));
  if (HasSizesOrAxes(kind) && rest.empty()) {
    absl::StrAppend(&text, "{", absl::StrJoin(axes, ","));
    if (kind == OpKind::kSplit) absl::StrAppend(&text, ",", AttributeText(sizes));
    absl::StrAppend(&text, "}");
  } else if (kind == OpKind::kScale) {
    absl::StrAppend(&text, "{", NumberText(factor), "}");
  } else if (!rest.empty()) {
    text = Operator(kind, rest).ToString();
  }
  if (kind == OpKind::kSplit || index != 0) absl::StrAppend(&text, ".", index);
  return text;
}

absl::StatusOr<Operator> OperatorOf(const Symbol& symbol, absl::Span<const Shape> operands) {
  Operator op(symbol.kind, symbol.rest);
  switch (symbol.kind) {
    case OpKind::kConcat:
      op.Set("axis", symbol.axes[0]);
      break;
    case OpKind::kSplit:
      op.Set("axis", symbol.axes[0]);
      op.Set("sizes", symbol.sizes);
      break;
    case OpKind::kScale:
      op.Set("factor", EncodedConstant(symbol.factor));
      break;
    case OpKind::kTranspose: {
      if (symbol.axes.empty()) break;  // The whole perm is there.
      const int rank = static_cast<int>(operands[0].size());
      std::vector<int64_t> perm(rank);
      std::iota(perm.begin(), perm.end(), 0);
      ISOMER_ASSIGN_OR_RETURN(const int a, NormalizeAxis(symbol.axes[0], rank));
      ISOMER_ASSIGN_OR_RETURN(const int b, NormalizeAxis(symbol.axes[1], rank));
      std::swap(perm[a], perm[b]);
      op.Set("perm", perm);
      break;
    }
    default:
      break;
  }
  ISOMER_RETURN_IF_ERROR(NormalizeAttributes(&op));
  return op;
}

absl::StatusOr<Shape> ShapeOf(const Symbol& symbol, absl::Span<const Shape> operands) {
  if (IsParallel(symbol.kind)) return operands[0];
  ISOMER_ASSIGN_OR_RETURN(const Operator op, OperatorOf(symbol, operands));
  ISOMER_ASSIGN_OR_RETURN(const Declaration declaration, Declare(op, operands));
  if (symbol.index >= static_cast<int>(declaration.outputs.size())) {
    return absl::InvalidArgumentError(absl::StrCat(op.name(), " has no output ", symbol.index));
  }
  return declaration.outputs[symbol.index];
}

TermId TermPool::Intern(Symbol symbol, std::vector<TermId> arguments, Shape shape) {
  std::string key = absl::StrCat(symbol.ToString(), "(", absl::StrJoin(arguments, ","), ")");
  auto [at, is_new] = ids_.emplace(std::move(key), size());
  if (is_new) terms_.push_back({std::move(symbol), std::move(arguments), std::move(shape)});
  return at->second;
}

TermId TermPool::Variable(int index, const Shape& shape) {
  return Intern(Symbol::Variable(index), {}, shape);
}

absl::StatusOr<TermId> TermPool::Apply(const Symbol& symbol, const std::vector<TermId>& arguments) {
  // A known term needs no inference.
  auto known = ids_.find(absl::StrCat(symbol.ToString(), "(", absl::StrJoin(arguments, ","), ")"));
  if (known != ids_.end()) return known->second;
  std::vector<Shape> shapes;
  for (TermId argument : arguments) shapes.push_back(terms_[argument].shape);
  ISOMER_ASSIGN_OR_RETURN(Shape shape, ShapeOf(symbol, shapes));
  return Intern(symbol, arguments, std::move(shape));
}

std::string TermPool::ToString(TermId id) const {
  const Term& term = terms_[id];
  if (term.arguments.empty()) return term.symbol.ToString();
  return absl::StrCat(
      term.symbol.ToString(), "(",
      absl::StrJoin(term.arguments, ", ",
                    [&](std::string* out, TermId argument) { out->append(ToString(argument)); }),
      ")");
}

}  // namespace isomer
