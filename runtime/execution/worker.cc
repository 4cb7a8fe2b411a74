#include "runtime/execution/worker.h"

#include <utility>

namespace isomer {

Worker::Worker() : thread_([this] { Loop(); }) {}

Worker::~Worker() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::Begin(std::function<absl::Status()> work) {
  {
    std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

absl::Status Worker::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_ == nullptr; });
  return status_;
}

void Worker::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || work_ != nullptr; });
    if (work_ == nullptr) return;
    const std::function<absl::Status()> work = work_;
    lock.unlock();
    absl::Status status = work();
    lock.lock();
    status_ = std::move(status);
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace isomer
