// Concat and Split of many parts, as trees of such of few: the rules that spread them over devices
// are of two to four parts (generator/sample_calls.cc), as each number of parts is a pattern of its
// own.
#ifndef ISOMER_MODELS_NESTED_PARTS_H_
#define ISOMER_MODELS_NESTED_PARTS_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "pcg/graph.h"

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

// The parts of x, of these sizes; split(x, sizes) splits into two to kMostParts of them.
template <typename Split>
std::vector<TensorRef> NestedSplit(TensorRef x, const std::vector<int64_t>& sizes, Split split) {
  if (sizes.size() <= 1) return std::vector<TensorRef>(sizes.size(), x);
  if (sizes.size() <= kMostParts) return split(x, sizes);
  size_t block = kMostParts;
  while (block * kMostParts < sizes.size()) block *= kMostParts;
  std::vector<std::vector<int64_t>> groups;
  std::vector<int64_t> sums;
  for (size_t begin = 0; begin < sizes.size(); begin += block) {
    const size_t end = std::min(sizes.size(), begin + block);
    groups.emplace_back(sizes.begin() + begin, sizes.begin() + end);
    sums.push_back(std::accumulate(groups.back().begin(), groups.back().end(), int64_t{0}));
  }
  const std::vector<TensorRef> wholes = split(x, sums);
  std::vector<TensorRef> parts;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (TensorRef part : NestedSplit(wholes[g], groups[g], split)) parts.push_back(part);
  }
  return parts;
}

}  // namespace isomer

#endif  // ISOMER_MODELS_NESTED_PARTS_H_
