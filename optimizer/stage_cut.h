// Where to cut a sequence of calls into the stages of a pipeline.
#ifndef ISOMER_OPTIMIZER_STAGE_CUT_H_
#define ISOMER_OPTIMIZER_STAGE_CUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace isomer {

// The first call of every stage. Of the cuts into `stages` stages that are none of them empty, the
// slowest stage takes at most a twentieth longer than it must; among those, the fewest bytes cross.
//   us       time of every call
//   crossing crossing[i]: bytes that calls before i make and calls from i on read
// REQUIRES: 1 <= stages <= us.size(), crossing as long as `us`.
std::vector<int> CutStages(absl::Span<const double> us, absl::Span<const int64_t> crossing,
                           int stages);

// What a call makes, and the last call that reads it; not before the call itself.
struct MadeByCall {
  size_t call, last_use;
  int64_t bytes;
};
// The stage of every call, cut by CutStages. REQUIRES: as there.
std::vector<int> StagesOfCalls(absl::Span<const double> us, absl::Span<const MadeByCall> made,
                               int stages);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_STAGE_CUT_H_
