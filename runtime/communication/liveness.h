// Which processes of a job are alive. A thread of each says several times in each `stall_timeout`
// that it is, and what it does. Who is not heard for that long is lost: it was stopped (SIGSTOP, a
// debugger), its computer stands still, or the network between. Who computes for long, or has only
// begun, is heard all the while, and is waited for.
#ifndef ISOMER_RUNTIME_COMMUNICATION_LIVENESS_H_
#define ISOMER_RUNTIME_COMMUNICATION_LIVENESS_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "runtime/device/whereabouts.h"

namespace isomer {

// What a rank says of itself; plain bytes.
struct Beat {
  int64_t waits_ms = 0;  // for how long it has waited for others, without any news; 0: it works
  Whereabouts at;
};

// Of one rank. Thread-safe.
class Liveness {
 public:
  // `stall_timeout` 0: nobody is lost.
  Liveness(int32_t rank, int32_t num_ranks, std::chrono::milliseconds stall_timeout);
  ~Liveness() { Stop(); }
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  // Until then nobody is lost. From now on calls `beat` again and again, in a thread: it says Own()
  // to the others, hears them, and acts on Check().
  void Start(std::function<void()> beat);
  void Stop();

  // While this rank waits for others: the first of several calls begins it, the last ends it.
  class Waiting {
   public:
    Waiting(Liveness* liveness, const char* call);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Liveness& liveness_;
  };
  // Something that was waited for has come.
  void Moved();
  // Whether this rank computes beside what it waits for; who never says so does one thing at a
  // time.
  void SetComputes(bool computes) { computes_ = computes; }
  Beat Own() const;

  void Heard(int32_t rank, const Beat& beat);
  // It said that it ends.
  void Ended(int32_t rank);

  // The error that a rank is lost: who, where it was, since when.
  absl::Status Check() const;
  bool IsLost(int32_t rank) const;
  // Whether this process itself did until a moment ago, so that others may have lost it.
  bool StoodStill() const;
  // Whether another rank is heard and does not itself wait for so long: it is worth waiting for.
  bool AnyWorks(std::chrono::milliseconds waited) const;
  // "in step 41, in all_reduce", when it was heard last; empty: never.
  std::string LastPlace(int32_t rank) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    Clock::time_point heard;
    Beat beat;
    bool was_heard = false, has_ended = false;
  };

  void Run(const std::function<void()>& beat);
  // Of a peer, with mutex_ locked.
  std::chrono::milliseconds Silence(const Peer& peer) const;

  const int32_t rank_;
  const std::chrono::milliseconds stall_timeout_;
  std::atomic<bool> is_started_ = false;
  std::atomic<int> waiting_ = 0;
  std::atomic<bool> computes_ = false;
  std::atomic<Clock::rep> news_{0};  // when this rank began to wait, or something came
  mutable std::mutex mutex_;         // guards what follows
  std::condition_variable stop_;
  bool is_stopped_ = false;
  Clock::time_point last_beat_;
  std::optional<Clock::time_point> stood_still_until_;
  std::vector<Peer> peers_;
  std::thread thread_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_COMMUNICATION_LIVENESS_H_
