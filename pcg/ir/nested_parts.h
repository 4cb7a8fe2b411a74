// Concat and Split of many parts, as trees of such of few: the rules that spread them over devices
// are of two to four parts (generator/assignments/sample_calls.cc), as each number of parts is a
// pattern of its own.
#ifndef ISOMER_PCG_IR_NESTED_PARTS_H_
#define ISOMER_PCG_IR_NESTED_PARTS_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "pcg/ir/graph.h"

namespace isomer {

inline constexpr size_t kMostParts = 4;

// All parts joined in their order; concat(parts) joins two to kMostParts of them. One part is
// itself.
template <typename Concat>
TensorRef NestedConcat(std::vector<TensorRef> parts, Concat concat) {
  while (parts.size() > 1) {
    std::vector<TensorRef> joined;
    for (auto at = parts.begin(); at != parts.end();) {
      const auto end = at + std::min<std::ptrdiff_t>(kMostParts, parts.end() - at);
      std::vector<TensorRef> group(at, end);
      joined.push_back(group.size() == 1 ? group[0] : concat(std::move(group)));
      at = end;
    }
    parts = std::move(joined);
  }
  return parts.empty() ? TensorRef() : parts[0];
}

// Neighbours among parts of these sizes, split together first; at most kMostParts groups, as few
// levels as can be, and as many parts in each group where that can be, so that branches of them are
// as long. One part each, where they are so few.
inline std::vector<std::vector<int64_t>> GroupsOfParts(const std::vector<int64_t>& sizes) {
  size_t block = 1;
  while (block * kMostParts < sizes.size()) block *= kMostParts;
  for (size_t groups = 2; groups <= kMostParts; ++groups) {
    if (sizes.size() % groups != 0 || sizes.size() / groups > block) continue;
    block = sizes.size() / groups;
    break;
  }
  std::vector<std::vector<int64_t>> groups;
  for (size_t begin = 0; begin < sizes.size(); begin += block) {
    groups.emplace_back(sizes.begin() + begin,
                        sizes.begin() + std::min(sizes.size(), begin + block));
  }
  return groups;
}

inline std::vector<int64_t> SumsOf(const std::vector<std::vector<int64_t>>& groups) {
  std::vector<int64_t> sums;
  for (const std::vector<int64_t>& group : groups) {
    sums.push_back(std::accumulate(group.begin(), group.end(), int64_t{0}));
  }
  return sums;
}

// The parts of x, of these sizes; split(x, sizes) splits into two to kMostParts of them.
template <typename Split>
std::vector<TensorRef> NestedSplit(TensorRef x, const std::vector<int64_t>& sizes, Split split) {
  if (sizes.size() <= 1) return std::vector<TensorRef>(sizes.size(), x);
  const std::vector<std::vector<int64_t>> groups = GroupsOfParts(sizes);
  const std::vector<TensorRef> wholes = split(x, SumsOf(groups));
  std::vector<TensorRef> parts;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (TensorRef part : NestedSplit(wholes[g], groups[g], split)) parts.push_back(part);
  }
  return parts;
}

// A split on the way to a part, and which of its outputs to go on with.
struct SplitOnTheWay {
  std::vector<int64_t> sizes;
  int output;
};

// The splits of NestedSplit on the way to part `part`.
inline std::vector<SplitOnTheWay> WayToPart(std::vector<int64_t> sizes, int64_t part) {
  std::vector<SplitOnTheWay> way;
  while (sizes.size() > 1) {
    const std::vector<std::vector<int64_t>> groups = GroupsOfParts(sizes);
    size_t g = 0;
    for (; part >= static_cast<int64_t>(groups[g].size()); ++g) {
      part -= static_cast<int64_t>(groups[g].size());
    }
    way.push_back({SumsOf(groups), static_cast<int>(g)});
    sizes = groups[g];
  }
  return way;
}

}  // namespace isomer

#endif  // ISOMER_PCG_IR_NESTED_PARTS_H_
