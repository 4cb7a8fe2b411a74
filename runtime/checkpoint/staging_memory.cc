#include "runtime/checkpoint/staging_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace isomer {

absl::StatusOr<std::unique_ptr<StagingMemory>> StagingMemory::Allocate(int64_t bytes) {
  if (bytes == 0) return std::unique_ptr<StagingMemory>(new StagingMemory(nullptr, 0));
  void* const data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a checkpoint's copy of ", bytes, " bytes in memory: ", std::strerror(errno)));
  }
  // Where there are none, small ones do.
  (void)madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return std::unique_ptr<StagingMemory>(new StagingMemory(static_cast<char*>(data), bytes));
}

StagingMemory::~StagingMemory() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

void StagingMemory::Touch() {
  const int64_t page = sysconf(_SC_PAGESIZE);
  for (int64_t at = 0; at < bytes_; at += page) data_[at] = 0;
}

}  // namespace isomer
