#include "pcg/ir/declaration.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

Expr Binary(ScalarOp op, Expr a, const Expr& b) {
  a.code.insert(a.code.end(), b.code.begin(), b.code.end());
  a.code.push_back({.op = op});
  return a;
}

// The only spatial dim of a window (y*stride + r*dilation - padding, r whole), or -1.
int SpatialOfIndex(const std::vector<IterationDim>& dims, const Index& index) {
  int spatial = -1;
  for (const auto& [dim, stride] : index.terms) {
    if (dims[dim].kind == DimKind::kWhole) continue;
    if (dims[dim].kind != DimKind::kSpatial || spatial >= 0) return -1;
    spatial = dim;
  }
  return index.modulo == 0 ? spatial : -1;
}

}  // namespace

bool Mentions(const Index& index, int dim) {
  return std::any_of(index.terms.begin(), index.terms.end(),
                     [dim](const auto& term) { return term.first == dim; });
}

int LeadOfIndex(const std::vector<IterationDim>& dims, const Index& index, const Extent& size) {
  if (index.terms.empty() || index.divide != 1 || index.modulo != 0 || index.offset != Extent(0)) {
    return -1;
  }
  auto lead = std::max_element(index.terms.begin(), index.terms.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
  if (dims[lead->first].size * lead->second != size) return -1;
  Extent inner = 1;
  for (const auto& [dim, stride] : index.terms) {
    if (dim != lead->first) inner += (dims[dim].size - 1) * stride;
  }
  return inner == Extent(lead->second) ? lead->first : -1;
}

int Arity(ScalarOp op) {
  if (op < ScalarOp::kAdd) return 0;
  if (op < ScalarOp::kExp) return 2;
  return op < ScalarOp::kWhere ? 1 : 3;
}

Index operator*(Index index, int64_t stride) {
  for (auto& term : index.terms) term.second *= stride;
  index.offset = index.offset * stride;
  return index;
}

Index operator+(Index a, const Index& b) {
  a.terms.insert(a.terms.end(), b.terms.begin(), b.terms.end());
  a.offset += b.offset;
  return a;
}

Index Shifted(Index index, const Extent& offset) {
  index.offset += offset;
  return index;
}

Expr operator+(Expr a, const Expr& b) { return Binary(ScalarOp::kAdd, std::move(a), b); }
Expr operator-(Expr a, const Expr& b) { return Binary(ScalarOp::kSub, std::move(a), b); }
Expr operator-(Expr a) { return std::move(a) * -1.0; }
Expr operator*(Expr a, const Expr& b) { return Binary(ScalarOp::kMul, std::move(a), b); }
Expr operator/(Expr a, const Expr& b) { return Binary(ScalarOp::kDiv, std::move(a), b); }
Expr Max(Expr a, const Expr& b) { return Binary(ScalarOp::kMax, std::move(a), b); }
Expr Apply(ScalarOp function, Expr a) {
  a.code.push_back({.op = function});
  return a;
}
Expr Apply(ScalarOp function, Expr a, const Expr& b) { return Binary(function, std::move(a), b); }
Expr operator<(Expr a, const Expr& b) { return Binary(ScalarOp::kLess, std::move(a), b); }
Expr Equal(Expr a, const Expr& b) { return Binary(ScalarOp::kEqual, std::move(a), b); }
Expr Where(Expr condition, const Expr& yes, const Expr& no) {
  condition.code.insert(condition.code.end(), yes.code.begin(), yes.code.end());
  return Binary(ScalarOp::kWhere, std::move(condition), no);
}
Expr Coordinate(int dim) { return Expr(Body{{.op = ScalarOp::kIndex, .dim = dim}}); }

Shape Declaration::StatementShape(const Statement& s) const {
  Shape shape;
  for (const Index& index : s.indices) {
    // Affine indices of outputs cover [0, size): the size is one more than the largest value.
    Extent size = 1;
    for (const auto& [dim, stride] : index.terms) size += (dims[dim].size - 1) * stride;
    shape.push_back(size);
  }
  return shape;
}

int Declaration::LeadOfOperandDim(int operand, int i) const {
  int lead = -1;
  bool first = true;
  for (const Access& access : accesses) {
    if (access.tensor != operand) continue;
    const int spatial = SpatialOfIndex(dims, access.indices[i]);
    const int found =
        spatial >= 0 ? spatial : LeadOfIndex(dims, access.indices[i], operands[operand][i]);
    if (found < 0 || (!first && found != lead)) return -1;
    lead = found;
    first = false;
  }
  return lead;
}

bool Declaration::HasHalo(int operand, int i) const {
  const int lead = LeadOfOperandDim(operand, i);
  if (lead < 0 || dims[lead].kind != DimKind::kSpatial) return false;
  return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    return access.tensor == operand &&
           LeadOfIndex(dims, access.indices[i], operands[operand][i]) != lead;
  });
}

