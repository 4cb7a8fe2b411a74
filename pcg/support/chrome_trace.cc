#include "pcg/support/chrome_trace.h"

#include <utility>

namespace isomer {
namespace {

Json Event(const char* phase, int64_t process, int64_t row, const std::string& name) {
  Json event;
  event["name"] = name;
  event["ph"] = phase;
  event["pid"] = process;
  event["tid"] = row;
  return event;
}

Json Named(const char* what, int64_t process, int64_t row, const std::string& name) {
  Json event = Event("M", process, row, what);
  event["args"]["name"] = name;
  return event;
}

// One end of an arrow; both ends have its id and name.
Json ArrowEvent(const char* phase, int64_t process, int64_t row, int64_t id,
                const std::string& name, double at_us) {
  Json event = Event(phase, process, row, name);
  event["cat"] = "wait";
  event["id"] = id;
  event["ts"] = at_us;
  return event;
}

}  // namespace

Json TraceSpan(int64_t process, int64_t row, const std::string& name, double start_us, double us) {
  Json event = Event("X", process, row, name);
  event["ts"] = start_us;
  event["dur"] = us;
  return event;
}

Json TraceCounter(int64_t process, const std::string& name, double at_us, Json values) {
  Json event = Event("C", process, 0, name);
  event["ts"] = at_us;
  event["args"] = std::move(values);
  return event;
}

Json TraceArrowStart(int64_t process, int64_t row, int64_t id, const std::string& name,
                     double at_us) {
  return ArrowEvent("s", process, row, id, name, at_us);
}

Json TraceArrowEnd(int64_t process, int64_t row, int64_t id, const std::string& name,
                   double at_us) {
  Json event = ArrowEvent("f", process, row, id, name, at_us);
  event["bp"] = "e";  // the span that encloses the time, not the next one
  return event;
}

Json TraceProcessPlace(int64_t process, int64_t place) {
  Json event = Event("M", process, 0, "process_sort_index");
  event["args"]["sort_index"] = place;
  return event;
}

Json TraceProcessName(int64_t process, const std::string& name) {
  return Named("process_name", process, 0, name);
}

Json TraceRowName(int64_t process, int64_t row, const std::string& name) {
  return Named("thread_name", process, row, name);
}

}  // namespace isomer
