#include "generator/workers/work_queue.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"

namespace isomer {

void WorkQueue::Do(const StepItem& item, Take take) {
  const std::optional<std::string> kept = memo_->Find(item.step, item.key);
  if (kept.has_value() && take(*kept)) return;
  DoAnew(item, std::move(take));
}

void WorkQueue::DoAnew(const StepItem& item, Take take) {
  const uint64_t ticket = next_ticket_++;
  workers_->Start(ticket, item);
  open_.emplace(ticket, Open{{item.step, "", item.key, item.first}, std::move(take)});
}

absl::Status WorkQueue::WaitUntil(absl::FunctionRef<bool()> is_true) {
  while (!is_true()) {
    ISOMER_CHECK(!open_.empty());
    ISOMER_ASSIGN_OR_RETURN(const FinishedItem finished, workers_->Next());
    const auto found = open_.find(finished.ticket);
    ISOMER_CHECK(found != open_.end());
    const Open open = std::move(found->second);
    open_.erase(found);
    if (finished.result.lasts) memo_->Put(open.item.key, finished.result.bytes);
    if (!open.take(finished.result.bytes)) {
      return absl::InternalError(absl::StrCat("a worker gave no result of ", open.item.step));
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
