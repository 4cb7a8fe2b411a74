// Loads machines from files.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/machine/joined_machine.h"
#include "optimizer/machine/machine.h"
#include "optimizer/machine/machine.pb.h"
#include "optimizer/machine/machine_named.h"
#include "optimizer/machine/machine_units.h"
#include "pcg/ir/precision.h"
#include "pcg/support/data_path.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Of TFLOP/s, GB/s, GiB and us: what no computer has takes times that no clock can count.
constexpr double kLeastQuantity = 1e-6, kMostQuantity = 1e9;

absl::Status CheckQuantity(const std::string& where, absl::string_view what, double value) {
  if (value >= kLeastQuantity && value <= kMostQuantity) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": ", what, " is ", kLeastQuantity, " to ", kMostQuantity));
}

absl::StatusOr<DeviceKind> KindFromProto(const MachineProto::Device& device,
                                         const std::string& where) {
  ISOMER_RETURN_IF_ERROR(CheckQuantity(where, "peak_tflops", device.peak_tflops()));
  ISOMER_RETURN_IF_ERROR(CheckQuantity(where, "memory_gib", device.memory_gib()));
  ISOMER_RETURN_IF_ERROR(CheckQuantity(where, "memory_gb_per_s", device.memory_gb_per_s()));
  const double fraction = device.peak_fraction() == 0 ? 1 : device.peak_fraction();
  if (!(fraction > 0 && fraction <= 1) || !(device.launch_us() >= 0) ||
      !(device.launch_us() <= kMostQuantity) || device.memory_gib() > 1e6) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": peak_fraction is in (0,1], launch_us >= 0, memory_gib <= 1e6"));
  }
  DeviceKind kind;
  kind.name = device.name();
  kind.flops_per_us = device.peak_tflops() * 1e6 * fraction;
  for (const auto& rate : device.rates()) {
    const std::string place = absl::StrCat(where, ".rates of '", rate.dtype(), "'");
    if (rate.dtype() == kFp8Precision) {
      ISOMER_RETURN_IF_ERROR(CheckQuantity(place, "peak_tflops", rate.peak_tflops()));
      kind.fp8_flops_per_us = rate.peak_tflops() * 1e6 * fraction;
      continue;
    }
    const absl::StatusOr<DataType> dtype = ParseDataType(rate.dtype());
    if (!dtype.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": ", dtype.status().message()));
    }
    ISOMER_RETURN_IF_ERROR(CheckQuantity(place, "peak_tflops", rate.peak_tflops()));
    kind.flops_per_us_of[*dtype] = rate.peak_tflops() * 1e6 * fraction;
  }
  kind.peak_fraction = fraction;
  const double memory_fraction = device.memory_fraction() == 0 ? 1 : device.memory_fraction();
  kind.memory_bytes_per_us = device.memory_gb_per_s() * 1e3 * memory_fraction;
  kind.multiprocessors = device.multiprocessors();
  kind.attention_fraction = device.attention_fraction();
  kind.attention_backward_fraction = device.attention_backward_fraction();
  for (const auto& [field, value] : std::initializer_list<std::pair<const char*, double>>{
           {"memory_fraction", memory_fraction},
           {"attention_fraction", kind.attention_fraction},
           {"attention_backward_fraction", kind.attention_backward_fraction}}) {
    if (value >= 0 && value <= 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", field, " is in (0,1]"));
  }
  constexpr int64_t kMostMultiprocessors = 1 << 16;
  if (kind.multiprocessors < 0 || kind.multiprocessors > kMostMultiprocessors) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": multiprocessors is 0 to ", kMostMultiprocessors));
  }
  kind.memory_bytes = static_cast<int64_t>(device.memory_gib() * (int64_t{1} << 30));
  kind.launch_us = device.launch_us();
  if (!(device.host_gb_per_s() >= 0) || !(device.host_gb_per_s() <= kMostQuantity)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": host_gb_per_s is 0 to ", kMostQuantity));
  }
  kind.host_bytes_per_us = device.host_gb_per_s() * 1e3;
  return kind;
}

