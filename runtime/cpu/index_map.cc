// Operators every element of whose output is one of the operand, chosen dim by dim: Slice, Pad,
// Expand. And Trilu, which keeps elements or not.
#include <algorithm>
#include <cstring>

#include "runtime/cpu/kernels.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

constexpr int64_t kOutside = -1;

// The index along a dim of size `size` of the element that is at `index` after padding by `begin`.
int64_t UnpaddedIndex(int64_t mode, int64_t index, int64_t begin, int64_t size) {
  const int64_t at = index - begin;
  if (at >= 0 && at < size) return at;
  switch (mode) {
    case 1:  // reflect
      return at < 0 ? -at : 2 * (size - 1) - at;
    case 2:  // edge
      return std::clamp<int64_t>(at, 0, size - 1);
    case 3:  // wrap
      return (at + size) % size;
    default:
      return kOutside;
  }
}

// Where the element at `index` of output dim i comes from in its dim of the operand.
int64_t SourceIndex(const KernelCall& call, int i, int64_t index, int64_t size) {
  const Operator& op = call.op;
  switch (op.kind()) {
    case OpKind::kSlice:
      return op.Ints("starts")[i] + index * op.Ints("steps")[i];
    case OpKind::kPad:
      return UnpaddedIndex(op.Int("mode"), index, op.Ints("padding")[i], size);
    default:  // Expand.
      return size == 1 ? 0 : index;
  }
}

// Per dim of the output, at least one: the offset in the operand's buffer of each index, or
// kOutside. Offsets of the dims are added.
using IndexMaps = std::vector<std::vector<int64_t>>;

IndexMaps MapsOf(const KernelCall& call) {
  const Box &in = call.operands[0], &out = call.outputs[0];
  const int rank = static_cast<int>(out.shape.size());
  const int missing = rank - static_cast<int>(in.shape.size());
  IndexMaps maps(std::max(rank, 1), {0});
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    maps[i].assign(out.shape[i], 0);
    if (i < missing) continue;
    const int64_t size = call.declaration.operands[0][i - missing].value();
    for (int64_t j = 0; j < out.shape[i]; ++j) {
      const int64_t from = SourceIndex(call, i - missing, out.origin[i] + j, size);
      maps[i][j] = from == kOutside ? kOutside : (from - in.origin[i - missing]) * stride;
    }
    stride *= in.shape[i - missing];
  }
  return maps;
}

// Calls row(offset in the operand or kOutside, offset in the output) for every index but the last.
template <typename Row>
void ForEachRow(const IndexMaps& maps, Row row) {
  const int last = static_cast<int>(maps.size()) - 1;
  std::vector<size_t> at(last, 0);
  int64_t out = 0;
  while (true) {
    int64_t in = 0;
    for (int i = 0; i < last && in != kOutside; ++i) {
      in = maps[i][at[i]] == kOutside ? kOutside : in + maps[i][at[i]];
    }
    row(in, out);
    out += static_cast<int64_t>(maps[last].size());
    int i = last - 1;
    while (i >= 0 && ++at[i] == maps[i].size()) at[i--] = 0;
    if (i < 0) return;
  }
}

bool IsRun(const std::vector<int64_t>& map) {
  for (size_t j = 0; j < map.size(); ++j) {
    if (map[j] == kOutside || map[j] != map[0] + static_cast<int64_t>(j)) return false;
  }
  return true;
}

template <typename Unit>
void CopyMapped(const IndexMaps& maps, Unit outside, const Unit* x, Unit* y) {
  const std::vector<int64_t>& columns = maps.back();
  const bool run = IsRun(columns);
  ForEachRow(maps, [&](int64_t in, int64_t out) {
    if (in == kOutside) {
      std::fill_n(y + out, columns.size(), outside);
    } else if (run) {
      std::copy_n(x + in + columns[0], columns.size(), y + out);
    } else {
      for (size_t j = 0; j < columns.size(); ++j) {
        y[out + j] = columns[j] == kOutside ? outside : x[in + columns[j]];
      }
    }
  });
}

// Adds, for an element may go to many places.
void AddMapped(const IndexMaps& maps, const float* g, float* dx) {
  const std::vector<int64_t>& columns = maps.back();
  ForEachRow(maps, [&](int64_t in, int64_t out) {
    if (in == kOutside) return;
    for (size_t j = 0; j < columns.size(); ++j) {
      if (columns[j] != kOutside) dx[in + columns[j]] += g[out + j];
    }
  });
}

}  // namespace

KernelFunction IndexMapKernel(const KernelCall& call) {
  IndexMaps maps = MapsOf(call);
  if (call.gradient) {
    return
        [maps = std::move(maps), volume = call.operands[0].Volume()](Reads reads, Writes writes) {
          std::fill_n(Floats(writes[0]), volume, 0.0f);
          AddMapped(maps, Floats(reads[2]), Floats(writes[0]));
          return absl::OkStatus();
        };
  }
  const double value = call.op.kind() == OpKind::kPad ? call.op.Number("value") : 0;
  return [maps = std::move(maps), value, dtype = call.dtypes[0]](Reads reads, Writes writes) {
    WithElementSize(BytesPerElement(dtype), [&](auto unit) {
      using Unit = decltype(unit);
      FillElements(value, 1, dtype, &unit);
      CopyMapped(maps, unit, static_cast<const Unit*>(reads[0]), static_cast<Unit*>(writes[0]));
    });
    return absl::OkStatus();
  };
}

// Row i keeps the columns j with j >= i + k (upper) or j <= i + k (lower), counted in the logical
// tensor; the others are zero. The gradient is cut likewise.
KernelFunction TriluKernel(const KernelCall& call) {
  const Box& box = call.outputs[0];
  const int rank = static_cast<int>(box.shape.size());
  const int64_t rows = box.shape[rank - 2], columns = box.shape[rank - 1];
  const int64_t lines = box.Volume() / columns;
  const bool upper = call.op.Int("upper") == 1;
  // The diagonal's column in row 0 of the box.
  const int64_t diagonal = box.origin[rank - 2] + call.op.Int("k") - box.origin[rank - 1];
  const int64_t element = BytesPerElement(call.dtypes[0]);
  return [=, from = call.gradient ? 2 : 0](Reads reads, Writes writes) {
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t at = line % rows + diagonal;
      const int64_t begin = upper ? std::clamp<int64_t>(at, 0, columns) : 0;
      const int64_t end = upper ? columns : std::clamp<int64_t>(at + 1, 0, columns);
      const int64_t offset = line * columns * element;
      char* to = static_cast<char*>(writes[0]) + offset;
      std::memset(to, 0, columns * element);
      std::memcpy(to + begin * element,
                  static_cast<const char*>(reads[from]) + offset + begin * element,
                  (end - begin) * element);
    }
    return absl::OkStatus();
  };
}

}  // namespace isomer
