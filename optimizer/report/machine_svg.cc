// Drawings of machines. Units of a level are side by side, those of the next level one below the
// other, and so on alternately; a bar is the switch or bus that connects them.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/machine/machine_units.h"
#include "optimizer/report/machine_text.h"
#include "optimizer/report/xml_text.h"

namespace isomer {
namespace {

constexpr const char* kKindColors[] = {"#cfe3f7", "#fbe2c4", "#d6efd0", "#efd3e6"};
constexpr double kDeviceWidth = 86, kDeviceHeight = 40, kGap = 10, kMargin = 12, kTitle = 20;
constexpr double kBar = 22;                        // thickness
constexpr double kLead = 14;                       // length of the lines between units and bar
constexpr int64_t kMostDrawn = 8, kMostUnits = 4;  // drawn per level
constexpr double kLetter = 6.6;                    // width, of 11 px

class Svg {
 public:
  void Box(double x, double y, double width, double height, const std::string& fill,
           const std::string& more = "") {
    absl::StrAppendFormat(&body_,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" "
                          "fill=\"%s\" stroke=\"#5f6b76\"%s/>\n",
                          x, y, width, height, fill, more);
  }
  void Line(double x1, double y1, double x2, double y2, double width) {
    absl::StrAppendFormat(&body_,
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                          "stroke=\"#5f6b76\" stroke-width=\"%.1f\"/>\n",
                          x1, y1, x2, y2, width);
  }
  // `anchor`: "start", "middle" or "end".
  void Text(double x, double y, const std::string& text, const char* anchor = "start",
            const std::string& more = "") {
    absl::StrAppendFormat(&body_, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x,
                          y, anchor, more, XmlText(text));
  }
  std::string Document(double width, double height) const {
    return absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"0 0 %.0f %.0f\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\" "
        "fill=\"#1d2329\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n",
        width, height, width, height, body_);
  }

 private:
  std::string body_;
};

// Wider for faster links.
double StrokeOf(double bytes_per_us) {
  return std::clamp(1 + std::log10(std::max(1.0, bytes_per_us / 1e3)), 1.0, 4.5);
}

std::string Rate(double bytes_per_us, double latency_us) {
  return absl::StrCat(BandwidthText(bytes_per_us), ", ", TimeText(latency_us));
}

struct Size {
  double width = 0, height = 0;
};

class MachineDrawing {
 public:
  explicit MachineDrawing(const Machine& machine) : machine_(machine) {
    for (int l = 0; l < static_cast<int>(machine.levels.size()); ++l) {
      if (machine.levels[l].count > 1 || l == 0) drawn_.push_back(l);
    }
  }

  std::string Draw() {
    const int top = static_cast<int>(drawn_.size()) - 1;
    const Size size = SizeOf(top);
    svg_.Text(kMargin, 24, machine_.ToString(), "start", " font-size=\"15\" font-weight=\"bold\"");
    Unit(top, 0, kMargin, 36);
    double y = 36 + size.height + 24, width = size.width;
    for (int kind : machine_.kinds_in_use()) {
      const std::string text = KindText(machine_.kinds[kind]);
      svg_.Box(kMargin, y - 11, 14, 14, ColorOf(kind));
      svg_.Text(kMargin + 22, y, text);
      width = std::max(width, 22 + kLetter * static_cast<double>(text.size()));
      y += 20;
    }
    return svg_.Document(width + 2 * kMargin, y);
  }

 private:
  static std::string ColorOf(int kind) { return kKindColors[kind % std::size(kKindColors)]; }

  static std::string KindText(const DeviceKind& kind) {
    return absl::StrFormat("%s: %.4g TFLOP/s reached in float32, %.4g GiB at %s", kind.name,
                           kind.flops_per_us / 1e6,
                           static_cast<double>(kind.memory_bytes) / (1 << 30),
                           BandwidthText(kind.memory_bytes_per_us));
  }

  const Machine::Level& LevelAt(int i) const { return machine_.levels[drawn_[i]]; }
  static bool Beside(int i) { return i % 2 == 0; }

  // Number of units drawn of a level; one more box stands for the others, if any.
  int64_t Shown(int i) const {
    const int64_t count = LevelAt(i).count, most = i == 0 ? kMostDrawn : kMostUnits;
    return count <= most ? count : most - 1;
  }

  std::string BarText(int i) const {
    const Machine::Level& level = LevelAt(i);
    return absl::StrCat(BandwidthText(level.bytes_per_us), level.shared ? " for all, " : " each, ",
                        TimeText(level.latency_us), level.reduces ? ", adds up" : "");
  }

  // Size of a unit of the i-th level drawn; -1: of a device.
  Size SizeOf(int i) const {
    if (i < 0) return {kDeviceWidth, kDeviceHeight};
    const Size inner = SizeOf(i - 1);
    const bool more = Shown(i) < LevelAt(i).count;
    const double units = static_cast<double>(Shown(i));
    if (Beside(i)) {
      const double row = units * (inner.width + kGap) - kGap + (more ? kDeviceWidth + kGap : 0);
      const double bar = kLetter * static_cast<double>(BarText(i).size()) + 16;
      return {std::max(row, bar) + 2 * kMargin, kTitle + inner.height + kLead + kBar + kMargin};
    }
    const double column = units * (inner.height + kGap) - kGap + (more ? 26 + kGap : 0);
    const double bar = kLetter * static_cast<double>(BarText(i).size()) + 16;
    return {inner.width + kLead + kBar + 2 * kMargin, kTitle + std::max(column, bar) + kMargin};
  }

