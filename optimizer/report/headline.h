// The answer of a search in one line.
#ifndef ISOMER_OPTIMIZER_REPORT_HEADLINE_H_
#define ISOMER_OPTIMIZER_REPORT_HEADLINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "optimizer/machine/machine.h"
#include "optimizer/report/node_times.h"
#include "optimizer/search/optimizer.h"
#include "pcg/ir/plan.h"

namespace isomer {

// How most of a plan's weights lie on the devices of a pipeline stage. Weights are counted by the
// time of the calls that read them.
struct WeightDegrees {
  int64_t tensor = 1;   // parts of a weight
  int64_t context = 1;  // parts of the sequence, of what weights are multiplied with
  int64_t data = 1;     // copies of a part for each of these
  double share = 0;     // of the time of all such calls; 0: no call reads a weight
};
WeightDegrees MostUsedDegrees(const MappedGraph& mapped, const std::vector<NodeTimes>& times);

// "tensor 2 x pipeline 16 (6 chunks) x data 32, 32 micro-batches, ZeRO 1: 4.68 s a step, 448k
// tokens/s, 475 TFLOP/s a device (MFU 48.0 %), 64.6 GiB of 80.0 GiB". Of a plan whose calls have
// different degrees, "degrees by layer (62 % of the time tensor 2, data 2)" in place of those.
std::string HeadlineOf(const OptimizeResult& result, const std::vector<NodeTimes>& times,
                       const Machine& machine);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_HEADLINE_H_
