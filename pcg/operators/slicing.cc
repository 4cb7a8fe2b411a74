// Operators that keep a part of a tensor, or put it into a larger one.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// An error unless attribute `name` of `op` has `expected` entries.
absl::Status ExpectLength(const Operator& op, absl::string_view name, size_t length,
                          size_t expected) {
  if (length == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(op.name(), ": ", name, " has ", length, " entries, not ", expected));
}

absl::StatusOr<int64_t> KnownSize(const Operator& op, const Extent& size) {
  if (size.known()) return size.value();
  return absl::UnimplementedError(absl::StrCat(op.name(), ": needs concrete sizes"));
}

}  // namespace

// Y[i..] = X[start + i*step ..]; a dim that is kept whole is parallel.
absl::StatusOr<Declaration> DeclareSlice(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  const auto &starts = op.Ints("starts"), &steps = op.Ints("steps");
  const std::vector<Extent>& sizes = op.Extents("sizes");
  ISOMER_RETURN_IF_ERROR(ExpectLength(op, "starts", starts.size(), x.size()));
  ISOMER_RETURN_IF_ERROR(ExpectLength(op, "sizes", sizes.size(), x.size()));
  ISOMER_RETURN_IF_ERROR(ExpectLength(op, "steps", steps.size(), x.size()));
  DeclarationBuilder d(shapes);
  std::vector<Index> in, out;
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t start = starts[i], step = steps[i];
    const std::string name = absl::StrCat("i", i);
    if (start == 0 && step == 1 && sizes[i] == x[i]) {
      const int dim = d.Parallel(name, x[i]);
      in.push_back(dim);
      out.push_back(dim);
      continue;
    }
    ISOMER_ASSIGN_OR_RETURN(const int64_t full, KnownSize(op, x[i]));
    ISOMER_ASSIGN_OR_RETURN(const int64_t size, KnownSize(op, sizes[i]));
    const bool starts_inside = start >= 0 && start < full && size >= 1;
    if (!starts_inside || step == 0 || step > full || step < -full ||
        size - 1 > (step > 0 ? (full - 1 - start) / step : start / -step)) {
      return absl::InvalidArgumentError(absl::StrCat("slice: dim ", i, " of size ", full,
                                                     " has no ", size, " elements from ", start,
                                                     " in steps of ", step));
    }
    const int dim = d.Whole(name, size);
    in.push_back(Shifted(Index(dim) * step, start));
    out.push_back(dim);
  }
  d.Output(out, d.In(0, in));
  return d.Build();
}

constexpr OperatorTraits kSliceTraits = {
    .takes = OperandTypes::kAnything,
    .takes_channels_last = true,
    .examples = {{"Slice", "slice(starts=[0,1],sizes=[4,2],steps=[1,3]) f32[4,6]"},
                 {"SliceBackwards", "slice(starts=[3,0],sizes=[4,6],steps=[-1,1]) f32[4,6]"},
                 {"SliceInts", "slice(starts=[0,2],sizes=[4,4],steps=[1,1]) i64[4,6]"}}};

namespace {

enum PadMode : int64_t { kConstant = 0, kReflect = 1, kEdge = 2, kWrap = 3 };

// What lies at `index` (which counts from before the first element, and may be negative) of dim i
// of tensor `source`, of size `size`, that has the other indices `at`.
Expr PaddedLoad(DeclarationBuilder* d, int64_t mode, int source, std::vector<Index> at, size_t i,
                const Index& index, int64_t size) {
  auto load = [&](Index value) {
    at[i] = std::move(value);
    return d->In(source, at, Outside::kZero);
  };
  auto inside = [&](Index value) {
    at[i] = std::move(value);
    return d->Inside(source, at);
  };
  if (mode == kWrap) {
    Index wrapped = Shifted(index, size);  // No more than `size` before the first.
    wrapped.modulo = size;
    return load(wrapped);
  }
  // Reflect: -index before the first element, 2*(size-1) - index behind the last.
  Index before, behind = Shifted(Index(), size - 1);
  if (mode == kReflect) {
    before = index * -1;
    behind = Shifted(before, 2 * (size - 1));
  }
  // An index is behind the last element if it is inside once it is moved back by all of them.
  return Where(inside(index), load(index),
               Where(inside(Shifted(index, -size)), load(behind), load(before)));
}

absl::Status CheckPadding(const Operator& op, size_t i, int64_t size, int64_t begin, int64_t end) {
  constexpr int64_t kLimit = int64_t{1} << 48;
  const int64_t mode = op.Int("mode");
  // Other modes repeat elements that are there.
  const int64_t low = mode == kConstant ? -size : 0;
  const int64_t high = mode == kConstant ? kLimit : mode == kReflect ? size - 1 : size;
  if (std::min(begin, end) < low || std::max(begin, end) > high || size + begin + end < 1) {
    return absl::InvalidArgumentError(absl::StrCat("pad: dim ", i, " of size ", size,
                                                   " cannot be padded by ", begin, " and ", end,
                                                   " in mode ", mode));
  }
  return absl::OkStatus();
}

}  // namespace

