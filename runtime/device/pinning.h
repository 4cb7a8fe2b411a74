#ifndef ISOMER_RUNTIME_DEVICE_PINNING_H_
#define ISOMER_RUNTIME_DEVICE_PINNING_H_

#include <cstdint>

namespace isomer {

// Cores that the calling thread may run on: all that the process has, unless it was pinned.
int32_t UsableCores();

// From now on the calling thread runs on the index-th of them alone. False: it was not pinned,
// because there are fewer than `devices` (mpirun may have pinned the process already).
bool PinThisThread(int32_t index, int32_t devices);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_PINNING_H_
