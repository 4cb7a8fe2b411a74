#include "optimizer/machine/joined_machine.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// What two machines differ in that one cluster must not; "": nothing.
std::string Unlike(const Machine& a, const Machine& b) {
  if (a.nccl != b.nccl) return "one has NCCL's collectives, the other has not";
  if (a.one_stream != b.one_stream) return "one has one stream per device, the other has not";
  if (a.levels.size() != b.levels.size()) {
    return absl::StrCat("one has ", a.levels.size(), " levels, the other ", b.levels.size());
  }
  for (size_t l = 0; l < a.levels.size(); ++l) {
    const Machine::Level &of_a = a.levels[l], &of_b = b.levels[l];
    const bool is_node = l + 1 == a.levels.size();
    if (!is_node && of_a.count != of_b.count) {
      return absl::StrCat("units of level '", of_a.name, "' have ", of_a.count, " and ", of_b.count,
                          " parts (--devices_per_node makes them alike)");
    }
    if (of_a.shared != of_b.shared || of_a.through != of_b.through) {
      return absl::StrCat("level '", of_a.name, "' is not built alike");
    }
  }
  return "";
}

// The level of all: what differs by kind beside the fastest rate.
Machine::Level JoinLevels(absl::Span<const Machine> machines, const std::vector<int>& kind_of,
                          size_t l) {
  Machine::Level joined = machines[0].levels[l];
  const bool reduces = joined.reduces;
  bool are_alike = true;
  for (const Machine& machine : machines) {
    const Machine::Level& level = machine.levels[l];
    are_alike &= level.bytes_per_us == joined.bytes_per_us && level.reduces == reduces;
    joined.bytes_per_us = std::max(joined.bytes_per_us, level.bytes_per_us);
    joined.latency_us = std::max(joined.latency_us, level.latency_us);
  }
  if (are_alike) return joined;
  for (size_t m = 0; m < machines.size(); ++m) {
    const Machine::Level& level = machines[m].levels[l];
    joined.of_kind[kind_of[m]] = {level.bytes_per_us / joined.bytes_per_us, level.reduces};
    joined.reduces |= level.reduces;
  }
  return joined;
}

}  // namespace

absl::StatusOr<std::optional<std::vector<NamedNodes>>> ParseJoined(const std::string& spec) {
  const std::vector<std::string> parts = absl::StrSplit(spec, '+');
  if (parts.size() < 2) return std::nullopt;
  std::vector<NamedNodes> all;
  for (const std::string& part : parts) {
    const size_t colon = part.rfind(':');
    int64_t nodes = 0;
    if (colon == std::string::npos || colon == 0 ||
        !absl::SimpleAtoi(part.substr(colon + 1), &nodes) || nodes < 1 || nodes > kMaxDevices) {
      return absl::InvalidArgumentError(absl::StrCat("--machine=", spec, ": '", part,
                                                     "' is not MACHINE:NODES, as in ",
                                                     "dgx_h100:2+dgx_a100:2"));
    }
    all.push_back({part.substr(0, colon), nodes});
  }
  return all;
}

absl::StatusOr<Machine> Join(absl::Span<const Machine> machines, const std::string& spec) {
  const auto fail = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("--machine=", spec, ": ", what...));
  };
  Machine joined = machines[0];
  joined.name = spec;
  joined.kinds.clear();
  std::vector<int> kind_of;
  for (const Machine& machine : machines) {
    if (!machine.topology.empty()) return fail(machine.name, " lists its devices and links");
    if (machine.kinds_in_use().size() > 1) return fail(machine.name, " has several kinds already");
    if (const std::string unlike = Unlike(machines[0], machine); !unlike.empty()) {
      return fail(machines[0].name, " and ", machine.name, ": ", unlike);
    }
    const DeviceKind& kind = machine.kind(0);
    const auto known =
        std::find_if(joined.kinds.begin(), joined.kinds.end(),
                     [&](const DeviceKind& other) { return other.name == kind.name; });
    if (known != joined.kinds.end()) return fail(kind.name, " is named twice");
    kind_of.push_back(static_cast<int>(joined.kinds.size()));
    joined.kinds.push_back(kind);
  }
  if (joined.kinds.size() > kMaxKinds) return fail("more than ", kMaxKinds, " kinds of devices");
  for (size_t l = 0; l < joined.levels.size(); ++l) {
    joined.levels[l] = JoinLevels(machines, kind_of, l);
  }
  joined.kind_level = static_cast<int>(joined.levels.size()) - 1;
  joined.unit_kinds.clear();
  int64_t nodes = 0;
  for (size_t m = 0; m < machines.size(); ++m) {
    joined.unit_kinds.insert(joined.unit_kinds.end(), machines[m].num_nodes(), kind_of[m]);
    nodes += machines[m].num_nodes();
  }
  joined.levels.back().count = nodes;
  return joined;
}

}  // namespace isomer
