#include "runtime/execution/queue_runner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/check.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "runtime/execution/worker.h"

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

// The compute queue is the device's thread; others that have commands have threads of their own.
class ThreadedRunner : public QueueRunner {
 public:
  explicit ThreadedRunner(const Commands& program) : program_(program), queues_(program) {
    for (int32_t q = 0; q < kMostQueues; ++q) {
      if (q != kComputeQueue && !queues_.places[q].empty()) {
        others_.push_back({q, std::make_unique<Worker>()});
      }
    }
  }

  absl::Status Run(const QueueWork& work) override {
    for (std::atomic<int32_t>& over : over_) over = 0;
    failed_ = false;
    for (const auto& [queue, worker] : others_) {
      worker->Begin([this, &work, q = queue] { return RunQueue(q, work); });
    }
    work.computes(true);
    absl::Status status = RunQueue(kComputeQueue, work);
    work.computes(false);
    for (const auto& [queue, worker] : others_) {
      absl::Status of_queue = worker->Wait();
      // One that fails takes the others with it, which then say that they were given up.
      const bool says_more = status.ok() || (absl::IsCancelled(status) && !of_queue.ok());
      if (says_more) status = std::move(of_queue);
    }
    return status;
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
        for (int32_t other : program_[place].waits) {
          ISOMER_RETURN_IF_ERROR(WaitFor(other, queue == kComputeQueue, work));
        }
        if (failed_) return absl::CancelledError("given up");
        ISOMER_RETURN_IF_ERROR(work.run(place));
      }
      over_[queue].store(queues_.in_queue[place] + 1, std::memory_order_release);
      if (program_[place].signals) over_[queue].notify_all();
    }
    return absl::OkStatus();
  }

  // `computes`: it is the compute queue that waits.
  absl::Status WaitFor(int32_t place, bool computes, const QueueWork& work) {
    std::atomic<int32_t>& over = over_[program_[place].queue];
    const int32_t wanted = queues_.in_queue[place] + 1;
    int look = 0;
    for (;; ++look) {
      const int32_t now = over.load(std::memory_order_acquire);
      if (now >= wanted) break;
      if (look == 0 && computes) work.computes(false);
      if (look < kLooks) {
        std::this_thread::yield();
      } else {
        over.wait(now, std::memory_order_acquire);
      }
    }
    if (look > 0 && computes) work.computes(true);
    return failed_ ? absl::CancelledError("given up") : absl::OkStatus();
  }

  const Commands& program_;
  const Queues queues_;
  // By queue, how many of its commands are over.
  std::array<std::atomic<int32_t>, kMostQueues> over_ = {};
  std::atomic<bool> failed_ = false;
  std::vector<std::pair<int32_t, std::unique_ptr<Worker>>> others_;  // queues, by number
};

class DeviceQueueRunner : public QueueRunner {
 public:
  DeviceQueueRunner(const Commands& program, DeviceQueues* queues)
      : program_(program), queues_(*queues) {}

  absl::Status Run(const QueueWork& work) override {
    return work.on_thread([&] { return Give(work); });
  }

 private:
  absl::Status Give(const QueueWork& work) {
    const int32_t begin = BeginMark(program_);
    std::array<bool, kMostQueues> has_begun = {};
    int32_t entered = kComputeQueue;
    const auto enter = [&](int32_t queue) {
      if (queue == entered) return absl::OkStatus();
      entered = queue;
      return queues_.Enter(queue);
    };
    ISOMER_RETURN_IF_ERROR(queues_.Enter(kComputeQueue));
    ISOMER_RETURN_IF_ERROR(queues_.Mark(begin));
    has_begun[kComputeQueue] = true;
    for (int32_t place = 0; place < static_cast<int32_t>(program_.size()); ++place) {
      if (!work.selects(place)) continue;
      const Command& command = program_[place];
      ISOMER_RETURN_IF_ERROR(enter(command.queue));
      if (!has_begun[command.queue]) ISOMER_RETURN_IF_ERROR(queues_.WaitFor(begin));
      has_begun[command.queue] = true;
      for (int32_t other : command.waits) {
        if (work.selects(other)) ISOMER_RETURN_IF_ERROR(queues_.WaitFor(other));
      }
      ISOMER_RETURN_IF_ERROR(work.run(place));
      if (command.signals) ISOMER_RETURN_IF_ERROR(queues_.Mark(place));
    }
    for (int32_t q = 0; q < kMostQueues; ++q) {
      if (q == kComputeQueue || !has_begun[q]) continue;
      ISOMER_RETURN_IF_ERROR(enter(q));
      ISOMER_RETURN_IF_ERROR(queues_.Mark(begin + 1 + q));
      ISOMER_RETURN_IF_ERROR(enter(kComputeQueue));
      ISOMER_RETURN_IF_ERROR(queues_.WaitFor(begin + 1 + q));
    }
    return enter(kComputeQueue);
  }

