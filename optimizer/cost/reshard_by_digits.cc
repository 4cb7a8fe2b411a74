#include "optimizer/cost/reshard_by_digits.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace isomer {
namespace {

constexpr int kMostDigits = 40;

// An axis of a view, or a digit of its copies or partials, `dim` -1.
struct ViewAxis {
  int dim;
  int64_t stride, extent;
  int64_t reach() const { return stride * extent; }
};
using ViewAxes = absl::InlinedVector<ViewAxis, 6>;

// False: a dim walks in two strides.
bool FindAxes(const Placement& placement, ViewAxes* axes) {
  const TensorType& type = placement.type;
  const MachineView& view = placement.view;
  for (int i = 0; i < type.rank(); ++i) {
    if (type.dims[i].degree == 1) continue;
    if (view.OuterOf(i) != nullptr) return false;
    axes->push_back({i, view.strides[i], type.dims[i].degree});
  }
  for (const auto& [axis, extent] :
       {std::pair(type.rank(), type.copies), std::pair(type.rank() + 1, type.partials)}) {
    for (const ViewDigit& digit : view.DigitsOf(axis, extent)) {
      axes->push_back({-1, digit.stride, digit.extent});
    }
  }
  return true;
}

const ViewAxis* AxisOfDim(const ViewAxes& axes, int dim) {
  for (const ViewAxis& axis : axes) {
    if (axis.dim == dim) return &axis;
  }
  return nullptr;
}

// Strides at which the digits of device numbers begin, ascending, each a multiple of the one
// before.
class Boundaries {
 public:
  // False: it divides no gap.
  bool Add(int64_t at) {
    int64_t* place = std::lower_bound(begin(), end(), at);
    if (place != end() && *place == at) return true;
    if (place != begin() && at % *(place - 1) != 0) return false;
    if (place != end() && *place % at != 0) return false;
    if (size_ == at_.size()) return false;
    std::copy_backward(place, end(), end() + 1);
    *place = at;
    ++size_;
    return true;
  }
  size_t size() const { return size_; }
  int64_t operator[](size_t i) const { return at_[i]; }

 private:
  int64_t* begin() { return at_.data(); }
  int64_t* end() { return at_.data() + size_; }

  std::array<int64_t, kMostDigits> at_;
  size_t size_ = 0;
};

// Mirrors one side's boundaries within a dim to the other side.
bool MirrorBoundaries(const ViewAxis& from, const ViewAxis& to, Boundaries* boundaries) {
  for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)}) {
    if (a.extent <= b.extent) {
      if (b.extent % a.extent != 0 || !boundaries->Add(b.reach() / a.extent)) return false;
    }
    for (size_t i = 0; i < boundaries->size(); ++i) {
      const int64_t at = (*boundaries)[i];
      if (at <= a.stride || at >= a.reach()) continue;
      const int64_t pieces = a.reach() / at;  // number of values of the digits from there on
      if (pieces >= b.extent) continue;
      const size_t before = boundaries->size();
      if (b.extent % pieces != 0 || !boundaries->Add(b.reach() / pieces)) return false;
      if (boundaries->size() != before) i = 0;
    }
  }
  return true;
}

// False: there are none.
bool FindCommonDigits(const ReshardLevels& levels, const ViewAxes& from, const ViewAxes& to,
                      Boundaries* boundaries) {
  boundaries->Add(1);
  for (const auto& level : levels.levels) {
    if (!boundaries->Add(level.unit)) return false;
  }
  for (const ViewAxes* axes : {&from, &to}) {
    for (const ViewAxis& axis : *axes) {
      if (axis.stride < 1 || axis.reach() > levels.num_devices) return false;
      if (!boundaries->Add(axis.stride) || !boundaries->Add(axis.reach())) return false;
    }
  }
  for (size_t before = 0; before != boundaries->size();) {
    before = boundaries->size();
    for (const ViewAxis& axis : from) {
      if (axis.dim < 0) continue;
      const ViewAxis* other = AxisOfDim(to, axis.dim);
      if (other != nullptr && !MirrorBoundaries(axis, *other, boundaries)) return false;
    }
  }
  return true;
}

