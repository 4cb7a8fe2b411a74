#ifndef ISOMER_RUNTIME_LAUNCH_CHILDREN_H_
#define ISOMER_RUNTIME_LAUNCH_CHILDREN_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace isomer {

// Of each child that is a rank: who has not met the others, because one was lost, is to leave it to
// its parent to say so, and to end with this code.
inline constexpr char kParentVariable[] = "ISOMER_HAS_PARENT";
inline constexpr int kExitUnmet = 4;

struct ChildrenOptions {
  std::vector<std::string> command;  // a path, and its arguments
  int32_t count = 1;
  // Each is told by its environment, as torchrun would tell it, which of them it is (RANK, ..).
  // Otherwise there is one, which is told nothing.
  bool are_ranks = false;
  // When one has failed, the others have so long to end by themselves; then they are killed.
  std::chrono::milliseconds patience = std::chrono::seconds(3);
};

// How they ended.
struct ChildrenEnd {
  // 0: all did what they were to do. Else the largest code of those that ended by themselves, and
  // have said why; -1: none did.
  int code = 0;
  // "rank 1 was killed by SIGKILL", "rank 1 stood still, and was killed"; empty: none was killed by
  // others.
  std::string killed;
  // The one that asked this process to stop ("SIGTERM", "SIGINT"), which the children were told.
  std::string stopped_by;
};

// From the start of all until the end of the last. SIGTERM and SIGINT are passed on. If this
// process is killed, the children get SIGTERM. Not to be called by several threads, nor beside
// others: the children are copies of the process.
absl::StatusOr<ChildrenEnd> RunChildren(const ChildrenOptions& options);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_LAUNCH_CHILDREN_H_
