#include "optimizer/report/timeline_svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/report/explanation.h"
#include "optimizer/report/task_class.h"
#include "optimizer/report/xml_text.h"

namespace isomer {
namespace {

constexpr double kLeft = 150, kTop = 58, kWidth = 1200, kRow = 15, kRowBar = 12, kDeviceGap = 6;
constexpr int kMaxLinks = 24;

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
                  const Machine& machine, int max_devices)
      : graph_(graph), schedule_(schedule), simulation_(simulation), machine_(machine) {
    AddRows(std::min<int64_t>(max_devices, machine.num_devices()));
    critical_.assign(simulation.tasks.size(), false);
    for (const CriticalTask& c : CriticalPath(simulation.tasks, simulation.timeline)) {
      critical_[c.task] = true;
    }
  }

  std::string Run() {
    const double span = std::max(simulation_.step_us * schedule_.num_steps(), 1e-3);
    scale_ = kWidth / span;
    std::string text = absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        kLeft + kWidth + 20, height_ + 24);
    absl::StrAppend(&text, Header(), Axis(span));
    for (const auto& [queue, row] : rows_) {
      absl::StrAppendFormat(&text, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                            kLeft - 6, row.y + kRowBar - 2, XmlText(row.name));
    }
    absl::StrAppend(&text, Bars(false), Bars(true));
    return absl::StrCat(text, "</svg>\n");
  }

 private:
  struct Row {
    double y;
    std::string name;
  };

  void AddRows(int64_t devices) {
    std::vector<bool> used(NumQueues(machine_), false);
    for (int32_t t = 0; t < simulation_.tasks.size(); ++t) {
      if (simulation_.tasks.duration(t) == 0) continue;
      for (int32_t queue : simulation_.tasks.queues(t)) used[queue] = true;
    }
    double y = kTop;
    for (int32_t d = 0; d < devices; ++d) {
      for (int32_t q = 0; q < kMostQueues; ++q) {
        const int32_t queue = QueueOfDevice(d, q);
        if (!used[queue]) continue;
        rows_[queue] = {
            y, absl::StrCat("device ", d, " ", q == kCommunicationQueue ? "comm" : QueueName(q))};
        y += kRow;
      }
      y += kDeviceGap;
    }
    int links = 0;
    for (LinkId id = 0; id < machine_.num_links() && links < kMaxLinks; ++id) {
      if (!used[LinkQueue(machine_, id)]) continue;
      rows_[LinkQueue(machine_, id)] = {y, machine_.LinkName(id)};
      y += kRow;
      ++links;
    }
    height_ = y;
  }

  std::string Header() const {
    std::string text = absl::StrFormat(
        "<text x=\"%.0f\" y=\"16\" font-size=\"13\">%s: %s of %.1f us%s</text>\n", kLeft,
        XmlText(machine_.ToString()),
        schedule_.num_steps() == 1 ? "a step" : absl::StrCat(schedule_.num_steps(), " steps, each"),
        simulation_.step_us,
        static_cast<int64_t>(rows_.size()) < machine_.num_devices() ? " (some devices)" : "");
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
                          "<rect x=\"%.0f\" y=\"24\" width=\"10\" height=\"10\" fill=\"none\" "
                          "stroke=\"black\"/><text x=\"%.0f\" y=\"33\">critical path</text>\n",
                          x, x + 14);
    return text;
  }

  std::string Axis(double span) const {
    std::string text;
    const double tick = TickOf(span);
    const bool ms = tick >= 1000;
    for (double us = 0; us <= span; us += tick) {
      const double x = kLeft + us * scale_;
      absl::StrAppendFormat(&text,
                            "<line x1=\"%.1f\" y1=\"%.0f\" x2=\"%.1f\" y2=\"%.0f\" "
                            "stroke=\"#dddddd\"/>"
                            "<text x=\"%.1f\" y=\"50\" text-anchor=\"middle\">%g %s</text>\n",
                            x, kTop - 4, x, height_, x, ms ? us / 1000 : us, ms ? "ms" : "us");
    }
    return text;
  }

  // The critical path is drawn on top. Adjacent bars of one colour below a third of a pixel are
  // merged.
  std::string Bars(bool critical) const {
    struct Bar {
      double begin = 0, end = -1;
      int task_class = -1;
      std::string name;
    };
    std::string text;
    std::map<int32_t, Bar> open;
    auto close = [&](int32_t queue, const Bar& bar) {
      if (bar.task_class < 0) return;
      absl::StrAppendFormat(
          &text,
          "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.0f\" fill=\"%s\"%s>"
          "<title>%s</title></rect>\n",
          bar.begin, rows_.at(queue).y, std::max(bar.end - bar.begin, 0.3), kRowBar,
          kFills[bar.task_class], critical ? " stroke=\"black\" stroke-width=\"0.7\"" : "",
          XmlText(bar.name));
    };
    for (int32_t t = 0; t < simulation_.tasks.size(); ++t) {
      if (critical_[t] != critical || simulation_.tasks.duration(t) == 0) continue;
      const Task& task = schedule_.tasks[t];
      const int task_class = static_cast<int>(ClassOf(task));
      const double begin = kLeft + scale_ * MicrosecondsOf(simulation_.timeline.start[t]);
      for (int32_t queue : simulation_.tasks.queues(t)) {
        if (!rows_.contains(queue)) continue;
        const double end = begin + scale_ * MicrosecondsOf(simulation_.tasks.occupied(t, queue));
        Bar& bar = open[queue];
        if (bar.task_class == task_class && begin - bar.end < 0.3 && end - bar.begin < 0.3) {
          bar.end = end;
          continue;
        }
        close(queue, bar);
        bar = {begin, end, task_class,
               absl::StrFormat("%s, %.2f us", TaskLabel(graph_, task),
                               MicrosecondsOf(simulation_.tasks.duration(t)))};
      }
    }
    for (const auto& [queue, bar] : open) close(queue, bar);
    return text;
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const Simulation& simulation_;
  const Machine& machine_;
  std::map<int32_t, Row> rows_;  // by queue
  std::vector<bool> critical_;   // per task
  double height_ = 0, scale_ = 1;
};

}  // namespace

std::string TimelineSvg(const Graph& graph, const Schedule& schedule, const Simulation& simulation,
                        const Machine& machine, int max_devices) {
  return TimelineDrawing(graph, schedule, simulation, machine, max_devices).Run();
}

}  // namespace isomer
