#include "pcg/ir/machine_view.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {

std::string MachineView::ToString() const {
  std::string text = absl::StrCat("start ", start, " strides [", absl::StrJoin(strides, ","), "]");
  if (!moments.empty()) absl::StrAppend(&text, " moments [", absl::StrJoin(moments, ","), "]");
  for (const OuterStride& o : outer) {
    absl::StrAppend(&text, " axis ", o.axis, " in periods of ", o.period, " every ", o.stride);
  }
  return text;
}

const OuterStride* MachineView::OuterOf(size_t axis) const {
  for (const OuterStride& o : outer) {
    if (static_cast<size_t>(o.axis) == axis) return &o;
  }
  return nullptr;
}

int64_t MachineView::OffsetOf(size_t axis, int64_t coordinate) const {
  const OuterStride* const o = OuterOf(axis);
  if (o == nullptr) return coordinate * strides[axis];
  return coordinate % o->period * strides[axis] + coordinate / o->period * o->stride;
}

int64_t MachineView::CoordinateAt(size_t axis, int64_t offset) const {
  const OuterStride* const o = OuterOf(axis);
  if (o == nullptr) return strides[axis] == 0 ? 0 : offset / strides[axis];
  return offset / o->stride * o->period + offset % o->stride / strides[axis];
}

absl::InlinedVector<ViewDigit, 2> MachineView::DigitsOf(size_t axis, int64_t devices) const {
  const OuterStride* const o = OuterOf(axis);
  if (devices == 1) return {};
  if (o == nullptr) return {{strides[axis], devices}};
  return {{strides[axis], o->period}, {o->stride, devices / o->period}};
}

bool CoarsenAxis(size_t axis, int64_t degree, MachineView* view) {
  const OuterStride* const o = view->OuterOf(axis);
  if (o == nullptr || o->period % degree == 0) {
    view->strides[axis] *= degree;
    if (o == nullptr) return true;
    OuterStride& kept = view->outer[static_cast<size_t>(o - view->outer.data())];
    kept.period /= degree;
    if (kept.period > 1) return true;
    view->strides[axis] = kept.stride;
  } else {
    if (degree % o->period != 0) return false;
    view->strides[axis] = o->stride * (degree / o->period);
  }
  view->outer.erase(view->outer.begin() + (o - view->outer.data()));
  return true;
}

MachineView RowMajorView(const TensorType& type) {
  MachineView view;
  view.strides.assign(type.rank() + 2, 0);
  int64_t stride = 1;
  auto next = [&stride](int64_t degree) {
    const int64_t own = degree == 1 ? 0 : stride;
    stride *= degree;
    return own;
  };
  view.strides[type.rank() + 1] = next(type.partials);
  view.strides[type.rank()] = next(type.copies);
  for (int i = type.rank() - 1; i >= 0; --i) view.strides[i] = next(type.dims[i].degree);
  return view;
}

std::vector<int64_t> AxisExtents(const TensorType& type) {
  std::vector<int64_t> extents;
  for (const Dim& dim : type.dims) extents.push_back(dim.degree);
  extents.push_back(type.copies);
  extents.push_back(type.partials);
  return extents;
}

namespace {

// How many devices each axis walks over.
std::vector<int64_t> DeviceExtents(const MachineView& view, const TensorType& type) {
  std::vector<int64_t> extents = AxisExtents(type);
  for (size_t axis = 0; axis < extents.size(); ++axis) extents[axis] /= view.MomentsOfAxis(axis);
  return extents;
}

// start + sum of the axes' offsets, in row-major order of coordinates below `extents`.
std::vector<int64_t> Places(const MachineView& view, const std::vector<int64_t>& extents) {
  std::vector<int64_t> places = {view.start};
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    std::vector<int64_t> next;
    for (int64_t place : places) {
      for (int64_t i = 0; i < extents[axis]; ++i) next.push_back(place + view.OffsetOf(axis, i));
    }
    places = std::move(next);
  }
  return places;
}

// The last device less the first, if each axis steps over all that the smaller ones reach, so that
// no two tasks meet; the usual case, seen without a list of all tasks.
std::optional<int64_t> ReachOfNestedAxes(const MachineView& view,
                                         const std::vector<int64_t>& extents) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    for (const ViewDigit& digit : view.DigitsOf(axis, extents[axis])) {
      axes.emplace_back(digit.stride, digit.extent);
    }
  }
  std::sort(axes.begin(), axes.end());
  int64_t reach = 0;
  for (const auto& [stride, extent] : axes) {
    if (stride <= reach) return std::nullopt;
    reach += stride * (extent - 1);
  }
  return reach;
}

}  // namespace

std::vector<int64_t> DevicesOf(const MachineView& view, const TensorType& type) {
  const std::vector<int64_t> extents = AxisExtents(type);
  if (view.moments.empty()) return Places(view, extents);
  std::vector<int64_t> devices = {view.start};
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    std::vector<int64_t> next;
    for (int64_t device : devices) {
      for (int64_t i = 0; i < extents[axis]; ++i) {
        next.push_back(device + view.OffsetOf(axis, i % (extents[axis] / view.moments[axis])));
      }
    }
    devices = std::move(next);
  }
  return devices;
}

