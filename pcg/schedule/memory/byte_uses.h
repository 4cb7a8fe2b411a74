// Who used each byte of a device's memory last: what the compiler of programs waits for, and what a
// run that watches its memory holds the waits to.
#ifndef ISOMER_PCG_SCHEDULE_MEMORY_BYTE_USES_H_
#define ISOMER_PCG_SCHEDULE_MEMORY_BYTE_USES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

namespace isomer {

inline constexpr int32_t kMostQueues = 7;

// Per queue of a device, the command, by its place in the device's list, up to which all of the
// queue are over; -1: none is.
using QueueClock = std::array<int32_t, kMostQueues>;
inline constexpr QueueClock kNothingOver = {-1, -1, -1, -1, -1, -1, -1};

inline void Advance(QueueClock* clock, const QueueClock& by) {
  for (int32_t q = 0; q < kMostQueues; ++q) (*clock)[q] = std::max((*clock)[q], by[q]);
}

// Of one arena: stretches of bytes that do not overlap, by their first.
class ByteUses {
 public:
  // Command `place` of `queue` reads, or writes, [begin, end). Adds to `after` those that came
  // before: a reading comes after the last that wrote, a writing after that and all that read
  // since.
  void Read(int64_t begin, int64_t end, int32_t queue, int32_t place, QueueClock* after) {
    Cut(begin);
    Cut(end);
    int64_t at = begin;
    for (auto use = stretches_.lower_bound(begin); at < end; ++use) {
      if (use == stretches_.end() || use->first > at) {  // Nobody did.
        const int64_t to = use == stretches_.end() ? end : std::min(end, use->first);
        use = stretches_.emplace_hint(use, at, Use{to});
      }
      Advance(after, use->second.written);
      use->second.read[queue] = place;
      at = use->second.end;
    }
  }

  void Write(int64_t begin, int64_t end, int32_t queue, int32_t place, QueueClock* after) {
    Cut(begin);
    Cut(end);
    auto use = stretches_.lower_bound(begin);
    while (use != stretches_.end() && use->first < end) {
      Advance(after, use->second.written);
      Advance(after, use->second.read);
      use = stretches_.erase(use);
    }
    Use written = {end};
    written.written[queue] = place;
    stretches_.emplace_hint(use, begin, written);
  }

  void Clear() { stretches_.clear(); }

 private:
  struct Use {
    int64_t end;
    QueueClock written = kNothingOver;
    QueueClock read = kNothingOver;  // since then
  };

  // Makes `at` a border between stretches.
  void Cut(int64_t at) {
    const auto next = stretches_.lower_bound(at);
    if (next == stretches_.begin()) return;
    Use& before = std::prev(next)->second;
    if (before.end <= at) return;
    stretches_.emplace_hint(next, at, before);
    before.end = at;
  }

  std::map<int64_t, Use> stretches_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_MEMORY_BYTE_USES_H_
