#include "rules/calls/calls_of_ranks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rules/language/rule.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kLeadingSize = 2;
// Of more operands those that broadcast are not told apart.
constexpr size_t kMostOperandsApart = 5;

// Where a new first dim of operand 0, of rank `rank`, comes to stand in what Reshape and Expand
// make: Expand aligns dims from the end.
size_t PlaceInShape(OpKind kind, size_t shape, int rank) {
  return kind == OpKind::kExpand && shape >= static_cast<size_t>(rank) ? shape - rank : 0;
}

void Insert(Ints* list, size_t at, int64_t value) { list->insert(list->begin() + at, value); }

// False: it is another value.
bool Remove(Ints* list, size_t at, int64_t value) {
  if (at >= list->size() || (*list)[at] != value) return false;
  list->erase(list->begin() + at);
  return true;
}

// The operator once operand 0, of rank `rank` so far, has a leading dim more.
Operator Longer(Operator op, int rank) {
  for (const Attribute& attribute : std::vector<Attribute>(op.attributes())) {
    if (attribute.name == "axis") {
      const int64_t axis = std::get<int64_t>(attribute.value);
      op.Set("axis", axis >= 0 ? axis + 1 : axis);
    }
    if (op.kind() == OpKind::kSlice && attribute.name == "sizes") {
      std::vector<Extent> sizes = std::get<std::vector<Extent>>(attribute.value);
      sizes.insert(sizes.begin(), kLeadingSize);
      op.Set("sizes", std::move(sizes));
    }
    const auto* given = std::get_if<Ints>(&attribute.value);
    if (given == nullptr) continue;
    Ints list = *given;
    if (attribute.name == "axes" || attribute.name == "perm") {
      for (int64_t& axis : list) axis += axis >= 0 ? 1 : 0;
      if (attribute.name == "perm") Insert(&list, 0, 0);
    } else if (attribute.name == "shape") {
      Insert(&list, PlaceInShape(op.kind(), list.size(), rank), kLeadingSize);
    } else if (attribute.name == "starts") {
      Insert(&list, 0, 0);
    } else if (attribute.name == "steps") {
      Insert(&list, 0, 1);
    } else if (attribute.name == "padding" && list.size() == 2 * static_cast<size_t>(rank)) {
      Insert(&list, rank, 0);
      Insert(&list, 0, 0);
    }
    op.Set(attribute.name, std::move(list));
  }
  return op;
}

// The operator once operand 0, of rank `rank` so far, has lost its first dim, of size `size`.
// Nullopt: it does something there.
std::optional<Operator> Shorter(Operator op, int rank, int64_t size) {
  for (const Attribute& attribute : std::vector<Attribute>(op.attributes())) {
    if (attribute.name == "axis") {
      const int64_t axis = std::get<int64_t>(attribute.value);
      if (axis == 0 || axis == -rank) return std::nullopt;
      op.Set("axis", axis > 0 ? axis - 1 : axis);
    }
    if (op.kind() == OpKind::kSlice && attribute.name == "sizes") {
      std::vector<Extent> sizes = std::get<std::vector<Extent>>(attribute.value);
      if (sizes.empty() || sizes[0] != Extent(size)) return std::nullopt;
      sizes.erase(sizes.begin());
      op.Set("sizes", std::move(sizes));
    }
    const auto* given = std::get_if<Ints>(&attribute.value);
    if (given == nullptr) continue;
    Ints list = *given;
    bool fits = true;
    if (attribute.name == "axes" || attribute.name == "perm") {
      if (attribute.name == "perm") fits = Remove(&list, 0, 0);
      for (int64_t& axis : list) {
        fits = fits && axis != 0 && axis != -rank;
        axis -= axis > 0 ? 1 : 0;
      }
    } else if (attribute.name == "shape") {
      fits = Remove(&list, PlaceInShape(op.kind(), list.size(), rank), size);
    } else if (attribute.name == "starts") {
      fits = Remove(&list, 0, 0);
    } else if (attribute.name == "steps") {
      fits = Remove(&list, 0, 1);
    } else if (attribute.name == "padding" && list.size() == 2 * static_cast<size_t>(rank)) {
      fits = Remove(&list, rank, 0) && Remove(&list, 0, 0);
    }
    if (!fits) return std::nullopt;
    op.Set(attribute.name, std::move(list));
  }
  return op;
}

std::optional<OperatorCall> WithDim(const OperatorCall& call, const std::vector<bool>& which) {
  OperatorCall longer = call;
  for (size_t o = 0; o < which.size(); ++o) {
    if (!which[o]) continue;
    std::vector<Dim>& dims = longer.operands[o].dims;
    if (static_cast<int>(dims.size()) == kMostShardedRank) return std::nullopt;
    dims.insert(dims.begin(), Dim{kLeadingSize, 1});
  }
  if (which[0]) longer.op = Longer(call.op, call.operands[0].rank());
  return longer;
}

std::optional<OperatorCall> WithoutDim(const OperatorCall& call, const std::vector<bool>& which) {
  OperatorCall shorter = call;
  for (size_t o = 0; o < which.size(); ++o) {
    if (!which[o]) continue;
    std::vector<Dim>& dims = shorter.operands[o].dims;
    if (dims.empty()) return std::nullopt;
    dims.erase(dims.begin());
  }
  if (which[0]) {
    std::optional<Operator> op =
        Shorter(call.op, call.operands[0].rank(), call.operands[0].dims[0].size);
    if (!op) return std::nullopt;
    shorter.op = *std::move(op);
  }
  return shorter;
}

// What tells calls apart: ranks, and the ways to be split.
std::vector<std::string> KeysOf(const OperatorCall& call) {
  std::string ranks;
  for (const TensorType& type : call.operands) absl::StrAppend(&ranks, type.rank(), ",");
  std::vector<std::string> keys;
  for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
    if (dim.size == 1) continue;
    std::string key = ranks;
    for (const auto* axes : {&dim.operand_axes, &dim.output_axes}) {
      key += '>';
      for (const std::optional<int64_t>& axis : *axes) key += axis ? 'P' : '-';
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<std::vector<bool>> SetsOf(size_t operands) {
  std::vector<std::vector<bool>> sets;
  if (operands > kMostOperandsApart) {
    sets.emplace_back(operands, true);
    sets.emplace_back(operands, false)[0] = true;
    return sets;
  }
  for (size_t bits = 1; bits < size_t{1} << operands; ++bits) {
    std::vector<bool> set;
    for (size_t o = 0; o < operands; ++o) set.push_back(bits >> o & 1);
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace

std::vector<OperatorCall> CallsOfRanks(const std::vector<OperatorCall>& seeds) {
  std::vector<OperatorCall> found;
  std::set<std::string> known;
  auto add = [&](OperatorCall call) {
    bool is_new = false;
    for (std::string& key : KeysOf(call)) is_new |= known.insert(std::move(key)).second;
    if (is_new) found.push_back(std::move(call));
  };
  for (const OperatorCall& seed : seeds) add(seed);
  for (size_t i = 0; i < found.size(); ++i) {
    for (const std::vector<bool>& which : SetsOf(found[i].operands.size())) {
      for (std::optional<OperatorCall> next :
           {WithDim(found[i], which), WithoutDim(found[i], which)}) {
        if (next) add(*std::move(next));
      }
    }
  }
  return found;
}

}  // namespace isomer
