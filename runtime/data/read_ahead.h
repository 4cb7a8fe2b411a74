#ifndef ISOMER_RUNTIME_DATA_READ_AHEAD_H_
#define ISOMER_RUNTIME_DATA_READ_AHEAD_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/statistics.h"
#include "runtime/execution/host_values.h"

namespace isomer {

// The batches of the steps that follow, made in a thread while a step runs. What it gives for a
// step is what `make` gives: only when is another question. An error is that of the step that
// needs the batch.
class ReadAhead {
 public:
  using Make = std::function<absl::StatusOr<HostValues>(int64_t step)>;

  // At most `ahead` batches are kept. `make` is called in a thread that begins here, and so may run
  // on all cores on which the caller may run now: a device that is pinned later keeps its core.
  ReadAhead(Make make, int64_t ahead);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // The batch of `step`. Steps are expected one after the other; with another one, what was read
  // ahead is given up, and reading goes on behind it.
  absl::StatusOr<HostValues> Take(int64_t step);
  // How long each Take() waited, in microseconds.
  std::vector<double> waits_us() const;
  double total_wait_us() const;

 private:
  static constexpr int64_t kNone = -1;
  void Run();

  const Make make_;
  const int64_t ahead_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<absl::StatusOr<HostValues>> batches_;
  int64_t first_ = kNone;   // the step of batches_[0]
  int64_t generation_ = 0;  // counts the jumps
  bool ends_ = false;
  Samples waits_us_;
  double total_wait_us_ = 0;
  std::thread thread_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_READ_AHEAD_H_
