// How much memory a thread has taken from the heap, kernels' libraries included: what a device
// needs beside the arena of its schedule (scratch, packed weights, pieces of messages) is measured,
// not estimated. malloc and its kin are replaced by ones that count and pass on to glibc's.
#ifndef ISOMER_RUNTIME_DEVICE_ALLOCATION_COUNT_H_
#define ISOMER_RUNTIME_DEVICE_ALLOCATION_COUNT_H_

#include <cstdint>

namespace isomer {

// Bytes that the calling thread allocated and did not free; the most since the last reset. What one
// thread frees of another's counts as freed by the one that frees.
struct Allocations {
  int64_t live = 0, peak = 0;
};
// Always zero where nothing is counted: under sanitizers, which replace malloc themselves, and with
// other C libraries.
Allocations ThreadAllocations();
// peak := live.
void ResetPeakAllocations();
bool AllocationsAreCounted();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_ALLOCATION_COUNT_H_
