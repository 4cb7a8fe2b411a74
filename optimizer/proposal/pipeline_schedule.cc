#include "optimizer/proposal/pipeline_schedule.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

struct ScheduleTraits {
  PipelineSchedule schedule;
  const char* name;
  const char* text;
};

constexpr ScheduleTraits kSchedules[] = {{PipelineSchedule::k1F1B, "1f1b", "1F1B"},
                                         {PipelineSchedule::kZbH1, "zb_h1", "ZB-H1"},
                                         {PipelineSchedule::kZbH2, "zb_h2", "ZB-H2"},
                                         {PipelineSchedule::kZbV, "zb_v", "ZB-V"}};

}  // namespace

absl::Span<const PipelineSchedule> AllPipelineSchedules() {
  static const auto* const all = [] {
    auto* schedules = new std::vector<PipelineSchedule>;
    for (const ScheduleTraits& traits : kSchedules) schedules->push_back(traits.schedule);
    return schedules;
  }();
  return *all;
}

const char* PipelineScheduleName(PipelineSchedule schedule) {
  for (const ScheduleTraits& traits : kSchedules) {
    if (traits.schedule == schedule) return traits.name;
  }
  return "";
}

absl::StatusOr<PipelineSchedule> ParsePipelineSchedule(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const ScheduleTraits& traits : kSchedules) {
    if (name == traits.name) return traits.schedule;
    names.push_back(traits.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "': there are ", absl::StrJoin(names, ", ")));
}

int64_t ChunksOf(PipelineSchedule schedule) { return schedule == PipelineSchedule::kZbV ? 2 : 0; }

ZeroBubble ZeroBubbleOf(PipelineSchedule schedule, const PipelineShape& shape) {
  const PipelineShape whole{.num_stages = shape.num_stages,
                            .num_moments = std::max(shape.num_moments, shape.num_stages),
                            .num_chunks = shape.num_chunks};
  const int64_t of_1f1b = whole.MostInFlight(0), stages = shape.num_stages;
  switch (schedule) {
    case PipelineSchedule::k1F1B:
      break;
    case PipelineSchedule::kZbH1:
      return {.most_in_flight = static_cast<int32_t>(of_1f1b)};
    case PipelineSchedule::kZbH2:
      return {.most_in_flight = static_cast<int32_t>(of_1f1b + stages - 1)};
    case PipelineSchedule::kZbV:
      return {.most_in_flight = static_cast<int32_t>(2 * stages)};
  }
  return {};
}

std::string OrderText(const PipelineShape& shape) {
  for (const ScheduleTraits& traits : kSchedules) {
    const bool folds = traits.schedule == PipelineSchedule::kZbV;
    const ZeroBubble of_schedule = ZeroBubbleOf(traits.schedule, shape);
    if (shape.folds == folds && of_schedule.most_in_flight == shape.zero_bubble.most_in_flight) {
      return traits.text;
    }
  }
  return absl::StrCat("zero bubble, ", shape.zero_bubble.most_in_flight, " in flight");
}

}  // namespace isomer
