// The cluster that a plan is made for: devices of one kind, joined by levels of links.
//
// Devices are numbered through the levels, innermost fastest: with levels (socket of 3, node of 2,
// cluster of 4), device 7 is the second GPU of the first socket of the second node.
#ifndef ISOMER_OPTIMIZER_MACHINE_H_
#define ISOMER_OPTIMIZER_MACHINE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/tensor_type.h"

namespace isomer {

struct Machine {
  struct Level {
    std::string name;
    int64_t count = 1;        // units of the level below (devices, for the first) that it joins
    double bytes_per_us = 0;  // per joined unit and direction
    double latency_us = 0;    // of one message
  };

  std::string name;
  std::string device_name;
  double flops_per_us = 0;                     // float32 matrix products, as reached
  std::map<DataType, double> flops_per_us_of;  // of other data types, where they differ
  double memory_bytes_per_us = 0;
  int64_t memory_bytes = 0;  // of one device
  double launch_us = 0;
  std::vector<Level> levels;  // innermost first; the last joins nodes

  double FlopsPerUs(DataType dtype) const;
  int64_t num_devices() const;
  int64_t num_nodes() const { return levels.back().count; }
  int64_t devices_per_node() const { return num_devices() / num_nodes(); }
  // Devices in one unit of level `level`; level -1: one device.
  int64_t UnitSize(int level) const;
  // "dgx_h100: 2 nodes of 4 H100-SXM5-80GB".
  std::string ToString() const;
};

// Names of the machines under optimizer/machines/.
std::vector<std::string> MachinePresets();

// `spec` is the name of a preset or a machine file (text or binary). `nodes` and
// `devices_per_node` override the file's where they are not 0; devices are dealt evenly to the
// units below the node, or to one of them if they fit.
absl::StatusOr<Machine> LoadMachine(const std::string& spec, int64_t nodes = 0,
                                    int64_t devices_per_node = 0);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MACHINE_H_
