#include "pcg/support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/atomic_file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// "plan.pcg: permission denied". Codes stay few: every program answers each of them with exit 2.
absl::Status FileError(const std::string& path, int error) {
  std::string reason = absl::AsciiStrToLower(std::strerror(error));
  if (error == ENOENT) reason = "no such file";
  if (error == EISDIR) reason = "is a directory";
  std::string message = absl::StrCat(path.empty() ? "(empty file name)" : path, ": ", reason);
  return error == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }

 private:
  const int fd_;
};

// The file to replace, links followed; none for a pipe or device, which is written to directly.
absl::StatusOr<std::optional<std::string>> TargetOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return path;
  if (S_ISDIR(info.st_mode)) return FileError(path, EISDIR);
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  std::error_code ignored;
  const std::filesystem::path resolved = std::filesystem::canonical(path, ignored);
  return ignored ? path : resolved.string();
}

std::string TemporaryName(const std::string& target) {
  static std::atomic<int> counter = 0;
  return absl::StrCat(target, ".tmp.", getpid(), ".", counter++);
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string target, std::string temporary, int file)
    : path_(std::move(path)),
      target_(std::move(target)),
      temporary_(std::move(temporary)),
      file_(file) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : AtomicFile(std::move(other.path_), std::move(other.target_),
                 std::exchange(other.temporary_, ""), std::exchange(other.file_, -1)) {}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const std::optional<std::string> target, TargetOf(path));
  if (!target.has_value()) {
    const int device = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (device < 0) return FileError(path, errno);
    return AtomicFile(path, "", "", device);
  }
  const std::string temporary = TemporaryName(*target);
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0 && errno == ENOENT && !path.empty()) {
    return absl::NotFoundError(absl::StrCat(path, ": the folder to write to does not exist"));
  }
  if (file < 0) return FileError(path, errno);
  return AtomicFile(path, *target, temporary, file);
}

absl::Status AtomicFile::Append(absl::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = write(file_, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path_, errno);
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (!temporary_.empty() && fsync(file_) != 0) return FileError(path_, errno);
  if (close(std::exchange(file_, -1)) != 0) return FileError(path_, errno);
  if (temporary_.empty()) return absl::OkStatus();
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return FileError(path_, errno);
  temporary_.clear();
  // Makes the rename itself survive a crash. What is written is there in any case.
  SyncFolder(std::filesystem::path(target_).parent_path().string()).IgnoreError();
  return absl::OkStatus();
}

absl::Status SyncFolder(const std::string& folder) {
  const FileDescriptor file(
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0) return FileError(folder, errno);
  const bool is_done = fsync(file.get()) == 0 || errno == EINVAL || errno == ENOSYS;
  if (is_done) return absl::OkStatus();
  return FileError(folder, errno);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FileError(path, errno);
  std::string contents;
  struct stat info;
  if (fstat(file.get(), &info) != 0) return FileError(path, errno);
  if (S_ISREG(info.st_mode)) contents.reserve(info.st_size);
  // A device that gives more than this does not end.
  constexpr size_t kMostOfDevice = size_t{16} << 20;
  const bool is_device = S_ISCHR(info.st_mode);
  char buffer[1 << 16];
  while (true) {
    if (is_device && contents.size() > kMostOfDevice) {
      return absl::UnavailableError(absl::StrCat(path, ": is a device without an end"));
    }
    ssize_t count = read(file.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(path, errno);
    if (count == 0) return contents;
    contents.append(buffer, count);
  }
}

absl::Status CheckCanWrite(const std::string& path) {
  if (path.empty()) return FileError(path, ENOENT);
  ISOMER_ASSIGN_OR_RETURN(const std::optional<std::string> target, TargetOf(path));
  if (!target.has_value()) {
    return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : FileError(path, errno);
  }
  return AtomicFile::Create(path).status();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents) {
  ISOMER_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ISOMER_RETURN_IF_ERROR(file.Append(contents));
  return file.Commit();
}

}  // namespace isomer
