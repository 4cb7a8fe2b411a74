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

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
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
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  // 0 or -1 with errno, like close(2).
  int Close() {
    int result = fd_ >= 0 ? close(fd_) : 0;
    fd_ = -1;
    return result;
  }

 private:
  int fd_;
};

absl::Status WriteAll(int fd, const std::string& path, absl::string_view contents) {
  while (!contents.empty()) {
    ssize_t written = write(fd, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path, errno);
    contents.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status WriteDirectly(const std::string& path, absl::string_view contents) {
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return FileError(path, errno);
  return WriteAll(file.get(), path, contents);
}

absl::Status WriteSynced(const std::string& temporary, const std::string& path,
                         absl::string_view contents) {
  FileDescriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0 && errno == ENOENT && !path.empty()) {
    return absl::NotFoundError(absl::StrCat(path, ": the folder to write to does not exist"));
  }
  if (file.get() < 0) return FileError(path, errno);
  ISOMER_RETURN_IF_ERROR(WriteAll(file.get(), path, contents));
  if (fsync(file.get()) != 0 || file.Close() != 0) return FileError(path, errno);
  return absl::OkStatus();
}

// Makes the rename itself survive a crash. Some file systems cannot sync a folder: not an error.
void SyncFolder(const std::filesystem::path& folder) {
  FileDescriptor file(
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() >= 0) (void)fsync(file.get());
}

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
  const std::string temporary = TemporaryName(*target);
  const absl::Status status = WriteSynced(temporary, path, "");
  unlink(temporary.c_str());
  return status;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents) {
  ISOMER_ASSIGN_OR_RETURN(const std::optional<std::string> target, TargetOf(path));
  if (!target.has_value()) return WriteDirectly(path, contents);
  const std::string temporary = TemporaryName(*target);
  absl::Status status = WriteSynced(temporary, path, contents);
  if (status.ok() && rename(temporary.c_str(), target->c_str()) != 0) {
    status = FileError(path, errno);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  SyncFolder(std::filesystem::path(*target).parent_path());
  return absl::OkStatus();
}

}  // namespace isomer
