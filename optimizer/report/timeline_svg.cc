#include "optimizer/report/timeline_svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/machine/machine_units.h"
#include "optimizer/report/explanation.h"
#include "optimizer/report/shown_devices.h"
#include "optimizer/report/task_class.h"
#include "optimizer/report/timeline_rows.h"
#include "optimizer/report/xml_text.h"

namespace isomer {
namespace {

constexpr double kLeft = 245, kTop = 58, kWidth = 1200, kRow = 16, kRowBar = 11, kDeviceGap = 7;
constexpr double kTooltipWidth = 3;  // of bars that have one, in pixels
// Bars of all rows together: more would be a file of megabytes that shows no more.
constexpr size_t kMostBars = 9000, kFewestBars = 200;
constexpr size_t kMostLinks = 12;

// By TaskClass.
constexpr const char* kFills[] = {"#4c78a8", "#8fb3d9", "#72b7b2", "#9d7bb8",
                                  "#b0b0b0", "#e45756", "#f2a541"};

// 1, 2 or 5 times a power of ten, about a tenth of `span`.
double TickOf(double span) {
  const double power = std::pow(10, std::floor(std::log10(span / 8)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (span / (factor * power) <= 10) return factor * power;
  }
  return 10 * power;
}

class TimelineDrawing {
 public:
  TimelineDrawing(const Graph& graph, const Schedule& schedule, const Simulation& simulation,
                  const Machine& machine)
      : graph_(graph),
        schedule_(schedule),
        simulation_(simulation),
        machine_(machine),
        stages_(StageDevicesOf(schedule)) {
    const size_t rows = kMostQueues * ShownDevices(schedule).size();
    rows_ = TimelineRows(schedule, simulation,
                         std::max(kFewestBars, kMostBars / std::max<size_t>(1, rows)));
    critical_.assign(simulation.tasks.size(), false);
    for (const CriticalTask& c : CriticalPath(simulation.tasks, simulation.timeline)) {
      critical_[c.task] = true;
    }
    span_us_ = std::max(MicrosecondsOf(simulation.timeline.makespan), 1e-3);
  }

  std::string Run() {
    std::string rows;
    double y = kTop;
    int32_t device = -1;
    for (const TimelineRow& row : rows_) {
      if (row.of.device != device) {
        if (device >= 0) y += kDeviceGap;
        device = row.of.device;
        absl::StrAppendFormat(&rows, "<text x=\"4\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n",
                              y + kRowBar - 1, DeviceName(row.of));
      }
      absl::StrAppend(&rows, RowName(y, QueueLabel(row.queue)), Bars(row, y),
                      CriticalLine(QueueOfDevice(device, row.queue), y));
      y += kRow;
    }
    y += kDeviceGap;
    for (LinkId link : BusiestLinks()) {
      absl::StrAppend(&rows, RowName(y, machine_.LinkName(link)), LinkBars(link, y));
      y += kRow;
    }
    const std::string head = absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        kLeft + kWidth + 30, y + 24);
    return absl::StrCat(head, Header(), Axis(y), rows, "</svg>\n");
  }

 private:
  // "stage 3: 48 of 48 to 63", or "device 5".
  std::string DeviceName(const ShownDevice& of) const {
    if (stages_.size() == 1) return absl::StrCat("device ", of.device);
    const StageDevices& stage = stages_[of.stage];
    return absl::StrCat(
        "stage ", of.stage, ": ", of.device,
        stage.last > stage.first ? absl::StrCat(" of ", stage.first, " to ", stage.last) : "");
  }

  static std::string QueueLabel(int32_t queue) {
    return queue == kCommunicationQueue ? "comm" : QueueName(queue);
  }

  static std::string RowName(double y, const std::string& name) {
    return absl::StrFormat("<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", kLeft - 6,
                           y + kRowBar - 1, XmlText(name));
  }

  double XOf(Picoseconds at) const { return kLeft + kWidth * MicrosecondsOf(at) / span_us_; }

  // Those that tasks occupy for longest.
  std::vector<LinkId> BusiestLinks() const {
    std::map<LinkId, double> busy_us;
    const int32_t first = LinkQueue(machine_, 0);
    for (int32_t t = 0; t < simulation_.tasks.size(); ++t) {
      for (int32_t queue : simulation_.tasks.queues(t)) {
        if (queue < first) continue;
        busy_us[queue - first] += MicrosecondsOf(simulation_.tasks.occupied(t, queue));
      }
    }
    std::vector<LinkId> links;
    for (const auto& [link, us] : busy_us) links.push_back(link);
    std::stable_sort(links.begin(), links.end(),
                     [&](LinkId a, LinkId b) { return busy_us[a] > busy_us[b]; });
    links.resize(std::min(links.size(), kMostLinks));
    std::sort(links.begin(), links.end());
    return links;
  }

  std::string Header() const {
    const size_t simulated = SimulatedDevices(schedule_).size();
    std::map<int32_t, int> shown;
    for (const TimelineRow& row : rows_) ++shown[row.of.device];
    const bool all = shown.size() == static_cast<size_t>(machine_.num_devices());
    std::string text = absl::StrFormat(
        "<text x=\"%.0f\" y=\"16\" font-size=\"13\">%s: %s of %s%s</text>\n", kLeft,
        XmlText(machine_.ToString()),
        schedule_.num_steps() == 1 ? "a step" : absl::StrCat(schedule_.num_steps(), " steps, each"),
        TimeText(simulation_.step_us),
        all ? ""
            : absl::StrCat("; ", shown.size(), " of ", machine_.num_devices(), " devices",
                           shown.size() < simulated ? ", the first of each stage" : ""));
    if (simulation_.micro_batches > simulation_.simulated_micro_batches) {
      absl::StrAppendFormat(&text, "<text x=\"4\" y=\"33\">%d of %d micro-batches</text>\n",
                            simulation_.simulated_micro_batches, simulation_.micro_batches);
    }
    double x = kLeft;
    for (int c = 0; c < kNumTaskClasses; ++c) {
      const std::string what = TaskClassName(static_cast<TaskClass>(c));
      absl::StrAppendFormat(&text,
                            "<rect x=\"%.0f\" y=\"24\" width=\"10\" height=\"10\" fill=\"%s\"/>"
                            "<text x=\"%.0f\" y=\"33\">%s</text>\n",
                            x, kFills[c], x + 14, what);
      x += 34 + 6.2 * static_cast<double>(what.size());
    }
    absl::StrAppendFormat(&text,
                          "<rect x=\"%.0f\" y=\"28\" width=\"12\" height=\"2\"/>"
                          "<text x=\"%.0f\" y=\"33\">critical path</text>\n",
                          x, x + 16);
    return text;
  }

  std::string Axis(double height) const {
    std::string text;
    const double tick = TickOf(span_us_);
    const bool ms = tick >= 1000;
    for (double us = 0; us <= span_us_; us += tick) {
      const double x = kLeft + kWidth * us / span_us_;
      absl::StrAppendFormat(&text,
                            "<line x1=\"%.1f\" y1=\"%.0f\" x2=\"%.1f\" y2=\"%.0f\" "
                            "stroke=\"#dddddd\"/>"
                            "<text x=\"%.1f\" y=\"50\" text-anchor=\"middle\">%g %s</text>\n",
                            x, kTop - 4, x, height, x, ms ? us / 1000 : us, ms ? "ms" : "us");
    }
    return text;
  }

  // Narrow bars of a class are one path; the others are rectangles with tooltips.
  std::string Bars(const TimelineRow& row, double y) const {
    std::string wide;
    std::map<TaskClass, std::string> narrow;
    for (const TimelineSpan& span : row.spans) {
      const double x = XOf(span.start), width = std::max(0.3, XOf(span.end) - x);
      if (width < kTooltipWidth) {
        absl::StrAppendFormat(&narrow[span.task_class], "M%.1f %.0fh%.1fv%.0fh-%.1fz", x, y, width,
                              kRowBar, width);
        continue;
      }
      absl::StrAppendFormat(&wide,
                            "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%.0f\" "
                            "fill=\"%s\"><title>%s</title></rect>\n",
                            x, y, width, kRowBar, kFills[static_cast<int>(span.task_class)],
                            XmlText(TooltipOf(span)));
    }
    for (const auto& [task_class, path] : narrow) {
      absl::StrAppendFormat(&wide, "<path fill=\"%s\" d=\"%s\"/>\n",
                            kFills[static_cast<int>(task_class)], path);
    }
    return wide;
  }

  std::string TooltipOf(const TimelineSpan& span) const {
    const double us = MicrosecondsOf(span.end - span.start);
    if (span.task >= 0) {
      return absl::StrCat(TaskLabel(graph_, schedule_.tasks[span.task]), ", ", TimeText(us));
    }
    return absl::StrCat(span.tasks, " tasks, ", TaskClassName(span.task_class),
                        span.moment == kNoMoment ? "" : absl::StrCat(", micro-batch ", span.moment),
                        ", ", TimeText(us));
  }

  // Neighbours closer than a third of a pixel are one.
  std::string CriticalLine(int32_t queue, double y) const {
    std::string path;
    double begin = 0, end = -1;
    const auto close = [&] {
      if (end > begin)
        absl::StrAppendFormat(&path, "M%.1f %.1fh%.1f", begin, y + kRowBar + 1, end - begin);
    };
    for (int32_t t = 0; t < simulation_.tasks.size(); ++t) {
      const auto queues = simulation_.tasks.queues(t);
      if (!critical_[t] || simulation_.tasks.duration(t) == 0 ||
          std::find(queues.begin(), queues.end(), queue) == queues.end()) {
        continue;
      }
      const double x = XOf(simulation_.timeline.start[t]);
      if (x - end > 0.3) {
        close();
        begin = x;
      }
      end = std::max(XOf(simulation_.timeline.end[t]), begin + 0.3);
    }
    close();
    if (path.empty()) return path;
    return absl::StrCat("<path stroke=\"black\" stroke-width=\"2\" d=\"", path, "\"/>\n");
  }

  std::string LinkBars(LinkId link, double y) const {
    const int32_t queue = LinkQueue(machine_, link);
    std::string path;
    double end = -1;
    for (int32_t t = 0; t < simulation_.tasks.size(); ++t) {
      const auto queues = simulation_.tasks.queues(t);
      if (std::find(queues.begin(), queues.end(), queue) == queues.end()) continue;
      const Picoseconds start = simulation_.timeline.start[t];
      const double x = std::max(end, XOf(start));
      const double width = XOf(start + simulation_.tasks.occupied(t, queue)) - x;
      if (width < 0.1) continue;
      absl::StrAppendFormat(&path, "M%.1f %.0fh%.1fv%.0fh-%.1fz", x, y, width, kRowBar, width);
      end = x + width;
    }
    return absl::StrCat("<path fill=\"#888888\" d=\"", path, "\"/>\n");
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const Simulation& simulation_;
  const Machine& machine_;
  const std::vector<StageDevices> stages_;
  std::vector<TimelineRow> rows_;
  std::vector<bool> critical_;  // per task
  double span_us_ = 1;
};

}  // namespace

std::string TimelineSvg(const Graph& graph, const Schedule& schedule, const Simulation& simulation,
                        const Machine& machine) {
  return TimelineDrawing(graph, schedule, simulation, machine).Run();
}

}  // namespace isomer
