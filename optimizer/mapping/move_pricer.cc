#include "optimizer/mapping/move_pricer.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace isomer {

PlacedTensor MovePricer::Place(const Placement& placement) {
  std::string key = absl::StrCat(placement.view.start);
  for (int64_t extent : AxisExtents(placement.type)) absl::StrAppend(&key, ",", extent);
  for (int64_t stride : placement.view.strides) absl::StrAppend(&key, ",", stride);
  for (const OuterStride& o : placement.view.outer) {
    absl::StrAppend(&key, ";", o.axis, ",", o.period, ",", o.stride);
  }
  const int next = static_cast<int>(structures_.size());
  const int64_t bytes = placement.type.NumElements() * BytesPerElement(placement.type.dtype);
  return {placement, structures_.try_emplace(key, next).first->second, static_cast<double>(bytes)};
}

MoveCuts CutsOfMove(const Placement& from, const Placement& to) {
  const TensorType &f = from.type, &t = to.type;
  const int rank = f.rank();
  using Cut = std::array<int64_t, kNumbersOfCut>;
  const auto cut = [&](int axis, int64_t from_extent, int64_t to_extent) {
    Cut numbers = {};
    for (const bool is_to : {false, true}) {
      const MachineView& view = is_to ? to.view : from.view;
      const int64_t extent = is_to ? to_extent : from_extent;
      int64_t* const own = numbers.data() + is_to * kNumbersOfCut / 2;
      own[0] = extent;
      if (extent == 1) continue;
      own[1] = view.strides[axis];
      if (const OuterStride* const outer = view.OuterOf(axis)) {
        own[2] = outer->period;
        own[3] = outer->stride;
      }
    }
    return numbers;
  };
  absl::InlinedVector<Cut, 6> dims;
  for (int i = 0; i < rank; ++i) {
    if (f.dims[i].degree > 1 || t.dims[i].degree > 1) {
      dims.push_back(cut(i, f.dims[i].degree, t.dims[i].degree));
    }
  }
  // The order of dims is irrelevant.
  std::sort(dims.begin(), dims.end());
  MoveCuts cuts = {from.view.start, to.view.start};
  const auto add = [&](const Cut& c) { cuts.insert(cuts.end(), c.begin(), c.end()); };
  add(cut(rank, f.copies, t.copies));
  add(cut(rank + 1, f.partials, t.partials));
  for (const Cut& dim : dims) add(dim);
  return cuts;
}

double MovePricer::Us(const PlacedTensor& from, const PlacedTensor& to) {
  if (from.structure == to.structure) return 0;
  const auto [it, added] = lines_.try_emplace({from.structure, to.structure});
  if (added) {
    const auto [same, unknown] =
        lines_of_cuts_.try_emplace(CutsOfMove(from.placement, to.placement));
    if (unknown) {
      const MoveLine line = MoveLineOf(levels_, from.placement, to.placement);
      const auto elements = static_cast<double>(from.placement.type.NumElements());
      same->second = {line.fixed_us, line.us_per_byte / elements};
    }
    it->second = same->second;
  }
  const Line& line = it->second;
  return ReduceUs(levels_, from.placement, to.placement) + line.fixed_us +
         line.us_per_byte * from.bytes;
}

}  // namespace isomer
