// The cluster that a plan is made for: devices of one or several kinds, joined by levels of links,
// or by links of any topology.
//
// Devices are numbered through the levels, innermost fastest: with levels (socket of 3, node of 2,
// cluster of 4), device 7 is the second GPU of the first socket of the second node.
//
// A level joins units of the level below. Every unit that it joins has an up link and a down link
// there, or all the units of a parent share one link (`shared`). A message between two devices
// takes the links of the level that first holds both, and on its way those of inner levels that
// are `through`:
//
//   K80 node: pair (through) of 2, node (shared, through) of 2, cluster
//   device 0 to 1: pair0 up, pair0 down           through the switch of the pair
//   device 0 to 2: up, bus of the node, down      the bus is all messages' between pairs
//   device 0 to 4: up, bus, node 0 up, node 1 down, bus of node 1, down
//
// Links are numbered by arithmetic; nothing here is a table over pairs of devices, but for machines
// that are described by names (topology.h), which are small.
#ifndef ISOMER_OPTIMIZER_MACHINE_MACHINE_H_
#define ISOMER_OPTIMIZER_MACHINE_MACHINE_H_

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
  double flops_per_us = 0;                     // float32 matrix products, as reached
  std::map<DataType, double> flops_per_us_of;  // of other data types, where they differ
  double memory_bytes_per_us = 0;
  int64_t memory_bytes = 0;
  double launch_us = 0;
  double host_bytes_per_us = 0;  // to the host's memory, or from it; 0: it is not used

  double FlopsPerUs(DataType dtype) const;
};
void AddToDigest(Digest* digest, const DeviceKind& kind);

// What NCCL takes beyond the launch of a kernel, at least (protocol LL; src/graph/tuning.cc).
inline constexpr double kNcclStartUs = 6.6;

struct Machine {
  struct Level {
    std::string name;
    int64_t count = 1;        // units of the level below (devices, for the first) that it joins
    double bytes_per_us = 0;  // per joined unit and direction; shared: of all of them together
    double latency_us = 0;    // of one message
    bool shared = false;      // the units joined have one link in common
    bool through = false;     // messages that leave the unit take these links, too
    bool reduces = false;     // the switch adds up what passes it
  };

  std::string name;
  std::vector<DeviceKind> kinds = std::vector<DeviceKind>(1);
  std::vector<Level> levels;  // innermost first; the last joins nodes
  // Unit u of those that level `kind_level` joins has devices of kinds[unit_kinds[u]], from the
  // start again when there are more units. Level -1: device by device. Empty: all of kinds[0].
  int kind_level = 0;
  std::vector<int> unit_kinds;
  bool nccl = false;        // collectives are NCCL's (collective_cost.h), and messages, too
  bool one_stream = false;  // a device that communicates does not compute meanwhile
  // Links by name, where the machine is described so: levels then only group devices.
  Topology topology;

  int64_t num_devices() const;
  int64_t num_nodes() const { return levels.back().count; }
  int64_t devices_per_node() const { return num_devices() / num_nodes(); }
  // Devices in one unit of level `level`; level -1: one device.
  int64_t UnitSize(int level) const;
  // The level whose unit is the first to hold both devices; -1 for one device and itself.
  int LevelBetween(int64_t a, int64_t b) const;

  int kind_index(int64_t device) const;
  const DeviceKind& kind(int64_t device) const { return kinds[kind_index(device)]; }
  std::vector<int> kinds_in_use() const;
  // The least memory of any device.
  int64_t memory_bytes() const;
  // The longest launch of any device.
  double launch_us() const;
  // "H100-SXM5-80GB", or the names of all kinds joined by " and ".
  std::string device_name() const;

  int num_links() const;
  Link link(LinkId id) const;
  // "node 3 up", "bus of node 3", "device 5 down".
  std::string LinkName(LinkId id) const;
  // The links that a message takes, in order; none from a device to itself.
  LinkPath Path(int64_t from, int64_t to) const;

  // What a group of messages takes before the first of them: a launch, and NCCL's own, as of its
  // quickest collective.
  double message_start_us() const { return launch_us() + (nccl ? kNcclStartUs : 0); }
  // A device sends, and receives, so many messages side by side: NCCL does on its channels.
  int64_t messages_at_once() const { return nccl ? 8 : 1; }
  // The latencies of `messages` over links of level `level` to one device.
  double LatencyUs(int level, int64_t messages) const {
    const int64_t steps = (messages + messages_at_once() - 1) / messages_at_once();
    return static_cast<double>(steps) * levels[level].latency_us;
  }

  // "dgx_h100: 2 nodes of 4 H100-SXM5-80GB".
  std::string ToString() const;

 private:
  LinkPath PathThroughLevels(int64_t from, int64_t to) const;
};

void AddToDigest(Digest* digest, const Machine::Level& level);
void AddToDigest(Digest* digest, const Machine& machine);

inline constexpr int64_t kMaxDevices = 65536;

// Names of the machines under optimizer/machines/.
std::vector<std::string> MachinePresets();

// `spec` is the name of a preset or a machine file (text or binary). `nodes` and
// `devices_per_node` override the file's where they are not 0; devices are dealt evenly to the
// units below the node, or to one of them if they fit. Errors are one line that names the file,
// and the level or link.
absl::StatusOr<Machine> LoadMachine(const std::string& spec, int64_t nodes = 0,
                                    int64_t devices_per_node = 0);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MACHINE_MACHINE_H_