std::pair<int64_t, int64_t> Declaration::RangeOfOperandDim(int operand, int i,
                                                           absl::Span<const int64_t> begin,
                                                           absl::Span<const int64_t> end) const {
  const int64_t size = operands[operand][i].value();
  std::pair<int64_t, int64_t> range = {size, 0};
  for (const Access& access : accesses) {
    if (access.tensor != operand) continue;
    const Index& index = access.indices[i];
    int64_t low = index.offset.value(), high = low;
    for (const auto& [dim, stride] : index.terms) {
      low += std::min(begin[dim] * stride, (end[dim] - 1) * stride);
      high += std::max(begin[dim] * stride, (end[dim] - 1) * stride);
    }
    // Divisions truncate, as the evaluator's do; where remainders are outside, low rounds up.
    if (index.exact && low > 0) low += index.divide - 1;
    low = std::max<int64_t>(low / index.divide, 0);
    high = std::min(high < 0 && index.exact ? -1 : high / index.divide, size - 1);
    if (index.modulo != 0) low = 0, high = size - 1;
    if (low > high) continue;
    range = {std::min(range.first, low), std::max(range.second, high + 1)};
  }
  return range;
}

int Declaration::LeadOfOutputDim(int output, int i) const {
  for (const Statement& s : statements) {
    if (s.output == output) return LeadOfIndex(dims, s.indices[i], outputs[output][i]);
  }
  return -1;
}

bool Declaration::IsPartitionable(int dim) const {
  if (dims[dim].kind == DimKind::kWhole) return false;
  bool read = false;  // Else the operand types could not tell the degree.
  for (const Access& access : accesses) {
    if (access.tensor >= num_operands()) continue;
    for (size_t i = 0; i < access.indices.size(); ++i) {
      if (!Mentions(access.indices[i], dim)) continue;
      if (LeadOfOperandDim(access.tensor, static_cast<int>(i)) != dim) return false;
      read = true;
    }
  }
  if (!read || !PiecesSuffice(dim)) return false;
  if (dims[dim].kind == DimKind::kSum) return true;
  // A parallel or spatial dim must lead a dim of every output.
  for (size_t o = 0; o < outputs.size(); ++o) {
    bool leads = false;
    for (size_t i = 0; i < outputs[o].size(); ++i) {
      leads |= LeadOfOutputDim(static_cast<int>(o), static_cast<int>(i)) == dim;
    }
    if (!leads) return false;
  }
  return true;
}

DeclarationBuilder::DeclarationBuilder(absl::Span<const Shape> operands) {
  declaration_.operands.assign(operands.begin(), operands.end());
}

int DeclarationBuilder::Dim(std::string name, DimKind kind, Extent size) {
  declaration_.dims.push_back({std::move(name), kind, std::move(size)});
  return static_cast<int>(declaration_.dims.size()) - 1;
}

std::vector<int> DeclarationBuilder::Dims(const std::string& prefix, DimKind kind,
                                          absl::Span<const Extent> sizes) {
  std::vector<int> dims;
  for (const Extent& size : sizes)
    dims.push_back(Dim(absl::StrCat(prefix, dims.size()), kind, size));
  return dims;
}

int DeclarationBuilder::AddAccess(int tensor, std::vector<Index> indices, Outside outside) {
  declaration_.accesses.push_back({tensor, std::move(indices), outside});
  return static_cast<int>(declaration_.accesses.size()) - 1;
}

Expr DeclarationBuilder::In(int operand, std::vector<Index> indices, Outside outside) {
  const int access = AddAccess(operand, std::move(indices), outside);
  return Expr(Body{{.op = ScalarOp::kLoad, .access = access}});
}

Expr DeclarationBuilder::Inside(int operand, std::vector<Index> indices) {
  const int access = AddAccess(operand, std::move(indices), Outside::kZero);
  return Expr(Body{{.op = ScalarOp::kInside, .access = access}});
}

Expr DeclarationBuilder::Let(std::string name, std::vector<int> indices, Reduction reduction,
                             std::vector<int> reduced, Expr body) {
  Statement s;
  s.name = std::move(name);
  s.indices.assign(indices.begin(), indices.end());
  s.reduction = reduction;
  s.reduced = std::move(reduced);
  s.body = std::move(body.code);
  declaration_.statements.push_back(s);
  const int tensor =
      declaration_.num_operands() + static_cast<int>(declaration_.statements.size()) - 1;
  return In(tensor, s.indices);
}

void DeclarationBuilder::OutputReduced(std::vector<Index> indices, Reduction reduction,
                                       std::vector<int> reduced, Expr body) {
  Statement s;
  s.output = static_cast<int>(declaration_.outputs.size());
  s.name = absl::StrCat("Y", s.output);
  s.indices = std::move(indices);
  s.reduction = reduction;
  s.reduced = std::move(reduced);
  s.body = std::move(body.code);
  declaration_.outputs.push_back(declaration_.StatementShape(s));
  declaration_.statements.push_back(std::move(s));
}

void DeclarationBuilder::Select(int dim, int operand, std::vector<Index> indices) {
  Statement& s = declaration_.statements.back();
  s.select_dim = dim;
  s.select = AddAccess(operand, std::move(indices), Outside::kNever);
}

}  // namespace isomer
