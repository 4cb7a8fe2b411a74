// Alpha-beta costs of collectives on a machine: the cheapest of NCCL's algorithms.
//
// A group of g devices is seen through the levels of the machine: at level l, m units of the level
// below belong to it, with k members each. Of N bytes, a unit sends over its links of that level
//
//                    all-gather, reduce-scatter      all-reduce          steps of a pass
//   ring             (g-1)/g N                       twice that          g - 1
//   hierarchical     (m-1)/m N, level after level    twice that          m - 1 each
//   tree             (m-1)/m N                       2N, N if m = 2      log m, or m - 1 in a node
//   switch reduces   -                               N                   2
//
// (Thakur, Rabenseifner, Gropp 2005; Sanders, Speck, Traeff 2009 on double binary trees;
// nccl-tests, doc/PERFORMANCE.md; NVLink SHARP). Broadcasts and reduces pass N bytes over each
// link, by rings or trees, NCCL's by rings only (nccl, src/graph/tuning.cc). A unit's link is
// shared with sibling groups: its other devices are assumed to run the same collective, so that a
// group has the share k/u of the link if k of the unit's u devices are members; likewise for a link
// that several units share. Levels are pipelined, except in the hierarchical algorithm, which is
// several calls.
//
// NCCL has three protocols: LL, with flags in every 8 bytes, low latency at a quarter of the
// bandwidth; LL128, flags in every 128 bytes; Simple, with a synchronisation per chunk. Each has
// its latencies and its fraction of the links' bandwidth. On a machine that is not `nccl`, messages
// take the latency and the full bandwidth of the level.
//
// Every cost is the minimum of lines alpha + beta * bytes: it grows with bytes, and depends on the
// group's shape only, never on the order of its devices.
#ifndef ISOMER_OPTIMIZER_COST_COLLECTIVE_COST_H_
#define ISOMER_OPTIMIZER_COST_COLLECTIVE_COST_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "optimizer/cost/collective_traits.h"
#include "optimizer/machine/machine.h"
#include "pcg/ir/machine_view.h"

namespace isomer {

// Cost of a collective by one algorithm and protocol.
struct CollectiveLine {
  double latency_us = 0;  // of zero bytes
  double us_per_byte = 0;
  const char* algorithm = "";  // "ring", "tree", "hierarchical", "switch", "pairwise"
  const char* protocol = "";   // "LL", "LL128", "Simple"; "" without NCCL
  double Us(int64_t bytes) const { return latency_us + us_per_byte * static_cast<double>(bytes); }
};

// The properties of a group that costs depend on.
struct GroupShape {
  struct AtLevel {
    int64_t units = 1;    // m: maximum units of the level below in a unit of this level
    int64_t members = 1;  // k: minimum members in one of these
    friend auto operator<=>(const AtLevel&, const AtLevel&) = default;
  };
  int64_t size = 0;
  absl::InlinedVector<AtLevel, 6> levels;  // one per level of the machine
  // A bit per kind of the devices, where kinds have links of their own; else 0. The slowest kind's
  // links pace a group.
  uint64_t kinds = 0;
  friend bool operator<(const GroupShape& a, const GroupShape& b) {
    return std::tie(a.size, a.kinds, a.levels) < std::tie(b.size, b.kinds, b.levels);
  }
};
// `count` devices: start, start + stride, ..; and those again in each of `turns`, `turn` apart.
struct DeviceGroup {
  int64_t start = 0, stride = 0, count = 1;
  int64_t turn = 0, turns = 1;
  int64_t size() const { return count * turns; }
  int64_t last() const { return start + (count - 1) * stride + (turns - 1) * turn; }
  friend bool operator==(const DeviceGroup&, const DeviceGroup&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const DeviceGroup& g) {
    return H::combine(std::move(h), g.start, g.stride, g.count, g.turn, g.turns);
  }
};
// The first `size` devices of an axis of `view`. REQUIRES: within its period, or whole ones.
DeviceGroup GroupOfAxis(const MachineView& view, size_t axis, int64_t size);

// Linear in devices if these are sorted. REQUIRES: devices are distinct.
GroupShape ShapeOf(const Machine& machine, absl::Span<const int32_t> devices);

// Thread-safe.
class CollectiveCost {
 public:
  explicit CollectiveCost(const Machine& machine);

  // Microseconds. `bytes`: the buffer (all-reduce, broadcast, reduce), the result (all-gather), or
  // one device's operand (reduce-scatter, all-to-all). 0 for a single device.
  double Us(Collective kind, int64_t bytes, absl::Span<const int32_t> devices) const;
  // The same; makes a list of devices only for the first query of a group.
  double Us(Collective kind, int64_t bytes, const DeviceGroup& group) const;
  // The cheapest line. REQUIRES: two devices or more.
  CollectiveLine Choice(Collective kind, int64_t bytes, absl::Span<const int32_t> devices) const;

 private:
  struct AtLevel {
    int64_t count;
    double bytes_per_us;  // per device if all of the unit send at once, over all links of the path
    double latency_us;    // per message, over all links of the path
    bool shared, through, reduces, network;
  };
  using Levels = std::vector<AtLevel>;
  friend class CollectiveLines;
  // As groups of these kinds have them; 0: whatever the kind.
  static Levels LevelsOf(const Machine& machine, uint64_t kinds);
  const std::vector<CollectiveLine>& Lines(Collective kind, const GroupShape& shape) const;
  GroupShape Shape(absl::Span<const int32_t> devices) const;

  bool nccl_;
  double pairs_at_once_;
  double launch_us_;
  Levels levels_;  // of one kind, or of groups of any where all have the same links
  // Of the same where kinds have links of their own, else empty.
  Machine machine_;
  std::vector<int> kinds_;    // by device
  mutable std::mutex mutex_;  // guards what follows; references into it stay valid
  mutable std::map<std::pair<Collective, GroupShape>, std::vector<CollectiveLine>> lines_;
  mutable absl::flat_hash_map<std::pair<Collective, DeviceGroup>,
                              const std::vector<CollectiveLine>*>
      lines_of_group_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_COLLECTIVE_COST_H_
