#include "runtime/device/moves.h"

#include <cstring>
#include <vector>

#include "runtime/device/elements.h"

namespace isomer {
namespace {

// Calls f(offset in from, offset in to, count) for every line of the region, as long as lines are
// in both boxes: inner dims of which each is the whole of both count as one.
template <typename Function>
void ForEachLine(const Box& region, const Box& from, const Box& to, Function f) {
  const int rank = static_cast<int>(region.shape.size());
  if (rank == 0) return f(0, 0, 1);
  const std::vector<int64_t> from_stride = RowMajorStrides(from), to_stride = RowMajorStrides(to);
  std::vector<int64_t> at(rank, 0);
  int64_t from_offset = FirstOffset(region, from), to_offset = FirstOffset(region, to);
  int inner = rank - 1;  // the dim that lines go along
  int64_t count = region.shape[inner];
  while (inner > 0 && from.shape[inner] == region.shape[inner] &&
         to.shape[inner] == region.shape[inner]) {
    count *= region.shape[--inner];
  }
  while (true) {
    f(from_offset, to_offset, count);
    int i = inner - 1;
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

std::vector<int64_t> RowMajorStrides(const Box& box) {
  std::vector<int64_t> strides(box.shape.size(), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * box.shape[i];
  return strides;
}

int64_t FirstOffset(const Box& region, const Box& box) {
  const std::vector<int64_t> strides = RowMajorStrides(box);
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += (region.origin[i] - box.origin[i]) * strides[i];
  }
  return offset;
}

void CopyRegion(const Box& region, const Box& from_box, const void* from, const Box& to_box,
                void* to, int64_t element_bytes) {
  ForEachLine(region, from_box, to_box, [&](int64_t source, int64_t target, int64_t count) {
    std::memcpy(static_cast<char*>(to) + target * element_bytes,
                static_cast<const char*>(from) + source * element_bytes, count * element_bytes);
  });
}

namespace {

template <typename Element, typename Sum>
void AddPieces(absl::Span<const MovedPiece> pieces, const Box& box, Sum* sums) {
  for (const MovedPiece& piece : pieces) {
    const auto* from = static_cast<const Element*>(piece.data);
    ForEachLine(piece.region, piece.box, box, [&](int64_t source, int64_t target, int64_t count) {
      for (int64_t i = 0; i < count; ++i) sums[target + i] += static_cast<Sum>(from[source + i]);
    });
  }
}

}  // namespace

void SumPieces(absl::Span<const MovedPiece> pieces, const Box& box, DataType dtype, void* buffer) {
  std::memset(buffer, 0, box.Volume() * BytesPerElement(dtype));
  if (pieces.size() == 1) {
    return CopyRegion(pieces[0].region, pieces[0].box, pieces[0].data, box, buffer,
                      BytesPerElement(dtype));
  }
  WithElementType(dtype, [&](auto element) {
    using Element = decltype(element);
    using Sum = SumOf<Element>;
    if constexpr (std::is_same_v<Element, Sum>) {
      AddPieces<Element>(pieces, box, static_cast<Sum*>(buffer));
    } else {
      std::vector<Sum> sums(box.Volume());
      AddPieces<Element>(pieces, box, sums.data());
      auto* to = static_cast<Element*>(buffer);
      for (size_t i = 0; i < sums.size(); ++i) to[i] = ToElement<Element>(sums[i]);
    }
  });
}

void CopyToBuffer(const Array<double>& array, const Box& box, DataType dtype, void* buffer) {
  ForEachLine(box, WholeBox(array), box, [&](int64_t source, int64_t target, int64_t count) {
    StoreElements(array.data.data() + source, count, dtype,
                  static_cast<char*>(buffer) + target * BytesPerElement(dtype));
  });
}

void AddFromBuffer(const Box& box, DataType dtype, const void* buffer, Array<double>* array) {
  std::vector<double> values;
  ForEachLine(box, box, WholeBox(*array), [&](int64_t source, int64_t target, int64_t count) {
    values.resize(count);
    LoadElements(dtype, static_cast<const char*>(buffer) + source * BytesPerElement(dtype), count,
                 values.data());
    for (int64_t i = 0; i < count; ++i) array->data[target + i] += values[i];
  });
}

}  // namespace isomer
