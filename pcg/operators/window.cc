#include "pcg/operators/window.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Products of two such numbers do not overflow.
constexpr int64_t kLargest = int64_t{1} << 30;

absl::Status CheckList(const Operator& op, const char* name, absl::Span<const int64_t> list,
                       int length, int64_t smallest) {
  if (static_cast<int>(list.size()) == length &&
      std::all_of(list.begin(), list.end(),
                  [=](int64_t value) { return value >= smallest && value <= kLargest; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(op.name(), ": ", name, " [",
                                                 absl::StrJoin(list, ","), "] is not ", length,
                                                 " numbers from ", smallest, " on"));
}

}  // namespace

bool Windows::padded() const {
  auto positive = [](int64_t size) { return size > 0; };
  return std::any_of(begin.begin(), begin.end(), positive) ||
         std::any_of(end.begin(), end.end(), positive);
}

absl::StatusOr<Windows> ReadWindows(const Operator& op, std::vector<int64_t> kernel) {
  const int rank = static_cast<int>(kernel.size());
  Windows w;
  w.kernel = std::move(kernel);
  w.stride = op.Ints("stride");
  w.dilation = op.Find("dilation") != nullptr ? op.Ints("dilation") : std::vector<int64_t>(rank, 1);
  const std::vector<int64_t>& padding = op.Ints("padding");
  ISOMER_RETURN_IF_ERROR(CheckList(op, "kernel", w.kernel, rank, 1));
  ISOMER_RETURN_IF_ERROR(CheckList(op, "stride", w.stride, rank, 1));
  ISOMER_RETURN_IF_ERROR(CheckList(op, "dilation", w.dilation, rank, 1));
  ISOMER_RETURN_IF_ERROR(CheckList(op, "padding", padding, 2 * rank, 0));
  w.begin.assign(padding.begin(), padding.begin() + rank);
  w.end.assign(padding.begin() + rank, padding.end());
  return w;
}

absl::StatusOr<std::vector<int64_t>> CountWindows(const Operator& op, const Windows& windows,
                                                  const Shape& x) {
  std::vector<int64_t> counts;
  for (int i = 0; i < windows.rank(); ++i) {
    const int64_t size = x[2 + i].value(), padded = size + windows.begin[i] + windows.end[i];
    if (padded < windows.Span(i)) {
      return absl::InvalidArgumentError(absl::StrCat(
          op.name(), ": dim ", SpatialName(windows.rank(), i), " of operand 0 has size ", size,
          ", ", padded, " with padding, and the kernel spans ", windows.Span(i)));
    }
    counts.push_back((padded - windows.Span(i)) / windows.stride[i] + 1);
  }
  return counts;
}

std::string SpatialName(int rank, int i) { return std::string(1, "zyx"[3 - rank + i]); }

WindowDims AddWindowDims(const Windows& windows, absl::Span<const int64_t> counts,
                         DeclarationBuilder* d) {
  const int rank = windows.rank();
  WindowDims dims;
  for (int i = 0; i < rank; ++i) dims.out.push_back(d->Spatial(SpatialName(rank, i), counts[i]));
  for (int i = 0; i < rank; ++i) {
    dims.reduced.push_back(d->Whole(std::string(1, "prq"[3 - rank + i]), windows.kernel[i]));
    dims.in.push_back(Shifted(
        Index(dims.out[i]) * windows.stride[i] + Index(dims.reduced[i]) * windows.dilation[i],
        -windows.begin[i]));
  }
  return dims;
}

}  // namespace isomer
