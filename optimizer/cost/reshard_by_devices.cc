#include "optimizer/cost/reshard_by_devices.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "pcg/ir/machine_view.h"

namespace isomer {
namespace {

// By level, cumulative: index 0 is the device itself, l + 1 up to level l.
using ByLevel = std::array<double, ReshardLevels::kMost + 1>;

// 32-bit device numbers divide faster.
struct DeviceAxis {
  int axis;  // of the view
  uint32_t stride, extent;
};

class DeviceReshard {
 public:
  DeviceReshard(const ReshardLevels& levels, const Placement& from, const Placement& to)
      : levels_(levels), from_(from), to_(to) {}

  std::optional<MoveLine> Line() {
    if (levels_.size() > ReshardLevels::kMost || !IsMadeOfDigits()) return std::nullopt;
    group_size_ = from_.type.partials / to_.type.partials;
    piece_elements_ = static_cast<double>(from_.type.LocalElements());
    if (group_size_ > 1) {
      const DeviceGroup group = GroupOfAxis(from_.view, from_.type.rank() + 1, group_size_);
      group_level_ = std::max(0, levels_.cost.LevelBetween(group.start, group.last()));
    }
    const int64_t repeats = from_.type.copies * from_.type.partials;
    held_.assign(from_.type.NumShards() / repeats, 0);
    for (int l = 0; l < levels_.size(); ++l) {
      over_link_.emplace_back(levels_.num_devices / levels_[l].users, 0.0);
    }
    FindCuts();
    AddNeeds();
    for (int l = 0; l < levels_.size(); ++l) {
      load_.Carry(l, *std::max_element(over_link_[l].begin(), over_link_[l].end()));
    }
    // Every element of a piece is requested once per copy.
    const double least_held = *std::min_element(held_.begin(), held_.end());
    const auto askers = static_cast<double>(to_.type.copies * to_.type.partials);
    const double asked = piece_elements_ * askers - least_held;
    load_.outbound = std::min(piece_elements_, asked) / static_cast<double>(repeats);
    return load_.Line(levels_);
  }

 private:
  // Whether strides and reaches of the old axes, and units of the machine, are multiples of each
  // other.
  bool IsMadeOfDigits() {
    const std::vector<int64_t> extents = AxisExtents(from_.type);
    absl::InlinedVector<int64_t, 24> borders;
    for (const auto& level : levels_.levels) borders.push_back(level.unit);
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      const bool is_dim = static_cast<int>(axis) < from_.type.rank();
      if (is_dim && from_.view.OuterOf(axis) != nullptr) return false;
      for (const auto& [stride, extent] : from_.view.DigitsOf(axis, extents[axis])) {
        if (stride < 1 || from_.view.start / stride % extent != 0) return false;
        axes_.push_back(
            {static_cast<int>(axis), static_cast<uint32_t>(stride), static_cast<uint32_t>(extent)});
        borders.push_back(stride);
        borders.push_back(stride * extent);
      }
    }
    std::sort(borders.begin(), borders.end());
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      if (borders[i + 1] % borders[i] != 0) return false;
    }
    return borders.back() == levels_.num_devices &&
           levels_.num_devices <= std::numeric_limits<int32_t>::max();
  }

  // A dim that is sharded in either placement.
  struct CutDim {
    int dim;
    int axis = -1;                                    // in axes_
    int32_t extent = 1;                               // of that axis
    int64_t from_size, to_size;                       // of a piece
    std::array<int32_t, ReshardLevels::kMost> width;  // consecutive pieces in a unit
    std::vector<int32_t> first, last;                 // per new piece: the old ones that overlap it
  };

  void FindCuts() {
    for (int i = 0; i < from_.type.rank(); ++i) {
      const Dim &f = from_.type.dims[i], &n = to_.type.dims[i];
      if (f.degree == 1 && n.degree == 1) {
        whole_elements_ *= static_cast<double>(f.size);
        continue;
      }
      CutDim cut{i, -1, 1, f.size / f.degree, n.size / n.degree, {}, {}, {}};
      for (size_t a = 0; a < axes_.size(); ++a) {
        if (axes_[a].axis == i) cut.axis = static_cast<int>(a);
      }
      for (int l = 0; l < levels_.size(); ++l) {
        const bool varies = cut.axis >= 0;
        cut.width[l] = static_cast<int32_t>(
            varies ? std::clamp<int64_t>(levels_[l].unit / axes_[cut.axis].stride, 1,
                                         axes_[cut.axis].extent)
                   : 1);
      }
      if (cut.axis >= 0) cut.extent = static_cast<int32_t>(axes_[cut.axis].extent);
      for (int64_t t = 0; t < n.degree; ++t) {
        cut.first.push_back(static_cast<int32_t>(t * cut.to_size / cut.from_size));
        cut.last.push_back(static_cast<int32_t>(((t + 1) * cut.to_size - 1) / cut.from_size));
      }
      cuts_.push_back(std::move(cut));
    }
  }

