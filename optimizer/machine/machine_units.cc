#include "optimizer/machine/machine_units.h"

#include <array>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace isomer {
namespace {

struct Unit {
  const char* name;
  double factor;
};

// Units in bytes per microsecond.
constexpr Unit kBandwidths[] = {{"B/s", 1e-6},       {"kB/s", 1e-3},         {"MB/s", 1},
                                {"GB/s", 1e3},       {"TB/s", 1e6},          {"KiB/s", 1.024e-3},
                                {"MiB/s", 1.048576}, {"GiB/s", 1073.741824}, {"kbit/s", 1.25e-4},
                                {"Mbit/s", 0.125},   {"Gbit/s", 125},        {"Tbit/s", 1.25e5}};
constexpr Unit kTimes[] = {{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}};

absl::StatusOr<double> Parse(absl::string_view text, absl::Span<const Unit> units) {
  const size_t end = text.find_first_not_of("0123456789.eE+-");
  double number = 0;
  if (end == 0 || !absl::SimpleAtod(text.substr(0, end), &number)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' does not begin with a number"));
  }
  const absl::string_view name =
      end == absl::string_view::npos ? "" : absl::StripAsciiWhitespace(text.substr(end));
  for (const Unit& unit : units) {
    if (name == unit.name) return number * unit.factor;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      name.empty() ? "no unit" : absl::StrCat("unknown unit '", name, "'"), " in '", text,
      "'; there are ", absl::StrJoin(units, ", ", [](std::string* out, const Unit& unit) {
        out->append(unit.name);
      })));
}

}  // namespace

absl::StatusOr<double> ParseBandwidth(absl::string_view text) { return Parse(text, kBandwidths); }

absl::StatusOr<double> ParseLatency(absl::string_view text) { return Parse(text, kTimes); }

const std::vector<LinkKind>& LinkKinds() {
  // NVLink: one link (18 of them on an H100). NVIDIA's white papers on P100, V100, A100, H100 and
  // Blackwell. PCIe: 16 lanes, after encoding (PCI-SIG). InfiniBand: 4 lanes, after encoding (IBTA
  // roadmap). Latencies: NCCL's table of hops for its low-latency protocol, rounded up to what a
  // send takes; Ethernet's is that of TCP.
  static const auto* kinds = new std::vector<LinkKind>{{"NVLink 1", 20, 2},
                                                       {"NVLink 2", 25, 2},
                                                       {"NVLink 3", 25, 1.5},
                                                       {"NVLink 4", 25, 1.5},
                                                       {"NVLink 5", 50, 1.5},
                                                       {"PCIe 3 x16", 15.75, 3},
                                                       {"PCIe 4 x16", 31.5, 3},
                                                       {"PCIe 5 x16", 63, 3},
                                                       {"InfiniBand FDR", 6.8, 5},
                                                       {"InfiniBand EDR", 12.5, 5},
                                                       {"InfiniBand HDR", 25, 5},
                                                       {"InfiniBand NDR", 50, 5},
                                                       {"InfiniBand XDR", 100, 5},
                                                       {"Ethernet 1 Gbit/s", 0.125, 50},
                                                       {"Ethernet 10 Gbit/s", 1.25, 30},
                                                       {"Ethernet 25 Gbit/s", 3.125, 25},
                                                       {"Ethernet 100 Gbit/s", 12.5, 20}};
  return *kinds;
}

absl::StatusOr<Link> ParseLinkKind(absl::string_view name) {
  for (const LinkKind& kind : LinkKinds()) {
    if (name == kind.name) return Link{kind.gb_per_s * 1e3, kind.latency_us};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no kind of link is called '", name, "'; there are ",
      absl::StrJoin(LinkKinds(), ", ",
                    [](std::string* out, const LinkKind& kind) { out->append(kind.name); })));
}

std::string BandwidthText(double bytes_per_us) {
  if (bytes_per_us >= 1e6) return absl::StrFormat("%.4g TB/s", bytes_per_us / 1e6);
  if (bytes_per_us >= 1e3) return absl::StrFormat("%.4g GB/s", bytes_per_us / 1e3);
  return absl::StrFormat("%.4g MB/s", bytes_per_us);
}

std::string TimeText(double us, int digits) {
  if (us >= 1e6) return absl::StrFormat("%.*g s", digits, us / 1e6);
  if (us >= 1e3) return absl::StrFormat("%.*g ms", digits, us / 1e3);
  return absl::StrFormat("%.*g us", digits, us);
}

}  // namespace isomer
