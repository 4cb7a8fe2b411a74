// When a search ends: any search can be stopped between two candidates, with the best plan so far.
#ifndef ISOMER_PCG_SUPPORT_STOPPING_H_
#define ISOMER_PCG_SUPPORT_STOPPING_H_

#include <chrono>
#include <optional>

#include "pcg/support/search_watch.h"

namespace isomer {

// In order of weight: of several searches that were one, the last that holds of any is told.
enum class StopReason {
  kExhausted,      // no candidate within alpha is left
  kNoImprovement,  // half of the time brought nothing (--search=mcmc)
  kBudget,         // as many candidates as asked for were mapped
  kTimeLimit,      // the time is over
  kInterrupted,    // Ctrl-C
};
const char* StopReasonName(StopReason reason);

class Deadline {
 public:
  Deadline() = default;  // never
  // 0: never, unless who watches the search ends it. `watch` may be null, or outlives this.
  static Deadline In(double seconds, const SearchWatch* watch = nullptr);
  // Why to stop now, if there is a reason. Reads the clock: once a candidate, not once an edge.
  std::optional<StopReason> Reached() const;
  // Negative when it is over; infinity if there is no limit.
  double SecondsLeft() const;

 private:
  std::optional<std::chrono::steady_clock::time_point> at_;
  const SearchWatch* watch_ = nullptr;
};

// From now on the first Ctrl-C ends searches; the second ends the program.
void EndSearchesOnInterrupt();
// What the first Ctrl-C does. Safe in a signal handler.
void InterruptSearches();
// Forgets an interruption.
void ResumeSearches();

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_STOPPING_H_
