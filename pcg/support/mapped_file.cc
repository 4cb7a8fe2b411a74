#include "pcg/support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// A file by what it is, whatever has its name later on.
using Identity = std::tuple<dev_t, ino_t, off_t, time_t, long>;  // NOLINT: as stat has it

}  // namespace

absl::StatusOr<MappedFile> MapFile(const std::string& path) {
  static std::mutex mutex;
  static auto* const known = new std::map<Identity, std::weak_ptr<const char>>;
  const auto error = [&](const char* what) {
    return absl::NotFoundError(absl::StrCat(path, what, std::strerror(errno)));
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return error(": ");
  const absl::Cleanup closes = [file] { close(file); };
  struct stat status = {};
  if (fstat(file, &status) != 0) return error(": ");
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no regular file"));
  }
  const size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile();
  // One mapping of each file, while anybody has values in it.
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<const char>& one = (*known)[{status.st_dev, status.st_ino, status.st_size,
                                             status.st_mtim.tv_sec, status.st_mtim.tv_nsec}];
  MappedFile mapping = {one.lock(), status.st_size};
  if (mapping.bytes != nullptr) return mapping;
  void* const begin = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  if (begin == MAP_FAILED) return error(": cannot be mapped: ");
  mapping.bytes =
      std::shared_ptr<const char>(static_cast<const char*>(begin),
                                  [size](const char* at) { munmap(const_cast<char*>(at), size); });
  one = mapping.bytes;
  return mapping;
}

void MappedFile::LetGo(int64_t offset, int64_t count) const {
  // Of whole pages; others may need the first and the last.
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t first = (offset + page - 1) / page * page;
  const int64_t whole = (offset + count - first) / page * page;
  if (whole <= 0) return;
  madvise(const_cast<char*>(bytes.get()) + first, static_cast<size_t>(whole), MADV_DONTNEED);
}

absl::StatusOr<FileContents> OpenFile(const std::string& path, int64_t most_read) {
  FileContents contents;
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > most_read) {
    ISOMER_ASSIGN_OR_RETURN(contents.mapping, MapFile(path));
  } else {
    ISOMER_ASSIGN_OR_RETURN(contents.read, ReadFile(path));
  }
  return contents;
}

}  // namespace isomer
