#include "pcg/support/chrome_trace.h"

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

}  // namespace

Json TraceSpan(int64_t process, int64_t row, const std::string& name, double start_us, double us) {
  Json event = Event("X", process, row, name);
  event["ts"] = start_us;
  event["dur"] = us;
  return event;
}

Json TraceProcessName(int64_t process, const std::string& name) {
  return Named("process_name", process, 0, name);
}

Json TraceRowName(int64_t process, int64_t row, const std::string& name) {
  return Named("thread_name", process, row, name);
}

}  // namespace isomer
