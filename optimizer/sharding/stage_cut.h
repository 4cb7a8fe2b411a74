// Where to cut a sequence of calls into the stages of a pipeline.
#ifndef ISOMER_OPTIMIZER_SHARDING_STAGE_CUT_H_
#define ISOMER_OPTIMIZER_SHARDING_STAGE_CUT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"

namespace isomer {

// The stages, from 0, that a call may be in.
struct StageRange {
  int first = 0, last = std::numeric_limits<int>::max();
};

// The first call of every stage. Of the cuts into `stages` stages that are none of them empty, the
// slowest stage takes at most a twentieth longer than it must; among those, the fewest bytes cross.
//   us       time of every call
//   crossing crossing[i]: bytes that calls before i make and calls from i on read
//   allowed  the stages of every call, or empty: any. If no cut keeps to them, empty; else "must"
//            is a tenth more than a cut that keeps to them takes, at most
// REQUIRES: 1 <= stages <= us.size(), crossing as long as `us`.
std::vector<int> CutStages(absl::Span<const double> us, absl::Span<const int64_t> crossing,
                           int stages, absl::Span<const StageRange> allowed = {});

// What a call makes, and the last call that reads it; not before the call itself.
struct MadeByCall {
  size_t call, last_use;
  int64_t bytes;
};
// The stage of every call, cut by CutStages; empty if there is no cut. REQUIRES: as there.
std::vector<int> StagesOfCalls(absl::Span<const double> us, absl::Span<const MadeByCall> made,
                               int stages, absl::Span<const StageRange> allowed = {});

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_STAGE_CUT_H_
