#include "runtime/data/read_ahead.h"

#include <chrono>
#include <utility>

#include "runtime/device/us_since.h"

namespace isomer {

ReadAhead::ReadAhead(Make make, int64_t ahead) : make_(std::move(make)), ahead_(ahead) {
  thread_ = std::thread([this] { Run(); });
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::StatusOr<HostValues> ReadAhead::Take(int64_t step) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  if (step != first_) {
    first_ = step;
    batches_.clear();
    ++generation_;
    changed_.notify_all();
  }
  changed_.wait(lock, [this] { return !batches_.empty(); });
  absl::StatusOr<HostValues> batch = std::move(batches_.front());
  batches_.pop_front();
  ++first_;
  const double wait_us = UsSince(start);
  waits_us_.Add(wait_us);
  total_wait_us_ += wait_us;
  changed_.notify_all();
  return batch;
}

std::vector<double> ReadAhead::waits_us() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return waits_us_.kept();
}

double ReadAhead::total_wait_us() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return total_wait_us_;
}

void ReadAhead::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] {
      return ends_ || (first_ != kNone && static_cast<int64_t>(batches_.size()) < ahead_);
    });
    if (ends_) return;
    const int64_t step = first_ + static_cast<int64_t>(batches_.size());
    const int64_t generation = generation_;
    lock.unlock();
    absl::StatusOr<HostValues> batch = make_(step);
    lock.lock();
    if (generation == generation_) batches_.push_back(std::move(batch));
    changed_.notify_all();
  }
}

}  // namespace isomer