// The part of a dim that a digit indexes on one side.
struct Part {
  static constexpr int kIdle = -2, kEqual = -1;  // a single value; copies or partials
  int dim = kIdle;
  int64_t pieces = 0;  // of the dim, distinguished by outer digits
  int64_t value = 0;   // kIdle
};

struct Digit {
  int64_t begin, radix;
  int level;
  Part from, to;
};
using Digits = absl::InlinedVector<Digit, 16>;

// False: the placement begins within an axis.
bool PartAt(const ViewAxes& axes, int64_t start, int64_t begin, int64_t radix, Part* part) {
  part->value = start / begin % radix;
  for (const ViewAxis& axis : axes) {
    if (begin < axis.stride || begin >= axis.reach()) continue;
    if (part->dim != Part::kIdle) return false;  // Two axes share devices.
    part->dim = axis.dim;
    part->pieces = axis.reach() / (begin * radix);
  }
  return part->dim == Part::kIdle || part->value == 0;
}

// Condition for a device to find what it needs within level `level`: its digit `a` equals its digit
// `b`, or `value`.
struct Equation {
  int level;
  int a, b;  // b: -1, a value
  int64_t value;
};

// Devices that satisfy the equations beyond a level, by unit.
struct Fulfilled {
  double devices = 0;    // per unit whose own digits allow any
  int free = 0;          // free digits of unit numbers
  bool possible = true;  // satisfiable in some unit
};

class DigitReshard {
 public:
  DigitReshard(const ReshardLevels& levels, const Placement& from, const Placement& to)
      : levels_(levels), from_(from), to_(to) {}

  std::optional<MoveLine> Line() {
    if (levels_.size() > ReshardLevels::kMost || !FindDigits()) return std::nullopt;
    FindEquations();
    CountByLevel();
    FindGroup();
    if (equations_.empty()) {
      CarryAll();
    } else {
      for (int l = 0; l < levels_.size(); ++l) CarryOver(l);
      Ask();
    }
    load_.outbound = Outbound();
    return load_.Line(levels_);
  }

