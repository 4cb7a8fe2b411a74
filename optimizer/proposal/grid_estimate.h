// What a parallel configuration comes to by the tables' costs of its calls, and its cut into
// chunks.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_GRID_ESTIMATE_H_
#define ISOMER_OPTIMIZER_PROPOSAL_GRID_ESTIMATE_H_

#include <vector>

#include "absl/types/span.h"
#include "optimizer/cost/cost.h"
#include "optimizer/mapping/cost_options.h"
#include "optimizer/proposal/parallel_config.h"
#include "optimizer/proposal/stages.h"

namespace isomer {

// `estimates`: of a mapping onto one stage, on the blocks of devices of all; `cost`: the tables'
// options that they were made under; `kept`: its calls whose results are (KeptCalls);
// `chunk_of_call`: as it is cut.
ConfigEstimate EstimateGrid(const ParallelConfig& config, const GridOptions& options,
                            const CostModel& model, const CostOptions& cost,
                            const std::vector<bool>& kept, const BlockEstimates& estimates,
                            absl::Span<const int> chunk_of_call);

// The chunk of every call: balanced, each stage's calls as long as on its own devices. On a machine
// of several kinds of devices no stage has more than its devices hold, if any cut is so. Empty: no
// cut keeps bound calls in their stages.
std::vector<int> CutIntoChunks(const ParallelConfig& config, const GridOptions& options,
                               const CostModel& model, const CostOptions& cost,
                               const std::vector<bool>& kept, const BlockEstimates& estimates);

// In which order the blocks of devices may be the stages of a pipeline (ParallelConfig::blocks): on
// a machine of one kind as they are; else also sorted by what kinds they have, in each order of
// these, as few as there mostly are. Early stages keep more activations, later ones may have less
// to do: which kind is best first depends on the model.
std::vector<std::vector<int64_t>> OrdersOfBlocks(const Machine& machine, int64_t stages,
                                                 int64_t stage_devices);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_GRID_ESTIMATE_H_
