// What buffers of a schedule of classes are among all devices. Internal to pcg/schedule.
#ifndef ISOMER_PCG_SCHEDULE_SYMMETRY_CLASS_SIZES_H_
#define ISOMER_PCG_SCHEDULE_SYMMETRY_CLASS_SIZES_H_

#include <cstdint>
#include <vector>

#include "pcg/ir/plan.h"
#include "pcg/schedule/schedule.h"
#include "pcg/schedule/symmetry/device_classes.h"

namespace isomer {

class ClassSizes {
 public:
  // `all` and `reduced`: the graphs of the plan and of the classes' plan, node for node. All must
  // outlive this.
  ClassSizes(const DeviceClasses& classes, const MappedGraph& all, const MappedGraph& reduced);

  // ScheduleOptions::shrink: so that buckets are filled as among all devices.
  std::vector<int64_t> Shrink() const;
  // Parameters that are updated in parts here but cannot be cut into as many as there are copies
  // among all devices: sets the method that they get instead. True if there are any.
  bool KeepWhole(const Schedule& schedule, UpdateOptions* update) const;
  // The device, the shard and the box among all devices.
  void Resize(Buffer* buffer) const;

 private:
  // The shards of a node's outputs, where their numbers or sizes are not those among all devices.
  struct NodeShards {
    bool equal = true;
    std::vector<int32_t> shard;              // of all devices, per shard of the classes
    int64_t copies = 1, reduced_copies = 1;  // devices that have one
  };
  NodeShards ShardsOf(int id) const;
  // The coordinates among all devices, per coordinate of an axis here.
  std::vector<int64_t> Coordinates(int id, size_t axis) const;
  void ResizePart(const Box& whole, const Box& reduced_whole, const NodeShards& node,
                  Box* box) const;

  void ResizeSaved(const NodeShards& shards, Buffer* buffer) const;

  const DeviceClasses& classes_;
  const MappedGraph& all_;
  const MappedGraph& reduced_;
  std::vector<NodeShards> shards_;  // per node
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_SYMMETRY_CLASS_SIZES_H_
