#include "optimizer/reshard_by_devices.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "pcg/machine_view.h"

namespace isomer {
namespace {

// By level, and for what a device holds itself (place 0): up to level l, place l + 1.
using ByLevel = std::array<double, ReshardLevels::kMost + 1>;

struct ViewAxis {
  int axis;  // of the view
  int64_t stride, extent;
};

class DeviceReshard {
 public:
  DeviceReshard(const ReshardLevels& levels, const Placement& from, const Placement& to)
      : levels_(levels), from_(from), to_(to) {}

  std::optional<MoveLine> Line() {
    if (levels_.size() > ReshardLevels::kMost || !IsMadeOfDigits()) return std::nullopt;
    const int rank = from_.type.rank();
    group_size_ = from_.type.partials / to_.type.partials;
    piece_elements_ = static_cast<double>(from_.type.LocalElements());
    if (group_size_ > 1) {
      const DeviceGroup group{from_.view.start, from_.view.strides.back(), group_size_};
      group_level_ = std::max(0, levels_.cost.LevelBetween(group.start, group.last()));
    }
    const int64_t repeats = from_.type.copies * from_.type.partials;
    held_.assign(from_.type.NumShards() / repeats, 0);
    for (int l = 0; l < levels_.size(); ++l) {
      over_link_.emplace_back(levels_.num_devices / levels_[l].users, 0.0);
    }
    FindCuts();
    std::vector<int64_t> at(rank, 0);
    const std::vector<int64_t> devices = DevicesOf(to_.view, to_.type);
    const int64_t askers = to_.type.copies * to_.type.partials;
    for (size_t s = 0; s < devices.size(); s += askers) {
      for (int64_t k = 0; k < askers; ++k) AddNeed(devices[s + k], at);
      for (int i = rank - 1; i >= 0 && ++at[i] == to_.type.dims[i].degree; --i) at[i] = 0;
    }
    for (int l = 0; l < levels_.size(); ++l) {
      load_.Carry(l, *std::max_element(over_link_[l].begin(), over_link_[l].end()));
    }
    // Every element of a piece is asked for once for each copy.
    const double least_held = *std::min_element(held_.begin(), held_.end());
    const double asked = piece_elements_ * static_cast<double>(askers) - least_held;
    load_.outbound = std::min(piece_elements_, asked) / static_cast<double>(repeats);
    return load_.Line(levels_);
  }

 private:
  // Strides and reaches of the old axes, and units of the machine, are multiples of each other.
  bool IsMadeOfDigits() {
    const std::vector<int64_t> extents = AxisExtents(from_.type);
    absl::InlinedVector<int64_t, 24> borders;
    for (const auto& level : levels_.levels) borders.push_back(level.unit);
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (extents[axis] == 1) continue;
      const int64_t stride = from_.view.strides[axis];
      if (stride < 1 || from_.view.start / stride % extents[axis] != 0) return false;
      axes_.push_back({static_cast<int>(axis), stride, extents[axis]});
      borders.push_back(stride);
      borders.push_back(stride * extents[axis]);
    }
    std::sort(borders.begin(), borders.end());
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      if (borders[i + 1] % borders[i] != 0) return false;
    }
    return borders.back() == levels_.num_devices;
  }

  // A dim that either placement cuts.
  struct CutDim {
    int dim;
    int axis = -1;                                    // in axes_
    int64_t from_size, to_size;                       // of a piece
    std::array<int32_t, ReshardLevels::kMost> width;  // pieces side by side in a unit
    std::vector<int32_t> first, last;                 // per new piece: the old ones that overlap it
  };

  void FindCuts() {
    for (int i = 0; i < from_.type.rank(); ++i) {
      const Dim &f = from_.type.dims[i], &n = to_.type.dims[i];
      if (f.degree == 1 && n.degree == 1) {
        whole_elements_ *= static_cast<double>(f.size);
        continue;
      }
      CutDim cut{i, -1, f.size / f.degree, n.size / n.degree, {}, {}, {}};
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
      for (int64_t t = 0; t < n.degree; ++t) {
        cut.first.push_back(static_cast<int32_t>(t * cut.to_size / cut.from_size));
        cut.last.push_back(static_cast<int32_t>(((t + 1) * cut.to_size - 1) / cut.from_size));
      }
      cuts_.push_back(std::move(cut));
    }
  }

  // Multiplies `pieces` and `elements` by what a dim contributes: the pieces that overlap piece `t`
  // of the new dim, by how far they are. The device nearest to the one that needs them has piece
  // `own`; what is in one unit with it are neighbours of that piece.
  void TimesDim(const CutDim& cut, int64_t t, int32_t own, ByLevel* pieces,
                ByLevel* elements) const {
    const int64_t begin = t * cut.to_size, end = begin + cut.to_size;
    for (int l = 0; l <= levels_.size(); ++l) {
      const int32_t width = l == 0 ? 1 : cut.width[l - 1];
      const int32_t lowest = width == 1 ? own : own / width * width;
      const int64_t first = std::max(lowest, cut.first[t]);
      const int64_t last = std::min(lowest + width - 1, cut.last[t]);
      const int64_t volume =
          std::min((last + 1) * cut.from_size, end) - std::max(first * cut.from_size, begin);
      (*pieces)[l] *= first > last ? 0 : static_cast<double>(last - first + 1);
      (*elements)[l] *= first > last ? 0 : static_cast<double>(volume);
    }
  }

  void AddNeed(int64_t device, const std::vector<int64_t>& at) {
    int64_t near = from_.view.start;
    std::array<int32_t, 24> digit;  // per axis
    for (size_t a = 0; a < axes_.size(); ++a) {
      digit[a] = static_cast<int32_t>(device / axes_[a].stride % axes_[a].extent);
      near += digit[a] * axes_[a].stride;
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
    // Devices that hold nothing have it at least as far as the nearest that does.
    const int away = levels_.cost.LevelBetween(device, near);
    for (int l = 0; l <= away; ++l) pieces[l] = elements[l] = 0;
    Fetch(device, own_piece, pieces, elements);
  }

  void Fetch(int64_t device, int64_t own_piece, const ByLevel& pieces, const ByLevel& elements) {
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
      over_link_[l][device / levels_[l].users] += fetched;
      // What others fetch passes a shared link, too: as much as comes in.
      for (int k = 0; k < l; ++k) {
        if (!levels_[k].through) continue;
        over_link_[k][device / levels_[k].users] += fetched * (levels_[k].shared ? 2 : 1);
      }
    }
  }

  const ReshardLevels& levels_;
  const Placement &from_, &to_;
  absl::InlinedVector<ViewAxis, 6> axes_;  // of the old view that vary
  std::vector<CutDim> cuts_;
  double whole_elements_ = 1;  // of the dims that neither cuts
  int64_t group_size_ = 1;
  int group_level_ = 0;
  double piece_elements_ = 0;
  std::vector<double> held_;  // per piece: elements that devices that need it hold themselves
  std::vector<std::vector<double>> over_link_;  // per level and link: elements
  ReshardLoad load_;
};

}  // namespace

std::optional<MoveLine> ReshardByDevices(const ReshardLevels& levels, const Placement& from,
                                         const Placement& to) {
  return DeviceReshard(levels, from, to).Line();
}

}  // namespace isomer
