// A simulated step, and memory over it, in as few numbers as a picture needs.
#ifndef ISOMER_OPTIMIZER_PAGE_TIMELINE_JSON_H_
#define ISOMER_OPTIMIZER_PAGE_TIMELINE_JSON_H_

#include "optimizer/cost/cost.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/json.h"

namespace isomer {

// {span_us, ticks, classes: [..], labels: [..], rows: [{device, stage, queue, spans: [..]}]}. A
// span is six numbers: start and length in ticks, class, micro-batch (-1: none), how many tasks it
// stands for, and its label (-1: none, as of several tasks). Where a row would have more than
// kMostSpans, neighbours of one class and micro-batch are one span, and so are those too short to
// be seen.
inline constexpr size_t kMostSpans = 700;
inline constexpr int64_t kTicks = 100000;
Json TimelineJson(const Graph& graph, const Schedule& schedule, const Simulation& simulation);

// {unit_bytes, bins, categories: [..], devices: [{device, stage, live_bytes, arena_bytes, series:
// [[..], ..]}]}: per category and bin of the step, of what lives at the moment of the bin at which
// most does. In the order of the schedule, at the times at which its tasks start. An arena is what
// the device needs: what lives at the peak, the gaps between buffers, what libraries allocate.
inline constexpr int kMemoryBins = 160;
Json MemoryJson(const CostModel& cost, const LoweredPlan& lowered, const Simulation& simulation);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PAGE_TIMELINE_JSON_H_
