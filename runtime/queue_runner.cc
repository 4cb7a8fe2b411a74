#include "runtime/queue_runner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "runtime/worker.h"

namespace isomer {
namespace {

using Commands = std::vector<Command>;

// Commands by queue, and where they stand there.
struct Queues {
  explicit Queues(const Commands& program) : in_queue(program.size()) {
    for (size_t place = 0; place < program.size(); ++place) {
      std::vector<int32_t>& queue = places[program[place].queue];
      in_queue[place] = static_cast<int32_t>(queue.size());
      queue.push_back(static_cast<int32_t>(place));
    }
  }
  std::array<std::vector<int32_t>, kMostQueues> places;
  std::vector<int32_t> in_queue;
};

class InlineRunner : public QueueRunner {
 public:
  explicit InlineRunner(const Commands& program) : program_(program) {}

  absl::Status Run(const QueueWork& work) override {
    return work.on_thread([&]() -> absl::Status {
      for (int32_t place = 0; place < static_cast<int32_t>(program_.size()); ++place) {
        if (work.selects(place)) ISOMER_RETURN_IF_ERROR(work.run(place));
      }
      return absl::OkStatus();
    });
  }

 private:
  const Commands& program_;
};

// The compute queue is the device's thread, the communication queue one of its own.
class ThreadedRunner : public QueueRunner {
 public:
  explicit ThreadedRunner(const Commands& program) : program_(program), queues_(program) {}

  absl::Status Run(const QueueWork& work) override {
    for (std::atomic<int32_t>& over : over_) over = 0;
    failed_ = false;
    communication_.Begin([&] { return RunQueue(kCommunicationQueue, work); });
    const absl::Status computed = RunQueue(kComputeQueue, work);
    const absl::Status communicated = communication_.Wait();
    // One that fails takes the other with it, which then says that it was given up.
    if (absl::IsCancelled(computed) && !communicated.ok()) return communicated;
    return computed.ok() ? communicated : computed;
  }

 private:
  static constexpr int32_t kAll = std::numeric_limits<int32_t>::max();
  // Looks again so often before it sleeps: waking takes longer than most of what is waited for.
  static constexpr int kLooks = 2000;

  absl::Status RunQueue(int32_t queue, const QueueWork& work) {
    absl::Status status = work.on_thread([&] { return RunCommands(queue, work); });
    if (!status.ok()) {
      // Before the others are woken, so that they do not take it for a start.
      failed_ = true;
      over_[queue] = kAll;
      over_[queue].notify_all();
      if (!absl::IsCancelled(status)) work.abort(status);
    }
    return status;
  }

  absl::Status RunCommands(int32_t queue, const QueueWork& work) {
    for (int32_t place : queues_.places[queue]) {
      if (work.selects(place)) {
        for (int32_t other : program_[place].waits) ISOMER_RETURN_IF_ERROR(WaitFor(other));
        if (failed_) return absl::CancelledError("given up");
        ISOMER_RETURN_IF_ERROR(work.run(place));
      }
      over_[queue].store(queues_.in_queue[place] + 1, std::memory_order_release);
      if (program_[place].signals) over_[queue].notify_all();
    }
    return absl::OkStatus();
  }

  absl::Status WaitFor(int32_t place) {
    std::atomic<int32_t>& over = over_[program_[place].queue];
    const int32_t wanted = queues_.in_queue[place] + 1;
    for (int look = 0;; ++look) {
      const int32_t now = over.load(std::memory_order_acquire);
      if (now >= wanted) break;
      if (look < kLooks) {
        std::this_thread::yield();
      } else {
        over.wait(now, std::memory_order_acquire);
      }
    }
    return failed_ ? absl::CancelledError("given up") : absl::OkStatus();
  }

