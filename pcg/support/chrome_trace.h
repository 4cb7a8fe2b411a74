// Events of Chrome traces, which Perfetto and chrome://tracing show: of processes, in rows.
#ifndef ISOMER_PCG_SUPPORT_CHROME_TRACE_H_
#define ISOMER_PCG_SUPPORT_CHROME_TRACE_H_

#include <cstdint>
#include <string>

#include "pcg/support/json.h"

namespace isomer {

// From `start_us` on for `us`; both in microseconds.
Json TraceSpan(int64_t process, int64_t row, const std::string& name, double start_us, double us);
Json TraceProcessName(int64_t process, const std::string& name);
Json TraceRowName(int64_t process, int64_t row, const std::string& name);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_CHROME_TRACE_H_
