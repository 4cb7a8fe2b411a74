#ifndef ISOMER_RUNTIME_DATA_DATA_FILE_H_
#define ISOMER_RUNTIME_DATA_DATA_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

// A regular file that is read in places, of any size: nothing of it is kept. It is read by pread
// and not mapped, so that a file which somebody cuts short during a training is an error of the
// step that reads it, and no signal. Reading is thread-safe.
class DataFile {
 public:
  // Errors: "x.npy: no such file", "x.npy: is a directory", "/dev/zero: is no regular file",
  // "x.npy: is empty".
  static absl::StatusOr<std::shared_ptr<const DataFile>> Open(const std::string& path);
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // in bytes, when it was opened
  // Of the size and the first and last 64 KiB.
  uint64_t fingerprint() const { return fingerprint_; }

  // Exactly so many bytes. REQUIRES: offset + bytes <= size().
  absl::Status ReadAt(int64_t offset, int64_t bytes, void* to) const;
  // Fewer than `most` bytes where the file ends.
  absl::StatusOr<std::string> ReadSome(int64_t offset, int64_t most) const;

  // InvalidArgument: "x.npy: WHAT".
  absl::Status Error(absl::string_view what) const;

 private:
  DataFile(std::string path, int file, int64_t size)
      : path_(std::move(path)), file_(file), size_(size) {}

  const std::string path_;
  const int file_;
  const int64_t size_;
  uint64_t fingerprint_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_DATA_FILE_H_
