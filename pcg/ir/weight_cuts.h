// How weights are cut where each of the devices with a copy stores or updates a part.
#ifndef ISOMER_PCG_IR_WEIGHT_CUTS_H_
#define ISOMER_PCG_IR_WEIGHT_CUTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace isomer {

// In how many pieces each dim of this shape is cut for `parts` equal slices: the first dim that
// they divide, so that slices are long lines of memory; else the first dims as far as they go (768
// x 768 in 1,024: 256 x 4). Empty if there is no way.
std::vector<int64_t> CutsOf(absl::Span<const int64_t> shape, int64_t parts);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_WEIGHT_CUTS_H_
