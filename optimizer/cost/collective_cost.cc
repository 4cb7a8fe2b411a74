#include "optimizer/cost/collective_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isomer {
namespace {

struct Protocol {
  const char* name;
  double base_us;                              // besides the kernel launch
  double hop;                                  // per step, in latencies of its level
  double node_efficiency, network_efficiency;  // fraction of the links' bandwidth
};

// From the tables of NCCL's src/graph/tuning.cc (base latencies, NVLink and network hops, bandwidth
// fractions), for levels whose latency is that of a send. Simple reaches 80 % of NVLink: 8 x A100
// and 8 x H100 without NVLink SHARP measure 235 and 365 of 300 and 450 GB/s.
constexpr Protocol kNccl[] = {{"LL", kNcclStartUs, 0.45, 0.25, 0.25},
                              {"LL128", 14, 1, 0.736, 0.85},
                              {"Simple", 8.4, 2.3, 0.8, 0.92}};
constexpr Protocol kPlain[] = {{"", 0, 1, 1, 1}};

// In-switch all-reduces (NVLink SHARP), by chunk size: bandwidth fractions fitted to the published
// bus bandwidths of 8 x H200 (bench/README.md).
constexpr Protocol kSwitch[] = {
    {"Simple", 13.5, 1, 0.333, 0}, {"Simple", 34.8, 1, 0.537, 0}, {"Simple", 65.2, 1, 0.602, 0}};

constexpr double kTreeEfficiency = 0.9;  // NCCL's, relative to a ring

double Log2(int64_t n) { return std::ceil(std::log2(static_cast<double>(n))); }

}  // namespace

// Computes the lines of one kind of collective for one group shape.
class CollectiveLines {
 public:
  CollectiveLines(const CollectiveCost& cost, Collective kind, const GroupShape& shape)
      : cost_(cost),
        kind_(kind),
        traits_(TraitsOf(kind)),
        shape_(shape),
        levels_(shape.kinds == 0 ? cost.levels_ : cost.LevelsOf(cost.machine_, shape.kinds)),
        g_(static_cast<double>(shape.size)) {}

