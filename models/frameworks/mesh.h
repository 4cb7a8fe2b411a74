// The devices of a plan as a mesh of digits, and where a tensor is on it: what PyTorch's DTensor
// speaks of.
//
// A machine view walks over devices in strides, from which come the digits of a device's number:
// with strides 1 and 2 of 4 devices, device = 2 * digit0 + digit1. A digit along which no call is
// split tells the stages of a pipeline apart.
#ifndef ISOMER_MODELS_FRAMEWORKS_MESH_H_
#define ISOMER_MODELS_FRAMEWORKS_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/machine_view.h"
#include "pcg/ir/type_inference.h"

namespace isomer {

// Digits of the numbers of devices, outermost first; the product of sizes is the number of devices.
struct Mesh {
  std::vector<int64_t> sizes, strides;
  int rank() const { return static_cast<int>(sizes.size()); }
  // The digit of `device`.
  int64_t Digit(int64_t device, int digit) const { return device / strides[digit] % sizes[digit]; }
};

// What of a tensor the devices along a digit have.
struct MeshPlacement {
  enum class Kind { kReplicate, kShard, kPartial };
  Kind kind = Kind::kReplicate;
  int dim = 0;  // of a shard
  friend bool operator==(const MeshPlacement&, const MeshPlacement&) = default;
  friend auto operator<=>(const MeshPlacement&, const MeshPlacement&) = default;
  static MeshPlacement Shard(int dim) { return {Kind::kShard, dim}; }
  static MeshPlacement Partial() { return {Kind::kPartial, 0}; }
};
// Per digit of the mesh.
using MeshPlacements = std::vector<MeshPlacement>;
// "[S0, P]": R, S and the dim, or P for each digit.
std::string PlacementsText(const MeshPlacements& placements);

// A part of a call's iteration space along which its tasks lie on devices `stride` apart, and one
// after the other in `moments` micro-batches.
struct TaskAxis {
  enum class Kind { kDim, kOperandPartials, kCopies };
  Kind kind = Kind::kDim;
  int dim = -1;  // of the iteration space
  int64_t devices = 1, stride = 0, moments = 1;
};

// The axes of a call's tasks that have more than one coordinate. Errors: micro-batches that are no
// whole part of an axis.
absl::StatusOr<std::vector<TaskAxis>> TaskAxesOf(const Sharding& sharding, const MachineView& view);

// The coarsest mesh of which every axis is a run of digits. Errors: "strides of 2 and 3 are no
// digits of one number".
absl::StatusOr<Mesh> MeshOf(absl::Span<const TaskAxis> axes, int64_t num_devices);

// Whether `digit` is one of the axis.
bool Covers(const TaskAxis& axis, const Mesh& mesh, int digit);

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_MESH_H_
