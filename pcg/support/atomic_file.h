#ifndef ISOMER_PCG_SUPPORT_ATOMIC_FILE_H_
#define ISOMER_PCG_SUPPORT_ATOMIC_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

// A file that is written piece by piece to a temporary name beside its path, and gets its name when
// all of it is on the disk: a reader sees the old file or the new one and never a part. A symbolic
// link is followed; a pipe or device is written to directly. Errors name the path.
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  // What was not committed is gone.
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  absl::Status Append(absl::string_view contents);
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string target, std::string temporary, int file);

  std::string path_;
  std::string target_, temporary_;  // "": it is written to directly
  int file_;                        // -1: closed
};

// Until the disk has the names in a folder, "" being the current one. Some file systems have
// nothing to sync: not an error.
absl::Status SyncFolder(const std::string& folder);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_ATOMIC_FILE_H_
