// Results that threads compute ahead and one thread takes in order.
#ifndef ISOMER_PCG_SUPPORT_IN_ORDER_H_
#define ISOMER_PCG_SUPPORT_IN_ORDER_H_

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace isomer {

// Computes work(0), work(1), .., work(count - 1) in `jobs` threads, at most `ahead` of them before
// they are taken. With jobs <= 1 there are no threads: each is computed when it is taken.
//
//   InOrder<Result> results(jobs, count, window, make_worker);
//   for (size_t i = 0; i < count; ++i) Use(results.Take());
template <typename Result>
class InOrder {
 public:
  using Worker = std::function<Result(size_t item)>;

  // `make_worker` is called once per thread, in this thread.
  InOrder(int jobs, size_t count, size_t ahead, const std::function<Worker()>& make_worker)
      : count_(count), slots_(std::max<size_t>(ahead, 1)) {
    jobs = static_cast<int>(std::min<size_t>(std::max(jobs, 1), std::max<size_t>(count, 1)));
    if (jobs == 1) {
      own_ = make_worker();
      return;
    }
    for (int job = 0; job < jobs; ++job) {
      threads_.emplace_back([this, worker = make_worker()] { Run(worker); });
    }
  }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

  // What was not taken is given up.
  ~InOrder() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      next_ = count_;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // The result of the next item. REQUIRES: there is one.
  Result Take() {
    if (own_) return own_(taken_++);
    std::unique_lock<std::mutex> lock(mutex_);
    std::optional<Result>& slot = slots_[taken_ % slots_.size()];
    ready_.wait(lock, [&] { return slot.has_value(); });
    Result result = *std::move(slot);
    slot.reset();
    ++taken_;
    lock.unlock();
    room_.notify_all();
    return result;
  }

 private:
  void Run(const Worker& worker) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      room_.wait(lock, [&] { return next_ >= count_ || next_ < taken_ + slots_.size(); });
      if (next_ >= count_) return;
      const size_t item = next_++;
      lock.unlock();
      Result result = worker(item);
      lock.lock();
      slots_[item % slots_.size()] = std::move(result);
      ready_.notify_all();
    }
  }

  const size_t count_;
  Worker own_;  // without threads
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable ready_, room_;
  size_t next_ = 0, taken_ = 0;
  std::vector<std::optional<Result>> slots_;  // item i in i % size
};

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_IN_ORDER_H_
