// From what a file says of an operator to what a call of it means.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/operators/declared/lexer.h"
#include "pcg/operators/declared/operator_file.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Indices and sizes beyond it are refused, so that none overflows.
constexpr int64_t kMostIndex = int64_t{1} << 50;

bool IsPlain(const Index& index) { return index.divide == 1 && index.modulo == 0; }

class Instantiation {
 public:
  Instantiation(const OperatorSyntax& syntax, const Operator& op, absl::Span<const Shape> shapes)
      : syntax_(syntax), op_(op), shapes_(shapes), d_(shapes) {}

  absl::StatusOr<Declaration> Run() {
    ISOMER_RETURN_IF_ERROR(BindOperands());
    for (const DimSyntax& dim : syntax_.dims) {
      ISOMER_ASSIGN_OR_RETURN(const Extent size, SizeOf(dim.size));
      if (size.known() && (size.value() < 1 || size.value() > kMostIndex)) {
        return Refuse(dim.place, absl::StrCat("dim ", dim.name, " has size ", size.value()));
      }
      sizes_.emplace(dim.name, size);
    }
    for (const RequirementSyntax& requirement : syntax_.requirements) {
      ISOMER_RETURN_IF_ERROR(Check(requirement));
    }
    AddDims();
    for (const StatementSyntax& statement : syntax_.statements) {
      ISOMER_RETURN_IF_ERROR(Add(statement));
    }
    if (outputs_ == 0) return Refuse(syntax_.place, "no statement defines an output Y");
    Declaration declaration = d_.Build();
    SettleKinds(&declaration);
    return declaration;
  }

 private:
  absl::Status Refuse(const SourcePlace& place, absl::string_view text) const {
    return ErrorAt(place, absl::StrCat(op_.name(), ": ", text));
  }

