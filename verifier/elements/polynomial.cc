#include "verifier/elements/polynomial.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Products of sums grow; rules never come near this.
constexpr size_t kMaxMonomials = 256;
constexpr int kMaxReads = 1 << 14;  // A term that is used twice is read twice.
// Integers of bodies that are indices. Products of them and sizes are far from overflow.
constexpr double kLargestIndex = 1e9;

// 1 / b.
Polynomial Reciprocal(const Polynomial& b) {
  if (b.monomials.size() == 1 && b.monomials[0].factors.empty() && b.monomials[0].bounds.empty() &&
      b.monomials[0].guards.empty() && b.monomials[0].coefficient.variables.empty()) {
    const ExactNumber& value = b.monomials[0].coefficient.constant;
    if (!value.IsZero()) return Constant({ExactNumber(1) / value, {}});
  }
  Factor factor;
  factor.kind = Factor::Kind::kReciprocal;
  factor.arguments.push_back(b);
  return Single(std::move(factor));
}

}  // namespace

Affine operator+(Affine a, const Affine& b) {
  a.offset += b.offset;
  for (const auto& [v, coefficient] : b.terms) {
    if ((a.terms[v] += coefficient) == 0) a.terms.erase(v);
  }
  return a;
}

Affine operator*(Affine a, int64_t factor) {
  if (factor == 0) return Affine();
  a.offset = a.offset * factor;
  for (auto& [v, coefficient] : a.terms) coefficient *= factor;
  return a;
}

Affine Substitute(const Affine& a, int v, const Affine& replacement) {
  auto at = a.terms.find(v);
  if (at == a.terms.end()) return a;
  const int64_t coefficient = at->second;
  Affine rest = a;
  rest.terms.erase(v);
  return rest + replacement * coefficient;
}

void SubstituteIn(Monomial* monomial, int v, const Affine& replacement) {
  for (Guard& guard : monomial->guards) guard.value = Substitute(guard.value, v, replacement);
  for (Factor& factor : monomial->factors) {
    for (Affine& index : factor.indices) index = Substitute(index, v, replacement);
    for (Polynomial& argument : factor.arguments) SubstituteIn(&argument, v, replacement);
  }
}

void SubstituteIn(Polynomial* polynomial, int v, const Affine& replacement) {
  for (Monomial& monomial : polynomial->monomials) SubstituteIn(&monomial, v, replacement);
}

bool Mentions(const Monomial& monomial, int v) {
  return std::any_of(monomial.guards.begin(), monomial.guards.end(),
                     [v](const Guard& guard) { return guard.value.terms.contains(v); }) ||
         std::any_of(monomial.factors.begin(), monomial.factors.end(), [v](const Factor& factor) {
           return std::any_of(factor.indices.begin(), factor.indices.end(),
                              [v](const Affine& index) { return index.terms.contains(v); }) ||
                  std::any_of(factor.arguments.begin(), factor.arguments.end(),
                              [v](const Polynomial& a) { return Mentions(a, v); });
         });
}

bool Mentions(const Polynomial& polynomial, int v) {
  return std::any_of(polynomial.monomials.begin(), polynomial.monomials.end(),
                     [v](const Monomial& monomial) { return Mentions(monomial, v); });
}

Coefficient operator*(const Coefficient& a, const Coefficient& b) {
  Coefficient product{a.constant * b.constant, a.variables};
  product.variables.insert(product.variables.end(), b.variables.begin(), b.variables.end());
  std::sort(product.variables.begin(), product.variables.end());
  return product;
}

Polynomial Constant(Coefficient number) {
  Monomial monomial;
  monomial.coefficient = std::move(number);
  return {{monomial}};
}

Polynomial Single(Factor factor) {
  Monomial monomial;
  monomial.factors.push_back(std::move(factor));
  return {{monomial}};
}

Polynomial Function(ScalarOp op, std::vector<Polynomial> arguments) {
  Factor factor;
  factor.kind = Factor::Kind::kFunction;
  factor.function = op;
  factor.arguments = std::move(arguments);
  return Single(std::move(factor));
}

const Factor* OnlyFactor(const Polynomial& polynomial) {
  if (polynomial.monomials.size() != 1) return nullptr;
  const Monomial& only = polynomial.monomials[0];
  return only.factors.size() == 1 && only.bounds.empty() && only.guards.empty() &&
                 only.coefficient == Coefficient()
             ? &only.factors[0]
             : nullptr;
}

