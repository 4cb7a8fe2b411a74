#include "pcg/schedule/symmetry/class_sizes.h"

#include <algorithm>
#include <numeric>

#include "pcg/ir/box.h"
#include "pcg/ir/weight_cuts.h"
#include "pcg/profile/work.h"
#include "pcg/schedule/lowering/weight_parts.h"

namespace isomer {

ClassSizes::ClassSizes(const DeviceClasses& classes, const MappedGraph& all,
                       const MappedGraph& reduced)
    : classes_(classes), all_(all), reduced_(reduced) {
  for (int id = 0; id < all.graph.num_nodes(); ++id) shards_.push_back(ShardsOf(id));
}

std::vector<int64_t> ClassSizes::Coordinates(int id, size_t axis) const {
  const int64_t moments = reduced_.views[id].MomentsOfAxis(axis);
  const int64_t extent = AxisExtents(reduced_.graph.node({id}).outputs[0])[axis];
  const int64_t on_devices = extent / moments;
  const int64_t all_on_devices =
      AxisExtents(all_.graph.node({id}).outputs[0])[axis] / all_.views[id].MomentsOfAxis(axis);
  std::vector<int64_t> coordinates;
  for (int64_t c = 0; c < extent; ++c) {
    // Axes stride over whole digits: what they add to a device's number are values of these.
    const int64_t step = classes_.DeviceOf(reduced_.views[id].OffsetOf(axis, c % on_devices));
    const int64_t place = all_.views[id].CoordinateAt(axis, step);
    coordinates.push_back(c / on_devices * all_on_devices + place);
  }
  return coordinates;
}

ClassSizes::NodeShards ClassSizes::ShardsOf(int id) const {
  NodeShards node;
  const std::vector<TensorType>& outputs = all_.graph.node({id}).outputs;
  if (outputs.empty() || outputs == reduced_.graph.node({id}).outputs) return node;
  node.equal = false;
  const std::vector<int64_t> extents = AxisExtents(outputs[0]);
  node.shard = {0};
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    std::vector<int32_t> next;
    const std::vector<int64_t> coordinates = Coordinates(id, axis);
    for (int32_t before : node.shard) {
      for (int64_t c : coordinates) {
        next.push_back(static_cast<int32_t>(before * extents[axis] + c));
      }
    }
    node.shard = std::move(next);
  }
  const size_t copies = extents.size() - 2;
  node.copies = outputs[0].copies / all_.views[id].MomentsOfAxis(copies);
  node.reduced_copies =
      reduced_.graph.node({id}).outputs[0].copies / reduced_.views[id].MomentsOfAxis(copies);
  return node;
}

std::vector<int64_t> ClassSizes::Shrink() const {
  std::vector<int64_t> shrink(shards_.size(), 1);
  for (size_t id = 0; id < shards_.size(); ++id) {
    if (shards_[id].equal) continue;
    const NodeId node{static_cast<int32_t>(id)};
    shrink[id] = reduced_.graph.node(node).outputs[0].LocalElements() /
                 all_.graph.node(node).outputs[0].LocalElements();
  }
  return shrink;
}

bool ClassSizes::KeepWhole(const Schedule& schedule, UpdateOptions* update) const {
  bool any = false;
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (parameter.update == UpdateMethod::kAllReduce || parameter.update == UpdateMethod::kOwner) {
      continue;
    }
    const NodeShards& node = shards_[parameter.tensor.node.value];
    const TensorType& type = all_.graph.type(parameter.tensor);
    const Box box = ShardBox(type, std::vector<int64_t>(type.rank(), 0));
    if (node.equal || !CutsOf(box.shape, node.copies).empty()) continue;
    update->methods[all_.graph.node(parameter.leaves[0]).name] = UpdateMethod::kAllReduce;
    any = true;
  }
  return any;
}

// What cannot be cut into so many parts has been kept whole (KeepWhole).
void ClassSizes::ResizePart(const Box& whole, const Box& reduced_whole, const NodeShards& node,
                            Box* box) const {
  const int64_t reduced_parts = reduced_whole.Volume() / std::max<int64_t>(box->Volume(), 1);
  if (reduced_parts <= 1) {
    *box = whole;
    return;
  }
  const int64_t part = PartOf(reduced_whole, *box, reduced_parts);
  const int64_t parts = reduced_parts * node.copies / node.reduced_copies;
  *box = Slice(whole, part, parts);
}

// There is as much for each element of the output, or each row of operand 0, none of which is
// split.
void ClassSizes::ResizeSaved(const NodeShards& shards, Buffer* buffer) const {
  const NodeId id = buffer->tensor.node;
  const auto volume_in = [id](const MappedGraph& mapped) {
    const Node& node = mapped.graph.node(id);
    return (SavesPreActivation(node.op) ? node.outputs[0] : mapped.graph.type(node.inputs[0]))
        .LocalElements();
  };
  buffer->shard = shards.shard[buffer->shard];
  const int64_t all = volume_in(all_), reduced = volume_in(reduced_),
                common = std::gcd(all, reduced);
  buffer->box.shape[0] = buffer->box.shape[0] / (reduced / common) * (all / common);
}

void ClassSizes::Resize(Buffer* buffer) const {
  buffer->device = static_cast<int32_t>(classes_.DeviceOf(buffer->device));
  const NodeShards& node = shards_[buffer->tensor.node.value];
  if (node.equal) return;
  const TensorType& type = all_.graph.type(buffer->tensor);
  const TensorType& reduced = reduced_.graph.type(buffer->tensor);
  if (buffer->role == BufferRole::kSaved) return ResizeSaved(node, buffer);
  const Box before = ShardBox(reduced, CoordinatesOfShard(reduced, buffer->shard).dims);
  buffer->shard = node.shard[buffer->shard];
  Box whole = ShardBox(type, CoordinatesOfShard(type, buffer->shard).dims);
  const bool stored = buffer->role != BufferRole::kReceived && Covers(before, buffer->box);
  if (stored) {
    ResizePart(whole, before, node, &buffer->box);
    return;
  }
  // Where a box has a halo, the dim is cut into as many pieces here.
  for (size_t i = 0; i < whole.shape.size(); ++i) {
    if (buffer->box.shape[i] == before.shape[i] && buffer->box.origin[i] == before.origin[i]) {
      buffer->box.origin[i] = whole.origin[i];
      buffer->box.shape[i] = whole.shape[i];
    }
  }
}

}  // namespace isomer
