#ifndef ISOMER_RUNTIME_LOGGING_PROCESS_MEMORY_H_
#define ISOMER_RUNTIME_LOGGING_PROCESS_MEMORY_H_

#include <cstdint>

namespace isomer {

// How much of this process lies in memory: now, and at most so far. 0: the system does not say.
int64_t ResidentBytes();
int64_t MostResidentBytes();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_LOGGING_PROCESS_MEMORY_H_
