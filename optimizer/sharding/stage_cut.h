// Cuts a sequence of calls into pipeline stages.
#ifndef ISOMER_OPTIMIZER_SHARDING_STAGE_CUT_H_
#define ISOMER_OPTIMIZER_SHARDING_STAGE_CUT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"

namespace isomer {

// The stages, from 0, allowed for a call.
struct StageRange {
  int first = 0, last = std::numeric_limits<int>::max();
};

// What calls are on the devices of one stage: these may be slower than another's, or hold less.
struct StageCosts {
  absl::Span<const double> us;           // of every call
  absl::Span<const int64_t> bytes = {};  // that it takes there; empty: none
  int64_t most_bytes = std::numeric_limits<int64_t>::max();
};

// The first call of every stage. Minimises the bytes that cross, among cuts into non-empty stages
// that hold no more than they may, and whose slowest stage takes at most a twentieth longer than
// necessary.
//   stages   in their order
//   crossing crossing[i]: bytes that calls before i produce and calls from i on read
//   allowed  the stages allowed for every call, or empty: any. If no cut satisfies them, or the
//            stages' bytes, the result is empty; else the necessary time is at most a tenth more
//            than the optimum under them
// REQUIRES: 1 <= stages <= calls, all of these lists as long.
std::vector<int> CutStages(absl::Span<const StageCosts> stages, absl::Span<const int64_t> crossing,
                           absl::Span<const StageRange> allowed = {});
// Of stages that are alike.
std::vector<int> CutStages(absl::Span<const double> us, absl::Span<const int64_t> crossing,
                           int stages, absl::Span<const StageRange> allowed = {});

// A call's output and the last call that reads it; not before the call itself.
struct MadeByCall {
  size_t call, last_use;
  int64_t bytes;
};
// The stage of every call, by CutStages; empty if there is no cut. REQUIRES: as CutStages.
std::vector<int> StagesOfCalls(absl::Span<const StageCosts> stages,
                               absl::Span<const MadeByCall> made,
                               absl::Span<const StageRange> allowed = {});

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_STAGE_CUT_H_
