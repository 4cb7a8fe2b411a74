#include "optimizer/cost/reshard_by_shards.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace isomer {
namespace {

constexpr int kMaxLevels = 6;

// Overlaps per dim that either placement shards: elements common to piece a of `from_degree` and
// piece b of `to_degree`. Other dims are a common factor.
class Overlaps {
 public:
  Overlaps(const TensorType& from, const TensorType& to) {
    for (int i = 0; i < from.rank(); ++i) {
      const Dim &f = from.dims[i], &t = to.dims[i];
      if (f.degree == 1 && t.degree == 1) {
        whole_ *= static_cast<double>(f.size);
      } else {
        dims_.push_back({i, f.size / f.degree, t.size / t.degree});
      }
    }
  }

  double Of(const int64_t* from, const int64_t* to) const {
    double volume = whole_;
    for (const Cut& cut : dims_) {
      const int64_t begin = std::max(from[cut.dim] * cut.from_size, to[cut.dim] * cut.to_size);
      const int64_t end =
          std::min((from[cut.dim] + 1) * cut.from_size, (to[cut.dim] + 1) * cut.to_size);
      if (end <= begin) return 0;
      volume *= static_cast<double>(end - begin);
    }
    return volume;
  }

 private:
  struct Cut {
    int dim;
    int64_t from_size, to_size;
  };
  double whole_ = 1;
  std::vector<Cut> dims_;
};

// A placement's shards in flat arrays: per shard its device, dim coordinates, and the index of its
// piece of the logical tensor (equal for copies and partials).
struct Shards {
  explicit Shards(const Placement& placement) : rank(placement.type.rank()) {
    device = DevicesOf(placement.view, placement.type);
    const int64_t repeats = placement.type.copies * placement.type.partials;
    for (int64_t s = 0; s < size(); ++s) {
      int64_t rest = s / repeats;
      piece.push_back(rest);
      const size_t at = coordinates.size();
      coordinates.resize(at + rank);
      for (int i = rank - 1; i >= 0; --i) {
        coordinates[at + i] = rest % placement.type.dims[i].degree;
        rest /= placement.type.dims[i].degree;
      }
    }
    num_pieces = size() / repeats;
  }
  int64_t size() const { return static_cast<int64_t>(device.size()); }
  const int64_t* At(int64_t shard) const { return coordinates.data() + shard * rank; }

  int rank;
  int64_t num_pieces = 0;
  std::vector<int64_t> device, piece, coordinates;
};

// Transfers to every device of `to` what it needs and lacks. After a reduce-scatter over groups of
// `group_size`, a device has that share of its old shard, chosen to be one that is needed.
class Gather {
 public:
  Gather(const CostModel& cost, const Placement& from, const Placement& to, int64_t group_size)
      : cost_(cost),
        group_size_(static_cast<double>(group_size)),
        from_(from),
        to_(to),
        overlaps_(from.type, to.type),
        piece_elements_(static_cast<double>(from.type.LocalElements())),
        wanted_(static_cast<double>(to.type.LocalElements())),
        levels_(static_cast<int>(cost.machine().levels.size())) {
    // The other shares of a device's own piece are with the piece's other partials.
    if (group_size > 1) {
      group_level_ = std::max(0, cost.LevelBetween(from_.device[0], from_.device[group_size - 1]));
    }
    nearest_.resize(from_.num_pieces);
    outbound_.assign(from_.num_pieces, 0);
    const Machine& machine = cost.machine();
    for (int l = 0; l < levels_; ++l) {
      users_.push_back(machine.UnitSize(machine.levels[l].shared ? l : l - 1));
      inbound_.emplace_back(machine.num_devices() / users_[l], 0.0);
    }
  }

  MoveLine Line() {
    for (int64_t t = 0; t < to_.size(); ++t) AddNeed(t);
    double slowest_us = 0, latency_us = 0;
    for (int level = 0; level < levels_; ++level) {
      const Machine::Level& l = cost_.machine().levels[level];
      for (double elements : inbound_[level]) {
        slowest_us = std::max(slowest_us, elements / l.bytes_per_us);
      }
      if (sources_[level] > 0) {
        slowest_us = std::max(slowest_us, Outbound() / l.bytes_per_us);
      }
      latency_us += cost_.machine().LatencyUs(level, sources_[level]);
    }
    if (latency_us + slowest_us == 0) return {};
    return {cost_.machine().message_start_us() + latency_us, slowest_us};
  }

 private:
  struct Nearest {
    int level = kMaxLevels;
    double overlap = 0;
  };

  void AddNeed(int64_t t) {
    const int64_t device = to_.device[t];
    std::fill(nearest_.begin(), nearest_.end(), Nearest());
    double own = 0;
    for (int64_t f = 0; f < from_.size(); ++f) {
      const double overlap = overlaps_.Of(from_.At(f), to_.At(t));
      if (overlap == 0) continue;
      const int level = cost_.LevelBetween(from_.device[f], device);
      if (level < 0) own = std::max(own, std::min(overlap, piece_elements_ / group_size_));
      Nearest& nearest = nearest_[from_.piece[f]];
      nearest.level = std::min(nearest.level, level);
      nearest.overlap = overlap;
    }
    if (own >= wanted_) return;
    double missing = wanted_ - own;
    std::array<int64_t, kMaxLevels> count{};
    for (const Nearest& nearest : nearest_) {
      if (nearest.overlap == 0) continue;
      const bool is_own = nearest.level < 0;
      if (is_own && group_size_ == 1) continue;
      const int level = is_own ? group_level_ : nearest.level;
      const double elements = std::min(is_own ? nearest.overlap - own : nearest.overlap, missing);
      AddInbound(level, device, elements);
      if (!is_own) outbound_[static_cast<size_t>(&nearest - nearest_.data())] += elements;
      count[level] += is_own ? static_cast<int64_t>(group_size_) - 1 : 1;
    }
    for (int l = 0; l < levels_; ++l) sources_[l] = std::max(sources_[l], count[l]);
  }

  // Adds elements over the link of the level and those of inner levels that are `through`. A shared
  // link also carries what others fetch: as much as comes in.
  void AddInbound(int level, int64_t device, double elements) {
    inbound_[level][device / users_[level]] += elements;
    for (int l = 0; l < level; ++l) {
      const Machine::Level& inner = cost_.machine().levels[l];
      if (inner.through) inbound_[l][device / users_[l]] += elements * (inner.shared ? 2 : 1);
    }
  }

  // Elements that the busiest owner sends. Owners of replicas share the work, and a request of
  // several devices is sent once and forwarded.
  double Outbound() const {
    const double holders = static_cast<double>(from_.size() / from_.num_pieces);
    const double most = *std::max_element(outbound_.begin(), outbound_.end());
    return std::min(piece_elements_, most) / holders;
  }

  const CostModel& cost_;
  const double group_size_;
  const Shards from_, to_;
  const Overlaps overlaps_;
  const double piece_elements_, wanted_;
  const int levels_;
  std::vector<Nearest> nearest_;               // per piece of `from`, for the current receiver
  std::vector<int64_t> users_;                 // per level: devices per link
  std::vector<std::vector<double>> inbound_;   // per level and link: elements
  std::array<int64_t, kMaxLevels> sources_{};  // per level: maximum per receiver
  std::vector<double> outbound_;               // per piece: elements that others request
  int group_level_ = 0;
};

}  // namespace

MoveLine ReshardByShards(const CostModel& cost, const Placement& from, const Placement& to) {
  return Gather(cost, from, to, from.type.partials / to.type.partials).Line();
}

}  // namespace isomer
