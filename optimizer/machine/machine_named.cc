#include "optimizer/machine/machine_named.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace isomer {
namespace {

class NamedLinks {
 public:
  NamedLinks(const MachineProto& proto, const std::string& where, Machine* machine)
      : proto_(proto), where_(where), machine_(*machine) {}

  absl::Status Add() {
    ISOMER_RETURN_IF_ERROR(AddVertices());
    for (const auto& link : proto_.links()) ISOMER_RETURN_IF_ERROR(AddLink(link));
    std::vector<Topology::ExplicitPath> paths;
    for (const auto& path : proto_.paths()) {
      ISOMER_ASSIGN_OR_RETURN(Topology::ExplicitPath explicit_path, PathOf(path));
      paths.push_back(std::move(explicit_path));
    }
    const absl::Status found = machine_.topology.FindPaths(paths);
    if (!found.ok()) return Error(found.message());
    return SetLevels();
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(where_, ": ", what));
  }

  absl::Status AddName(const std::string& name) {
    if (name.empty()) return Error("a device or switch has no name");
    if (!vertices_.try_emplace(name, static_cast<int32_t>(vertices_.size())).second) {
      return Error(absl::StrCat("two devices or switches are called '", name, "'"));
    }
    return absl::OkStatus();
  }

  absl::Status AddVertices() {
    if (proto_.devices_size() > kMaxNamedDevices) {
      return Error(absl::StrCat("more than ", kMaxNamedDevices,
                                " devices by name; describe larger machines by levels"));
    }
    std::vector<int> kinds;
    for (const auto& device : proto_.devices()) {
      ISOMER_RETURN_IF_ERROR(AddName(device.name()));
      machine_.topology.AddDevice(device.name());
      int kind = 0;
      if (!device.kind().empty() || machine_.kinds.size() > 1) {
        ISOMER_ASSIGN_OR_RETURN(kind,
                                KindByName(machine_, device.kind(),
                                           absl::StrCat(where_, ": device '", device.name(), "'")));
      }
      kinds.push_back(kind);
    }
    for (const std::string& name : proto_.switches()) {
      ISOMER_RETURN_IF_ERROR(AddName(name));
      machine_.topology.AddSwitch(name);
    }
    device_kinds_ = std::move(kinds);
    return absl::OkStatus();
  }

  absl::StatusOr<int32_t> Vertex(const std::string& name, const std::string& place) const {
    const auto found = vertices_.find(name);
    if (found != vertices_.end()) return found->second;
    return Error(absl::StrCat(place, ": there is no device or switch '", name, "'"));
  }

  absl::Status AddLink(const MachineProto::Link& proto) {
    const std::string place = absl::StrCat("link from '", proto.from(), "' to '", proto.to(), "'");
    ISOMER_ASSIGN_OR_RETURN(const int32_t from, Vertex(proto.from(), place));
    ISOMER_ASSIGN_OR_RETURN(const int32_t to, Vertex(proto.to(), place));
    if (from == to) return Error(absl::StrCat(place, ": joins one with itself"));
    ISOMER_ASSIGN_OR_RETURN(const Link link,
                            LinkFromProto(proto, absl::StrCat(where_, ": ", place)));
    Topology& topology = machine_.topology;
    const std::string there = absl::StrCat(proto.from(), " to ", proto.to());
    if (proto.shared()) {
      const LinkId id = topology.AddLink(absl::StrCat(proto.from(), " and ", proto.to()), link);
      topology.AddArc(from, to, id);
      if (!proto.one_way()) topology.AddArc(to, from, id);
      return absl::OkStatus();
    }
    topology.AddArc(from, to, topology.AddLink(there, link));
    if (!proto.one_way()) {
      topology.AddArc(to, from,
                      topology.AddLink(absl::StrCat(proto.to(), " to ", proto.from()), link));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Topology::ExplicitPath> PathOf(const MachineProto::Path& proto) {
    const std::string place = absl::StrCat("path from '", proto.from(), "' to '", proto.to(), "'");
    Topology::ExplicitPath path;
    ISOMER_ASSIGN_OR_RETURN(path.from, Vertex(proto.from(), place));
    ISOMER_ASSIGN_OR_RETURN(path.to, Vertex(proto.to(), place));
    const auto devices = static_cast<int32_t>(machine_.topology.num_devices());
    if (path.from >= devices || path.to >= devices || path.from == path.to) {
      return Error(absl::StrCat(place, ": must join two devices"));
    }
    if (!paths_.insert({path.from, path.to}).second) {
      return Error(absl::StrCat(place, ": is given twice"));
    }
    for (const std::string& name : proto.via()) {
      ISOMER_ASSIGN_OR_RETURN(const int32_t via, Vertex(name, place));
      path.via.push_back(via);
    }
    return path;
  }

  absl::Status SetLevels() {
    const int64_t devices = machine_.topology.num_devices();
    if (machine_.levels.empty()) {
      machine_.levels.push_back({.name = "node", .count = devices});
    }
    if (machine_.num_devices() != devices) {
      return Error(absl::StrCat("levels hold ", machine_.num_devices(), " devices, and ", devices,
                                " are listed"));
    }
    if (!machine_.unit_kinds.empty()) return Error("unit_kinds: devices have their own kind");
    SetKinds();
    for (int l = 0; l < static_cast<int>(machine_.levels.size()); ++l) {
      if (machine_.levels[l].bytes_per_us == 0) SetRate(l);
    }
    return absl::OkStatus();
  }

  // Sets the kind of every device.
  void SetKinds() {
    if (machine_.kinds.size() == 1) return;
    machine_.kind_level = -1;
    machine_.unit_kinds = device_kinds_;
  }

  // Bandwidth of a unit of the level below when all devices send at once to the device at their
  // position in the next unit, as in a ring.
  void SetRate(int l) {
    Machine::Level& level = machine_.levels[l];
    const int64_t below = machine_.UnitSize(l - 1), unit = machine_.UnitSize(l);
    std::vector<int> load(machine_.num_links(), 0);
    std::vector<LinkPath> paths;
    for (int64_t d = 0; level.count > 1 && d < machine_.num_devices(); ++d) {
      paths.push_back(machine_.Path(d, d / unit * unit + (d % unit + below) % unit));
      for (LinkId id : paths.back()) ++load[id];
    }
    double slowest_us = 0;
    for (const LinkPath& path : paths) {
      double latency_us = 0;
      for (LinkId id : path) {
        const Link& link = machine_.topology.link(id);
        latency_us += link.latency_us;
        slowest_us = std::max(slowest_us, load[id] / link.bytes_per_us);
      }
      level.latency_us = std::max(level.latency_us, latency_us);
    }
    // A level of one unit carries nothing.
    level.bytes_per_us = slowest_us == 0 ? 1e6 : static_cast<double>(below) / slowest_us;
  }

  const MachineProto& proto_;
  const std::string& where_;
  Machine& machine_;
  std::map<std::string, int32_t> vertices_;
  std::vector<int> device_kinds_;
  std::set<std::pair<int32_t, int32_t>> paths_;
};

}  // namespace

absl::StatusOr<int> KindByName(const Machine& machine, const std::string& name,
                               const std::string& where) {
  for (size_t k = 0; k < machine.kinds.size(); ++k) {
    if (machine.kinds[k].name == name) return static_cast<int>(k);
  }
  return absl::InvalidArgumentError(absl::StrCat(where, ": there is no device kind '", name, "'"));
}

absl::Status AddNamedLinks(const MachineProto& proto, const std::string& where, Machine* machine) {
  return NamedLinks(proto, where, machine).Add();
}

}  // namespace isomer
