#include "runtime/data/batch_groups.h"

#include "absl/strings/str_cat.h"

namespace isomer {

absl::StatusOr<BatchGroups> BatchGroups::Of(const Feeder& feeder, int64_t size) {
  const int64_t per_epoch = feeder.has_rows() ? feeder.batches_per_epoch() : 0;
  if (!feeder.has_rows() || per_epoch >= size) return BatchGroups(size, per_epoch);
  return absl::InvalidArgumentError(
      absl::StrCat("--accumulate=", size, ": an epoch has ", per_epoch, " batches"));
}

}  // namespace isomer
