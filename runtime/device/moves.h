#ifndef ISOMER_RUNTIME_DEVICE_MOVES_H_
#define ISOMER_RUNTIME_DEVICE_MOVES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/box.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// How far apart the elements of a buffer that holds `box` are, by dim.
std::vector<int64_t> RowMajorStrides(const Box& box);
// Where the first element of `region` lies in a buffer that holds `box`. REQUIRES: equal ranks.
int64_t FirstOffset(const Box& region, const Box& box);

// Copies `region` of a logical tensor from a buffer that holds `from_box` of it to one that holds
// `to_box`. REQUIRES: both boxes contain the region.
void CopyRegion(const Box& region, const Box& from_box, const void* from, const Box& to_box,
                void* to, int64_t element_bytes);

// A region of a buffer that holds `box`.
struct MovedPiece {
  Box region, box;
  const void* data;
};
// The buffer that holds `box` becomes the sum of the pieces, zero where there is none. Sums are in
// the order of the pieces; those of floats are in float32, and rounded once.
void SumPieces(absl::Span<const MovedPiece> pieces, const Box& box, DataType dtype, void* buffer);

// Between the host's numbers and a buffer that holds `box`. REQUIRES: `array` is the whole tensor.
void CopyToBuffer(const Array<double>& array, const Box& box, DataType dtype, void* buffer);
// Adds the buffer's part to `array`.
void AddFromBuffer(const Box& box, DataType dtype, const void* buffer, Array<double>* array);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_MOVES_H_
