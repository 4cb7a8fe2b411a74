#ifndef ISOMER_RUNTIME_CHECKPOINT_STAGING_MEMORY_H_
#define ISOMER_RUNTIME_CHECKPOINT_STAGING_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace isomer {

// Memory that copies are made to, again and again: in large pages where the system has them, as
// the first touch of small ones takes ten times as long as the copy itself.
class StagingMemory {
 public:
  // ResourceExhausted: the system has not so much.
  static absl::StatusOr<std::unique_ptr<StagingMemory>> Allocate(int64_t bytes);
  ~StagingMemory();
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;

  char* data() const { return data_; }
  // Makes the system find the pages, before they are needed.
  void Touch();

 private:
  StagingMemory(char* data, int64_t bytes) : data_(data), bytes_(bytes) {}

  char* const data_;  // null: of nothing
  const int64_t bytes_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKPOINT_STAGING_MEMORY_H_
