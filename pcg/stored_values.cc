#include "pcg/stored_values.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/half.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct Mapping {
  std::shared_ptr<const char> bytes;
  int64_t size = 0;
};

// A file by what it is, whatever has its name later on.
using Identity = std::tuple<dev_t, ino_t, off_t, time_t, long>;  // NOLINT: as stat has it

absl::StatusOr<Mapping> MapFile(const std::string& path) {
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
  if (size == 0) return Mapping();
  // One mapping of each file, while anybody has values in it.
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<const char>& one = (*known)[{status.st_dev, status.st_ino, status.st_size,
                                             status.st_mtim.tv_sec, status.st_mtim.tv_nsec}];
  Mapping mapping = {one.lock(), status.st_size};
  if (mapping.bytes != nullptr) return mapping;
  void* const begin = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  if (begin == MAP_FAILED) return error(": cannot be mapped: ");
  mapping.bytes =
      std::shared_ptr<const char>(static_cast<const char*>(begin),
                                  [size](const char* at) { munmap(const_cast<char*>(at), size); });
  one = mapping.bytes;
  return mapping;
}

template <typename Stored>
float ElementAt(const char* data, size_t i) {
  Stored value;
  std::memcpy(&value, data + i * sizeof(Stored), sizeof(Stored));
  return static_cast<float>(value);
}

}  // namespace

StoredValues::StoredValues(std::vector<float> values)
    : held_(std::make_shared<const std::vector<float>>(std::move(values))),
      data_(reinterpret_cast<const char*>(held_->data())),
      size_(held_->size()) {}

StoredValues::StoredValues(std::initializer_list<float> values)
    : StoredValues(std::vector<float>(values)) {}

absl::StatusOr<StoredValues> StoredValues::InFile(FileRange range) {
  if (!IsFloat(range.dtype) || range.offset < 0 || range.elements < 0) {
    return absl::InvalidArgumentError(absl::StrCat(range.path, ": no range of floats"));
  }
  ISOMER_ASSIGN_OR_RETURN(const Mapping mapping, MapFile(range.path));
  if (mapping.size != range.file_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(range.path, " has ", mapping.size,
                                                      " bytes; the file that is meant has ",
                                                      range.file_bytes));
  }
  const int64_t width = BytesPerElement(range.dtype);
  if (range.offset > mapping.size || range.elements > (mapping.size - range.offset) / width) {
    return absl::InvalidArgumentError(absl::StrCat(range.path, " has ", mapping.size,
                                                   " bytes, not ", range.elements, " elements of ",
                                                   width, " from ", range.offset, " on"));
  }
  StoredValues values;
  values.mapping_ = mapping.bytes;
  values.data_ = mapping.bytes.get() + range.offset;
  values.size_ = static_cast<size_t>(range.elements);
  values.dtype_ = range.dtype;
  values.file_ = std::make_shared<const FileRange>(std::move(range));
  return values;
}

float StoredValues::operator[](size_t i) const {
  if (dtype_ == DataType::kFloat32) return ElementAt<float>(data_, i);
  return dtype_ == DataType::kFloat16 ? ElementAt<Float16>(data_, i)
                                      : ElementAt<BFloat16>(data_, i);
}

std::vector<float> StoredValues::ToVector() const {
  return held_ != nullptr ? *held_ : std::vector<float>(begin(), end());
}

void StoredValues::LetGo() const {
  if (file_ == nullptr) return;
  // Of whole pages; others may need the first and the last.
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t first = (file_->offset + page - 1) / page * page;
  const int64_t end = file_->offset + file_->elements * BytesPerElement(dtype_);
  if (end - first < page) return;
  madvise(const_cast<char*>(mapping_.get()) + first, (end - first) / page * page, MADV_DONTNEED);
}

bool operator==(const StoredValues& a, const StoredValues& b) {
  if (a.size_ != b.size_) return false;
  if (a.file_ != nullptr && b.file_ != nullptr && *a.file_ == *b.file_) return true;
  return std::equal(a.begin(), a.end(), b.begin());
}

}  // namespace isomer
