#ifndef ISOMER_RUNTIME_EXECUTION_WORKER_H_
#define ISOMER_RUNTIME_EXECUTION_WORKER_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/status/status.h"

namespace isomer {

// A thread that does one piece of work at a time.
class Worker {
 public:
  Worker();
  // Waits for what is being done.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // REQUIRES: what was begun before was waited for.
  void Begin(std::function<absl::Status()> work);
  absl::Status Wait();

 private:
  void Loop();

  std::mutex mutex_;  // guards what follows but the thread
  std::condition_variable changed_;
  std::function<absl::Status()> work_;  // null: idle
  absl::Status status_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_WORKER_H_
