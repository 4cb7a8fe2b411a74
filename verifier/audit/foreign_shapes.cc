#include "verifier/audit/foreign_shapes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"

namespace isomer {

namespace {

constexpr int kFirstOperator = 1 << 12;

}  // namespace

int InputSymbol(int input, int axis) { return input * kMaxRank + axis; }

int OperatorSymbol(bool of_source, int op) {
  return kFirstOperator * (of_source ? 1 : 2) + op * kSymbolsPerOperator;
}

std::string SizeText(const Extent& size) {
  std::vector<std::string> terms;
  for (const auto& [symbol, coefficient] : size.terms()) {
    const std::string name =
        symbol < kFirstOperator
            ? absl::StrCat("size(x", symbol / kMaxRank, ",", symbol % kMaxRank, ")")
            : absl::StrCat("part", symbol - kFirstOperator);
    terms.push_back(coefficient == 1 ? name : absl::StrCat(coefficient, "*", name));
  }
  if (size.constant() != 0 || terms.empty()) terms.push_back(absl::StrCat(size.constant()));
  return absl::StrJoin(terms, " + ");
}

TypedTensor PlainTensor(PatternRef ref, Shape shape) {
  TypedTensor tensor{ref, std::move(shape), {}, ""};
  tensor.seams.resize(tensor.shape.size());
  return tensor;
}

absl::Status SizeTies::Equal(const Extent& a, const Extent& b) {
  const Extent left = Resolved(a), right = Resolved(b);
  if (left == right) return absl::OkStatus();
  if (!conflict_) conflict_ = SizeConflict{left, right, false};
  return absl::InvalidArgumentError(
      absl::StrCat("sizes ", SizeText(left), " and ", SizeText(right), " differ"));
}

absl::Status SizeTies::Equal(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("operands have ", a.size(), " and ", b.size(), " dims"));
  }
  for (size_t i = 0; i < a.size(); ++i) ISOMER_RETURN_IF_ERROR(Equal(a[i], b[i]));
  return absl::OkStatus();
}

Seams Agreeing(const Seams& a, const Seams& b) { return a == b ? a : Seams(); }

absl::StatusOr<std::vector<TensorPiece>> SplitAtSeams(const TypedTensor& tensor, int axis,
                                                      int parts, int fresh, SizeTies* ties) {
  std::vector<TensorPiece> pieces = {{tensor.shape[axis], tensor.seams[axis]}};
  if (pieces[0].seams.empty()) {
    pieces.clear();
    Extent whole;
    for (int p = 0; p < parts; ++p) {
      pieces.push_back({ties->Resolved(Extent::Symbol(fresh + p)), {}});
      whole += pieces.back().size;
    }
    ISOMER_RETURN_IF_ERROR(ties->Equal(tensor.shape[axis], whole));
    return pieces;
  }
  while (static_cast<int>(pieces.size()) < parts) {
    const TensorPiece first = pieces.front();
    if (first.seams.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("divides dim ", axis, " into ", parts,
                                                     "; it was joined of ", pieces.size()));
    }
    const Seam& seam = first.seams[0];
    pieces.front() = {seam.at, seam.left};
    pieces.insert(pieces.begin() + 1, TensorPiece{first.size - seam.at, seam.right});
  }
  return pieces;
}

absl::StatusOr<std::vector<TensorPiece>> SplitEvenly(const TypedTensor& tensor, int axis, int parts,
                                                     int fresh, SizeTies* ties) {
  const Extent whole = ties->Resolved(tensor.shape[axis]);
  // An even division of what divides evenly needs no new symbol.
  Extent part = whole.constant() / parts;
  bool divides = whole.constant() % parts == 0;
  for (const auto& [symbol, coefficient] : whole.terms()) {
    divides &= coefficient % parts == 0;
    part += Extent::Symbol(symbol) * (coefficient / parts);
  }
  if (!divides) {
    part = ties->Resolved(Extent::Symbol(fresh));
    ISOMER_RETURN_IF_ERROR(ties->Equal(whole, part * parts));
  }
  return std::vector<TensorPiece>(parts, TensorPiece{part, {}});
}

}  // namespace isomer
