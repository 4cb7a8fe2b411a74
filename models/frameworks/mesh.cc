#include "models/frameworks/mesh.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

// Appends the axis of `kind` of so many coordinates, the outermost of which are `moments`.
void AddAxis(TaskAxis axis, int64_t extent, std::vector<TaskAxis>* axes) {
  axis.devices = extent / axis.moments;
  if (axis.devices > 1 || axis.moments > 1) axes->push_back(axis);
}

}  // namespace

absl::StatusOr<std::vector<TaskAxis>> TaskAxesOf(const Sharding& sharding,
                                                 const MachineView& view) {
  std::vector<TaskAxis> axes;
  const TensorType& output = sharding.outputs[0];
  const auto rank = static_cast<size_t>(output.rank());
  for (const OuterStride& outer : view.outer) {
    if (static_cast<size_t>(outer.axis) == rank) continue;
    return absl::UnimplementedError("a dim or partial sums in two strides");
  }
  for (size_t i = 0; i < rank; ++i) {
    const int lead = sharding.declaration.LeadOfOutputDim(0, static_cast<int>(i));
    if (lead < 0 || output.dims[i].degree == 1) continue;
    AddAxis({.dim = lead, .stride = view.strides[i], .moments = view.MomentsOfAxis(i)},
            output.dims[i].degree, &axes);
  }
  int64_t copy_moments = view.MomentsOfAxis(rank);
  for (const ViewDigit& digit : view.DigitsOf(rank, output.copies / copy_moments)) {
    AddAxis({.kind = TaskAxis::Kind::kCopies, .stride = digit.stride, .moments = copy_moments},
            digit.extent * copy_moments, &axes);
    copy_moments = 1;
  }
  if (copy_moments > 1) {
    AddAxis({.kind = TaskAxis::Kind::kCopies, .moments = copy_moments}, copy_moments, &axes);
  }
  // The coordinate among partials is mixed-radix: those of operands, then the sum dims.
  std::vector<std::pair<TaskAxis, int64_t>> parts;
  parts.push_back({{.kind = TaskAxis::Kind::kOperandPartials}, sharding.operand_partials});
  for (size_t v = 0; v < sharding.degrees.size(); ++v) {
    if (sharding.declaration.dims[v].kind != DimKind::kSum) continue;
    parts.push_back({{.dim = static_cast<int>(v)}, sharding.degrees[v]});
  }
  int64_t moments = view.MomentsOfAxis(rank + 1);
  for (auto& [axis, extent] : parts) {  // the slowest coordinates are micro-batches
    axis.moments = std::min(moments, extent);
    if (extent % axis.moments != 0 || moments % axis.moments != 0) {
      return absl::UnimplementedError("micro-batches that are a part of two dims");
    }
    moments /= axis.moments;
  }
  int64_t stride = view.strides[rank + 1];
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    part->first.stride = stride;
    AddAxis(part->first, part->second, &axes);
    stride *= part->second / part->first.moments;
  }
  return axes;
}

absl::StatusOr<Mesh> MeshOf(absl::Span<const TaskAxis> axes, int64_t num_devices) {
  std::set<int64_t> strides = {1, num_devices};
  for (const TaskAxis& axis : axes) {
    if (axis.devices == 1) continue;
    if (axis.stride < 1) return absl::UnimplementedError("strides that are not positive");
    strides.insert(axis.stride);
    strides.insert(axis.stride * axis.devices);
  }
  Mesh mesh;
  for (auto at = std::next(strides.rbegin()); at != strides.rend(); ++at) {
    const int64_t above = *std::prev(at);
    if (above % *at != 0) {
      return absl::UnimplementedError(
          absl::StrCat("strides of ", *at, " and ", above, " devices are no digits of one number"));
    }
    mesh.sizes.push_back(above / *at);
    mesh.strides.push_back(*at);
  }
  return mesh;
}

bool Covers(const TaskAxis& axis, const Mesh& mesh, int digit) {
  return axis.devices > 1 && mesh.strides[digit] >= axis.stride &&
         mesh.strides[digit] < axis.stride * axis.devices;
}

std::string PlacementsText(const MeshPlacements& placements) {
  std::vector<std::string> texts;
  for (const MeshPlacement& placement : placements) {
    texts.push_back(placement.kind == MeshPlacement::Kind::kReplicate ? "R"
                    : placement.kind == MeshPlacement::Kind::kPartial
                        ? "P"
                        : absl::StrCat("S", placement.dim));
  }
  return absl::StrCat("[", absl::StrJoin(texts, ", "), "]");
}

}  // namespace isomer