  const Commands& program_;
  const Queues queues_;
  // By queue, how many of its commands are over.
  std::array<std::atomic<int32_t>, kMostQueues> over_ = {};
  std::atomic<bool> failed_ = false;
  Worker communication_;
};

// One thread that runs, of the commands that may begin, any: from the favourite queue as long
// as it can, while the other starves; the favourite changes now and then.
class AdversarialRunner : public QueueRunner {
 public:
  AdversarialRunner(const Commands& program, uint64_t seed, int32_t device)
      : program_(program),
        queues_(program),
        state_(HashCombine(seed, static_cast<uint64_t>(device))) {
    // What each command knows to be over, by its waits alone.
    std::array<QueueClock, kMostQueues> newest = {kNothingOver, kNothingOver};
    for (size_t place = 0; place < program.size(); ++place) {
      QueueClock known = newest[program[place].queue];
      for (int32_t other : program[place].waits) {
        Advance(&known, known_[other]);
        known[program[other].queue] = std::max(known[program[other].queue], other);
      }
      known_.push_back(known);
      known[program[place].queue] = static_cast<int32_t>(place);
      newest[program[place].queue] = known;
    }
  }

  absl::Status Run(const QueueWork& work) override {
    return work.on_thread([&] { return RunAll(work); });
  }

 private:
  absl::Status RunAll(const QueueWork& work) {
    std::array<size_t, kMostQueues> next = {};
    int32_t favourite = kComputeQueue;
    while (true) {
      std::array<bool, kMostQueues> ready = {};
      bool any = false, left = false;
      for (int32_t q = 0; q < kMostQueues; ++q) {  // What is not to run counts as over.
        const std::vector<int32_t>& places = queues_.places[q];
        while (next[q] < places.size() && !work.selects(places[next[q]])) ++next[q];
      }
      for (int32_t q = 0; q < kMostQueues; ++q) {
        const std::vector<int32_t>& places = queues_.places[q];
        if (next[q] == places.size()) continue;
        left = true;
        const Command& head = program_[places[next[q]]];
        ready[q] = std::all_of(head.waits.begin(), head.waits.end(), [&](int32_t other) {
          return next[program_[other].queue] > static_cast<size_t>(queues_.in_queue[other]);
        });
        any |= ready[q];
      }
      if (!left) return absl::OkStatus();
      if (!any) return absl::InternalError("no command can begin: waits go in a circle");
      if (Draw(kPatience) == 0) favourite = static_cast<int32_t>(Draw(kMostQueues));
      const int32_t q = ready[favourite] ? favourite : kMostQueues - 1 - favourite;
      const int32_t place = queues_.places[q][next[q]];
      ISOMER_RETURN_IF_ERROR(work.before(place, known_[place]));
      ISOMER_RETURN_IF_ERROR(work.run(place));
      work.after(place);
      ++next[q];
    }
  }

  uint64_t Draw(uint64_t below) { return (state_ = HashMix(state_)) % below; }

  // Commands, on average, between two choices of a favourite.
  static constexpr uint64_t kPatience = 8;

  const Commands& program_;
  const Queues queues_;
  std::vector<QueueClock> known_;
  uint64_t state_;
};

}  // namespace

const char* ExecutionKindName(ExecutionKind kind) {
  switch (kind) {
    case ExecutionKind::kInline:
      return "inline";
    case ExecutionKind::kThreaded:
      return "threaded";
    case ExecutionKind::kAdversarial:
      return "adversarial";
  }
  return "?";
}

absl::StatusOr<ExecutionKind> ParseExecutionKind(absl::string_view name) {
  for (ExecutionKind kind :
       {ExecutionKind::kInline, ExecutionKind::kThreaded, ExecutionKind::kAdversarial}) {
    if (name == ExecutionKindName(kind)) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--execution=", name, ": there are inline, threaded and adversarial"));
}

std::unique_ptr<QueueRunner> MakeQueueRunner(const std::vector<Command>& program,
                                             const Execution& execution, int32_t device) {
  switch (execution.kind) {
    case ExecutionKind::kInline:
      break;
    case ExecutionKind::kThreaded:
      return std::make_unique<ThreadedRunner>(program);
    case ExecutionKind::kAdversarial:
      return std::make_unique<AdversarialRunner>(program, execution.seed, device);
  }
  return std::make_unique<InlineRunner>(program);
}

}  // namespace isomer
