// Windows that slide over the spatial dims of x[n,c,spatial..]: convolutions and pooling, in one to
// three spatial dims.
#ifndef ISOMER_PCG_OPERATORS_WINDOW_H_
#define ISOMER_PCG_OPERATORS_WINDOW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/operator.h"

namespace isomer {

// Along spatial dim i, element r of window w is w*stride[i] + r*dilation[i] - begin[i] of x.
struct Windows {
  std::vector<int64_t> kernel, stride, dilation, begin, end;
  int rank() const { return static_cast<int>(kernel.size()); }
  bool padded() const;
  // From the first to the last element of a window.
  int64_t Span(int i) const { return dilation[i] * (kernel[i] - 1) + 1; }
};

// Reads stride, padding (all begins, then all ends) and dilation, if `op` has it, for windows of
// size `kernel`. An error names the attribute that has another length or is out of its range.
absl::StatusOr<Windows> ReadWindows(const Operator& op, std::vector<int64_t> kernel);

// How many windows fit along each spatial dim of x, operand 0.
absl::StatusOr<std::vector<int64_t>> CountWindows(const Operator& op, const Windows& windows,
                                                  const Shape& x);

// "z", "y", "x" of the last dims.
std::string SpatialName(int rank, int i);

// The iteration dims of windows: one output element for each window, one of `reduced` for each of
// its elements; and the indices of x that they read.
struct WindowDims {
  std::vector<int> out, reduced;
  std::vector<Index> in;
};
WindowDims AddWindowDims(const Windows& windows, absl::Span<const int64_t> counts,
                         DeclarationBuilder* d);

}  // namespace isomer

#endif  // ISOMER_PCG_OPERATORS_WINDOW_H_
