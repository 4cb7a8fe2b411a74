#include "optimizer/machine.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/machine.pb.h"
#include "pcg/support/data_path.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int64_t kMaxDevices = 4096;

absl::Status Positive(const std::string& where, absl::string_view what, double value) {
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what, " must be positive"));
}

absl::StatusOr<Machine> FromProto(const MachineProto& proto, const std::string& where) {
  const auto& device = proto.device();
  ISOMER_RETURN_IF_ERROR(Positive(where, "device.peak_tflops", device.peak_tflops()));
  ISOMER_RETURN_IF_ERROR(Positive(where, "device.memory_gib", device.memory_gib()));
  ISOMER_RETURN_IF_ERROR(Positive(where, "device.memory_gb_per_s", device.memory_gb_per_s()));
  if (proto.name().empty()) return absl::InvalidArgumentError(absl::StrCat(where, ": no name"));
  const double fraction = device.peak_fraction() == 0 ? 1 : device.peak_fraction();
  if (!(fraction > 0 && fraction <= 1) || !(device.launch_us() >= 0) ||
      !std::isfinite(device.launch_us()) || device.memory_gib() > 1e6) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": device: peak_fraction is in (0,1], launch_us >= 0, memory_gib <= 1e6"));
  }
  Machine machine;
  machine.name = proto.name();
  machine.device_name = device.name();
  machine.flops_per_us = device.peak_tflops() * 1e6 * fraction;
  for (const auto& rate : device.rates()) {
    const std::string place = absl::StrCat(where, ": device.rates of '", rate.dtype(), "'");
    const absl::StatusOr<DataType> dtype = ParseDataType(rate.dtype());
    if (!dtype.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": ", dtype.status().message()));
    }
    ISOMER_RETURN_IF_ERROR(Positive(place, "peak_tflops", rate.peak_tflops()));
    machine.flops_per_us_of[*dtype] = rate.peak_tflops() * 1e6 * fraction;
  }
  machine.memory_bytes_per_us = device.memory_gb_per_s() * 1e3;
  machine.memory_bytes = static_cast<int64_t>(device.memory_gib() * (int64_t{1} << 30));
  machine.launch_us = device.launch_us();
  if (proto.levels().empty()) return absl::InvalidArgumentError(absl::StrCat(where, ": no levels"));
  for (const auto& level : proto.levels()) {
    const std::string place = absl::StrCat(where, ": level '", level.name(), "'");
    ISOMER_RETURN_IF_ERROR(Positive(place, "gb_per_s", level.gb_per_s()));
    if (level.count() < 1 || level.count() > kMaxDevices) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": count must be between 1 and ", kMaxDevices));
    }
    if (!(level.latency_us() >= 0) || !std::isfinite(level.latency_us())) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": latency_us must not be negative"));
    }
    machine.levels.push_back(
        {level.name(), level.count(), level.gb_per_s() * 1e3, level.latency_us()});
  }
  // A machine of one level is one node.
  if (machine.levels.size() == 1) {
    Machine::Level cluster = machine.levels[0];
    cluster.name = "cluster";
    cluster.count = 1;
    machine.levels.push_back(cluster);
  }
  return machine;
}

absl::Status SetDevicesPerNode(int64_t devices, Machine* machine) {
  const int below = static_cast<int>(machine->levels.size()) - 1;
  for (int level = below - 1; level >= 1 && devices > 0; --level) {
    int64_t& count = machine->levels[level].count;
    if (devices <= machine->UnitSize(level - 1)) {
      count = 1;
    } else if (devices % count == 0) {
      devices /= count;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices_per_node: ", devices, " devices cannot be dealt evenly to the ",
                       count, " units of level '", machine->levels[level].name, "'"));
    }
  }
  machine->levels[0].count = devices;
  return absl::OkStatus();
}

std::string PresetPath(absl::string_view name) {
  return DataPath(absl::StrCat("optimizer/machines/", name, ".textproto"));
}

}  // namespace

double Machine::FlopsPerUs(DataType dtype) const {
  const auto rate = flops_per_us_of.find(dtype);
  return rate == flops_per_us_of.end() ? flops_per_us : rate->second;
}

int64_t Machine::num_devices() const { return UnitSize(static_cast<int>(levels.size()) - 1); }

int64_t Machine::UnitSize(int level) const {
  int64_t size = 1;
  for (int l = 0; l <= level; ++l) size *= levels[l].count;
  return size;
}

std::string Machine::ToString() const {
  return absl::StrCat(name, ": ", num_nodes(), num_nodes() == 1 ? " node of " : " nodes of ",
                      devices_per_node(), " ", device_name);
}

std::vector<std::string> MachinePresets() { return {"dgx_h100", "laptop_cpu", "summit"}; }

absl::StatusOr<Machine> LoadMachine(const std::string& spec, int64_t nodes,
                                    int64_t devices_per_node) {
  if (nodes < 0 || devices_per_node < 0) {
    return absl::InvalidArgumentError("--nodes and --devices_per_node must be positive");
  }
  const std::vector<std::string> presets = MachinePresets();
  const bool preset = std::find(presets.begin(), presets.end(), spec) != presets.end();
  if (!preset && !std::filesystem::exists(spec)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "machine '", spec, "' is neither a file nor one of ", absl::StrJoin(presets, ", ")));
  }
  const std::string path = preset ? PresetPath(spec) : spec;
  MachineProto proto;
  ISOMER_RETURN_IF_ERROR(LoadProto(path, "machine", &proto, TextHeader::kOptional));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, FromProto(proto, path));
  if (nodes > 0) machine.levels.back().count = nodes;
  if (devices_per_node > 0) {
    ISOMER_RETURN_IF_ERROR(SetDevicesPerNode(devices_per_node, &machine));
  }
  int64_t devices = 1;
  for (const Machine::Level& level : machine.levels) {
    devices *= level.count;
    if (devices > kMaxDevices || level.count > kMaxDevices) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": more than ", kMaxDevices, " devices"));
    }
  }
  return machine;
}

}  // namespace isomer
