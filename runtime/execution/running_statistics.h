#ifndef ISOMER_RUNTIME_EXECUTION_RUNNING_STATISTICS_H_
#define ISOMER_RUNTIME_EXECUTION_RUNNING_STATISTICS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/tensor_type.h"
#include "runtime/device/backend.h"

namespace isomer {

// The running means and variances that the batch norms of one device evaluate with
// (evaluation_calls.h). A step that trains leaves those of its batch in the device's memory;
// between steps the host moves the running ones.
class RunningStatistics {
 public:
  // Channels [first, first + count) of an entry of Model::statistics.
  struct Channels {
    int32_t entry = 0;
    int64_t first = 0, count = 0;
  };

  // REQUIRES: both outlive it.
  RunningStatistics(absl::Span<const BatchStatistics> entries, Backend* backend)
      : entries_(entries), backend_(*backend) {}

  // The task has the statistics of these channels, of a call whose scale has the type `dtype`.
  absl::Status AddTask(int32_t task, const Channels& channels, DataType dtype);
  bool has(int32_t task) const { return tasks_.contains(task); }

  // As a command on the device's queue: what the task found of its batch, float32.
  absl::Status Keep(int32_t task, const void* mean, const void* variance);
  // Of all tasks of the steps that ended, in their order. A batch whose statistics are not finite
  // changes nothing.
  absl::Status Advance();

  // Gives the device the running ones, if they changed.
  absl::Status Load();
  // What the task's call evaluates with, in the device's memory, in the type of its scale.
  std::array<const void*, 2> MeanAndVariance(int32_t task) const;
  // The same in float32.
  std::array<const void*, 2> InFloat32(int32_t task) const;
  int64_t count(int32_t task) const { return tasks_.at(task).count; }

  // Reads, or sets, those that this device has: f(entry, first channel, means, variances).
  void ForEach(const std::function<void(int32_t entry, int64_t first, std::vector<float>* means,
                                        std::vector<float>* variances)>& f);

 private:
  using Key = std::pair<int32_t, int64_t>;  // entry, first channel
  struct Running {
    std::vector<float> mean, variance;
    DataType dtype;
    Backend::Memory in_float32, in_dtype;  // of the device: means, and variances behind them
  };
  struct OfTask {
    Key key;
    int64_t count;
    Backend::Memory batch;  // as Running::in_float32
  };

  const absl::Span<const BatchStatistics> entries_;
  Backend& backend_;
  std::map<Key, Running> running_;
  std::map<int32_t, OfTask> tasks_;
  bool is_loaded_ = false;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_RUNNING_STATISTICS_H_
