// Parses and prints bandwidths and times with units; named kinds of links.
#ifndef ISOMER_OPTIMIZER_MACHINE_MACHINE_UNITS_H_
#define ISOMER_OPTIMIZER_MACHINE_MACHINE_UNITS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optimizer/machine/topology.h"

namespace isomer {

// "25 GB/s", "12.5 GiB/s", "200 Gbit/s" in bytes per microsecond. "Gb/s" is refused as ambiguous:
// files use it for either.
absl::StatusOr<double> ParseBandwidth(absl::string_view text);
// "1.5 us", "800 ns", "0.05 ms" in microseconds.
absl::StatusOr<double> ParseLatency(absl::string_view text);

// A kind of link: bandwidth per direction, as its standard says.
struct LinkKind {
  const char* name;
  double gb_per_s;
  double latency_us;  // of a short message between devices
};
const std::vector<LinkKind>& LinkKinds();
// Errors: no such kind; lists the known ones.
absl::StatusOr<Link> ParseLinkKind(absl::string_view name);

// "450 GB/s", "12.5 MB/s"; "1.5 us", "2.3 ms".
std::string BandwidthText(double bytes_per_us);
std::string TimeText(double us, int digits = 3);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MACHINE_MACHINE_UNITS_H_
