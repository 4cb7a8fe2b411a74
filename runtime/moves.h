#ifndef ISOMER_RUNTIME_MOVES_H_
#define ISOMER_RUNTIME_MOVES_H_

#include <cstdint>

#include "pcg/evaluator.h"
#include "pcg/schedule/box.h"
#include "pcg/tensor_type.h"

namespace isomer {

// Copies `region` of a logical tensor from a buffer that holds `from_box` of it to one that holds
// `to_box`. REQUIRES: both boxes contain the region.
void CopyRegion(const Box& region, const Box& from_box, const void* from, const Box& to_box,
                void* to, int64_t element_bytes);
// The same, adding floats to what is there.
void AddRegion(const Box& region, const Box& from_box, const float* from, const Box& to_box,
               float* to);

// Between the host's numbers and a buffer that holds `box`. REQUIRES: `array` is the whole tensor.
void CopyToBuffer(const Array<double>& array, const Box& box, DataType dtype, void* buffer);
// Adds the buffer's part to `array`.
void AddFromBuffer(const Box& box, DataType dtype, const void* buffer, Array<double>* array);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_MOVES_H_
