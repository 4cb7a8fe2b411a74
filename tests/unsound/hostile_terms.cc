#include "tests/unsound/hostile_terms.h"

#include <algorithm>
#include <utility>

namespace isomer {
namespace {

DrawnTerm Add(DrawnTerm a, DrawnTerm b) {
  return DrawnCall(OpKind::kAdd, {std::move(a), std::move(b)});
}
DrawnTerm Sub(DrawnTerm a, DrawnTerm b) {
  return DrawnCall(OpKind::kSub, {std::move(a), std::move(b)});
}
DrawnTerm Mul(DrawnTerm a, DrawnTerm b) {
  return DrawnCall(OpKind::kMul, {std::move(a), std::move(b)});
}
DrawnTerm Div(DrawnTerm a, DrawnTerm b) {
  return DrawnCall(OpKind::kDiv, {std::move(a), std::move(b)});
}

DrawnTerm Reduced(OpKind kind, DrawnTerm t, int64_t axis) {
  return DrawnCall(kind, {std::move(t)},
                   {DrawnIntegers("axes", {axis}), DrawnInteger("keepdims", 1)});
}

bool IsBinary(const DrawnTerm& t, OpKind kind) { return t.kind == kind && t.operands.size() == 2; }

}  // namespace

DrawnTerm DrawnCall(OpKind kind, std::vector<DrawnTerm> operands,
                    std::vector<AttributePattern> attributes) {
  DrawnTerm term = {kind, 0, std::move(attributes), std::move(operands)};
  std::sort(term.attributes.begin(), term.attributes.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return term;
}

DrawnTerm Scaled(DrawnTerm term, double factor) {
  return DrawnCall(OpKind::kScale, {std::move(term)}, {DrawnNumber("factor", factor)});
}

AttributePattern DrawnNumber(const char* name, double value) {
  return {name, NumberExpr{value, {}}};
}
AttributePattern DrawnInteger(const char* name, int64_t value) {
  return {name, IntExpr::Constant(value)};
}
AttributePattern DrawnIntegers(const char* name, const std::vector<int64_t>& values) {
  std::vector<IntExpr> list;
  for (int64_t value : values) list.push_back(IntExpr::Constant(value));
  return {name, list};
}

Temptation TemptingFraction(const DrawnTerm& t, const DrawnTerm& u, const DrawnTerm& w,
                            double factor, int which) {
  const bool is_quotient = IsBinary(t, OpKind::kDiv);
  const DrawnTerm a = is_quotient ? t.operands[0] : t, b = is_quotient ? t.operands[1] : u;
  switch (which) {
    case 0:
      return {"u / (u / t)", Div(u, Div(u, t))};
    case 1:
      return {"(t u + w u) / u - w", Sub(Div(Add(Mul(t, u), Mul(w, u)), u), w)};
    case 2:
      return {"t (u - w) / (u - w)", Div(Mul(t, Sub(u, w)), Sub(u, w))};
    case 3:
      return {"-(t (u - w) / (w - u))", Scaled(Div(Mul(t, Sub(u, w)), Sub(w, u)), -1)};
    case 4:
      return {"where(u < w, t, t u / u)",
              DrawnCall(OpKind::kWhere, {DrawnCall(OpKind::kLess, {u, w}), t, Div(Mul(t, u), u)})};
    case 5:
      return {"t relu(u) / relu(u)",
              Div(Mul(t, DrawnCall(OpKind::kRelu, {u})), DrawnCall(OpKind::kRelu, {u}))};
    case 6:
      return {"a / b as c (a / (c b))", Scaled(Div(a, Scaled(b, factor)), factor)};
    case 7:
      return {"a / b as -(a / -b)", Scaled(Div(a, Scaled(b, -1)), -1)};
    case 8:
      return {"a / b as a / (2 b - b)", Div(a, Sub(Add(b, b), b))};
    case 9:
      return {"a / b as a (1 / b)", Mul(a, DrawnCall(OpKind::kReciprocal, {b}))};
    case 10:
      return {"a / b as a u / (b u)", Div(Mul(a, u), Mul(b, u))};
    default:
      return {"a / b as (a + u) / b - u / b", Sub(Div(Add(a, u), b), Div(u, b))};
  }
}

Temptation TemptingReduction(const DrawnTerm& t, const DrawnTerm& u, int64_t axis, int which) {
  const int64_t other = axis == -1 ? -2 : -1;
  const DrawnTerm largest = Reduced(OpKind::kReduceMax, t, axis);
  const DrawnTerm sum = Reduced(OpKind::kReduceSum, t, axis);
  switch (which) {
    case 0:
      return {"max(t, min_i t)",
              DrawnCall(OpKind::kMaximum, {t, Reduced(OpKind::kReduceMin, t, axis)})};
    case 1:
      return {"min(t, max_i t)", DrawnCall(OpKind::kMinimum, {t, largest})};
    case 2:
      return {"max(t, max_i t)", DrawnCall(OpKind::kMaximum, {t, largest})};
    case 3:
      return {"max(t, max_i(max(t, u)))",
              DrawnCall(OpKind::kMaximum, {t, Reduced(OpKind::kReduceMax,
                                                      DrawnCall(OpKind::kMaximum, {t, u}), axis)})};
    case 4:
      return {"min(t, max_j max_i t)",
              DrawnCall(OpKind::kMinimum, {t, Reduced(OpKind::kReduceMax, largest, other)})};
    case 5:
      return {"min(t, max_i u)",
              DrawnCall(OpKind::kMinimum, {t, Reduced(OpKind::kReduceMax, u, axis)})};
    case 6:
      return {"sum_i of sum_i t", Reduced(OpKind::kReduceSum, sum, axis)};
    case 7:
      return {"sum_i (u + sum_i t)", Reduced(OpKind::kReduceSum, Add(u, sum), axis)};
    case 8:
      return {"t sum_i t / sum_i t", Div(Mul(t, sum), sum)};
    default:
      return {"sum_i of t and its concat",
              Reduced(OpKind::kReduceSum,
                      DrawnCall(OpKind::kConcat, {t, sum}, {DrawnInteger("axis", axis)}), axis)};
  }
}

}  // namespace isomer