  void Device(int64_t device, double x, double y) {
    svg_.Box(x, y, kDeviceWidth, kDeviceHeight, ColorOf(machine_.kind_index(device)));
    svg_.Text(x + kDeviceWidth / 2, y + 17, absl::StrCat("device ", device), "middle");
    const DeviceKind& kind = machine_.kind(device);
    svg_.Text(x + kDeviceWidth / 2, y + 31,
              absl::StrFormat("%.4g GiB", static_cast<double>(kind.memory_bytes) / (1 << 30)),
              "middle", " fill=\"#5f6b76\"");
  }

  void Unit(int i, int64_t first, double x, double y) {
    if (i < 0) return Device(first, x, y);
    const Size size = SizeOf(i), inner = SizeOf(i - 1);
    const int64_t unit = machine_.UnitSize(drawn_[i]);
    svg_.Box(x, y, size.width, size.height, i % 2 == 0 ? "#f4f6f8" : "#ffffff");
    svg_.Text(x + kMargin, y + 14, absl::StrCat(LevelAt(i).name, " ", first / unit), "start",
              " font-weight=\"bold\"");
    Bar(i, x, y, size);
    const int64_t below = unit / LevelAt(i).count;
    double at_x = x + kMargin, at_y = y + kTitle;
    for (int64_t u = 0; u < Shown(i); ++u) {
      Unit(i - 1, first + u * below, at_x, at_y);
      Lead(i, at_x, at_y, inner);
      (Beside(i) ? at_x : at_y) += (Beside(i) ? inner.width : inner.height) + kGap;
    }
    if (Shown(i) < LevelAt(i).count) More(i, at_x, at_y, inner);
  }

  // The line from a unit to the bar.
  void Lead(int i, double x, double y, const Size& inner) {
    const double stroke = StrokeOf(LevelAt(i).bytes_per_us);
    if (Beside(i)) {
      const double middle = x + inner.width / 2;
      svg_.Line(middle, y + inner.height, middle, y + inner.height + kLead, stroke);
    } else {
      const double middle = y + inner.height / 2;
      svg_.Line(x + inner.width, middle, x + inner.width + kLead, middle, stroke);
    }
  }

  void Bar(int i, double x, double y, const Size& size) {
    const std::string fill = LevelAt(i).shared ? "#f7d9d3" : "#dde5ec";
    const std::string text = BarText(i);
    if (Beside(i)) {
      const double top = y + size.height - kMargin - kBar;
      svg_.Box(x + kMargin, top, size.width - 2 * kMargin, kBar, fill);
      svg_.Text(x + size.width / 2, top + 15, text, "middle");
      return;
    }
    const double left = x + size.width - kMargin - kBar, top = y + kTitle;
    const double height = size.height - kTitle - kMargin;
    svg_.Box(left, top, kBar, height, fill);
    svg_.Text(0, 0, text, "middle",
              absl::StrFormat(" transform=\"translate(%.1f,%.1f) rotate(-90)\"", left + 15,
                              top + height / 2));
  }

  void More(int i, double x, double y, const Size& inner) {
    const std::string text = absl::StrCat("... x ", LevelAt(i).count - Shown(i), " more");
    const double width = Beside(i) ? kDeviceWidth : inner.width;
    const double height = Beside(i) ? inner.height : 26;
    svg_.Box(x, y, width, height, "none", " stroke-dasharray=\"4 3\"");
    svg_.Text(x + width / 2, y + height / 2 + 4, text, "middle");
  }

  const Machine& machine_;
  std::vector<int> drawn_;  // levels with more than one unit
  Svg svg_;
};

// Devices on a circle, switches on one within it.
std::string DrawTopology(const Machine& machine) {
  const Topology& topology = machine.topology;
  const auto devices = static_cast<int32_t>(topology.num_devices());
  const int32_t switches = topology.num_vertices() - devices;
  const double outer = std::max(170.0, 110.0 * devices / 6.2832);
  const double center = outer + 70;
  const auto place = [&](int32_t vertex) {
    const bool device = vertex < devices;
    const double radius = device ? outer : switches == 1 ? 0 : outer * 0.45;
    const double turn =
        6.2832 * (device ? vertex : vertex - devices + 0.5) / (device ? devices : switches);
    return std::pair(center + radius * std::sin(turn), center + 20 - radius * std::cos(turn));
  };
  Svg svg;
  svg.Text(kMargin, 24, machine.ToString(), "start", " font-size=\"15\" font-weight=\"bold\"");
  std::map<std::pair<int32_t, int32_t>, Link> joined;
  for (const Topology::Arc& arc : topology.arcs()) {
    joined.try_emplace(std::minmax(arc.from, arc.to), topology.link(arc.link));
  }
  for (const auto& [ends, link] : joined) {
    const auto [x1, y1] = place(ends.first);
    const auto [x2, y2] = place(ends.second);
    svg.Line(x1, y1, x2, y2, StrokeOf(link.bytes_per_us));
    if (joined.size() > 48) continue;
    // Off the middle, where lines cross.
    svg.Text(0.4 * x1 + 0.6 * x2, 0.4 * y1 + 0.6 * y2 - 3, Rate(link.bytes_per_us, link.latency_us),
             "middle", " stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\"");
  }
  for (int32_t v = 0; v < topology.num_vertices(); ++v) {
    const auto [x, y] = place(v);
    svg.Box(x - kDeviceWidth / 2, y - 14, kDeviceWidth, 28,
            v < devices ? kKindColors[machine.kind_index(v) % std::size(kKindColors)] : "#dde5ec");
    svg.Text(x, y + 4, topology.vertex_name(v), "middle");
  }
  return svg.Document(2 * center, 2 * center + 20);
}

}  // namespace

std::string MachineSvg(const Machine& machine) {
  return machine.topology.empty() ? MachineDrawing(machine).Draw() : DrawTopology(machine);
}

}  // namespace isomer