int64_t LastDevice(const MachineView& view, const TensorType& type) {
  const std::vector<int64_t> extents = AxisExtents(type);
  int64_t device = view.start;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    device += view.OffsetOf(axis, extents[axis] / view.MomentsOfAxis(axis) - 1);
  }
  return device;
}

int64_t NumMoments(const MachineView& view) {
  int64_t product = 1;
  for (int64_t moments : view.moments) product *= moments;
  return product;
}

std::vector<int64_t> MomentsOf(const MachineView& view, const TensorType& type) {
  const std::vector<int64_t> extents = AxisExtents(type);
  std::vector<int64_t> moments = {0};
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const int64_t own = view.MomentsOfAxis(axis);
    std::vector<int64_t> next;
    for (int64_t moment : moments) {
      const int64_t devices = extents[axis] / own;
      for (int64_t i = 0; i < extents[axis]; ++i) next.push_back(moment * own + i / devices);
    }
    moments = std::move(next);
  }
  return moments;
}

absl::StatusOr<int64_t> NumMicroBatches(const Graph& graph, absl::Span<const MachineView> views) {
  if (static_cast<int>(views.size()) != graph.num_nodes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(views.size(), " machine views for ", graph.num_nodes(), " nodes"));
  }
  int64_t found = 1;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const int64_t moments = NumMoments(views[id]);
    if (moments == 1 || moments == found) continue;
    if (found != 1) {
      return absl::InvalidArgumentError(absl::StrCat(graph.Label({id}), ": machine view (",
                                                     views[id].ToString(), ") has ", moments,
                                                     " micro-batches, and others ", found));
    }
    found = moments;
  }
  return found;
}

absl::Status ValidateView(const MachineView& view, const TensorType& type, int64_t num_devices) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("machine view (", view.ToString(), ") of ", type.ToString(), ": ", what));
  };
  const size_t axes = static_cast<size_t>(type.rank()) + 2;
  if (view.strides.size() != axes) return error(absl::StrCat("needs ", axes, " strides"));
  if (!view.moments.empty()) {
    const std::vector<int64_t> extents = AxisExtents(type);
    if (view.moments.size() != axes) return error(absl::StrCat("needs ", axes, " moments or none"));
    for (size_t axis = 0; axis < axes; ++axis) {
      if (view.moments[axis] < 1 || extents[axis] % view.moments[axis] != 0) {
        return error(absl::StrCat(view.moments[axis], " moments of an axis of ", extents[axis]));
      }
    }
  }
  const std::vector<int64_t> extents = DeviceExtents(view, type);
  for (size_t i = 0; i < view.outer.size(); ++i) {
    const OuterStride& o = view.outer[i];
    const bool in_order = i == 0 ? o.axis >= 0 : o.axis > view.outer[i - 1].axis;
    if (!in_order || o.axis >= static_cast<int>(axes)) {
      return error("outer strides of axes that are not there or not in order");
    }
    if (o.period < 2 || extents[o.axis] % o.period != 0 || extents[o.axis] == o.period) {
      return error(
          absl::StrCat("periods of ", o.period, " of an axis over ", extents[o.axis], " devices"));
    }
    const int64_t stride = view.strides[o.axis];
    if (stride < 1 || o.stride > num_devices || o.stride / o.period < stride ||
        o.stride == stride * o.period) {
      return error(absl::StrCat("an outer stride of ", o.stride, " for periods of ", o.period,
                                " devices ", stride, " apart"));
    }
  }
  const int64_t tasks = type.NumShards() / NumMoments(view);
  if (tasks > num_devices) {
    return error(absl::StrCat(tasks, " tasks on ", num_devices, " devices"));
  }
  // Bounded before anything is computed with them, so that sums cannot overflow.
  const auto outside = [&](int64_t value) { return value < -num_devices || value > num_devices; };
  if (outside(view.start) || std::any_of(view.strides.begin(), view.strides.end(), outside)) {
    return error(absl::StrCat("leaves the machine of ", num_devices, " devices"));
  }
  if (const std::optional<int64_t> reach = ReachOfNestedAxes(view, extents); reach.has_value()) {
    if (view.start >= 0 && view.start + *reach < num_devices) return absl::OkStatus();
    return error(absl::StrCat("leaves the machine of ", num_devices, " devices"));
  }
  std::vector<int64_t> devices = Places(view, extents);
  std::sort(devices.begin(), devices.end());
  if (devices.front() < 0 || devices.back() >= num_devices) {
    return error(absl::StrCat("leaves the machine of ", num_devices, " devices"));
  }
  if (std::adjacent_find(devices.begin(), devices.end()) != devices.end()) {
    return error("two tasks share a device");
  }
  return absl::OkStatus();
}

}  // namespace isomer
