// Events of Chrome traces, which Perfetto and chrome://tracing show: of processes, in rows.
#ifndef ISOMER_PCG_SUPPORT_CHROME_TRACE_H_
#define ISOMER_PCG_SUPPORT_CHROME_TRACE_H_

#include <cstdint>
#include <string>

#include "pcg/support/json.h"

namespace isomer {

// From `start_us` on for `us`; both in microseconds.
Json TraceSpan(int64_t process, int64_t row, const std::string& name, double start_us, double us);
// Values over time, drawn as areas on each other; `values` is an object of numbers.
Json TraceCounter(int64_t process, const std::string& name, double at_us, Json values);
// An arrow from the span of a row that is going on at one time to that at another. `id` is the
// arrow's own.
Json TraceArrowStart(int64_t process, int64_t row, int64_t id, const std::string& name,
                     double at_us);
Json TraceArrowEnd(int64_t process, int64_t row, int64_t id, const std::string& name, double at_us);
// The place of a process among all, from above.
Json TraceProcessPlace(int64_t process, int64_t place);
Json TraceProcessName(int64_t process, const std::string& name);
Json TraceRowName(int64_t process, int64_t row, const std::string& name);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_CHROME_TRACE_H_