  // The Pareto-optimal lines in latency and bandwidth; least latency first.
  std::vector<CollectiveLine> Run() {
    const bool nccl = cost_.nccl_;
    for (const Protocol& p : nccl ? absl::MakeSpan(kNccl) : absl::MakeSpan(kPlain)) AddAll(p);
    if (kind_ == Collective::kAllReduce && HasSwitch()) {
      for (const Protocol& p : nccl ? absl::MakeSpan(kSwitch) : absl::MakeSpan(kPlain)) Switch(p);
    }
    std::sort(lines_.begin(), lines_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.latency_us, a.us_per_byte) < std::pair(b.latency_us, b.us_per_byte);
    });
    std::vector<CollectiveLine> kept;
    for (const CollectiveLine& line : lines_) {
      if (kept.empty() || line.us_per_byte < kept.back().us_per_byte) kept.push_back(line);
    }
    return kept;
  }

 private:
  int num_levels() const { return static_cast<int>(shape_.levels.size()); }
  double Units(int l) const { return static_cast<double>(shape_.levels[l].units); }
  bool Spans(int l) const { return shape_.levels[l].units > 1; }
  // Group members per unit of level l, and per unit of the level below.
  double MembersAbove(int l) const {
    return l + 1 < num_levels() ? static_cast<double>(shape_.levels[l + 1].members) : g_;
  }
  double MembersBelow(int l) const { return static_cast<double>(shape_.levels[l].members); }
  int NumSpanned() const {
    int spanned = 0;
    for (int l = 0; l < num_levels(); ++l) spanned += Spans(l);
    return spanned;
  }
  double Passes() const { return traits_.passes; }
  bool HasSwitch() const {
    for (int l = 0; l < num_levels(); ++l) {
      if (Spans(l) && levels_[l].reduces) return true;
    }
    return false;
  }

  // Time per byte that each unit of the level below sends over its links of level l.
  double UsPerByte(int l, const Protocol& p) const {
    const auto& level = levels_[l];
    const double efficiency = level.network ? p.network_efficiency : p.node_efficiency;
    return 1 / (level.bytes_per_us * MembersBelow(l) * efficiency);
  }
  double HopUs(int l, const Protocol& p) const { return p.hop * levels_[l].latency_us; }

  void Add(double calls, const Protocol& p, double steps_us, double us_per_byte,
           const char* algorithm) {
    lines_.push_back(
        {calls * (cost_.launch_us_ + p.base_us) + steps_us, us_per_byte, algorithm, p.name});
  }

  void AddAll(const Protocol& p) {
    if (kind_ == Collective::kAllToAll) return Pairwise(p);
    Ring(p);
    if (!cost_.nccl_ || !traits_.is_rooted) Tree(p);
    if (!traits_.is_rooted && NumSpanned() > 1) Hierarchical(p);
  }

  void Ring(const Protocol& p) {
    const double volume = traits_.is_rooted ? 1 : Passes() * (g_ - 1) / g_;
    double steps_us = 0, us_per_byte = 0;
    for (int l = 0; l < num_levels(); ++l) {
      if (!Spans(l)) continue;
      const double steps = g_ / MembersBelow(l) - g_ / MembersAbove(l);
      steps_us += Passes() * steps * HopUs(l, p);
      us_per_byte = std::max(us_per_byte,
                             volume * (traits_.is_rooted ? EdgesPerUnit(l) : 1) * UsPerByte(l, p));
    }
    Add(1, p, steps_us, us_per_byte, "ring");
  }

  // On a shared link the units' bytes add up, and a tree of m units has m - 1 edges.
  double EdgesPerUnit(int l) const { return levels_[l].shared ? LevelVolume(l) : 1; }

  // Fraction of the bytes that a unit sends in one pass of a level-by-level algorithm.
  double LevelVolume(int l) const { return (Units(l) - 1) / Units(l); }

  void Tree(const Protocol& p) {
    const bool part = !traits_.is_rooted && traits_.passes == 1;
    double steps_us = 0, us_per_byte = 0;
    for (int l = 0; l < num_levels(); ++l) {
      if (!Spans(l)) continue;
      // NCCL's trees are chains within a node; they gather and scatter only with one device per
      // node.
      const bool chain = cost_.nccl_ && !levels_[l].network;
      if (part && chain) return;
      double volume = part ? LevelVolume(l) : EdgesPerUnit(l);
      if (kind_ == Collective::kAllReduce && Units(l) > 2) volume = 2 * EdgesPerUnit(l);
      if (kind_ == Collective::kAllReduce && Units(l) == 2) volume = 1;
      const double steps = chain ? Units(l) - 1 : Log2(shape_.levels[l].units);
      steps_us += Passes() * steps * HopUs(l, p);
      us_per_byte = std::max(us_per_byte, volume * UsPerByte(l, p));
    }
    Add(1, p, steps_us, us_per_byte / (cost_.nccl_ ? kTreeEfficiency : 1), "tree");
  }

  // An all-reduce: reduce-scatters from the inside out, an all-reduce over the outermost level,
  // all-gathers back.
  void Hierarchical(const Protocol& p) {
    double steps_us = 0, us_per_byte = 0;
    for (int l = 0; l < num_levels(); ++l) {
      if (!Spans(l)) continue;
      steps_us += Passes() * (Units(l) - 1) * HopUs(l, p);
      us_per_byte += Passes() * LevelVolume(l) * UsPerByte(l, p);
    }
    Add(Passes() * (NumSpanned() - 1) + 1, p, steps_us, us_per_byte, "hierarchical");
  }

  // The switches of a level reduce; levels without are a tree, pipelined with it.
  void Switch(const Protocol& p) {
    const Protocol& outer = cost_.nccl_ ? kNccl[2] : p;
    double steps_us = 0, us_per_byte = 0;
    for (int l = 0; l < num_levels(); ++l) {
      if (!Spans(l)) continue;
      const bool here = levels_[l].reduces;
      if (!here && !levels_[l].network) return;
      const double volume = here || Units(l) == 2 ? 1 : 2;
      const double steps = here ? 1 : Log2(shape_.levels[l].units);
      steps_us += 2 * steps * HopUs(l, here ? p : outer);
      us_per_byte = std::max(us_per_byte, volume * UsPerByte(l, here ? p : outer));
    }
    Add(1, p, steps_us, us_per_byte, "switch");
  }

  // Each member sends to each other; bytes for members of other units leave its unit.
  void Pairwise(const Protocol& p) {
    double steps_us = 0, us_per_byte = 0;
    for (int l = 0; l < num_levels(); ++l) {
      const bool through = levels_[l].through;
      const double above = through ? g_ : MembersAbove(l);
      if (above == MembersBelow(l)) continue;
      const double volume = (above - MembersBelow(l)) / g_ * MembersBelow(l);
      us_per_byte = std::max(us_per_byte, volume * UsPerByte(l, p));
      const double peers = MembersAbove(l) - MembersBelow(l);
      steps_us += std::ceil(peers / cost_.pairs_at_once_) * HopUs(l, p);
    }
    Add(1, p, steps_us, us_per_byte, "pairwise");
  }

  const CollectiveCost& cost_;
  const Collective kind_;
  const CollectiveTraits& traits_;
  const GroupShape& shape_;
  const CollectiveCost::Levels levels_;
  const double g_;
  std::vector<CollectiveLine> lines_;
};

namespace {

template <typename Levels>
GroupShape ShapeThrough(const Levels& levels, absl::Span<const int32_t> devices) {
  struct Unit {
    int64_t id, members;
  };
  std::vector<Unit> units;
  units.reserve(devices.size());
  for (int32_t device : devices) units.push_back({device, 1});
  const auto by_id = [](const Unit& a, const Unit& b) { return a.id < b.id; };
  if (!std::is_sorted(units.begin(), units.end(), by_id)) {
    std::sort(units.begin(), units.end(), by_id);
  }
  GroupShape shape;
  shape.size = static_cast<int64_t>(devices.size());
  for (const auto& level : levels) {
    GroupShape::AtLevel at{1, std::numeric_limits<int64_t>::max()};
    size_t parents = 0;
    for (size_t i = 0; i < units.size();) {
      const size_t first = i;
      Unit parent{units[i].id / level.count, 0};
      for (; i < units.size() && units[i].id / level.count == parent.id; ++i) {
        parent.members += units[i].members;
        at.members = std::min(at.members, units[i].members);
      }
      at.units = std::max(at.units, static_cast<int64_t>(i - first));
      units[parents++] = parent;
    }
    units.resize(parents);
    shape.levels.push_back(at);
  }
  return shape;
}

}  // namespace

