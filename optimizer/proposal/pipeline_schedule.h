// In which order the stages of a pipeline work through micro-batches: what a user may ask for.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PIPELINE_SCHEDULE_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PIPELINE_SCHEDULE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pcg/ir/zero_bubble.h"
#include "pcg/schedule/order/pipeline.h"

namespace isomer {

enum class PipelineSchedule {
  k1F1B,  // backward passes are whole; of several chunks of a stage, interleaved
  kZbH1,  // in two halves, with as many micro-batches in flight as 1F1B has on the first stage
  kZbH2,  // the same, with twice as many
  kZbV,   // two chunks a stage, of which the second goes back: first and last share devices
};

// The name of none of these, but of that of the fastest plan that fits.
inline constexpr char kAutoSchedule[] = "auto";

// Those that there are.
absl::Span<const PipelineSchedule> AllPipelineSchedules();
const char* PipelineScheduleName(PipelineSchedule schedule);  // "zb_h1"
absl::StatusOr<PipelineSchedule> ParsePipelineSchedule(absl::string_view name);

// Chunks of each stage; 0: as many as a user wants.
int64_t ChunksOf(PipelineSchedule schedule);

// What a plan of such a pipeline says. Of `shape` its stages, chunks and micro-batches count.
ZeroBubble ZeroBubbleOf(PipelineSchedule schedule, const PipelineShape& shape);

// Of a plan's pipeline: "1F1B", "ZB-H1", "ZB-H2", "ZB-V", or "zero bubble, 5 in flight".
std::string OrderText(const PipelineShape& shape);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_PIPELINE_SCHEDULE_H_
