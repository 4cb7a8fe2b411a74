// Which device runs which task of a node, and at which moment of a step.
#ifndef ISOMER_PCG_IR_MACHINE_VIEW_H_
#define ISOMER_PCG_IR_MACHINE_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/graph.h"

namespace isomer {

// The devices of a node's tasks. Tasks are the shards of the node's output 0: one axis for each dim
// of degree > 1 ... in the order [dim 0, dim 1, .., copies, partials]; each axis has a stride, so
//     device(task) = start + sum of (coordinate % (degree / moments)) * stride.
// Devices are numbered through the levels of the machine, innermost fastest, so a stride of the
// number of devices per node walks over nodes.
//
// A micro-batch is a shard in time. Of an axis of degree n * d with n moments, d neighbours are one
// micro-batch, on d devices: data parallelism over d devices and n micro-batches is a batch dim of
// degree n * d, and nothing but the view tells the two apart. The moment of a task is
//     coordinate / (degree / moments)
// (row-major over axes if several have moments). So a micro-batch is the same samples however many
// devices share it out: calls that are split otherwise work on the same ones at the same moment.
// Copies of a tensor at several moments of a device are one buffer: a weight with d * n copies is
// kept d times.
//
// An axis may walk over devices in two strides, as copies of a tensor do that is split over the
// devices between them: `period` steps of its stride, again and again, each time an outer stride
// further. On 2 x 4 x 2 devices, batch x sequence x heads, a table that is split in the sequence
// has its 4 copies on devices 0, 1, 8 and 9: stride 1, a period of 2, an outer stride of 8.
struct OuterStride {
  int axis = 0;
  int64_t period = 1, stride = 0;
  friend bool operator==(const OuterStride&, const OuterStride&) = default;
};

// Devices of an axis that are `stride` apart.
struct ViewDigit {
  int64_t stride = 0, extent = 1;
};

struct MachineView {
  int64_t start = 0;
  std::vector<int64_t> strides;         // rank + 2 entries: dims.., copies, partials
  std::vector<int64_t> moments = {};    // per axis, like strides; empty: 1 everywhere
  std::vector<OuterStride> outer = {};  // of axes that have one, ascending
  int64_t MomentsOfAxis(size_t axis) const { return moments.empty() ? 1 : moments[axis]; }
  // nullptr: the axis has one stride.
  const OuterStride* OuterOf(size_t axis) const;
  // How far from the first device of `axis` the device of a coordinate is.
  int64_t OffsetOf(size_t axis, int64_t coordinate) const;
  // The coordinate whose device is so far from the first. REQUIRES: there is one.
  int64_t CoordinateAt(size_t axis, int64_t offset) const;
  // Of an axis over so many devices, innermost first; none of one device.
  absl::InlinedVector<ViewDigit, 2> DigitsOf(size_t axis, int64_t devices) const;
  friend bool operator==(const MachineView&, const MachineView&) = default;
  std::string ToString() const;
};

// Lets `axis` keep the first of every `degree` neighbouring devices. False, and `view` is as it
// was: its strides cannot say so.
bool CoarsenAxis(size_t axis, int64_t degree, MachineView* view);

// Shard i, in row-major order of [dims.., copies, partials], on device i.
MachineView RowMajorView(const TensorType& type);

// How many shards each axis of a view has: degrees of dims.., copies, partials.
std::vector<int64_t> AxisExtents(const TensorType& type);

// Device of every shard, in row-major order of [dims.., copies, partials].
std::vector<int64_t> DevicesOf(const MachineView& view, const TensorType& type);

// The greatest of them, without making the list.
int64_t LastDevice(const MachineView& view, const TensorType& type);

// How many moments there are, and that of every shard, in the same order.
int64_t NumMoments(const MachineView& view);
std::vector<int64_t> MomentsOf(const MachineView& view, const TensorType& type);

// How many micro-batches a graph with these views works through: 1 or more; the views that have
// moments at all agree on it, or else that is the error, naming the node; so are views of another
// number than nodes.
absl::StatusOr<int64_t> NumMicroBatches(const Graph& graph, absl::Span<const MachineView> views);

// Ok if the view has rank+2 strides, and moments none or rank+2 that divide the degrees, outer
// strides lie beyond the periods that they repeat, every task's device is in [0, num_devices), and
// no two tasks share a device and a moment.
absl::Status ValidateView(const MachineView& view, const TensorType& type, int64_t num_devices);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_MACHINE_VIEW_H_