 private:
  bool FindDigits() {
    ViewAxes from, to;
    if (!FindAxes(from_, &from) || !FindAxes(to_, &to)) return false;
    Boundaries boundaries;
    if (!FindCommonDigits(levels_, from, to, &boundaries)) return false;
    int level = 0;
    for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
      const int64_t begin = boundaries[i], radix = boundaries[i + 1] / begin;
      while (begin >= levels_[level].unit) ++level;
      Digit digit{begin, radix, level, {}, {}};
      if (!PartAt(from, from_.view.start, begin, radix, &digit.from) ||
          !PartAt(to, to_.view.start, begin, radix, &digit.to)) {
        return false;
      }
      digits_.push_back(digit);
    }
    return true;
  }

  // The digit that indexes on the new side what digit `a` indexes on the old one; -1: none.
  int NewDigitOf(int a) const {
    for (int b = 0; b < static_cast<int>(digits_.size()); ++b) {
      if (digits_[b].to.dim == digits_[a].from.dim &&
          digits_[b].to.pieces == digits_[a].from.pieces) {
        return b;
      }
    }
    return -1;
  }

  void FindEquations() {
    gathered_.fill(1);
    for (int a = 0; a < static_cast<int>(digits_.size()); ++a) {
      const Digit& digit = digits_[a];
      if (digit.from.dim == Part::kIdle) {
        if (digit.to.dim != Part::kIdle || digit.to.value != digit.from.value) {
          equations_.push_back({digit.level, a, -1, digit.from.value});
        }
      } else if (digit.from.dim >= 0) {
        const int b = NewDigitOf(a);
        if (b < 0) gathered_[digit.level] *= digit.radix;
        if (b >= 0 && b != a) equations_.push_back({digit.level, a, b, 0});
      }
    }
  }

  // pieces_[l + 1]: pieces that a device needs from within its unit of level l, if no equation
  // beyond fails; elements_ likewise.
  void CountByLevel() {
    double own = 1;
    for (int i = 0; i < from_.type.rank(); ++i) {
      const Dim &f = from_.type.dims[i], &t = to_.type.dims[i];
      own *= static_cast<double>(f.size / std::max(f.degree, t.degree));
    }
    pieces_[0] = 1;
    for (int l = 0; l < levels_.size(); ++l) pieces_[l + 1] = pieces_[l] * gathered_[l];
    for (int l = 0; l <= levels_.size(); ++l) {
      elements_[l] = own * static_cast<double>(pieces_[l]);
    }
  }

  // After the reduce-scatter a device has only a share of its old shard, chosen to be one that it
  // needs; the others are with its group.
  void FindGroup() {
    group_size_ = from_.type.partials / to_.type.partials;
    if (group_size_ == 1) return;
    const auto piece = static_cast<double>(from_.type.LocalElements());
    const double own = std::min(elements_[0], piece / static_cast<double>(group_size_));
    if (own >= elements_[levels_.size()]) return;
    shares_elsewhere_ = true;
    from_group_ = elements_[0] - own;
    const DeviceGroup group = GroupOfAxis(from_.view, from_.type.rank() + 1, group_size_);
    group_level_ = std::max(0, levels_.cost.LevelBetween(group.start, group.last()));
  }

  // Elements that the devices of one unit get from level `l`, if `devices[m + 1]` of them satisfy
  // the equations beyond level m.
  double FromLevel(int l, const std::array<double, ReshardLevels::kMost + 1>& devices) const {
    const double from_group = shares_elsewhere_ && l == group_level_ ? from_group_ : 0;
    return elements_[l + 1] * devices[l + 1] - elements_[l] * devices[l] + from_group * devices[0];
  }

  // Elements over a link of level `l`: from that level and, if the link is `through`, from outer
  // ones. A shared link also carries what others fetch: as much as comes in.
  double OverLink(int l, const std::array<double, ReshardLevels::kMost + 1>& devices) const {
    double sum = FromLevel(l, devices);
    if (!levels_[l].through) return sum;
    for (int m = l + 1; m < levels_.size(); ++m) {
      sum += FromLevel(m, devices) * (levels_[l].shared ? 2 : 1);
    }
    return sum;
  }

  // Number of devices of `to` in a unit of `users` devices.
  double DevicesIn(int64_t users) const {
    double devices = 1;
    for (const Digit& digit : digits_) {
      if (digit.begin < users && digit.to.dim != Part::kIdle) {
        devices *= static_cast<double>(digit.radix);
      }
    }
    return devices;
  }

  int64_t SourcesAt(int l, int fulfilled_from) const {
    if (l < fulfilled_from) return 0;
    int64_t sources = pieces_[l + 1] - (l > fulfilled_from ? pieces_[l] : 0);
    if (fulfilled_from < 0 && shares_elsewhere_ && l == group_level_) sources += group_size_ - 1;
    return sources;
  }

  // Without equations all devices are symmetric.
  void CarryAll() {
    std::array<double, ReshardLevels::kMost + 1> devices;
    for (int l = 0; l < levels_.size(); ++l) {
      devices.fill(DevicesIn(levels_[l].users));
      load_.Carry(l, OverLink(l, devices));
      load_.Ask(l, SourcesAt(l, -1));
    }
  }

  // Applies the equations beyond level `l` to units of `users` devices. Digits that must be equal
  // are merged; an equation with a digit of the unit's number, or a value, fixes the digit for all
  // devices in it.
  Fulfilled Beyond(int l, int64_t users) const {
    const int size = static_cast<int>(digits_.size());
    std::array<int8_t, kMostDigits> parent;
    std::array<int64_t, kMostDigits> value;
    std::array<bool, kMostDigits> outside;
    for (int d = 0; d < size; ++d) {
      parent[d] = static_cast<int8_t>(d);
      const bool idle = digits_[d].to.dim == Part::kIdle;
      value[d] = idle ? digits_[d].to.value : -1;
      outside[d] = !idle && digits_[d].begin >= users;
    }
    auto root = [&](int d) {
      while (parent[d] != d) d = parent[d];
      return d;
    };
    Fulfilled result;
    auto set = [&](int d, int64_t v) {
      if (value[d] >= 0 && v >= 0 && value[d] != v) result.possible = false;
      value[d] = std::max(value[d], v);
    };
    for (const Equation& e : equations_) {
      if (e.level <= l) continue;
      const int a = root(e.a);
      if (e.b < 0) {
        set(a, e.value);
      } else if (const int b = root(e.b); a != b) {
        parent[b] = static_cast<int8_t>(a);
        outside[a] = outside[a] || outside[b];
        set(a, value[b]);
      }
    }
    result.devices = 1;
    for (int d = 0; d < size; ++d) {
      if (parent[d] != d || value[d] >= 0) continue;
      if (outside[d]) {
        ++result.free;
      } else {
        result.devices *= static_cast<double>(digits_[d].radix);
      }
    }
    return result;
  }

  // Calls use(m, devices) for every kind of unit of `users` devices: m is the first level whose
  // equations its own digits violate (-1: none).
  template <typename Use>
  void ForKindsOfUnits(int64_t users, Use use) const {
    const int num_levels = levels_.size();
    std::array<Fulfilled, ReshardLevels::kMost + 1> beyond;
    for (int m = -1; m < num_levels; ++m) beyond[m + 1] = Beyond(m, users);
    for (int m = -1; m < num_levels; ++m) {
      const Fulfilled& here = beyond[m + 1];
      if (!here.possible) continue;
      if (m >= 0 && beyond[m].possible && beyond[m].free == here.free) continue;
      std::array<double, ReshardLevels::kMost + 1> devices = {};
      for (int k = m; k < num_levels; ++k) devices[k + 1] = beyond[k + 1].devices;
      use(m, devices);
    }
  }

  void CarryOver(int l) {
    ForKindsOfUnits(levels_[l].users,
                    [&](int, const auto& devices) { load_.Carry(l, OverLink(l, devices)); });
  }

  void Ask() {
    ForKindsOfUnits(1, [&](int m, const auto&) {
      for (int l = 0; l < levels_.size(); ++l) load_.Ask(l, SourcesAt(l, m));
    });
  }

  // Elements that the busiest owner sends. Owners of replicas share the work, and a request of
  // several devices is sent once and forwarded.
  double Outbound() const {
    const auto piece = static_cast<double>(from_.type.LocalElements());
    const auto askers = static_cast<double>(to_.type.copies * to_.type.partials);
    const double asked = piece * askers - elements_[0] * DevicesThatHoldTheirs();
    const auto holders = static_cast<double>(from_.type.copies * from_.type.partials);
    return std::min(piece, asked) / holders;
  }

  // Minimum, over pieces of `from`, of the number of devices that need part of their own piece.
  double DevicesThatHoldTheirs() const {
    double devices = 1;
    std::array<bool, kMostDigits> asked = {};  // the digit's value is that of a digit of the piece
    for (const Equation& e : equations_) {
      if (e.b >= 0) asked[e.b] = true;
    }
    for (int d = 0; d < static_cast<int>(digits_.size()); ++d) {
      const Digit& digit = digits_[d];
      const bool holds = digit.from.dim >= 0;
      if (digit.from.dim == Part::kIdle) {
        if (asked[d]) return 0;
        if (digit.to.dim == Part::kIdle && digit.to.value != digit.from.value) return 0;
      } else if (holds) {
        if (asked[d] || digit.to.dim == Part::kIdle) return 0;
      } else if (!asked[d] && digit.to.dim != Part::kIdle) {
        devices *= static_cast<double>(digit.radix);
      }
    }
    return devices;
  }

  const ReshardLevels& levels_;
  const Placement &from_, &to_;
  Digits digits_;
  absl::InlinedVector<Equation, 8> equations_;
  std::array<int64_t, ReshardLevels::kMost> gathered_;
  std::array<int64_t, ReshardLevels::kMost + 1> pieces_;
  std::array<double, ReshardLevels::kMost + 1> elements_;
  int64_t group_size_ = 1;
  int group_level_ = 0;
  bool shares_elsewhere_ = false;
  double from_group_ = 0;
  ReshardLoad load_;
};

}  // namespace

std::optional<MoveLine> ReshardByDigits(const ReshardLevels& levels, const Placement& from,
                                        const Placement& to) {
  return DigitReshard(levels, from, to).Line();
}

}  // namespace isomer
