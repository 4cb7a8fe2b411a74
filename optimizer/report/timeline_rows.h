// A simulated step as rows of spans: a row for each queue of the devices that are shown.
#ifndef ISOMER_OPTIMIZER_REPORT_TIMELINE_ROWS_H_
#define ISOMER_OPTIMIZER_REPORT_TIMELINE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "optimizer/cost/timeline.h"
#include "optimizer/report/shown_devices.h"
#include "optimizer/report/task_class.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

struct TimelineSpan {
  Picoseconds start = 0, end = 0;
  TaskClass task_class = TaskClass::kOther;
  int32_t moment = kNoMoment;
  int64_t tasks = 1;
  int32_t task = -1;        // of one
  Picoseconds longest = 0;  // of the class that it shows
};

struct TimelineRow {
  ShownDevice of;
  int32_t queue = 0;  // of the device's program
  std::vector<TimelineSpan> spans;
};

// Rows without spans are left out. Where a row would have more than `most_spans`, neighbours of one
// class and micro-batch are one span, and so are those too short to be seen. `simulation` is that
// of `schedule`.
std::vector<TimelineRow> TimelineRows(const Schedule& schedule, const Simulation& simulation,
                                      size_t most_spans);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_TIMELINE_ROWS_H_