  // Multiplies `pieces` and `elements` by a dim's contribution: the old pieces that overlap piece
  // `t` of the new dim, by distance. The nearest device to the receiver has piece `own`; those in
  // one unit with it are neighbours of that piece.
  void TimesDim(const CutDim& cut, int64_t t, int32_t own, ByLevel* pieces,
                ByLevel* elements) const {
    const int64_t begin = t * cut.to_size, end = begin + cut.to_size;
    for (int l = 0; l <= levels_.size(); ++l) {
      const int32_t width = l == 0 ? 1 : cut.width[l - 1];
      const int32_t lowest = width == 1 ? own : width == cut.extent ? 0 : own / width * width;
      const int64_t first = std::max(lowest, cut.first[t]);
      const int64_t last = std::min(lowest + width - 1, cut.last[t]);
      const int64_t volume =
          std::min((last + 1) * cut.from_size, end) - std::max(first * cut.from_size, begin);
      (*pieces)[l] *= first > last ? 0 : static_cast<double>(last - first + 1);
      (*elements)[l] *= first > last ? 0 : static_cast<double>(volume);
    }
  }

  // Adds the needs of every device of the new placement.
  void AddNeeds() {
    const TensorType& type = to_.type;
    const MachineView& view = to_.view;
    const int rank = type.rank();
    std::vector<int64_t> at(rank, 0);
    int64_t first = to_.view.start;
    while (true) {
      for (int64_t c = 0; c < type.copies; ++c) {
        for (int64_t p = 0; p < type.partials; ++p) {
          AddNeed(
              static_cast<uint32_t>(first + view.OffsetOf(rank, c) + view.OffsetOf(rank + 1, p)),
              at);
        }
      }
      int i = rank - 1;
      for (; i >= 0; --i) {
        first -= view.OffsetOf(i, at[i]);
        if (++at[i] == type.dims[i].degree) at[i] = 0;
        first += view.OffsetOf(i, at[i]);
        if (at[i] > 0) break;
      }
      if (i < 0) return;
    }
  }

  void AddNeed(uint32_t device, const std::vector<int64_t>& at) {
    auto near = static_cast<uint32_t>(from_.view.start);
    std::array<int32_t, 24> digit;  // per axis
    for (size_t a = 0; a < axes_.size(); ++a) {
      const uint32_t value = device / axes_[a].stride % axes_[a].extent;
      digit[a] = static_cast<int32_t>(value);
      near += value * axes_[a].stride;
    }
    ByLevel pieces, elements;
    pieces.fill(1);
    elements.fill(whole_elements_);
    int64_t own_piece = 0;
    for (const CutDim& cut : cuts_) {
      const int32_t own = cut.axis < 0 ? 0 : digit[cut.axis];
      TimesDim(cut, at[cut.dim], own, &pieces, &elements);
      own_piece = own_piece * from_.type.dims[cut.dim].degree + own;
    }
    // A device without a piece is at least as far as the nearest owner.
    const int away = device == near ? -1 : levels_.cost.LevelBetween(device, near);
    for (int l = 0; l <= away; ++l) pieces[l] = elements[l] = 0;
    Fetch(device, own_piece, pieces, elements);
  }

  void Fetch(uint32_t device, int64_t own_piece, const ByLevel& pieces, const ByLevel& elements) {
    const double own = std::min(elements[0], piece_elements_ / static_cast<double>(group_size_));
    held_[own_piece] += elements[0];
    if (own >= elements[levels_.size()]) return;
    for (int l = 0; l < levels_.size(); ++l) {
      double fetched = elements[l + 1] - elements[l];
      auto sources = static_cast<int64_t>(pieces[l + 1] - pieces[l]);
      if (group_size_ > 1 && l == group_level_ && elements[0] > 0) {
        fetched += elements[0] - own;
        sources += group_size_ - 1;
      }
      load_.Ask(l, sources);
      Carry(device, l, fetched);
      // A shared link also carries what others fetch: as much as comes in.
      for (int k = 0; k < l; ++k) {
        if (!levels_[k].through) continue;
        Carry(device, k, fetched * (levels_[k].shared ? 2 : 1));
      }
    }
  }

  void Carry(uint32_t device, int l, double elements) {
    over_link_[l][device / static_cast<uint32_t>(levels_[l].users)] += elements;
  }

  const ReshardLevels& levels_;
  const Placement &from_, &to_;
  absl::InlinedVector<DeviceAxis, 6> axes_;  // digits of the old view, with extent above 1
  std::vector<CutDim> cuts_;
  double whole_elements_ = 1;  // of unsharded dims
  int64_t group_size_ = 1;
  int group_level_ = 0;
  double piece_elements_ = 0;
  std::vector<double> held_;  // per piece: elements that receivers have themselves
  std::vector<std::vector<double>> over_link_;  // per level and link: elements
  ReshardLoad load_;
};

}  // namespace

std::optional<MoveLine> ReshardByDevices(const ReshardLevels& levels, const Placement& from,
                                         const Placement& to) {
  return DeviceReshard(levels, from, to).Line();
}

}  // namespace isomer
