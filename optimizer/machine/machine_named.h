// Named parts of machine files: device kinds, and machines given by a list of devices, switches and
// links.
#ifndef ISOMER_OPTIMIZER_MACHINE_MACHINE_NAMED_H_
#define ISOMER_OPTIMIZER_MACHINE_MACHINE_NAMED_H_

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "optimizer/machine/machine.h"
#include "optimizer/machine/machine.pb.h"
#include "optimizer/machine/machine_units.h"
#include "pcg/support/status_macros.h"

namespace isomer {

// Errors are one line that begins with `where`.
absl::StatusOr<int> KindByName(const Machine& machine, const std::string& name,
                               const std::string& where);

// Sets the topology, device kinds and missing level bandwidths of a machine whose kinds and levels
// are set. Without levels, it becomes one node.
absl::Status AddNamedLinks(const MachineProto& proto, const std::string& where, Machine* machine);

// Of MachineProto::Level, MachineProto::Level::OfKind or MachineProto::Link the bytes per us; of a
// kind of link also its latency.
template <typename Proto>
absl::StatusOr<Link> RateFromProto(const Proto& proto, const std::string& where) {
  const auto fail = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", what...));
  };
  const int given = (proto.gb_per_s() != 0) + !proto.bandwidth().empty() + !proto.link().empty();
  if (given != 1) {
    return given == 0 ? fail("no bandwidth: one of gb_per_s, bandwidth and link must say it")
                      : fail("more than one of gb_per_s, bandwidth and link");
  }
  Link link{proto.gb_per_s() * 1e3, 0};
  if (!proto.link().empty()) {
    auto kind = ParseLinkKind(proto.link());
    if (!kind.ok()) return fail(kind.status().message());
    link = {kind->bytes_per_us, kind->latency_us};
  } else if (!proto.bandwidth().empty()) {
    auto bandwidth = ParseBandwidth(proto.bandwidth());
    if (!bandwidth.ok()) return fail("bandwidth: ", bandwidth.status().message());
    link.bytes_per_us = *bandwidth;
  }
  if (proto.num_links() < 0 || (proto.num_links() > 0 && proto.link().empty())) {
    return fail("num_links counts links of the kind that 'link' names");
  }
  link.bytes_per_us *= static_cast<double>(std::max<int64_t>(1, proto.num_links()));
  if (!std::isfinite(link.bytes_per_us) || link.bytes_per_us <= 0) {
    return fail("the bandwidth must be positive");
  }
  return link;
}

// Bandwidth and latency of MachineProto::Level or MachineProto::Link.
template <typename Proto>
absl::StatusOr<Link> LinkFromProto(const Proto& proto, const std::string& where) {
  const auto fail = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", what...));
  };
  ISOMER_ASSIGN_OR_RETURN(Link link, RateFromProto(proto, where));
  if (proto.latency_us() != 0) link.latency_us = proto.latency_us();
  if (!proto.latency().empty()) {
    if (proto.latency_us() != 0) return fail("both latency_us and latency");
    auto latency = ParseLatency(proto.latency());
    if (!latency.ok()) return fail("latency: ", latency.status().message());
    link.latency_us = *latency;
  }
  if (!std::isfinite(link.latency_us) || link.latency_us < 0) {
    return fail("the latency must not be negative");
  }
  return link;
}

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MACHINE_MACHINE_NAMED_H_
