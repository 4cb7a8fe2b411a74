// The end of a process that ought to have ended by itself and has not: its thread computes for
// long, or a disk does not answer it.
#ifndef ISOMER_RUNTIME_DEVICE_LAST_RESORT_H_
#define ISOMER_RUNTIME_DEVICE_LAST_RESORT_H_

#include <chrono>
#include <functional>

#include "absl/status/status.h"

namespace isomer {

// How long a process that has an error may take to end by itself.
inline constexpr std::chrono::milliseconds kTimeToEnd{1000};

// What a program does then: says `why`, if nobody has, and ends the process. Without one nothing is
// done.
void SetLastResort(std::function<void(const absl::Status& why)> end);
// From any thread, when the process has an error that ends it: the clock begins with the first.
void ArmLastResort(const absl::Status& why);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_LAST_RESORT_H_