// Y[i..] = X[i - begin ..] where that is inside of X, else
//   mode 0: value;  mode 1 (reflect): X mirrored at its first and last element;
//   mode 2 (edge): the nearest element;  mode 3 (wrap): X repeated.
// A dim that is not padded is parallel. Constant padding may be negative: it cuts off.
absl::StatusOr<Declaration> DeclarePad(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  ISOMER_RETURN_IF_ERROR(ExpectLength(op, "padding", op.Ints("padding").size(), 2 * x.size()));
  const int64_t mode = op.Int("mode");
  if (mode < kConstant || mode > kWrap) {
    return absl::InvalidArgumentError(absl::StrCat("pad: mode ", mode, " is not one of 0 to 3"));
  }
  DeclarationBuilder d(shapes);
  std::vector<Index> shifted, out;
  std::vector<int> whole(x.size(), -1);  // the padded dim; -1 where there is no padding
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t begin = op.Ints("padding")[i], end = op.Ints("padding")[x.size() + i];
    const std::string name = absl::StrCat("i", i);
    if (begin == 0 && end == 0) {
      out.push_back(d.Parallel(name, x[i]));
      shifted.push_back(out.back());
      continue;
    }
    ISOMER_ASSIGN_OR_RETURN(const int64_t size, KnownSize(op, x[i]));
    ISOMER_RETURN_IF_ERROR(CheckPadding(op, i, size, begin, end));
    whole[i] = d.Whole(name, size + begin + end);
    out.push_back(whole[i]);
    shifted.push_back(Shifted(Index(whole[i]), -begin));
  }
  if (mode == kConstant) {
    const double value = op.Number("value");
    const Expr inner = d.In(0, shifted, Outside::kZero);
    d.Output(out, value == 0 ? inner : Where(d.Inside(0, shifted), inner, value));
    return d.Build();
  }
  // One dim after the other: each step pads dim i of what the steps before it made.
  std::vector<Index> at = out;
  const auto first = std::find_if(whole.begin(), whole.end(), [](int dim) { return dim >= 0; });
  for (size_t i = first - whole.begin() + 1; i < x.size(); ++i) {
    if (whole[i] >= 0) at[i] = d.Whole(absl::StrCat("x", i), x[i]);
  }
  int source = 0;
  std::optional<Expr> padded;
  for (size_t i = 0; i < x.size(); ++i) {
    if (whole[i] < 0) continue;
    if (padded.has_value()) {
      std::vector<int> dims;
      for (const Index& index : at) dims.push_back(index.terms[0].first);
      d.Let(absl::StrCat("P", source), dims, Reduction::kNone, {}, *padded);
      source = source == 0 ? 1 : source + 1;
    }
    padded = PaddedLoad(&d, mode, source, at, i, shifted[i], x[i].value());
    at[i] = whole[i];
  }
  d.Output(out, padded.has_value() ? *padded : d.In(0, out));
  return d.Build();
}

constexpr OperatorTraits kPadTraits = {
    .takes = OperandTypes::kAnything,
    .rounding = IntegerRounding::kByNumbers,
    .takes_channels_last = true,
    .examples = {{"Pad", "pad(padding=[0,1,0,2]) f32[4,6]"},
                 {"PadCutting", "pad(padding=[0,-1,0,2]) f32[4,6]"},
                 {"PadValue", "pad(padding=[1,0,1,0],value=-0.5) f32[4,6]"},
                 {"PadReflect", "pad(padding=[0,2,1,0,3,2],mode=1) f32[2,4,3]"},
                 {"PadEdge", "pad(padding=[0,2,1,0,3,2],mode=2) f32[2,4,3]"},
                 {"PadWrap", "pad(padding=[0,2,1,0,3,2],mode=3) f32[2,4,3]"}}};

// Y[i..] = X[i..]: dims align from the right; those that X lacks or has with size 1 are repeated.
absl::StatusOr<Declaration> DeclareExpand(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  const std::vector<int64_t>& shape = op.Ints("shape");
  if (shape.size() < x.size()) {
    return absl::InvalidArgumentError(absl::StrCat("expand: operand 0 has rank ", x.size(),
                                                   ", more than shape with ", shape.size()));
  }
  DeclarationBuilder d(shapes);
  std::vector<Index> in, out;
  const size_t missing = shape.size() - x.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool repeated = i < missing || x[i - missing] == Extent(1);
    if (shape[i] < 1 || (!repeated && x[i - missing] != Extent(shape[i]))) {
      return absl::InvalidArgumentError(absl::StrCat("expand: dim ", i, " of size ",
                                                     i < missing ? "1" : x[i - missing].ToString(),
                                                     " does not become ", shape[i]));
    }
    const int dim = d.Parallel(absl::StrCat("i", i), shape[i]);
    out.push_back(dim);
    if (i >= missing) in.push_back(repeated && shape[i] != 1 ? Index() : Index(dim));
  }
  d.Output(out, d.In(0, in));
  return d.Build();
}

constexpr OperatorTraits kExpandTraits = {
    .takes = OperandTypes::kAnything, .examples = {{"Expand", "expand(shape=[2,4,6]) f32[4,1]"}}};

// Y[..,i,j] = X[..,i,j] where j - i >= k (upper) or j - i <= k (lower), else 0.
absl::StatusOr<Declaration> DeclareTrilu(const Operator& op, absl::Span<const Shape> shapes) {
  if (shapes[0].size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("trilu: operand 0 has rank ", shapes[0].size(), ", not at least 2"));
  }
  DeclarationBuilder d(shapes);
  const std::vector<int> dims = d.Dims("i", DimKind::kParallel, shapes[0]);
  const std::vector<Index> index(dims.begin(), dims.end());
  const Expr diagonal = Coordinate(dims.back()) - Coordinate(dims[dims.size() - 2]);
  const Expr k = static_cast<double>(op.Int("k"));
  d.Output(index, Where(op.Int("upper") == 1 ? diagonal < k : k < diagonal, 0.0, d.In(0, index)));
  return d.Build();
}

constexpr OperatorTraits kTriluTraits = {
    .takes = OperandTypes::kAnything,
    .examples = {{"TriluUpper", "trilu(upper=1) f32[2,4,6]"},
                 {"TriluLower", "trilu(upper=0,k=1) f32[4,6]"},
                 {"TriluBool", "trilu(upper=1,k=-1) bool[4,4]"}}};

}  // namespace isomer