  const Commands& program_;
  DeviceQueues& queues_;
};

// One thread, in an order that is drawn anew for each run. All devices draw the same orders for all
// of them: a communication blocks the thread of each device that takes part, and there are several
// queues of communications, so that devices which drew alone would wait for each other for ever.
class AdversarialRunner : public QueueRunner {
 public:
  AdversarialRunner(const Program& programs, const DevicesOfTask& devices_of, uint64_t seed,
                    int32_t device)
      : programs_(programs), devices_of_(devices_of), device_(device), state_(seed) {
    for (const Commands& program : programs_.devices) queues_.emplace_back(program);
    // What each command knows to be over, by its waits alone.
    const Commands& program = programs_.devices[device];
    std::array<QueueClock, kMostQueues> newest;
    newest.fill(kNothingOver);
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
    return work.on_thread([&]() -> absl::Status {
      ISOMER_ASSIGN_OR_RETURN(const std::vector<int32_t> order, DrawOrder());
      for (int32_t place : order) {
        if (!work.selects(place)) continue;  // What is not to run counts as over.
        ISOMER_RETURN_IF_ERROR(work.before(place, known_[place]));
        ISOMER_RETURN_IF_ERROR(work.run(place));
        work.after(place);
      }
      return absl::OkStatus();
    });
  }

 private:
  // Of this device: places, in an order in which all devices can run. Each runs, of what may begin,
  // commands of its favourite queue as long as it can, while the others starve; the favourite
  // changes now and then.
  absl::StatusOr<std::vector<int32_t>> DrawOrder() {
    const size_t devices = queues_.size();
    std::vector<int32_t> order, favourites(devices, kComputeQueue);
    next_.assign(devices, {});
    size_t left = 0;
    for (const Commands& program : programs_.devices) left += program.size();
    while (left > 0) {
      bool any = false;
      const size_t first = Draw(devices);
      for (size_t i = 0; i < devices && !any; ++i) {
        const auto d = static_cast<int32_t>((first + i) % devices);
        if (Draw(kPatience) == 0) favourites[d] = static_cast<int32_t>(Draw(kMostQueues));
        for (int32_t o = 0; o < kMostQueues && !any; ++o) {
          const int32_t q = (favourites[d] + o) % kMostQueues;
          if (!MayBegin(d, q)) continue;
          any = true;
          for (int32_t member : devices_of_(Head(d, q).task)) {
            if (member == device_) order.push_back(queues_[member].places[q][next_[member][q]]);
            ++next_[member][q];
            --left;
          }
        }
      }
      if (!any) return absl::InternalError("no command can begin: waits go in a circle");
    }
    return order;
  }

  bool HasHead(int32_t d, int32_t q) const { return next_[d][q] < queues_[d].places[q].size(); }
  const Command& Head(int32_t d, int32_t q) const {
    return programs_.devices[d][queues_[d].places[q][next_[d][q]]];
  }
  // The head of the queue, on all devices of its task.
  bool MayBegin(int32_t d, int32_t q) const {
    if (!HasHead(d, q)) return false;
    const int32_t task = Head(d, q).task;
    const absl::Span<const int32_t> members = devices_of_(task);
    return std::all_of(members.begin(), members.end(), [&](int32_t member) {
      if (!HasHead(member, q) || Head(member, q).task != task) return false;
      const auto& waits = Head(member, q).waits;
      return std::all_of(waits.begin(), waits.end(), [&](int32_t other) {
        const int32_t of = programs_.devices[member][other].queue;
        return next_[member][of] > static_cast<size_t>(queues_[member].in_queue[other]);
      });
    });
  }

  uint64_t Draw(uint64_t below) { return (state_ = HashMix(state_)) % below; }

  // Looks, on average, between two choices of a favourite.
  static constexpr uint64_t kPatience = 8;

  const Program programs_;
  const DevicesOfTask devices_of_;
  const int32_t device_;
  std::vector<Queues> queues_;                         // by device
  std::vector<std::array<size_t, kMostQueues>> next_;  // by device and queue
  std::vector<QueueClock> known_;                      // by place
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
                                             ExecutionKind kind) {
  ISOMER_CHECK(kind != ExecutionKind::kAdversarial);
  if (kind == ExecutionKind::kInline) return std::make_unique<InlineRunner>(program);
  return std::make_unique<ThreadedRunner>(program);
}

std::unique_ptr<QueueRunner> MakeDeviceQueueRunner(const std::vector<Command>& program,
                                                   DeviceQueues* queues) {
  return std::make_unique<DeviceQueueRunner>(program, queues);
}

std::unique_ptr<QueueRunner> MakeAdversarialRunner(const Program& programs,
                                                   const DevicesOfTask& devices_of, uint64_t seed,
                                                   int32_t device) {
  return std::make_unique<AdversarialRunner>(programs, devices_of, seed, device);
}

}  // namespace isomer
