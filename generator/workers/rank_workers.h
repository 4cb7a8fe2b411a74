// Workers of many ranks. Rank 0 deals items out, to its own child processes and to the other ranks,
// which have child processes, too; the process of a rank itself only talks.
//
// Whatever dies, the result is the same:
//   a child process   its rank begins another one; the items that it had are done again
//   another rank      is not heard any more, and is lost: its items are dealt out again, if whoever
//                     started the ranks lets the others live (mpirun --enable-recovery)
//   rank 0            the others end; the next run goes on from the logs
//
// Each rank keeps what it finds in a log of its own before it says so to rank 0 (memo.h).
#ifndef ISOMER_GENERATOR_WORKERS_RANK_WORKERS_H_
#define ISOMER_GENERATOR_WORKERS_RANK_WORKERS_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "generator/workers/local_workers.h"
#include "generator/workers/rank_link.h"
#include "generator/workers/workers.h"

namespace isomer {

struct RankOptions {
  // A rank that is not heard for so long is lost.
  std::chrono::milliseconds stall_timeout = std::chrono::seconds(5);
  // Who does not hear rank 0 for so long ends: nothing is lost by it but a hand.
  std::chrono::milliseconds longest_silence = std::chrono::seconds(10);
};

// Those of rank 0, which ends the others with it.
class RankWorkers : public Workers {
 public:
  RankWorkers(std::unique_ptr<RankLink> link, std::unique_ptr<ChildWorkers> children,
              const RankOptions& options);
  ~RankWorkers() override;

  // Of the ranks that have come and are not lost.
  int count() const override;
  void Start(uint64_t ticket, const StepItem& item) override;
  absl::StatusOr<FinishedItem> Next() override;
  void Tell(const StepItem& item, bool anew) override;
  void KeepLogsIn(const std::string& folder) override;

  int num_lost() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Rank {
    size_t workers = 0;  // 0: it has not come yet
    bool is_lost = false;
    Clock::time_point heard;
    size_t told = 0;  // of told_
    std::map<uint64_t, StepItem> items;
    size_t num_others = 0;  // of the items, those that are not `first`
  };

  void DealOut();
  bool GiveOne(size_t depth);
  absl::Status Hear();
  absl::Status HearOne(const RankMessage& message);
  void GiveUpOnSilent();
  bool CallTheRoll();
  void Beat();

  const std::unique_ptr<RankLink> link_;
  const std::unique_ptr<ChildWorkers> children_;
  const RankOptions options_;
  std::vector<Rank> ranks_;  // the first is this one, and is not used
  WaitingItems waiting_;
  std::vector<StepItem> told_;
  std::deque<FinishedItem> finished_;
  std::mutex mutex_;  // guards is_over_
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread beats_;  // This process may do something else for long.
};

// Works for rank 0 until that ends. Errors: it is not heard any more; nobody can do an item, which
// rank 0 is told; the log cannot be written.
absl::Status ServeRank(std::unique_ptr<RankLink> link, std::unique_ptr<ChildWorkers> children,
                       const RankOptions& options);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_WORKERS_RANK_WORKERS_H_
