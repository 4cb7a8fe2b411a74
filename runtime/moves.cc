#include "runtime/moves.h"

#include <cstring>
#include <vector>

namespace isomer {
namespace {

// Calls f(offset in from, offset in to, count) for every innermost line of the region.
template <typename Function>
void ForEachLine(const Box& region, const Box& from, const Box& to, Function f) {
  const int rank = static_cast<int>(region.shape.size());
  if (rank == 0) return f(0, 0, 1);
  std::vector<int64_t> from_stride(rank, 1), to_stride(rank, 1), at(rank, 0);
  for (int i = rank - 2; i >= 0; --i) {
    from_stride[i] = from_stride[i + 1] * from.shape[i + 1];
    to_stride[i] = to_stride[i + 1] * to.shape[i + 1];
  }
  int64_t from_offset = 0, to_offset = 0;
  for (int i = 0; i < rank; ++i) {
    from_offset += (region.origin[i] - from.origin[i]) * from_stride[i];
    to_offset += (region.origin[i] - to.origin[i]) * to_stride[i];
  }
  while (true) {
    f(from_offset, to_offset, region.shape[rank - 1]);
    int i = rank - 2;
    for (; i >= 0; --i) {
      from_offset += from_stride[i];
      to_offset += to_stride[i];
      if (++at[i] < region.shape[i]) break;
      from_offset -= from_stride[i] * region.shape[i];
      to_offset -= to_stride[i] * region.shape[i];
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

Box WholeBox(const Array<double>& array) { return {array.origin, array.shape}; }

}  // namespace

void CopyRegion(const Box& region, const Box& from_box, const void* from, const Box& to_box,
                void* to, int64_t element_bytes) {
  ForEachLine(region, from_box, to_box, [&](int64_t source, int64_t target, int64_t count) {
    std::memcpy(static_cast<char*>(to) + target * element_bytes,
                static_cast<const char*>(from) + source * element_bytes, count * element_bytes);
  });
}

void AddRegion(const Box& region, const Box& from_box, const float* from, const Box& to_box,
               float* to) {
  ForEachLine(region, from_box, to_box, [&](int64_t source, int64_t target, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[target + i] += from[source + i];
  });
}

void CopyToBuffer(const Array<double>& array, const Box& box, DataType dtype, void* buffer) {
  ForEachLine(box, WholeBox(array), box, [&](int64_t source, int64_t target, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double value = array.data[source + i];
      if (dtype == DataType::kInt64) {
        static_cast<int64_t*>(buffer)[target + i] = static_cast<int64_t>(value);
      } else {
        static_cast<float*>(buffer)[target + i] = static_cast<float>(value);
      }
    }
  });
}

void AddFromBuffer(const Box& box, DataType dtype, const void* buffer, Array<double>* array) {
  ForEachLine(box, box, WholeBox(*array), [&](int64_t source, int64_t target, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      array->data[target + i] +=
          dtype == DataType::kInt64
              ? static_cast<double>(static_cast<const int64_t*>(buffer)[source + i])
              : static_cast<const float*>(buffer)[source + i];
    }
  });
}

}  // namespace isomer
