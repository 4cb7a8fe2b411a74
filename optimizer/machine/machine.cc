#include "optimizer/machine/machine.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

// The links of one level, in the order of their numbers: the up and the down link of every
// connected unit, or the shared link of every parent.
struct LevelLinks {
  int64_t first;  // number of the first
  int64_t below;  // devices per connected unit
  int64_t unit;   // devices per unit of the level
  int64_t num;
};

// Calls `use(level, links)` for all levels, innermost first, until it returns false.
template <typename Use>
void ForLevels(const Machine& machine, Use use) {
  const int64_t devices = machine.num_devices();
  LevelLinks links{0, 1, 1, 0};
  for (size_t l = 0; l < machine.levels.size(); ++l) {
    const Machine::Level& level = machine.levels[l];
    links.unit *= level.count;
    links.num = level.shared ? devices / links.unit : 2 * (devices / links.below);
    if (!use(static_cast<int>(l), links)) return;
    links.first += links.num;
    links.below = links.unit;
  }
}

}  // namespace

double DeviceKind::FlopsPerUs(DataType dtype) const {
  const auto rate = flops_per_us_of.find(dtype);
  return rate == flops_per_us_of.end() ? flops_per_us : rate->second;
}

int64_t Machine::num_devices() const { return UnitSize(static_cast<int>(levels.size()) - 1); }

int64_t Machine::UnitSize(int level) const {
  int64_t size = 1;
  for (int l = 0; l <= level; ++l) size *= levels[l].count;
  return size;
}

int Machine::LevelBetween(int64_t a, int64_t b) const {
  int level = -1;
  while (a != b) {
    ++level;
    a /= levels[level].count;
    b /= levels[level].count;
  }
  return level;
}

int Machine::kind_index(int64_t device) const {
  if (unit_kinds.empty()) return 0;
  if (kind_level < 0) return unit_kinds[device];
  const int64_t unit = device / UnitSize(kind_level - 1) % levels[kind_level].count;
  return unit_kinds[unit % static_cast<int64_t>(unit_kinds.size())];
}

std::vector<int> Machine::kinds_in_use() const {
  if (unit_kinds.empty()) return {0};
  size_t units = unit_kinds.size();
  if (kind_level >= 0) units = std::min<size_t>(units, levels[kind_level].count);
  const std::set<int> used(unit_kinds.begin(), unit_kinds.begin() + units);
  return {used.begin(), used.end()};
}

int64_t Machine::devices_alike() const {
  const int64_t devices = num_devices();
  if (kinds_in_use().size() == 1) return devices;
  const int64_t unit = kind_level < 0 ? 1 : UnitSize(kind_level - 1);
  int64_t alike = devices;
  for (int64_t device = unit; device < devices; device += unit) {
    if (kind_index(device) != kind_index(device - unit)) alike = std::gcd(alike, device);
  }
  return alike;
}

int64_t Machine::memory_bytes() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int kind : kinds_in_use()) least = std::min(least, kinds[kind].memory_bytes);
  return least;
}

int64_t Machine::total_memory_bytes() const {
  int64_t bytes = 0;
  for (int64_t d = 0; d < num_devices(); ++d) bytes += kind(d).memory_bytes;
  return bytes;
}

bool Machine::has_host_memory() const {
  const std::vector<int> used = kinds_in_use();
  return std::all_of(used.begin(), used.end(),
                     [this](int kind) { return kinds[kind].host_bytes_per_us > 0; });
}

double Machine::launch_us() const {
  double longest_us = 0;
  for (int kind : kinds_in_use()) longest_us = std::max(longest_us, kinds[kind].launch_us);
  return longest_us;
}

std::string Machine::device_name() const {
  return absl::StrJoin(kinds_in_use(), " and ",
                       [&](std::string* out, int kind) { out->append(kinds[kind].name); });
}

int Machine::num_links() const {
  if (!topology.empty()) return topology.num_links();
  int64_t num = 0;
  ForLevels(*this, [&](int, const LevelLinks& links) {
    num = links.first + links.num;
    return true;
  });
  return static_cast<int>(num);
}

