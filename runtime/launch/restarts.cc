#include "runtime/launch/restarts.h"

#include "absl/strings/str_cat.h"

namespace isomer {

std::string Restarts::Failed(int64_t newest_step) {
  in_vain_ = newest_step == newest_ ? in_vain_ + 1 : 0;
  newest_ = newest_step;
  if (most_ == 0) return "it is not to be started again";
  if (in_vain_ >= kMostInVain) {
    return absl::StrCat("it failed ", in_vain_ + 1, " times behind step ", newest_step,
                        " without coming further");
  }
  if (so_far_ >= most_) {
    return absl::StrCat("it was started again ", most_, most_ == 1 ? " time" : " times");
  }
  ++so_far_;
  return "";
}

}  // namespace isomer