Polynomial Scaled(Polynomial a, int64_t factor) {
  for (Monomial& monomial : a.monomials) {
    monomial.coefficient.constant = monomial.coefficient.constant * factor;
  }
  return a;
}

Monomial Renamed(Monomial monomial, int* next_bound) {
  auto rename = [&](std::vector<Bound>* bounds, auto* scope) {
    for (Bound& bound : *bounds) {
      const int fresh = (*next_bound)++;
      SubstituteIn(scope, bound.index, Affine::Variable(fresh));
      bound.index = fresh;
    }
  };
  rename(&monomial.bounds, &monomial);
  for (Factor& factor : monomial.factors) {
    for (Polynomial& argument : factor.arguments) {
      for (Monomial& inner : argument.monomials) inner = Renamed(std::move(inner), next_bound);
      rename(&factor.bounds, &argument);
    }
  }
  return monomial;
}

absl::StatusOr<Polynomial> Product(const Polynomial& a, const Polynomial& b, int* next_bound) {
  if (a.monomials.size() * b.monomials.size() > kMaxMonomials) {
    return absl::ResourceExhaustedError("product of too many monomials");
  }
  Polynomial product;
  for (const Monomial& left : a.monomials) {
    for (const Monomial& right : b.monomials) {
      Monomial m = Renamed(left, next_bound), r = Renamed(right, next_bound);
      m.coefficient = m.coefficient * r.coefficient;
      m.bounds.insert(m.bounds.end(), r.bounds.begin(), r.bounds.end());
      m.guards.insert(m.guards.end(), r.guards.begin(), r.guards.end());
      m.factors.insert(m.factors.end(), r.factors.begin(), r.factors.end());
      product.monomials.push_back(std::move(m));
    }
  }
  return product;
}

Affine ElementReader::IndexOf(int dim, const Extent& size, int* next, std::vector<Bound>* bounds) {
  if (size.known()) {
    const IndexPiece piece{dim, size.value()};
    if (const auto cut = cuts_.find(piece); cut != cuts_.end()) {
      const int64_t inner = cut->second;
      const Affine outer = IndexOf(dim, piece.size / inner, next, bounds) * inner;
      return outer + IndexOf(dim, inner, next, bounds);
    }
    pieces_[*next] = piece;
  }
  sizes_[*next] = size;
  bounds->push_back({*next, size});
  return Affine::Variable((*next)++);
}

// What is not a multiple of the stride must be seen to be less than it, for any value of the
// variables. A variable that runs past the stride wants to be cut there.
absl::StatusOr<std::pair<Affine, Affine>> ElementReader::Divided(const Affine& value,
                                                                 int64_t stride) {
  const auto unknown = absl::UnimplementedError("indices whose quotient is not known");
  if (stride == 1) return std::pair(value, Affine());
  if (!value.offset.known()) return unknown;
  Affine quotient, rest;
  int64_t most = ((value.offset.value() % stride) + stride) % stride;
  rest.offset = most;
  quotient.offset = (value.offset.value() - most) / stride;
  for (const auto& [v, coefficient] : value.terms) {
    if (coefficient % stride == 0) {
      quotient.terms[v] = coefficient / stride;
      continue;
    }
    const auto piece = pieces_.find(v);
    if (piece == pieces_.end() || coefficient < 0) return unknown;
    const int64_t size = piece->second.size;
    if (coefficient * size > stride) {
      const int64_t inner = stride / coefficient;
      if (stride % coefficient == 0 && size % inner == 0) wanted_cut_ = {piece->second, inner};
      return unknown;
    }
    rest.terms[v] = coefficient;
    most += coefficient * (size - 1);
  }
  if (most >= stride) return unknown;
  return std::pair(quotient, rest);
}

