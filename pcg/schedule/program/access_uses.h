// Who used the bytes of a device last, by what commands touch.
#ifndef ISOMER_PCG_SCHEDULE_PROGRAM_ACCESS_USES_H_
#define ISOMER_PCG_SCHEDULE_PROGRAM_ACCESS_USES_H_

#include <array>

#include "pcg/schedule/memory/byte_uses.h"
#include "pcg/schedule/program/program.h"

namespace isomer {

class AccessUses {
 public:
  // The next command, `place` of the device's list, and those that it comes after.
  QueueClock Add(const Accesses& bytes, int32_t queue, int32_t place) {
    QueueClock after = kNothingOver;
    for (const ByteRange& range : bytes.reads) {
      uses_[range.on_host].Read(range.begin, range.end, queue, place, &after);
    }
    for (const ByteRange& range : bytes.writes) {
      uses_[range.on_host].Write(range.begin, range.end, queue, place, &after);
    }
    return after;
  }
  void Clear() {
    for (ByteUses& uses : uses_) uses.Clear();
  }

 private:
  std::array<ByteUses, 2> uses_;  // of the device, and on the host
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_PROGRAM_ACCESS_USES_H_
