#include "runtime/device/whereabouts.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

std::atomic<int64_t> current_step = 0;
std::atomic<const char*> current_part = "", current_call = "";

}  // namespace

void EnterStep(int64_t step) { current_step = step; }

void EnterPart(const char* part) { current_part = part; }

void EnterCall(const char* call) { current_call.store(call, std::memory_order_relaxed); }

Whereabouts CurrentWhereabouts() {
  Whereabouts now;
  now.step = current_step;
  const std::string part = current_part.load(), call = current_call.load();
  const std::string doing = absl::StrCat(part, part.empty() || call.empty() ? "" : ": ", call);
  std::copy_n(doing.data(), std::min(doing.size(), sizeof now.doing - 1), now.doing);
  return now;
}

std::string WhereaboutsText(const Whereabouts& whereabouts) {
  const size_t size = strnlen(whereabouts.doing, sizeof whereabouts.doing);
  const std::string doing(whereabouts.doing, size);
  return absl::StrCat(
      whereabouts.step == 0 ? "before step 1" : absl::StrCat("in step ", whereabouts.step),
      doing.empty() ? "" : ", in ", doing);
}

}  // namespace isomer
