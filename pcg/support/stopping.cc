#include "pcg/support/stopping.h"

#include <atomic>
#include <csignal>
#include <limits>

namespace isomer {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // so that a signal handler may set it

extern "C" void OnInterrupt(int signal) {
  InterruptSearches();
  std::signal(signal, SIG_DFL);
}

}  // namespace

const char* StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kExhausted:
      return "exhausted";
    case StopReason::kNoImprovement:
      return "no improvement";
    case StopReason::kBudget:
      return "budget";
    case StopReason::kTimeLimit:
      return "time limit";
    case StopReason::kInterrupted:
      return "interrupted";
  }
  return "?";
}

Deadline Deadline::In(double seconds, const SearchWatch* watch) {
  Deadline deadline;
  deadline.watch_ = watch;
  if (seconds > 0) {
    deadline.at_ =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::duration<double>(seconds));
  }
  return deadline;
}

std::optional<StopReason> Deadline::Reached() const {
  if (interrupted.load(std::memory_order_relaxed)) return StopReason::kInterrupted;
  if (watch_ != nullptr && watch_->ended()) return StopReason::kInterrupted;
  if (at_.has_value() && std::chrono::steady_clock::now() >= *at_) return StopReason::kTimeLimit;
  return std::nullopt;
}

double Deadline::SecondsLeft() const {
  if (!at_.has_value()) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(*at_ - std::chrono::steady_clock::now()).count();
}

void EndSearchesOnInterrupt() { std::signal(SIGINT, OnInterrupt); }
void InterruptSearches() { interrupted.store(true, std::memory_order_relaxed); }
void ResumeSearches() { interrupted.store(false, std::memory_order_relaxed); }

}  // namespace isomer
