// The cluster that a plan targets: devices of one or several kinds, connected by levels of links,
// or by links of any topology.
//
// Devices are numbered through the levels, innermost fastest: with levels (socket of 3, node of 2,
// cluster of 4), device 7 is the second GPU of the first socket of the second node.
//
// A level connects units of the level below. Every such unit has an up link and a down link there,
// or all the units of a parent share one link (`shared`). A message between two devices takes the
// links of the innermost level that contains both, and on its way those of inner levels that are
// `through`:
//
//   K80 node: pair (through) of 2, node (shared, through) of 2, cluster
//   device 0 to 1: pair0 up, pair0 down           through the switch of the pair
//   device 0 to 2: up, bus of the node, down      the bus is shared by all messages between pairs
//   device 0 to 4: up, bus, node 0 up, node 1 down, bus of node 1, down
//
// Links are numbered by arithmetic; there is no table over pairs of devices, except for machines
// given by named links (topology.h), which are small.
#ifndef ISOMER_OPTIMIZER_MACHINE_MACHINE_H_
#define ISOMER_OPTIMIZER_MACHINE_MACHINE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/machine/topology.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/support/digest.h"

namespace isomer {

struct DeviceKind {
  std::string name;
  double flops_per_us = 0;                     // float32 matrix products, as achieved
  std::map<DataType, double> flops_per_us_of;  // other data types, where they differ
  double fp8_flops_per_us = 0;                 // of operands in 8 bits; 0: there are none
  double memory_bytes_per_us = 0;              // as achieved
  int64_t memory_bytes = 0;
  double peak_fraction = 1;  // of the advertised rates, in the rates above
  // Of a GPU: that take tiles of products (product_efficiency.h); 0: all products are as fast.
  int64_t multiprocessors = 0;
  // Of the products' rate, what fused attention reaches with heads of 128, forward and backward; 0:
  // it is as fast as products, and skips nothing.
  double attention_fraction = 0, attention_backward_fraction = 0;
  double launch_us = 0;
  double host_bytes_per_us = 0;  // to or from host memory; 0: host memory is not used

  double FlopsPerUs(DataType dtype) const;
  // Of products in 8 bits of plans in bfloat16, whether or not there are faster ones.
  double Fp8FlopsPerUs() const {
    return std::max(fp8_flops_per_us, FlopsPerUs(DataType::kBFloat16));
  }
};
void AddToDigest(Digest* digest, const DeviceKind& kind);

// Minimum latency of NCCL in us, besides the kernel launch (protocol LL; src/graph/tuning.cc).
inline constexpr double kNcclStartUs = 6.6;

struct Machine {
  struct Level {
    std::string name;
    int64_t count = 1;        // connected units of the level below (devices, for the first)
    double bytes_per_us = 0;  // per connected unit and direction; shared: in total
    double latency_us = 0;    // per message
    bool shared = false;      // the connected units share one link
    bool through = false;     // messages that leave the unit also take these links
    bool reduces = false;     // the switch reduces in-network (NVLink SHARP)
    // Of connected units whose devices are of one kind, by its index in `kinds`, the links where
    // they are not those above: NVLink 3 beside NVLink 4.
    struct OfKind {
      double share = 1;      // of bytes_per_us, at most 1
      bool reduces = false;  // as above
    };
    std::map<int, OfKind> of_kind = {};
  };

  std::string name;
  std::vector<DeviceKind> kinds = std::vector<DeviceKind>(1);
  std::vector<Level> levels;  // innermost first; the last joins nodes
  // Unit u of those that level `kind_level` connects has devices of kinds[unit_kinds[u]],
  // cyclically when there are more units. Level -1: device by device. Empty: all of kinds[0].
  int kind_level = 0;
  std::vector<int> unit_kinds;
  bool nccl = false;        // NCCL does collectives (collective_cost.h) and messages
  bool one_stream = false;  // communication does not overlap compute
  // Named links, if the machine is given by these: levels then only group devices.
  Topology topology;

  int64_t num_devices() const;
  int64_t num_nodes() const { return levels.back().count; }
  int64_t devices_per_node() const { return num_devices() / num_nodes(); }
  // Devices in one unit of level `level`; level -1: one device.
  int64_t UnitSize(int level) const;
  // The innermost level whose unit contains both devices; -1 for a device and itself.
  int LevelBetween(int64_t a, int64_t b) const;

  int kind_index(int64_t device) const;
  const DeviceKind& kind(int64_t device) const { return kinds[kind_index(device)]; }
  std::vector<int> kinds_in_use() const;
  // Consecutive devices that are alike: any so many, from a multiple of it on, are of one kind.
  int64_t devices_alike() const;
  // Minimum over devices.
  int64_t memory_bytes() const;
  // What a device has beyond that.
  int64_t more_memory_bytes(int64_t device) const {
    return kind(device).memory_bytes - memory_bytes();
  }
  int64_t total_memory_bytes() const;
  // Whether all devices may use their hosts'.
  bool has_host_memory() const;
  // Maximum over devices.
  double launch_us() const;
  // "H100-SXM5-80GB", or the names of all kinds joined by " and ".
  std::string device_name() const;

  int num_links() const;
  Link link(LinkId id) const;
  // "node 3 up", "bus of node 3", "device 5 down".
  std::string LinkName(LinkId id) const;
  // The links of a message, in order; empty from a device to itself.
  LinkPath Path(int64_t from, int64_t to) const;

  // Startup us of a group of messages: a launch, and NCCL's minimum.
  double message_start_us() const { return launch_us() + (nccl ? kNcclStartUs : 0); }
  // Messages that a device sends, and receives, concurrently: NCCL has channels.
  int64_t messages_at_once() const { return nccl ? 8 : 1; }
  // Total latency in us of `messages` over links of level `level` to one device.
  double LatencyUs(int level, int64_t messages) const {
    const int64_t steps = (messages + messages_at_once() - 1) / messages_at_once();
    return static_cast<double>(steps) * levels[level].latency_us;
  }

  // "dgx_h100: 2 nodes of 4 H100-SXM5-80GB".
  std::string ToString() const;

 private:
  LinkPath PathThroughLevels(int64_t from, int64_t to) const;
};

void AddToDigest(Digest* digest, const Machine::Level::OfKind& of_kind);
void AddToDigest(Digest* digest, const Machine::Level& level);
void AddToDigest(Digest* digest, const Machine& machine);

inline constexpr int64_t kMaxDevices = 65536;
inline constexpr int64_t kMaxKinds = 64;

// Names of the machines under optimizer/machines/.
std::vector<std::string> MachinePresets();

// `spec` is the name of a preset or a machine file (text or binary), or several with their numbers
// of nodes, "dgx_h100:2+dgx_a100:2": one cluster of unlike nodes (joined_machine.h). `nodes` and
// `devices_per_node`, where not 0, override the file's; devices are distributed evenly over the
// units below the node, or placed in one of them if they fit. Errors are one line that names the
// file, and the level or link.
absl::StatusOr<Machine> LoadMachine(const std::string& spec, int64_t nodes = 0,
                                    int64_t devices_per_node = 0);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MACHINE_MACHINE_H_
