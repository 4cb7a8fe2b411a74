// Dropout: random, and the same however it is partitioned.
#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"

namespace isomer {

// Operand 1 is the seed, a scalar; #i is the row-major number of element i.. of the logical tensor:
// keep[i..] = 1 - [random(seed + salt, #i) < rate]
// Y[i..]    = X[i..] * keep[i..] / (1 - rate)
absl::StatusOr<Declaration> DeclareDropout(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (!shapes[1].empty()) return ExpectRank(op, shapes, 1, 0);
  const double rate = op.Number("rate");
  if (!(rate >= 0 && rate < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("dropout: rate ", rate, " is not in [0, 1)"));
  }
  DeclarationBuilder d(shapes);
  std::vector<Index> index;
  Expr number = 0.0;
  for (const int i : d.Dims("i", DimKind::kParallel, x)) {
    const Extent& size = x[index.size()];
    if (index.empty()) {
      number = Coordinate(i);
    } else if (size.known()) {
      number = number * static_cast<double>(size.value()) + Coordinate(i);
    } else {
      return absl::UnimplementedError("dropout: needs concrete sizes");
    }
    index.push_back(i);
  }
  const Expr seed = d.In(1, {}) + static_cast<double>(op.Int("salt"));
  const Expr keep = Expr(1.0) - (Apply(ScalarOp::kRandom, seed, number) < rate);
  d.Output(index, d.In(0, index) * keep / (Expr(1.0) - rate));
  return d.Build();
}

constexpr OperatorTraits kDropoutTraits = {
    .index_operand = 1,  // the seed
    .salt = "salt",
    .is_cheap = false,
    .takes_channels_last = true,
    .examples = {{"Dropout", "dropout(rate=0.5) f32[4,6] i64[]"},
                 {"DropoutSalt", "dropout(rate=0.25,salt=7) f32[2,4,6] i64[]"}}};

}  // namespace isomer