absl::Status SetKinds(const MachineProto& proto, const std::string& where, Machine* machine) {
  machine->kinds.clear();
  if (proto.kinds().empty() || proto.has_device()) {
    if (!proto.kinds().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": give device or kinds, not both"));
    }
    ISOMER_ASSIGN_OR_RETURN(DeviceKind kind,
                            KindFromProto(proto.device(), absl::StrCat(where, ": device")));
    machine->kinds.push_back(std::move(kind));
    return absl::OkStatus();
  }
  if (proto.kinds_size() > kMaxKinds) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": more than ", kMaxKinds, " kinds of devices"));
  }
  for (const auto& device : proto.kinds()) {
    ISOMER_ASSIGN_OR_RETURN(
        DeviceKind kind,
        KindFromProto(device, absl::StrCat(where, ": kind '", device.name(), "'")));
    machine->kinds.push_back(std::move(kind));
  }
  return absl::OkStatus();
}

absl::Status SetUnitKinds(const MachineProto& proto, const std::string& where, Machine* machine) {
  for (int l = 0; l < proto.levels_size(); ++l) {
    if (proto.levels(l).unit_kinds().empty()) continue;
    if (!machine->unit_kinds.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": unit_kinds are given on more than one level"));
    }
    machine->kind_level = l;
    for (const std::string& name : proto.levels(l).unit_kinds()) {
      ISOMER_ASSIGN_OR_RETURN(
          const int kind,
          KindByName(*machine, name,
                     absl::StrCat(where, ": level '", proto.levels(l).name(), "'")));
      machine->unit_kinds.push_back(kind);
    }
  }
  if (machine->kinds.size() > 1 && machine->unit_kinds.empty() && proto.devices().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": there are several kinds, and no level says by unit_kinds which units are which"));
  }
  return absl::OkStatus();
}

// Where links of a kind are others than those of its level. REQUIRES: levels and unit_kinds are
// set.
absl::Status SetLinksOfKinds(const MachineProto& proto, const std::string& where,
                             Machine* machine) {
  for (int l = 0; l < proto.levels_size(); ++l) {
    Machine::Level& level = machine->levels[l];
    double fastest = level.bytes_per_us;
    for (const auto& of : proto.levels(l).of_kinds()) {
      const std::string place =
          absl::StrCat(where, ": level '", level.name, "': of_kinds of '", of.kind(), "'");
      ISOMER_ASSIGN_OR_RETURN(const int kind, KindByName(*machine, of.kind(), place));
      if (!proto.devices().empty() || machine->unit_kinds.empty() || l > machine->kind_level) {
        return absl::InvalidArgumentError(absl::StrCat(
            place, ": what this level joins is not of one kind (unit_kinds of this or an outer ",
            "level)"));
      }
      ISOMER_ASSIGN_OR_RETURN(const Link link, RateFromProto(of, place));
      if (!level.of_kind.try_emplace(kind, Machine::Level::OfKind{link.bytes_per_us, of.reduces()})
               .second) {
        return absl::InvalidArgumentError(absl::StrCat(place, " are given twice"));
      }
      fastest = std::max(fastest, link.bytes_per_us);
    }
    if (level.of_kind.empty()) continue;
    for (int kind : machine->kinds_in_use()) {
      level.of_kind.try_emplace(kind, Machine::Level::OfKind{level.bytes_per_us, level.reduces});
    }
    for (auto& [kind, of] : level.of_kind) {
      of.share /= fastest;
      level.reduces |= of.reduces;
    }
    level.bytes_per_us = fastest;
  }
  return absl::OkStatus();
}

absl::Status SetLevels(const MachineProto& proto, const std::string& where, Machine* machine) {
  const bool named = !proto.devices().empty();
  if (proto.levels().empty() && !named) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": no levels"));
  }
  for (const auto& level : proto.levels()) {
    const std::string place = absl::StrCat(where, ": level '", level.name(), "'");
    Link link;
    // Missing bandwidths follow from the named links.
    if (!named || !level.bandwidth().empty() || !level.link().empty() || level.gb_per_s() != 0) {
      ISOMER_ASSIGN_OR_RETURN(link, LinkFromProto(level, place));
    }
    if (level.count() < 1 || level.count() > kMaxDevices) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": count must be between 1 and ", kMaxDevices));
    }
    machine->levels.push_back({.name = level.name(),
                               .count = level.count(),
                               .bytes_per_us = link.bytes_per_us,
                               .latency_us = link.latency_us,
                               .shared = level.shared(),
                               .through = level.through(),
                               .reduces = level.reduces()});
  }
  return absl::OkStatus();
}

