// One step of recurrent networks, after the products with their weights.
#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

Expr Sigmoid(const Expr& x) { return UnaryBody(OpKind::kSigmoid, x); }
Expr Tanh(const Expr& x) { return UnaryBody(OpKind::kTanh, x); }

// Checks that `operand` is [..,gates,h], with .. and h those of `state`.
absl::Status CheckGates(const Operator& op, absl::Span<const Shape> shapes, int operand, int state,
                        int64_t gates) {
  const Shape &x = shapes[operand], &h = shapes[state];
  if (h.empty()) return ExpectRank(op, shapes, state, 1);
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, operand, static_cast<int>(h.size()) + 1));
  for (size_t i = 0; i + 1 < h.size(); ++i) {
    if (x[i] != h[i]) return Mismatch(op, absl::StrCat("i", i), operand, x[i], state, h[i]);
  }
  if (x.back() != h.back()) return Mismatch(op, "h", operand, x.back(), state, h.back());
  const Extent& held = x[h.size() - 1];
  if (held == Extent(gates)) return absl::OkStatus();
  return WithSizes(absl::InvalidArgumentError(
                       absl::StrCat(op.name(), ": dim ", h.size() - 1, " of operand ", operand,
                                    " is ", held.ToString(), ", not the ", gates, " gates")),
                   held, Extent(gates));
}

// Where gate `gate` of the element at `index` is.
std::vector<Index> OfGate(std::vector<Index> index, int64_t gate) {
  index.insert(index.end() - 1, Shifted(Index(), gate));
  return index;
}

}  // namespace

// Operands: the pre-activations X[..,4,h] of the gates i, f, g, o, and the state C[..,h]:
// C'[..,h] = sigmoid(X_f) * C + sigmoid(X_i) * tanh(X_g)
// H'[..,h] = sigmoid(X_o) * tanh(C'), the first output; C' is the second.
absl::StatusOr<Declaration> DeclareLstmCell(const Operator& op, absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(CheckGates(op, shapes, 0, 1, 4));
  DeclarationBuilder d(shapes);
  const std::vector<int> dims = d.Dims("i", DimKind::kParallel, shapes[1]);
  const std::vector<Index> index(dims.begin(), dims.end());
  auto gate = [&](int64_t k) { return d.In(0, OfGate(index, k)); };
  const Expr i = Sigmoid(gate(0)), f = Sigmoid(gate(1)), g = Tanh(gate(2)), o = Sigmoid(gate(3));
  const Expr c = d.Let("C", dims, Reduction::kNone, {}, f * d.In(1, index) + i * g);
  d.Output(index, o * Tanh(c));
  d.Output(index, c);
  return d.Build();
}

constexpr OperatorTraits kLstmCellTraits = {
    .most_outputs = 2,
    .is_cheap = false,
    .examples = {{"LstmCell", "lstm_cell f32[2,4,6] f32[2,6]"},
                 {"LstmCellOneSample", "lstm_cell f32[4,6] f32[6]"}}};

// Operands: the projections X[..,3,h] of the input and P[..,3,h] of the state, for r, z, n, and the
// state H[..,h]:
// r = sigmoid(X_r + P_r);  z = sigmoid(X_z + P_z);  n = tanh(X_n + r * P_n)
// H'[..,h] = (1 - z) * n + z * H
absl::StatusOr<Declaration> DeclareGruCell(const Operator& op, absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(CheckGates(op, shapes, 0, 2, 3));
  ISOMER_RETURN_IF_ERROR(CheckGates(op, shapes, 1, 2, 3));
  DeclarationBuilder d(shapes);
  const std::vector<int> dims = d.Dims("i", DimKind::kParallel, shapes[2]);
  const std::vector<Index> index(dims.begin(), dims.end());
  auto x = [&](int64_t k) { return d.In(0, OfGate(index, k)); };
  auto p = [&](int64_t k) { return d.In(1, OfGate(index, k)); };
  const Expr r = Sigmoid(x(0) + p(0));
  const Expr n = d.Let("n", dims, Reduction::kNone, {}, Tanh(x(2) + r * p(2)));
  const Expr z = d.Let("z", dims, Reduction::kNone, {}, Sigmoid(x(1) + p(1)));
  d.Output(index, (Expr(1.0) - z) * n + z * d.In(2, index));
  return d.Build();
}

constexpr OperatorTraits kGruCellTraits = {
    .is_cheap = false,
    .examples = {{"GruCell", "gru_cell f32[4,3,6] f32[4,3,6] f32[4,6]"},
                 {"GruCellTwoDims", "gru_cell f32[2,2,3,4] f32[2,2,3,4] f32[2,2,4]"}}};

}  // namespace isomer
