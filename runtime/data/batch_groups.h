#ifndef ISOMER_RUNTIME_DATA_BATCH_GROUPS_H_
#define ISOMER_RUNTIME_DATA_BATCH_GROUPS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/data/feeder.h"

namespace isomer {

// Which batches of a feeder a step takes that takes several, one after the other (gradient
// accumulation): the rows that a batch so many times as large has in that step. In each epoch the
// batches behind the last whole group are left out.
class BatchGroups {
 public:
  // Error: an epoch has fewer batches than a group.
  static absl::StatusOr<BatchGroups> Of(const Feeder& feeder, int64_t size);

  int64_t size() const { return size_; }
  // REQUIRES: the feeder has rows.
  int64_t steps_per_epoch() const { return per_epoch_ / size_; }
  // The first batch of a step.
  int64_t First(int64_t step) const {
    if (per_epoch_ == 0) return step * size_;
    return step / steps_per_epoch() * per_epoch_ + step % steps_per_epoch() * size_;
  }

 private:
  BatchGroups(int64_t size, int64_t per_epoch) : size_(size), per_epoch_(per_epoch) {}

  int64_t size_, per_epoch_;  // in batches; 0: there are no epochs
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_BATCH_GROUPS_H_