// A single level means one node.
void AddClusterLevel(Machine* machine) {
  if (machine->levels.size() != 1) return;
  Machine::Level cluster = machine->levels[0];
  cluster.name = "cluster";
  cluster.count = 1;
  cluster.shared = cluster.reduces = false;
  cluster.of_kind.clear();
  machine->levels.push_back(cluster);
}

absl::StatusOr<Machine> FromProto(const MachineProto& proto, const std::string& where) {
  if (proto.name().empty()) return absl::InvalidArgumentError(absl::StrCat(where, ": no name"));
  if (!proto.collectives().empty() && proto.collectives() != "nccl") {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": collectives '", proto.collectives(), "': there are '' and 'nccl'"));
  }
  Machine machine;
  machine.name = proto.name();
  machine.nccl = !proto.collectives().empty();
  machine.one_stream = proto.one_stream();
  ISOMER_RETURN_IF_ERROR(SetKinds(proto, where, &machine));
  ISOMER_RETURN_IF_ERROR(SetLevels(proto, where, &machine));
  ISOMER_RETURN_IF_ERROR(SetUnitKinds(proto, where, &machine));
  ISOMER_RETURN_IF_ERROR(SetLinksOfKinds(proto, where, &machine));
  if (!proto.devices().empty()) {
    ISOMER_RETURN_IF_ERROR(AddNamedLinks(proto, where, &machine));
  } else if (!proto.links().empty() || !proto.switches().empty() || !proto.paths().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": links, switches and paths need devices"));
  }
  AddClusterLevel(&machine);
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

absl::Status CheckSize(const Machine& machine, const std::string& where) {
  int64_t devices = 1;
  for (const Machine::Level& level : machine.levels) {
    devices *= level.count;
    if (devices > kMaxDevices || level.count > kMaxDevices) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": more than ", kMaxDevices,
                                                     " devices, which is the most there are"));
    }
  }
  return absl::OkStatus();
}

std::string PresetPath(absl::string_view name) {
  return DataPath(absl::StrCat("optimizer/machines/", name, ".textproto"));
}

}  // namespace

std::vector<std::string> MachinePresets() {
  return {"cpu_2cores",  "dgx_a100",   "dgx_h100",     "dgx_h200", "gb200_nvl72",
          "k80_cluster", "laptop_cpu", "p100_cluster", "summit",   "workstation"};
}

namespace {

absl::StatusOr<Machine> LoadOne(const std::string& spec, int64_t nodes, int64_t devices_per_node) {
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
  if (!machine.topology.empty() && (nodes > 0 || devices_per_node > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": lists its devices, so that --nodes and --devices_per_node cannot change them"));
  }
  if (nodes > 0) machine.levels.back().count = nodes;
  if (devices_per_node > 0) {
    ISOMER_RETURN_IF_ERROR(SetDevicesPerNode(devices_per_node, &machine));
  }
  ISOMER_RETURN_IF_ERROR(CheckSize(machine, path));
  return machine;
}

absl::StatusOr<Machine> LoadJoined(const std::vector<NamedNodes>& parts, const std::string& spec,
                                   int64_t nodes, int64_t devices_per_node) {
  if (nodes > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--nodes: --machine=", spec, " says how many nodes there are"));
  }
  std::vector<Machine> machines;
  for (const NamedNodes& part : parts) {
    ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadOne(part.machine, part.nodes, devices_per_node));
    machines.push_back(std::move(machine));
  }
  ISOMER_ASSIGN_OR_RETURN(Machine joined, Join(machines, spec));
  ISOMER_RETURN_IF_ERROR(CheckSize(joined, absl::StrCat("--machine=", spec)));
  return joined;
}

}  // namespace

absl::StatusOr<Machine> LoadMachine(const std::string& spec, int64_t nodes,
                                    int64_t devices_per_node) {
  if (nodes < 0 || devices_per_node < 0) {
    return absl::InvalidArgumentError("--nodes and --devices_per_node must be positive");
  }
  if (!std::filesystem::exists(spec)) {
    ISOMER_ASSIGN_OR_RETURN(const std::optional<std::vector<NamedNodes>> parts, ParseJoined(spec));
    if (parts.has_value()) return LoadJoined(*parts, spec, nodes, devices_per_node);
  }
  return LoadOne(spec, nodes, devices_per_node);
}

}  // namespace isomer
