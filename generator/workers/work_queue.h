// Items that are done once: by an earlier run, which the memo tells of, or by workers.
#ifndef ISOMER_GENERATOR_WORKERS_WORK_QUEUE_H_
#define ISOMER_GENERATOR_WORKERS_WORK_QUEUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "generator/workers/memo.h"
#include "generator/workers/workers.h"

namespace isomer {

// Used by one thread.
class WorkQueue {
 public:
  WorkQueue(Workers* workers, Memo* memo) : workers_(workers), memo_(memo) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // What is done with a result; it may ask for more items. False: the bytes are no result of this
  // step, as those of a damaged memo, and the item is done again.
  using Take = std::function<bool(const std::string& bytes)>;

  // `take` is called at once if the memo has the result, else within WaitUntil, and the memo gets
  // what lasts.
  void Do(const StepItem& item, Take take);
  // The same for what is not kept: the memo is not asked.
  void DoAnew(const StepItem& item, Take take);
  void Tell(const StepItem& item, bool anew) { workers_->Tell(item, anew); }
  // Takes results until `is_true`. REQUIRES: it will be.
  absl::Status WaitUntil(absl::FunctionRef<bool()> is_true);

  int num_workers() const { return workers_->count(); }
  Memo* memo() const { return memo_; }

 private:
  struct Open {
    StepItem item;
    Take take;
  };
  Workers* const workers_;
  Memo* const memo_;
  uint64_t next_ticket_ = 1;
  std::map<uint64_t, Open> open_;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_WORKERS_WORK_QUEUE_H_