  // The sizes that operands give.
  absl::Status BindOperands() {
    int leading_from = -1;
    for (size_t o = 0; o < syntax_.operands.size(); ++o) {
      const OperandSyntax& operand = syntax_.operands[o];
      const Shape& shape = shapes_[o];
      const int number = static_cast<int>(o);
      const size_t rank = operand.dims.size();
      if (!operand.has_leading_dims) {
        ISOMER_RETURN_IF_ERROR(ExpectRank(op_, shapes_, number, static_cast<int>(rank)));
      } else if (shape.size() < rank) {
        return absl::InvalidArgumentError(absl::StrCat(op_.name(), ": operand ", o, " has rank ",
                                                       shape.size(), "; it needs at least ", rank));
      }
      const Shape leading(shape.begin(),
                          shape.end() - static_cast<std::ptrdiff_t>(operand.dims.size()));
      if (operand.has_leading_dims && leading_from < 0) {
        leading_ = leading;
        leading_from = number;
      } else if (operand.has_leading_dims) {
        ISOMER_RETURN_IF_ERROR(ExpectLeading(leading_from, leading, number));
      }
      for (size_t i = 0; i < rank; ++i) {
        const Extent& size = shape[leading.size() + i];
        const auto [bound, is_new] = sizes_.emplace(operand.dims[i], size);
        if (is_new) {
          bound_by_[operand.dims[i]] = number;
        } else if (bound->second != size) {
          return Mismatch(op_, operand.dims[i], bound_by_[operand.dims[i]], bound->second, number,
                          size);
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status ExpectLeading(int first, const Shape& leading, int operand) const {
    if (leading.size() != leading_.size()) {
      return absl::InvalidArgumentError(absl::StrCat(op_.name(), ": operand ", first, " has ",
                                                     leading_.size(), " leading dims, and operand ",
                                                     operand, " has ", leading.size()));
    }
    for (size_t i = 0; i < leading.size(); ++i) {
      if (leading[i] != leading_[i]) {
        return Mismatch(op_, absl::StrCat("i", i), first, leading_[i], operand, leading[i]);
      }
    }
    return absl::OkStatus();
  }

  // An integer attribute, or nothing.
  std::optional<int64_t> IntegerAttribute(const std::string& name) const {
    for (const DeclaredAttribute& attribute : syntax_.attributes) {
      if (attribute.name == name && !attribute.is_number) return op_.Int(name);
    }
    return std::nullopt;
  }

  absl::StatusOr<Extent> SizeNamed(const std::string& name, const SourcePlace& place) const {
    const auto size = sizes_.find(name);
    if (size != sizes_.end()) return size->second;
    return Refuse(place, absl::StrCat("there is no size of '", name, "'"));
  }

  absl::Status ExpectNumbers() const { return ExpectConcreteSizes(op_, shapes_); }

  absl::StatusOr<int64_t> Checked(const SourcePlace& place, __int128 value) const {
    if (value > kMostIndex || value < -kMostIndex) return Refuse(place, "the number is too large");
    return static_cast<int64_t>(value);
  }

  // Of `dims` and `require`: no index.
  absl::StatusOr<Extent> SizeOf(const IntegerSyntax& syntax) {
    using Kind = IntegerSyntax::Kind;
    if (syntax.kind == Kind::kNumber) return Extent(syntax.number);
    if (syntax.kind == Kind::kSizeOf) return SizeNamed(syntax.name, syntax.place);
    if (syntax.kind == Kind::kName) {
      if (const auto attribute = IntegerAttribute(syntax.name)) return Extent(*attribute);
      return SizeNamed(syntax.name, syntax.place);
    }
    ISOMER_ASSIGN_OR_RETURN(const Extent left, SizeOf(syntax.parts[0]));
    ISOMER_ASSIGN_OR_RETURN(const Extent right, SizeOf(syntax.parts[1]));
    if (!left.known() || !right.known()) {
      if (syntax.kind == Kind::kAdd) return left + right;
      if (syntax.kind == Kind::kSubtract) return left - right;
      ISOMER_RETURN_IF_ERROR(ExpectNumbers());
    }
    const __int128 a = left.value(), b = right.value();
    if ((syntax.kind == Kind::kDivide || syntax.kind == Kind::kModulo) && b == 0) {
      return Refuse(syntax.place, "a division by zero");
    }
    if (syntax.kind == Kind::kDivide && a % b != 0) {
      return Refuse(syntax.place, absl::StrCat(right.value(), " does not divide ", left.value()));
    }
    ISOMER_ASSIGN_OR_RETURN(const int64_t value,
                            Checked(syntax.place, syntax.kind == Kind::kAdd        ? a + b
                                                  : syntax.kind == Kind::kSubtract ? a - b
                                                  : syntax.kind == Kind::kMultiply ? a * b
                                                  : syntax.kind == Kind::kDivide   ? a / b
                                                                                   : a % b));
    return Extent(value);
  }

  absl::Status Check(const RequirementSyntax& requirement) {
    ISOMER_ASSIGN_OR_RETURN(const Extent left, SizeOf(requirement.left));
    ISOMER_ASSIGN_OR_RETURN(const Extent right, SizeOf(requirement.right));
    const bool is_equal = requirement.kind == RequirementSyntax::Kind::kEqual;
    const auto error = [&] {
      return Refuse(requirement.place, absl::StrCat("it is required that ", requirement.text, ": ",
                                                    left.ToString(), " and ", right.ToString()));
    };
    if (is_equal && left != right) return WithSizes(error(), left, right);
    if (is_equal) return absl::OkStatus();
    if (!left.known() || !right.known()) ISOMER_RETURN_IF_ERROR(ExpectNumbers());
    const bool holds = requirement.kind == RequirementSyntax::Kind::kLess
                           ? left.value() < right.value()
                           : left.value() <= right.value();
    return holds ? absl::OkStatus() : error();
  }

  // The leading dims, and those that statements index, reduce or take the coordinate of.
  void AddDims() {
    for (size_t i = 0; i < leading_.size(); ++i) {
      leading_dims_.push_back(d_.Parallel(absl::StrCat("i", i), leading_[i]));
    }
    // A size that no index mentions is no dim: d of "p*size(e)+e".
    std::vector<std::string> used;
    for (const StatementSyntax& statement : syntax_.statements) {
      NamesOf(statement.indices, &used);
      NamesOf(statement.value, &used);
      used.insert(used.end(), statement.reduced.begin(), statement.reduced.end());
    }
    const auto add = [&](const std::string& name) {
      if (dims_.count(name) > 0 || std::find(used.begin(), used.end(), name) == used.end()) return;
      dims_[name] = d_.Parallel(name, sizes_.at(name));
      names_of_dims_.push_back(name);
    };
    for (const OperandSyntax& operand : syntax_.operands) {
      for (const std::string& name : operand.dims) add(name);
    }
    for (const DimSyntax& dim : syntax_.dims) add(dim.name);
  }

  static void NamesOf(const IntegerSyntax& syntax, std::vector<std::string>* names) {
    if (syntax.kind == IntegerSyntax::Kind::kName) names->push_back(syntax.name);
    for (const IntegerSyntax& part : syntax.parts) NamesOf(part, names);
  }
  static void NamesOf(const IndicesSyntax& indices, std::vector<std::string>* names) {
    for (const IntegerSyntax& index : indices.indices) NamesOf(index, names);
  }
  static void NamesOf(const ValueSyntax& value, std::vector<std::string>* names) {
    if (value.kind == ValueSyntax::Kind::kName) names->push_back(value.name);
    NamesOf(value.indices, names);
    for (const ValueSyntax& part : value.parts) NamesOf(part, names);
  }

  absl::StatusOr<int64_t> NumberOf(const Index& index, const SourcePlace& place,
                                   absl::string_view what) const {
    if (!index.terms.empty()) return Refuse(place, absl::StrCat(what, " is of a dim"));
    if (!index.offset.known()) ISOMER_RETURN_IF_ERROR(ExpectNumbers());
    return index.offset.value();
  }

  absl::StatusOr<Index> IndexOf(const IntegerSyntax& syntax) {
    using Kind = IntegerSyntax::Kind;
    Index index;
    if (syntax.kind == Kind::kNumber) {
      index.offset = syntax.number;
      return index;
    }
    if (syntax.kind == Kind::kSizeOf) {
      ISOMER_ASSIGN_OR_RETURN(index.offset, SizeNamed(syntax.name, syntax.place));
      return index;
    }
    if (syntax.kind == Kind::kName) {
      if (const auto attribute = IntegerAttribute(syntax.name)) {
        index.offset = *attribute;
        return index;
      }
      ISOMER_ASSIGN_OR_RETURN(const int dim, DimNamed(syntax.name, syntax.place));
      return Index(dim);
    }
    ISOMER_ASSIGN_OR_RETURN(Index left, IndexOf(syntax.parts[0]));
    ISOMER_ASSIGN_OR_RETURN(Index right, IndexOf(syntax.parts[1]));
    if (syntax.kind == Kind::kDivide || syntax.kind == Kind::kModulo) {
      return Quotient(syntax, std::move(left), right);
    }
    if (!IsPlain(left) || !IsPlain(right)) {
      return Refuse(syntax.place, "'/' and '%' are the last of an index");
    }
    if (syntax.kind == Kind::kMultiply) {
      if (!right.terms.empty()) std::swap(left, right);
      ISOMER_ASSIGN_OR_RETURN(const int64_t factor,
                              NumberOf(right, syntax.place, "a factor of a dim"));
      return Times(std::move(left), factor, syntax.place);
    }
    if (syntax.kind == Kind::kSubtract) {
      ISOMER_ASSIGN_OR_RETURN(right, Times(std::move(right), -1, syntax.place));
    }
    return Simplified(std::move(left) + right);
  }

  absl::StatusOr<Index> Times(Index index, int64_t factor, const SourcePlace& place) const {
    for (const auto& term : index.terms) {
      ISOMER_RETURN_IF_ERROR(Checked(place, __int128{term.second} * factor).status());
    }
    if (index.offset.known()) {
      ISOMER_RETURN_IF_ERROR(Checked(place, __int128{index.offset.value()} * factor).status());
    }
    return Simplified(std::move(index) * factor);
  }

  // Each dim once, none with a stride of zero.
  static Index Simplified(Index index) {
    std::vector<std::pair<int, int64_t>> terms;
    for (const auto& [dim, stride] : index.terms) {
      const auto same = std::find_if(terms.begin(), terms.end(),
                                     [d = dim](const auto& term) { return term.first == d; });
      if (same != terms.end()) {
        same->second += stride;
      } else {
        terms.emplace_back(dim, stride);
      }
    }
    std::erase_if(terms, [](const auto& term) { return term.second == 0; });
    index.terms = std::move(terms);
    return index;
  }

  absl::StatusOr<Index> Quotient(const IntegerSyntax& syntax, Index left, const Index& right) {
    ISOMER_ASSIGN_OR_RETURN(const int64_t divisor, NumberOf(right, syntax.place, "a divisor"));
    if (divisor < 1) return Refuse(syntax.place, absl::StrCat("a division by ", divisor));
    const bool is_modulo = syntax.kind == IntegerSyntax::Kind::kModulo;
    if (left.terms.empty()) {
      ISOMER_ASSIGN_OR_RETURN(const int64_t number, NumberOf(left, syntax.place, "it"));
      if (!is_modulo && number % divisor != 0) {
        return Refuse(syntax.place, absl::StrCat(divisor, " does not divide ", number));
      }
      left.offset = is_modulo ? number % divisor : number / divisor;
      return left;
    }
    if (left.modulo != 0 || (!is_modulo && left.divide != 1)) {
      return Refuse(syntax.place, "an index has one '/', and one '%' after it");
    }
    (is_modulo ? left.modulo : left.divide) = divisor;
    return left;
  }

  absl::StatusOr<int> DimNamed(const std::string& name, const SourcePlace& place) const {
    const auto dim = dims_.find(name);
    if (dim != dims_.end()) return dim->second;
    return Refuse(place, absl::StrCat("there is no dim '", name, "'"));
  }

  absl::StatusOr<std::vector<Index>> IndicesOf(const IndicesSyntax& syntax) {
    std::vector<Index> indices;
    if (syntax.has_leading_dims) indices.assign(leading_dims_.begin(), leading_dims_.end());
    for (const IntegerSyntax& index : syntax.indices) {
      ISOMER_ASSIGN_OR_RETURN(Index one, IndexOf(index));
      indices.push_back(std::move(one));
    }
    return indices;
  }

  // A load may not leave its tensor.
  absl::Status ExpectInside(const ValueSyntax& value, const std::vector<Index>& indices,
                            const Shape& shape) {
    for (size_t i = 0; i < indices.size(); ++i) {
      const Index& index = indices[i];
      const bool is_dim = index.terms.size() == 1 && index.terms[0].second == 1 &&
                          index.offset == Extent(0) && IsPlain(index);
      if (is_dim && size_of_dim(index.terms[0].first) == shape[i]) continue;
      ISOMER_RETURN_IF_ERROR(ExpectNumbers());
      __int128 low = index.offset.value(), high = low;
      for (const auto& [dim, stride] : index.terms) {
        const __int128 reach = __int128{size_of_dim(dim).value() - 1} * stride;
        (reach < 0 ? low : high) += reach;
      }
      ISOMER_ASSIGN_OR_RETURN(const int64_t least, Checked(value.place, low));
      ISOMER_ASSIGN_OR_RETURN(int64_t most, Checked(value.place, high));
      if (index.divide != 1) most /= index.divide;
      if (index.modulo != 0) most = std::min(most, index.modulo - 1);
      if (least >= 0 && most < shape[i].value()) continue;
      return Refuse(value.place,
                    absl::StrCat("index ", least < 0 ? least : most, " of dim ", i, " of ",
                                 value.name, ", whose size is ", shape[i].value(), "; 'padded ",
                                 value.name, "[..]' is 0 there"));
    }
    return absl::OkStatus();
  }

  Extent size_of_dim(int dim) const {
    const int leading = static_cast<int>(leading_.size());
    return dim < leading ? leading_[dim] : sizes_.at(names_of_dims_[dim - leading]);
  }

  // Operand, or operands + statement.
  int TensorNamed(const std::string& name) const {
    for (size_t o = 0; o < syntax_.operands.size(); ++o) {
      if (syntax_.operands[o].name == name) return static_cast<int>(o);
    }
    return static_cast<int>(syntax_.operands.size()) + statements_.at(name);
  }

  absl::StatusOr<Expr> LoadOf(const ValueSyntax& value) {
    const int tensor = TensorNamed(value.name);
    const int operands = static_cast<int>(syntax_.operands.size());
    const Shape& shape =
        tensor < operands ? shapes_[tensor] : shapes_of_statements_[tensor - operands];
    ISOMER_ASSIGN_OR_RETURN(const std::vector<Index> indices, IndicesOf(value.indices));
    if (indices.size() != shape.size()) {
      return Refuse(value.place,
                    absl::StrCat(value.name, " has ", shape.size(), " dims, not ", indices.size()));
    }
    for (const Index& index : indices) {
      for (const auto& term : index.terms) used_.push_back(term.first);
    }
    if (value.kind == ValueSyntax::Kind::kInside) return d_.Inside(tensor, indices);
    if (value.kind == ValueSyntax::Kind::kPadded) return d_.In(tensor, indices, Outside::kZero);
    ISOMER_RETURN_IF_ERROR(ExpectInside(value, indices, shape));
    return d_.In(tensor, indices);
  }

  absl::StatusOr<Expr> NamedValue(const ValueSyntax& value) {
    for (const DeclaredAttribute& attribute : syntax_.attributes) {
      if (attribute.name != value.name) continue;
      return Expr(attribute.is_number ? op_.Number(value.name)
                                      : static_cast<double>(op_.Int(value.name)));
    }
    ISOMER_ASSIGN_OR_RETURN(const int dim, DimNamed(value.name, value.place));
    used_.push_back(dim);
    return Coordinate(dim);
  }

  absl::StatusOr<Expr> ValueOf(const ValueSyntax& value) {
    using Kind = ValueSyntax::Kind;
    switch (value.kind) {
      case Kind::kNumber:
        if (value.denominator == 1) return Expr(value.numerator);
        return Expr(value.numerator) / Expr(value.denominator);
      case Kind::kName:
        return NamedValue(value);
      case Kind::kSizeOf: {
        ISOMER_ASSIGN_OR_RETURN(const Extent size, SizeNamed(value.name, value.place));
        if (!size.known()) ISOMER_RETURN_IF_ERROR(ExpectNumbers());
        return Expr(static_cast<double>(size.value()));
      }
      case Kind::kLoad:
      case Kind::kPadded:
      case Kind::kInside:
        return LoadOf(value);
      default:
        break;
    }
    std::vector<Expr> parts;
    for (const ValueSyntax& part : value.parts) {
      ISOMER_ASSIGN_OR_RETURN(Expr one, ValueOf(part));
      parts.push_back(std::move(one));
    }
    if (value.kind == Kind::kAtMost) return (parts[0] < parts[1]) + Equal(parts[0], parts[1]);
    if (value.kind == Kind::kLeast) return Max(parts[0] * -1.0, parts[1] * -1.0) * -1.0;
    if (value.kind == Kind::kMagnitude) return Max(parts[0], parts[0] * -1.0);
    if (value.kind == Kind::kSigmoid) {
      return (Apply(ScalarOp::kTanh, parts[0] * 0.5) + 1.0) * 0.5;
    }
    if (parts.size() == 1) return Apply(value.scalar, parts[0]);
    if (parts.size() == 3) return Where(parts[0], parts[1], parts[2]);
    return Apply(value.scalar, parts[0], parts[1]);
  }

  absl::Status Add(const StatementSyntax& statement) {
    used_.clear();
    ISOMER_ASSIGN_OR_RETURN(Expr body, ValueOf(statement.value));
    ISOMER_ASSIGN_OR_RETURN(const std::vector<Index> indices, IndicesOf(statement.indices));
    ISOMER_RETURN_IF_ERROR(ExpectNumbering(statement, indices));
    std::vector<int> defined, reduced;
    for (const Index& index : indices) {
      for (const auto& term : index.terms) defined.push_back(term.first);
    }
    for (const std::string& name : statement.reduced) {
      ISOMER_ASSIGN_OR_RETURN(const int dim, DimNamed(name, statement.place));
      if (std::find(defined.begin(), defined.end(), dim) != defined.end() ||
          std::find(reduced.begin(), reduced.end(), dim) != reduced.end()) {
        return Refuse(statement.place,
                      absl::StrCat("dim ", name, " is reduced, and ", "there another time"));
      }
      reduced.push_back(dim);
    }
    for (const int dim : used_) {
      if (std::find(defined.begin(), defined.end(), dim) == defined.end() &&
          std::find(reduced.begin(), reduced.end(), dim) == reduced.end()) {
        return Refuse(statement.place, absl::StrCat(statement.name, " is neither indexed by dim ",
                                                    NameOfDim(dim), " nor reduced over it"));
      }
    }
    statements_.emplace(statement.name, static_cast<int>(shapes_of_statements_.size()));
    shapes_of_statements_.push_back(ShapeOf(indices));
    const bool gives_partials = statement.output >= 0 && statement.reduction == Reduction::kSum;
    std::vector<int>& of_kind = gives_partials ? summed_ : whole_;
    of_kind.insert(of_kind.end(), reduced.begin(), reduced.end());
    if (statement.output >= 0) {
      ++outputs_;
      d_.OutputReduced(indices, statement.reduction, reduced, std::move(body));
    } else {
      d_.Let(statement.name, defined, statement.reduction, reduced, std::move(body));
    }
    return absl::OkStatus();
  }

  std::string NameOfDim(int dim) const {
    const int leading = static_cast<int>(leading_.size());
    return dim < leading ? absl::StrCat("i", dim) : names_of_dims_[dim - leading];
  }

  Shape ShapeOf(const std::vector<Index>& indices) const {
    Shape shape;
    for (const Index& index : indices) {
      Extent size = 1;
      for (const auto& [dim, stride] : index.terms) size += (size_of_dim(dim) - 1) * stride;
      shape.push_back(size);
    }
    return shape;
  }

  // What a statement defines are all elements of a tensor, each once.
  absl::Status ExpectNumbering(const StatementSyntax& statement,
                               const std::vector<Index>& indices) {
    std::vector<int> seen;
    for (const Index& index : indices) {
      const auto refuse = [&] {
        return Refuse(statement.place,
                      absl::StrCat("the indices of ", statement.name,
                                   " do not number its elements, each once: dims, or n*size(m)+m"));
      };
      if (index.terms.empty() || index.offset != Extent(0) || !IsPlain(index)) return refuse();
      std::vector<std::pair<int, int64_t>> terms = index.terms;
      std::sort(terms.begin(), terms.end(),
                [](const auto& a, const auto& b) { return a.second < b.second; });
      Extent next = 1;
      for (const auto& [dim, stride] : terms) {
        if (next != Extent(stride) || (statement.output < 0 && terms.size() > 1) ||
            std::find(seen.begin(), seen.end(), dim) != seen.end()) {
          return refuse();
        }
        seen.push_back(dim);
        if (terms.size() > 1) {
          if (!size_of_dim(dim).known()) ISOMER_RETURN_IF_ERROR(ExpectNumbers());
          ISOMER_ASSIGN_OR_RETURN(
              const int64_t size,
              Checked(statement.place, __int128{stride} * size_of_dim(dim).value()));
          next = Extent(size);
        }
      }
    }
    return absl::OkStatus();
  }

  // A dim that only outputs sum over is summed in parts; one that is reduced otherwise is whole,
  // and so is one of which pieces do not suffice. A window moves along a spatial one.
  void SettleKinds(Declaration* declaration) const {
    const auto has = [](const std::vector<int>& dims, int dim) {
      return std::find(dims.begin(), dims.end(), dim) != dims.end();
    };
    const int dims = static_cast<int>(declaration->dims.size());
    for (int v = 0; v < dims; ++v) {
      if (has(whole_, v)) {
        declaration->dims[v].kind = DimKind::kWhole;
      } else if (has(summed_, v)) {
        declaration->dims[v].kind = DimKind::kSum;
      }
    }
    std::vector<int> others;
    for (int v = 0; v < dims; ++v) {
      if (!declaration->IsPartitionable(v)) others.push_back(v);
    }
    for (const int v : others) declaration->dims[v].kind = DimKind::kWhole;
    for (const int v : others) {
      if (has(whole_, v) || has(summed_, v) || !MovesWindows(*declaration, v)) continue;
      declaration->dims[v].kind = DimKind::kSpatial;
      if (!declaration->IsPartitionable(v)) declaration->dims[v].kind = DimKind::kWhole;
    }
  }

  // Windows move forward with the dim, by whole elements.
  static bool MovesWindows(const Declaration& declaration, int dim) {
    for (const Access& access : declaration.accesses) {
      for (const Index& index : access.indices) {
        for (const auto& term : index.terms) {
          if (term.first == dim && (term.second < 1 || !IsPlain(index))) return false;
        }
      }
    }
    return true;
  }

  const OperatorSyntax& syntax_;
  const Operator& op_;
  absl::Span<const Shape> shapes_;
  DeclarationBuilder d_;
  std::map<std::string, Extent> sizes_;
  std::map<std::string, int> bound_by_;
  Shape leading_;  // sizes
  std::vector<int> leading_dims_;
  std::map<std::string, int> dims_;
  std::vector<std::string> names_of_dims_;  // behind the leading ones
  std::map<std::string, int> statements_;
  std::vector<Shape> shapes_of_statements_;
  std::vector<int> used_;            // dims of the value at hand
  std::vector<int> summed_, whole_;  // dims that are reduced: into partial sums, and otherwise
  int outputs_ = 0;
};

}  // namespace

absl::StatusOr<Declaration> Instantiate(const OperatorSyntax& syntax, const Operator& op,
                                        absl::Span<const Shape> shapes) {
  return Instantiation(syntax, op, shapes).Run();
}

}  // namespace isomer
