// Where a kernel has what in its workspace (Kernel::workspace_bytes).
#ifndef ISOMER_RUNTIME_DEVICE_WORKSPACE_H_
#define ISOMER_RUNTIME_DEVICE_WORKSPACE_H_

#include <cstdint>

#include "pcg/schedule/memory/memory.h"

namespace isomer {

// Numbers in a workspace, by how far they are from its beginning.
template <typename Number>
struct Place {
  int64_t offset = 0;
  Number* In(char* workspace) const { return reinterpret_cast<Number*>(workspace + offset); }
};

// Gives out places side by side.
class WorkspacePlan {
 public:
  template <typename Number>
  Place<Number> Add(int64_t count) {
    const Place<Number> place{bytes_};
    bytes_ += Aligned(count * static_cast<int64_t>(sizeof(Number)));
    return place;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_WORKSPACE_H_