absl::Status ElementReader::Unmerge(const Declaration& d, const Index& index, Affine value,
                                    std::map<int, Affine>* dims) {
  if (index.offset != Extent(0)) return absl::UnimplementedError("an output that is shifted");
  std::vector<std::pair<int, int64_t>> terms = index.terms;
  std::sort(terms.begin(), terms.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  for (size_t t = 0; t < terms.size(); ++t) {
    const auto& [dim, stride] = terms[t];
    const bool is_last = t + 1 == terms.size();
    if (is_last ? stride != 1
                : d.dims[terms[t + 1].first].size * terms[t + 1].second != Extent(stride)) {
      return absl::UnimplementedError("an output that has gaps");
    }
    ISOMER_ASSIGN_OR_RETURN(auto parts, Divided(value, stride));
    (*dims)[dim] = std::move(parts.first);
    value = std::move(parts.second);
  }
  return absl::OkStatus();
}

absl::StatusOr<Affine> ElementReader::AffineOf(const Index& index,
                                               const std::map<int, Affine>& dims) {
  Affine result;
  result.offset = index.offset;
  for (const auto& [dim, stride] : index.terms) result = result + dims.at(dim) * stride;
  if (index.divide == 1 && index.modulo == 0) return result;
  const bool may_be_negative = !result.offset.known() || result.offset.value() < 0 ||
                               std::any_of(result.terms.begin(), result.terms.end(),
                                           [](const auto& t) { return t.second < 0; });
  if (index.exact || may_be_negative) {
    return absl::UnimplementedError("an index that is divided where it may be outside");
  }
  if (index.modulo != 0) {
    ISOMER_ASSIGN_OR_RETURN(auto parts, Divided(result, index.divide * index.modulo));
    result = std::move(parts.second);
  }
  ISOMER_ASSIGN_OR_RETURN(auto parts, Divided(result, index.divide));
  return std::move(parts.first);
}

absl::StatusOr<std::vector<Affine>> ElementReader::AffinesOf(const Access& access,
                                                             const std::map<int, Affine>& dims) {
  std::vector<Affine> indices;
  for (const Index& index : access.indices) {
    ISOMER_ASSIGN_OR_RETURN(Affine affine, AffineOf(index, dims));
    indices.push_back(std::move(affine));
  }
  return indices;
}

absl::StatusOr<Polynomial> ElementReader::Read(TermId term, const std::vector<Affine>& indices) {
  const Term& t = pool_[term];
  if (++reads_ > kMaxReads) return absl::ResourceExhaustedError("too many elements of terms");
  if (t.symbol.kind == OpKind::kInput) {
    if (const auto known = known_values_.find(t.symbol.index); known != known_values_.end()) {
      return Constant({ExactNumber::FromDouble(known->second), {}});
    }
    Factor element;
    element.kind = Factor::Kind::kElement;
    element.variable = t.symbol.index;
    element.indices = indices;
    return Single(std::move(element));
  }
  if (t.symbol.kind == OpKind::kConcatPartials) {  // The meaning is the sum of all partials.
    Polynomial sum;
    for (TermId argument : t.arguments) {
      ISOMER_ASSIGN_OR_RETURN(const Polynomial part, Read(argument, indices));
      sum.monomials.insert(sum.monomials.end(), part.monomials.begin(), part.monomials.end());
    }
    return sum;
  }
  if (IsParallel(t.symbol.kind)) return Read(t.arguments[0], indices);
  std::vector<Shape> shapes;
  for (TermId argument : t.arguments) shapes.push_back(pool_[argument].shape);
  ISOMER_ASSIGN_OR_RETURN(const Operator op, OperatorOf(t.symbol, shapes));
  if (op.kind() == OpKind::kCast) {
    Factor cast;
    cast.kind = Factor::Kind::kCast;
    cast.variable = static_cast<int>(op.Int("to"));
    ISOMER_ASSIGN_OR_RETURN(Polynomial argument, Read(t.arguments[0], indices));
    cast.arguments.push_back(std::move(argument));
    return Single(std::move(cast));
  }
  ISOMER_ASSIGN_OR_RETURN(const Declaration d, Declare(op, shapes));
  for (size_t s = 0; s < d.statements.size(); ++s) {
    const Statement& statement = d.statements[s];
    if (statement.output != t.symbol.index) continue;
    std::map<int, Affine> dims;
    for (size_t i = 0; i < indices.size(); ++i) {
      ISOMER_RETURN_IF_ERROR(Unmerge(d, statement.indices[i], indices[i], &dims));
    }
    return ReadStatement(d, static_cast<int>(s), t.arguments, std::move(dims));
  }
  return absl::InternalError(absl::StrCat(op.name(), " does not define output ", t.symbol.index));
}

namespace {

// Makes `polynomial` zero where `access`, at these indices, is outside of its tensor: an operand,
// or what a statement defines.
void GuardInside(const Declaration& d, const Access& access, const std::vector<Affine>& indices,
                 Polynomial* polynomial) {
  const Shape shape = access.tensor < d.num_operands()
                          ? d.operands[access.tensor]
                          : d.StatementShape(d.statements[access.tensor - d.num_operands()]);
  for (size_t i = 0; i < indices.size(); ++i) {
    // An index that is a whole iteration dim of this size needs no guard.
    const Index& index = access.indices[i];
    const Extent& size = shape[i];
    if (index.terms.size() == 1 && index.terms[0].second == 1 && index.offset == Extent(0) &&
        d.dims[index.terms[0].first].size == size) {
      continue;
    }
    for (Monomial& monomial : polynomial->monomials) monomial.guards.push_back({indices[i], size});
  }
}

// The value of an index: of each of its parts, as an element of a tensor of which nothing is known.
absl::StatusOr<Polynomial> Coordinate(const Affine& index) {
  if (!index.offset.known()) return absl::UnimplementedError("a coordinate shifted by a symbol");
  Polynomial sum = Constant({index.offset.value(), {}});
  for (const auto& [v, coefficient] : index.terms) {
    Factor part;
    part.variable = kCoordinates;
    part.indices = {Affine::Variable(v)};
    sum.monomials.push_back(Scaled(Single(std::move(part)), coefficient).monomials[0]);
  }
  return sum;
}

// The index whose value a polynomial of coordinates is.
std::optional<Affine> IndexOfCoordinates(const Polynomial& polynomial) {
  Affine index;
  for (const Monomial& monomial : polynomial.monomials) {
    const std::optional<double> number = monomial.coefficient.constant.AsDouble();
    if (!number || std::trunc(*number) != *number || std::fabs(*number) > kLargestIndex ||
        !monomial.coefficient.variables.empty() || !monomial.bounds.empty() ||
        !monomial.guards.empty() || monomial.factors.size() > 1) {
      return std::nullopt;
    }
    const auto coefficient = static_cast<int64_t>(*number);
    if (monomial.factors.empty()) {
      index.offset += coefficient;
      continue;
    }
    const Factor& factor = monomial.factors[0];
    if (factor.kind != Factor::Kind::kElement || factor.variable != kCoordinates) {
      return std::nullopt;
    }
    index = index + factor.indices[0] * coefficient;
  }
  return index;
}

}  // namespace

// a < b where 0 <= b - a - 1, and else 0 <= a - b: both are less than some size.
std::optional<Polynomial> ElementReader::ByOrder(const Polynomial& condition, const Polynomial& yes,
                                                 const Polynomial& no) const {
  const Factor* less = OnlyFactor(condition);
  if (less == nullptr || less->kind != Factor::Kind::kFunction ||
      less->function != ScalarOp::kLess) {
    return std::nullopt;
  }
  const auto a = IndexOfCoordinates(less->arguments[0]), b = IndexOfCoordinates(less->arguments[1]);
  if (!a || !b) return std::nullopt;
  const Affine difference = *b + *a * -1;
  Extent most = difference.offset, least = difference.offset;
  for (const auto& [v, coefficient] : difference.terms) {
    (coefficient > 0 ? most : least) += (sizes_.at(v) - 1) * coefficient;
  }
  Affine one;
  one.offset = 1;
  Polynomial sum = yes;
  for (Monomial& m : sum.monomials) m.guards.push_back({difference + one * -1, most});
  for (Monomial m : no.monomials) {
    m.guards.push_back({difference * -1, least * -1 + 1});
    sum.monomials.push_back(std::move(m));
  }
  return sum;
}

absl::StatusOr<Polynomial> ElementReader::ReadAccess(const Declaration& d, const Access& access,
                                                     const std::vector<TermId>& operands,
                                                     const std::map<int, Affine>& dims) {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Affine> indices, AffinesOf(access, dims));
  if (access.outside == Outside::kSkip) return absl::UnimplementedError("a maximum with padding");
  const int statement = access.tensor - d.num_operands();
  std::map<int, Affine> inner;
  for (size_t i = 0; statement >= 0 && i < indices.size(); ++i) {
    inner[d.statements[statement].indices[i].terms[0].first] = indices[i];
  }
  ISOMER_ASSIGN_OR_RETURN(Polynomial element,
                          statement >= 0 ? ReadStatement(d, statement, operands, std::move(inner))
                                         : Read(operands[access.tensor], indices));
  if (access.outside != Outside::kNever) GuardInside(d, access, indices, &element);
  return element;
}

