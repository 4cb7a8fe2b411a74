#include "pcg/ir/weight_cuts.h"

#include <numeric>

namespace isomer {

std::vector<int64_t> CutsOf(absl::Span<const int64_t> shape, int64_t parts) {
  std::vector<int64_t> cuts(shape.size(), 1);
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (shape[i] % parts != 0) continue;
    cuts[i] = parts;
    return cuts;
  }
  for (size_t i = 0; i < cuts.size(); ++i) {
    cuts[i] = std::gcd(shape[i], parts);
    parts /= cuts[i];
  }
  if (parts > 1) cuts.clear();
  return cuts;
}

}  // namespace isomer
