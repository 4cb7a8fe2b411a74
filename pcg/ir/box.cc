#include "pcg/ir/box.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace isomer {

int64_t Box::Volume() const {
  int64_t volume = 1;
  for (int64_t size : shape) volume *= size;
  return volume;
}

std::string Box::ToString() const {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", origin[i], ":", origin[i] + shape[i]);
  }
  return text + "]";
}

Box Intersection(const Box& a, const Box& b) {
  Box box;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    const int64_t begin = std::max(a.origin[i], b.origin[i]);
    const int64_t end = std::min(a.origin[i] + a.shape[i], b.origin[i] + b.shape[i]);
    box.origin.push_back(begin);
    box.shape.push_back(std::max<int64_t>(end - begin, 0));
  }
  return box;
}

int64_t IntersectionVolume(const Box& a, const Box& b) {
  int64_t volume = 1;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    const int64_t begin = std::max(a.origin[i], b.origin[i]);
    const int64_t end = std::min(a.origin[i] + a.shape[i], b.origin[i] + b.shape[i]);
    volume *= std::max<int64_t>(end - begin, 0);
  }
  return volume;
}

bool Covers(const Box& outer, const Box& inner) {
  if (outer.shape.size() != inner.shape.size()) return false;
  for (size_t i = 0; i < outer.shape.size(); ++i) {
    if (outer.origin[i] > inner.origin[i] ||
        outer.origin[i] + outer.shape[i] < inner.origin[i] + inner.shape[i]) {
      return false;
    }
  }
  return true;
}

int64_t LineOffset(const Box& region, const Box& box) {
  int64_t offset = 0;
  bool is_line = true, several = false;  // Once several of a dim are in it, all of the next are.
  for (size_t i = 0; i < box.shape.size(); ++i) {
    is_line &= !several || region.shape[i] == box.shape[i];
    several |= region.shape[i] > 1;
    offset = offset * box.shape[i] + region.origin[i] - box.origin[i];
  }
  return is_line ? offset : -1;
}

ShardCoordinates CoordinatesOfShard(const TensorType& type, int64_t shard) {
  ShardCoordinates c;
  c.partial = shard % type.partials;
  shard /= type.partials;
  c.copy = shard % type.copies;
  shard /= type.copies;
  c.dims.resize(type.dims.size());
  for (int i = type.rank() - 1; i >= 0; --i) {
    c.dims[i] = shard % type.dims[i].degree;
    shard /= type.dims[i].degree;
  }
  return c;
}

int64_t ShardAt(const TensorType& type, const ShardCoordinates& coordinates) {
  int64_t shard = 0;
  for (int i = 0; i < type.rank(); ++i) shard = shard * type.dims[i].degree + coordinates.dims[i];
  return (shard * type.copies + coordinates.copy) * type.partials + coordinates.partial;
}

Box ShardBox(const TensorType& type, const std::vector<int64_t>& dim_coordinates) {
  Box box;
  for (int i = 0; i < type.rank(); ++i) {
    const int64_t piece = type.dims[i].size / type.dims[i].degree;
    box.origin.push_back(dim_coordinates[i] * piece);
    box.shape.push_back(piece);
  }
  return box;
}

std::vector<std::vector<int64_t>> OverlappingPieces(const TensorType& type, const Box& box) {
  std::vector<int64_t> first, last;
  for (int i = 0; i < type.rank(); ++i) {
    const int64_t piece = type.dims[i].size / type.dims[i].degree;
    first.push_back(box.origin[i] / piece);
    last.push_back((box.origin[i] + box.shape[i] - 1) / piece);
  }
  std::vector<std::vector<int64_t>> pieces = {first};
  while (true) {  // An odometer.
    std::vector<int64_t> next = pieces.back();
    int i = type.rank() - 1;
    while (i >= 0 && next[i] == last[i]) next[i] = first[i], --i;
    if (i < 0) return pieces;
    ++next[i];
    pieces.push_back(std::move(next));
  }
}

}  // namespace isomer
