// What collectives cost on a machine: alpha-beta costs of the algorithms that NCCL has, of which
// the cheapest counts.
//
// A group is seen through the levels of the machine: at level l, m units of the level below belong
// to the group, with k members each. Of N bytes, a unit sends over its links of that level
//
//                    all-gather, reduce-scatter      all-reduce          steps of a pass
//   ring             (g-1)/g N                       twice that          g - 1
//   hierarchical     (m-1)/m N, level after level    twice that          m - 1 each
//   tree             (m-1)/m N                       2N, N if m = 2      log m, or m - 1 in a node
//   switch reduces   -                               N                   2
//
// (Thakur, Rabenseifner, Gropp 2005; Sanders, Speck, Traeff 2009 on double binary trees;
// nccl-tests, doc/PERFORMANCE.md; NVLink SHARP). The link of a unit is shared with sibling groups:
// the other devices of the unit are taken to be busy with the same collective, so that a group has
// the share k/u of it if k of its u devices are members; of a link that several units share,
// likewise. Sums over levels are pipelined but for the hierarchical algorithm, which is several
// calls.
//
// NCCL sends by one of three protocols: LL, with flags in every 8 bytes: quick, at a quarter of the
// bandwidth; LL128, flags in every 128 bytes; Simple, with a synchronisation for each chunk. Each
// has its latencies and its share of the links' rate. In a machine that is not `nccl`, messages
// take the latency of the level and its whole rate.
//
// Every cost is the least of lines alpha + beta * bytes: it grows with bytes, and it is a function
// of the group's shape only, never of the order of its devices.
#ifndef ISOMER_OPTIMIZER_COST_COLLECTIVE_COST_H_
#define ISOMER_OPTIMIZER_COST_COLLECTIVE_COST_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "optimizer/cost/collective_traits.h"
#include "optimizer/machine/machine.h"

namespace isomer {

// One way to carry out a collective.
struct CollectiveLine {
  double latency_us = 0;  // of no bytes
  double us_per_byte = 0;
  const char* algorithm = "";  // "ring", "tree", "hierarchical", "switch", "pairwise"
  const char* protocol = "";   // "LL", "LL128", "Simple"; "" without NCCL
  double Us(int64_t bytes) const { return latency_us + us_per_byte * static_cast<double>(bytes); }
};

// What of a group its costs depend on.
struct GroupShape {
  struct AtLevel {
    int64_t units = 1;    // m: most units of the level below that one unit of it holds
    int64_t members = 1;  // k: least members in one of these
    friend auto operator<=>(const AtLevel&, const AtLevel&) = default;
  };
  int64_t size = 0;
  absl::InlinedVector<AtLevel, 6> levels;  // as the machine's
  friend bool operator<(const GroupShape& a, const GroupShape& b) {
    return a.size != b.size ? a.size < b.size : a.levels < b.levels;
  }
};
// `count` devices: start, start + stride, ..
struct DeviceGroup {
  int64_t start = 0, stride = 0, count = 1;
  int64_t last() const { return start + (count - 1) * stride; }
  friend bool operator==(const DeviceGroup&, const DeviceGroup&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const DeviceGroup& g) {
    return H::combine(std::move(h), g.start, g.stride, g.count);
  }
};

// In time linear in devices if these are sorted. REQUIRES: devices are distinct.
GroupShape ShapeOf(const Machine& machine, absl::Span<const int32_t> devices);

// Thread-safe.
class CollectiveCost {
 public:
  explicit CollectiveCost(const Machine& machine);

  // `bytes`: all-reduce, broadcast and reduce: of the buffer; all-gather: of the result;
  // reduce-scatter and all-to-all: of one device's operand. No devices but one: 0.
  double Us(Collective kind, int64_t bytes, absl::Span<const int32_t> devices) const;
  // The same, without a list of devices but for the first time that a group is asked for.
  double Us(Collective kind, int64_t bytes, const DeviceGroup& group) const;
  // The way that is taken. REQUIRES: two devices or more.
  CollectiveLine Choice(Collective kind, int64_t bytes, absl::Span<const int32_t> devices) const;

 private:
  struct AtLevel {
    int64_t count;
    double bytes_per_us;  // of one device if all of the unit send at once, on all links of the way
    double latency_us;    // of a message, on all links of the way
    bool shared, through, reduces, network;
  };
  friend class CollectiveLines;
  const std::vector<CollectiveLine>& Lines(Collective kind, const GroupShape& shape) const;
  GroupShape Shape(absl::Span<const int32_t> devices) const;

  bool nccl_;
  double pairs_at_once_;
  double launch_us_;
  std::vector<AtLevel> levels_;
  mutable std::mutex mutex_;  // guards what follows; references into it stay valid
  mutable std::map<std::pair<Collective, GroupShape>, std::vector<CollectiveLine>> lines_;
  mutable absl::flat_hash_map<std::pair<Collective, DeviceGroup>,
                              const std::vector<CollectiveLine>*>
      lines_of_group_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_COLLECTIVE_COST_H_