absl::StatusOr<Polynomial> ElementReader::ReadStatement(const Declaration& d, int statement,
                                                        const std::vector<TermId>& operands,
                                                        std::map<int, Affine> dims) {
  const Statement& s = d.statements[statement];
  std::vector<Bound> bounds;
  for (int dim : s.reduced) {
    dims[dim] = IndexOf(kBoundIndex, d.dims[dim].size, &next_bound_, &bounds);
  }
  std::vector<Polynomial> stack;
  auto pop = [&] {
    Polynomial top = std::move(stack.back());
    stack.pop_back();
    return top;
  };
  for (const Instruction& instruction : s.body) {
    switch (instruction.op) {
      case ScalarOp::kLoad: {
        ISOMER_ASSIGN_OR_RETURN(Polynomial element,
                                ReadAccess(d, d.accesses[instruction.access], operands, dims));
        stack.push_back(std::move(element));
        break;
      }
      case ScalarOp::kInside: {
        const Access& access = d.accesses[instruction.access];
        ISOMER_ASSIGN_OR_RETURN(const std::vector<Affine> indices, AffinesOf(access, dims));
        Polynomial one = Constant({1, {}});
        GuardInside(d, access, indices, &one);
        stack.push_back(std::move(one));
        break;
      }
      case ScalarOp::kConstant: {
        if (!std::isfinite(instruction.constant)) {
          return absl::UnimplementedError("a constant that is not finite");
        }
        NumberExpr number = NumberOf(instruction.constant);
        stack.push_back(
            Constant({ExactNumber::FromDouble(number.constant), std::move(number.variables)}));
        break;
      }
      case ScalarOp::kAdd:
      case ScalarOp::kSub: {
        const Polynomial b = Scaled(pop(), instruction.op == ScalarOp::kSub ? -1 : 1);
        for (const Monomial& m : b.monomials) stack.back().monomials.push_back(m);
        break;
      }
      case ScalarOp::kMul:
      case ScalarOp::kDiv: {
        const Polynomial b = instruction.op == ScalarOp::kDiv ? Reciprocal(pop()) : pop();
        ISOMER_ASSIGN_OR_RETURN(stack.back(), Product(stack.back(), b, &next_bound_));
        break;
      }
      case ScalarOp::kIndex: {
        ISOMER_ASSIGN_OR_RETURN(Polynomial coordinate, Coordinate(dims.at(instruction.dim)));
        stack.push_back(std::move(coordinate));
        break;
      }
      default: {
        std::vector<Polynomial> arguments(Arity(instruction.op));
        for (auto a = arguments.rbegin(); a != arguments.rend(); ++a) *a = pop();
        std::optional<Polynomial> by_order;
        if (instruction.op == ScalarOp::kWhere) {
          by_order = ByOrder(arguments[0], arguments[1], arguments[2]);
        }
        stack.push_back(by_order ? *std::move(by_order)
                                 : Function(instruction.op, std::move(arguments)));
      }
    }
  }
  Polynomial value = pop();
  if (s.select >= 0) {
    Factor selected;
    selected.kind = Factor::Kind::kSelected;
    ISOMER_ASSIGN_OR_RETURN(Polynomial choice, ReadAccess(d, d.accesses[s.select], operands, dims));
    selected.indices.push_back(dims.at(s.select_dim));
    selected.arguments.push_back(std::move(choice));
    ISOMER_ASSIGN_OR_RETURN(value, Product(value, Single(std::move(selected)), &next_bound_));
  }
  if (s.reduction == Reduction::kProduct) return absl::UnimplementedError("products");
  if (s.reduction == Reduction::kMax) {
    Factor maximum;
    maximum.kind = Factor::Kind::kMaximum;
    maximum.bounds = std::move(bounds);
    maximum.arguments.push_back(std::move(value));
    return Single(std::move(maximum));
  }
  for (Monomial& monomial : value.monomials) {
    monomial.bounds.insert(monomial.bounds.end(), bounds.begin(), bounds.end());
  }
  return value;
}

}  // namespace isomer
