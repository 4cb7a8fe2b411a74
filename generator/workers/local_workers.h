// Workers on this computer: this process itself, or child processes.
#ifndef ISOMER_GENERATOR_WORKERS_LOCAL_WORKERS_H_
#define ISOMER_GENERATOR_WORKERS_LOCAL_WORKERS_H_

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "generator/workers/workers.h"

namespace isomer {

// Items that nobody has begun: those that are `first` in their order, then the others, those of the
// highest cost and the last of them before, so that those at the end are small.
class WaitingItems {
 public:
  struct Item {
    uint64_t ticket = 0;
    StepItem item;
  };
  void Add(uint64_t ticket, const StepItem& item) {
    item.first ? first_.push_back({ticket, item}) : AddOther({ticket, item});
  }
  // One that was begun in vain.
  void AddAgain(Item item) {
    item.item.first ? first_.push_front(std::move(item)) : AddOther(std::move(item));
  }
  bool empty() const { return first_.empty() && others_.empty(); }
  // So many come first that each worker has a second item at hand: it need not wait for who deals
  // them out. At the end no item waits behind another.
  bool HasManyFor(size_t workers) const {
    constexpr size_t kManyForEach = 4;
    return first_.size() >= kManyForEach * workers;
  }
  // REQUIRES: !empty().
  Item Take();

 private:
  void AddOther(Item item) {
    others_.emplace(std::pair(item.item.cost, item.ticket), std::move(item));
  }

  std::deque<Item> first_;
  std::map<std::pair<double, uint64_t>, Item> others_;
};

// This process does an item when its result is waited for.
class OwnWorker : public Workers {
 public:
  explicit OwnWorker(const MakeSteps& make_steps) : steps_(make_steps()) {}
  int count() const override { return 1; }
  void Start(uint64_t ticket, const StepItem& item) override { waiting_.Add(ticket, item); }
  absl::StatusOr<FinishedItem> Next() override;
  void Tell(const StepItem& item, bool anew) override;

 private:
  const Steps steps_;
  WaitingItems waiting_;
};

// Child processes, each of which makes its steps. One that dies costs the items that it had, which
// another one does in its place; at which several die, one after the other, is an error. They do
// not outlive this process.
class ChildWorkers : public Workers {
 public:
  // Errors: a process cannot be started. REQUIRES: no other thread of this process holds a lock
  // that steps take, now or whenever Next or NextWithin is called: a child has none but the thread
  // that makes it.
  static absl::StatusOr<std::unique_ptr<ChildWorkers>> Make(int processes, MakeSteps make_steps);
  ~ChildWorkers() override;
  ChildWorkers(const ChildWorkers&) = delete;
  ChildWorkers& operator=(const ChildWorkers&) = delete;

  int count() const override { return static_cast<int>(children_.size()); }
  void Start(uint64_t ticket, const StepItem& item) override;
  absl::StatusOr<FinishedItem> Next() override;
  void Tell(const StepItem& item, bool anew) override;

  // As Next, for who waits for something else, too: nullopt if nothing is done so soon.
  absl::StatusOr<std::optional<FinishedItem>> NextWithin(std::chrono::microseconds wait);
  // Items that were given and are not done.
  size_t open() const { return open_; }
  // Processes that died and were replaced.
  int deaths() const { return deaths_; }

 private:
  struct Child {
    pid_t pid = -1;
    int socket = -1;
    std::string in, out;                   // bytes of messages that are not whole yet, or not sent
    size_t sent = 0;                       // of `out`
    size_t told = 0;                       // of told_
    std::deque<WaitingItems::Item> items;  // given to it, in order
  };

  explicit ChildWorkers(MakeSteps make_steps) : make_steps_(std::move(make_steps)) {}
  absl::Status Begin(Child* child);
  absl::Status Replace(Child* child);
  void DealOut();
  void Give(Child* child, WaitingItems::Item item);
  absl::Status Communicate(Child* child, short events);
  void Flush(Child* child);
  void TakeResults(Child* child);

  const MakeSteps make_steps_;
  std::vector<Child> children_;
  WaitingItems waiting_;
  std::vector<StepItem> told_;
  std::deque<FinishedItem> finished_;
  std::map<uint64_t, int> deaths_at_;  // by the ticket that was worked on
  size_t open_ = 0;
  int deaths_ = 0;
};

// So many processes, or this one for one.
absl::StatusOr<std::unique_ptr<Workers>> MakeLocalWorkers(int processes,
                                                          const MakeSteps& make_steps);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_WORKERS_LOCAL_WORKERS_H_