GroupShape ShapeOf(const Machine& machine, absl::Span<const int32_t> devices) {
  return ShapeThrough(machine.levels, devices);
}

GroupShape CollectiveCost::Shape(absl::Span<const int32_t> devices) const {
  GroupShape shape = ShapeThrough(levels_, devices);
  if (kinds_.empty()) return shape;
  for (int32_t device : devices) shape.kinds |= uint64_t{1} << kinds_[device];
  return shape;
}

CollectiveCost::Levels CollectiveCost::LevelsOf(const Machine& machine, uint64_t kinds) {
  Levels levels;
  // Outgoing through inner levels that are `through`: the slowest link, and all latencies.
  double slowest = std::numeric_limits<double>::infinity(), latency_us = 0;
  for (int l = 0; l < static_cast<int>(machine.levels.size()); ++l) {
    const Machine::Level& level = machine.levels[l];
    double share = 1;
    bool reduces = level.reduces;
    for (const auto& [kind, of] : level.of_kind) {
      if ((kinds >> kind & 1) == 0) continue;
      share = std::min(share, of.share);
      reduces &= of.reduces;
    }
    const double users = static_cast<double>(machine.UnitSize(level.shared ? l : l - 1));
    const double rate = level.bytes_per_us * share / users;
    levels.push_back({level.count, std::min(rate, slowest), latency_us + level.latency_us,
                      level.shared, level.through, reduces,
                      l + 1 == static_cast<int>(machine.levels.size())});
    if (!level.through) continue;
    // A shared link carries incoming and outgoing bytes.
    slowest = std::min(slowest, level.shared ? rate / 2 : rate);
    latency_us += (level.shared ? 2 : 1) * level.latency_us;
  }
  return levels;
}

CollectiveCost::CollectiveCost(const Machine& machine)
    : nccl_(machine.nccl),
      pairs_at_once_(static_cast<double>(machine.messages_at_once())),
      launch_us_(machine.launch_us()),
      levels_(LevelsOf(machine, 0)) {
  const bool are_alike = std::all_of(machine.levels.begin(), machine.levels.end(),
                                     [](const auto& level) { return level.of_kind.empty(); });
  if (are_alike) return;
  machine_ = machine;
  for (int64_t d = 0; d < machine.num_devices(); ++d) kinds_.push_back(machine.kind_index(d));
}

const std::vector<CollectiveLine>& CollectiveCost::Lines(Collective kind,
                                                         const GroupShape& shape) const {
  const std::lock_guard lock(mutex_);
  auto [it, added] = lines_.try_emplace({kind, shape});
  if (added) it->second = CollectiveLines(*this, kind, shape).Run();
  return it->second;
}

namespace {

const CollectiveLine& Cheapest(const std::vector<CollectiveLine>& lines, int64_t bytes) {
  return *std::min_element(lines.begin(), lines.end(),
                           [&](const auto& a, const auto& b) { return a.Us(bytes) < b.Us(bytes); });
}

}  // namespace

CollectiveLine CollectiveCost::Choice(Collective kind, int64_t bytes,
                                      absl::Span<const int32_t> devices) const {
  return Cheapest(Lines(kind, Shape(devices)), bytes);
}

double CollectiveCost::Us(Collective kind, int64_t bytes, absl::Span<const int32_t> devices) const {
  return devices.size() < 2 ? 0 : Choice(kind, bytes, devices).Us(bytes);
}

DeviceGroup GroupOfAxis(const MachineView& view, size_t axis, int64_t size) {
  const OuterStride* const outer = view.OuterOf(axis);
  if (outer == nullptr || size <= outer->period) return {view.start, view.strides[axis], size};
  return {view.start, view.strides[axis], outer->period, outer->stride, size / outer->period};
}

double CollectiveCost::Us(Collective kind, int64_t bytes, const DeviceGroup& group) const {
  if (group.size() < 2) return 0;
  const std::vector<CollectiveLine>* lines = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto known = lines_of_group_.find({kind, group});
    if (known != lines_of_group_.end()) lines = known->second;
  }
  if (lines == nullptr) {
    std::vector<int32_t> devices;
    for (int64_t t = 0; t < group.turns; ++t) {
      const int64_t first = group.start + t * group.turn;
      for (int64_t i = 0; i < group.count; ++i) {
        devices.push_back(static_cast<int32_t>(first + i * group.stride));
      }
    }
    lines = &Lines(kind, Shape(devices));
    const std::lock_guard lock(mutex_);
    lines_of_group_[{kind, group}] = lines;
  }
  return Cheapest(*lines, bytes).Us(bytes);
}

}  // namespace isomer
