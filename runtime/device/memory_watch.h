// A device's memory, watched while its queues run in any order: every byte that a command
// touches must have been left, in a way that the program's waits show, by those before it; and
// bytes that nobody reads any more are NaN.
#ifndef ISOMER_RUNTIME_DEVICE_MEMORY_WATCH_H_
#define ISOMER_RUNTIME_DEVICE_MEMORY_WATCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "pcg/schedule/program/access_uses.h"
#include "pcg/schedule/program/program.h"

namespace isomer {

class MemoryWatch {
 public:
  // REQUIRES: all arguments outlive it; `arena` is the device's memory. Fills it with NaN.
  MemoryWatch(const Schedule& schedule, const MemoryPlan& memory,
              const std::vector<Command>& program, int32_t device, char* arena, char* host_arena);

  // A run of the commands that are selected begins, or of some of them, with the others to follow.
  void Begin(const std::function<bool(int32_t place)>& selects);
  // Command `place` begins, which knows of others that they are over. The error names the task
  // that used a byte without being among them.
  absl::Status Before(int32_t place, const QueueClock& over);
  // It is over: fills what it was the last to touch.
  void After(int32_t place);

 private:
  // Buffers that lie in one place, or in a row. Those that the host reads, or that stay, are not
  // filled.
  struct Group {
    int64_t begin = 0, end = 0;
    bool on_host = false;
    bool stays = false;
    int32_t left = 0;  // uses to come in this run
  };

  const Schedule& schedule_;
  const std::vector<Command>& program_;
  char* const arena_;
  char* const host_arena_;
  std::vector<Group> groups_;
  std::vector<std::vector<int32_t>> touched_;    // per command: groups
  std::vector<std::vector<ByteRange>> scratch_;  // per command
  AccessUses uses_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_MEMORY_WATCH_H_
