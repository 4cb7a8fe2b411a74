#include "runtime/data/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int64_t kFingerprintBytes = int64_t{64} << 10;

absl::Status FileErrorOf(const std::string& path, int error) {
  const std::string name = path.empty() ? "(empty file name)" : path;
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat(name, ": no such file"));
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", absl::AsciiStrToLower(std::strerror(error))));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DataFile>> DataFile::Open(const std::string& path) {
  // Who opens a pipe would wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return FileErrorOf(path, errno);
  struct stat status = {};
  const int error = fstat(descriptor, &status) == 0 ? 0 : errno;
  const std::shared_ptr<DataFile> file(new DataFile(path, descriptor, status.st_size));
  if (error != 0) return FileErrorOf(path, error);
  if (S_ISDIR(status.st_mode)) return file->Error("is a directory");
  if (!S_ISREG(status.st_mode)) return file->Error("is no regular file");
  if (file->size_ == 0) return file->Error("is empty");
  ISOMER_ASSIGN_OR_RETURN(const std::string head, file->ReadSome(0, kFingerprintBytes));
  ISOMER_ASSIGN_OR_RETURN(
      const std::string tail,
      file->ReadSome(std::max<int64_t>(0, file->size_ - kFingerprintBytes), kFingerprintBytes));
  file->fingerprint_ = HashCombine(HashBytes(head), HashBytes(tail), file->size_);
  return std::shared_ptr<const DataFile>(file);
}

DataFile::~DataFile() { close(file_); }

absl::Status DataFile::Error(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": ", what));
}

absl::Status DataFile::ReadAt(int64_t offset, int64_t bytes, void* to) const {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t count = pread(file_, at, bytes, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileErrorOf(path_, errno);
    if (count == 0) {
      return Error(absl::StrCat("it ends at byte ", offset, " of the ", size_, " that it had"));
    }
    at += count;
    offset += count;
    bytes -= count;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DataFile::ReadSome(int64_t offset, int64_t most) const {
  std::string bytes(std::clamp<int64_t>(size_ - offset, 0, most), '\0');
  ISOMER_RETURN_IF_ERROR(ReadAt(offset, static_cast<int64_t>(bytes.size()), bytes.data()));
  return bytes;
}

}  // namespace isomer