Link Machine::link(LinkId id) const {
  if (!topology.empty()) return topology.link(id);
  Link result;
  ForLevels(*this, [&](int l, const LevelLinks& links) {
    if (id >= links.first + links.num) return true;
    const Level& level = levels[l];
    // A message takes an up and a down link, or the shared one.
    result = {level.bytes_per_us, level.shared ? level.latency_us : level.latency_us / 2};
    if (level.of_kind.empty()) return false;
    const int64_t index = id - links.first;
    const int64_t device = level.shared ? index * links.unit : index / 2 * links.below;
    if (const auto of = level.of_kind.find(kind_index(device)); of != level.of_kind.end()) {
      result.bytes_per_us *= of->second.share;
    }
    return false;
  });
  return result;
}

std::string Machine::LinkName(LinkId id) const {
  if (!topology.empty()) return topology.link_name(id);
  std::string name;
  ForLevels(*this, [&](int l, const LevelLinks& links) {
    if (id >= links.first + links.num) return true;
    const int64_t index = id - links.first;
    if (levels[l].shared) {
      name = absl::StrCat("bus of ", levels[l].name, " ", index);
    } else {
      name = absl::StrCat(l == 0 ? "device" : levels[l - 1].name, " ", index / 2,
                          index % 2 == 0 ? " up" : " down");
    }
    return false;
  });
  return name;
}

LinkPath Machine::Path(int64_t from, int64_t to) const {
  if (!topology.empty()) return topology.Path(from, to);
  return PathThroughLevels(from, to);
}

LinkPath Machine::PathThroughLevels(int64_t from, int64_t to) const {
  LinkPath path, down;  // `down`: last link first
  ForLevels(*this, [&](int l, const LevelLinks& links) {
    if (from == to) return false;
    const bool joins = from / links.unit == to / links.unit;
    if (levels[l].shared) {
      if (joins || levels[l].through) {
        path.push_back(static_cast<LinkId>(links.first + from / links.unit));
        if (!joins) down.push_back(static_cast<LinkId>(links.first + to / links.unit));
      }
    } else if (joins || levels[l].through) {
      path.push_back(static_cast<LinkId>(links.first + 2 * (from / links.below)));
      down.push_back(static_cast<LinkId>(links.first + 2 * (to / links.below) + 1));
    }
    return !joins;
  });
  for (auto id = down.rbegin(); id != down.rend(); ++id) path.push_back(*id);
  return path;
}

std::string Machine::ToString() const {
  return absl::StrCat(name, ": ", num_nodes(), num_nodes() == 1 ? " node of " : " nodes of ",
                      devices_per_node(), " ", device_name());
}

void AddToDigest(Digest* digest, const DeviceKind& kind) {
  const auto& [name, flops_per_us, flops_per_us_of, fp8_flops_per_us, memory_bytes_per_us,
               memory_bytes, peak_fraction, multiprocessors, attention_fraction,
               attention_backward_fraction, launch_us, host_bytes_per_us] = kind;
  digest->Add(name, flops_per_us, flops_per_us_of, fp8_flops_per_us, memory_bytes_per_us,
              memory_bytes, peak_fraction, multiprocessors, attention_fraction,
              attention_backward_fraction, launch_us, host_bytes_per_us);
}

void AddToDigest(Digest* digest, const Machine::Level::OfKind& of_kind) {
  const auto& [share, reduces] = of_kind;
  digest->Add(share, reduces);
}

void AddToDigest(Digest* digest, const Machine::Level& level) {
  const auto& [name, count, bytes_per_us, latency_us, shared, through, reduces, of_kind] = level;
  digest->Add(name, count, bytes_per_us, latency_us, shared, through, reduces, of_kind);
}

void AddToDigest(Digest* digest, const Machine& machine) {
  const auto& [name, kinds, levels, kind_level, unit_kinds, nccl, one_stream, topology] = machine;
  digest->Add(name, kinds, levels, kind_level, unit_kinds, nccl, one_stream, topology);
}

}  // namespace isomer
