// Between a search and who waits for it in another thread: how far it is, and that it is to end.
#ifndef ISOMER_PCG_SUPPORT_SEARCH_WATCH_H_
#define ISOMER_PCG_SUPPORT_SEARCH_WATCH_H_

#include <atomic>
#include <cstdint>
#include <limits>

namespace isomer {

// All of it is safe in several threads at once.
class SearchWatch {
 public:
  // This search, of all that run, ends with the best plan so far (Deadline), as on Ctrl-C.
  void End() { ended_.store(true, std::memory_order_relaxed); }
  bool ended() const { return ended_.load(std::memory_order_relaxed); }

  // A plan was predicted; `step_us`: infinity if it does not fit.
  void Count(double step_us) {
    plans_.fetch_add(1, std::memory_order_relaxed);
    double best = best_step_us();
    while (step_us < best && !best_step_us_.compare_exchange_weak(best, step_us)) {
    }
  }
  int64_t plans() const { return plans_.load(std::memory_order_relaxed); }
  // Of the plans that fit; infinity: none does yet.
  double best_step_us() const { return best_step_us_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> ended_{false};
  std::atomic<int64_t> plans_{0};
  std::atomic<double> best_step_us_{std::numeric_limits<double>::infinity()};
};

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_SEARCH_WATCH_H_
