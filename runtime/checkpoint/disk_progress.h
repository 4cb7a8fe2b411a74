// Whether a disk goes on with what it was asked for. A call of the system that writes a few
// megabytes may take long; one that takes longer than a run may stand still is a disk, or a server
// of files, that does not answer.
#ifndef ISOMER_RUNTIME_CHECKPOINT_DISK_PROGRESS_H_
#define ISOMER_RUNTIME_CHECKPOINT_DISK_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/device/control_plane.h"

namespace isomer {

// Of this process: that the one before has returned, and what it is asked for now. `call` lives for
// ever.
void NoteDiskCall(const char* call);

// What a process says of that to others: "busy 17 fdatasync".
std::string DiskWord();
bool IsDiskWord(absl::string_view word);

// Whose disk stands still. `timeout` 0: nobody's.
class DiskWatch {
 public:
  explicit DiskWatch(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  // The newest word of a rank. Error: it has been the same for so long.
  absl::Status Check(int32_t rank, absl::string_view word);

 private:
  struct Last {
    std::string word;
    std::chrono::steady_clock::time_point since;
  };
  const std::chrono::milliseconds timeout_;
  std::map<int32_t, Last> last_;
};

// Does `work`, which tells by NoteDiskCall how it goes on. If it does not for `timeout`, the job
// ends, and the process with its last resort: `work` cannot be ended. `control`: null, or that of
// the job.
absl::Status DoInTime(std::chrono::milliseconds timeout, ControlPlane* control,
                      const std::function<absl::Status()>& work);
// As DoInTime, for results of `bytes` that are written while nobody can see how far the disk is:
// the slowest that is one is waited for.
absl::Status WriteInTime(std::chrono::milliseconds timeout, int64_t bytes, ControlPlane* control,
                         const std::function<absl::Status()>& write);
// Ends the job with `status`, and this process even if a call of the system never returns.
void GiveUpOnDisk(const absl::Status& status, ControlPlane* control);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKPOINT_DISK_PROGRESS_H_
