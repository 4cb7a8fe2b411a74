#include "runtime/communication/liveness.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace isomer {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr int kBeatsPerTimeout = 12;

std::string TimeOfDay(std::chrono::system_clock::time_point when) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm local = {};
  localtime_r(&seconds, &local);
  return absl::StrFormat("%02d:%02d:%02d", local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace

Liveness::Liveness(int32_t rank, int32_t num_ranks, milliseconds stall_timeout)
    : rank_(rank), stall_timeout_(stall_timeout), peers_(num_ranks) {}

void Liveness::Start(std::function<void()> beat) {
  if (stall_timeout_.count() <= 0) return;
  for (Peer& peer : peers_) peer.heard = Clock::now();
  is_started_ = true;
  last_beat_ = Clock::now();
  thread_ = std::thread([this, beat = std::move(beat)] { Run(beat); });
}

void Liveness::Stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Liveness::Run(const std::function<void()>& beat) {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      // Who stood still itself has heard nobody meanwhile, and that is not their fault.
      const Clock::time_point now = Clock::now();
      if (now - last_beat_ > stall_timeout_ / 2) {
        for (Peer& peer : peers_) peer.heard = now;
        stood_still_until_ = now;
      }
      last_beat_ = now;
    }
    beat();
    std::unique_lock lock(mutex_);
    if (stop_.wait_for(lock, stall_timeout_ / kBeatsPerTimeout, [this] { return is_stopped_; })) {
      return;
    }
  }
}

Liveness::Waiting::Waiting(Liveness* liveness, const char* call) : liveness_(*liveness) {
  EnterCall(call);
  if (liveness_.waiting_++ == 0) liveness_.Moved();
}

Liveness::Waiting::~Waiting() {
  if (--liveness_.waiting_ == 0) EnterCall("");
}

void Liveness::Moved() {
  news_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

Beat Liveness::Own() const {
  Beat own = {.at = CurrentWhereabouts()};
  if (waiting_ > 0 && !computes_) {
    const Clock::time_point news{Clock::duration(news_.load(std::memory_order_relaxed))};
    own.waits_ms = std::max<int64_t>(duration_cast<milliseconds>(Clock::now() - news).count(), 1);
  }
  return own;
}

void Liveness::Heard(int32_t rank, const Beat& beat) {
  const std::lock_guard lock(mutex_);
  peers_[rank].heard = Clock::now();
  peers_[rank].beat = beat;
  peers_[rank].was_heard = true;
}

void Liveness::Ended(int32_t rank) {
  const std::lock_guard lock(mutex_);
  peers_[rank].has_ended = true;
}

milliseconds Liveness::Silence(const Peer& peer) const {
  if (peer.has_ended || !is_started_) return milliseconds(0);
  return duration_cast<milliseconds>(Clock::now() - peer.heard);
}

absl::Status Liveness::Check() const {
  const std::lock_guard lock(mutex_);
  // Since this beat began, this process itself stood still: the next one judges.
  if (is_started_ && Clock::now() - last_beat_ > stall_timeout_ / 2) return absl::OkStatus();
  for (size_t r = 0; r < peers_.size(); ++r) {
    const milliseconds silence = Silence(peers_[r]);
    if (static_cast<int32_t>(r) == rank_ || silence <= stall_timeout_) continue;
    return absl::UnavailableError(absl::StrFormat(
        "rank %d is not heard any more since %s (%.1f s), when it was %s; it was stopped, or its "
        "computer cannot be reached",
        r, TimeOfDay(std::chrono::system_clock::now() - silence),
        static_cast<double>(silence.count()) / 1000, WhereaboutsText(peers_[r].beat.at)));
  }
  return absl::OkStatus();
}

bool Liveness::IsLost(int32_t rank) const {
  const std::lock_guard lock(mutex_);
  return rank != rank_ && Silence(peers_[rank]) > stall_timeout_ / 2;
}

bool Liveness::StoodStill() const {
  const std::lock_guard lock(mutex_);
  if (!is_started_) return false;
  const Clock::time_point now = Clock::now();
  return now - last_beat_ > stall_timeout_ / 2 ||
         (stood_still_until_.has_value() && now - *stood_still_until_ < stall_timeout_);
}

bool Liveness::AnyWorks(milliseconds waited) const {
  const std::lock_guard lock(mutex_);
  for (size_t r = 0; r < peers_.size(); ++r) {
    const Peer& peer = peers_[r];
    if (static_cast<int32_t>(r) == rank_ || !peer.was_heard || peer.has_ended) continue;
    // Of news between two beats it will tell.
    if (milliseconds(peer.beat.waits_ms) < waited / 2) return true;
  }
  return false;
}

std::string Liveness::LastPlace(int32_t rank) const {
  const std::lock_guard lock(mutex_);
  return peers_[rank].was_heard ? WhereaboutsText(peers_[rank].beat.at) : "";
}

}  // namespace isomer
