// The plans that people write by hand, as choices in the same space as the search's.
//
//   data_parallel  every call is split in the batch dim over all devices; weights are replicated.
//   zero3          as data_parallel, but weights, too, are kept in parts, one on each device, and
//                  gathered before use (Rajbhandari et al., "ZeRO", 2020, stage 3; FSDP). Training
//                  only; the plan's UpdateMethod is kShardedWeights.
//   megatron       tensor parallel over the innermost devices (grid_mapping.h), data parallel over
//                  the others.
//   pipeline       stages of equal work, data parallel within a stage; of the parallel
//                  configurations (grid_search.h), the best of that kind.
//   published      what experts did by hand for such models (published_plans.h).
//   single_device  everything on device 0: what the other devices must beat.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_BASELINES_H_
#define ISOMER_OPTIMIZER_PROPOSAL_BASELINES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"

namespace isomer {

inline constexpr char kDataParallel[] = "data_parallel";
inline constexpr char kZero3[] = "zero3";
inline constexpr char kMegatron[] = "megatron";
inline constexpr char kPipeline[] = "pipeline";
inline constexpr char kPublished[] = "published";
inline constexpr char kSingleDevice[] = "single_device";
// Those that are plans for all devices, and that --plan takes.
inline constexpr const char* kBaselines[] = {kDataParallel, kZero3, kMegatron, kPipeline,
                                             kPublished};
// Whether it is one of those; what else a result calls a baseline is the user's own plan, or one
// device.
bool IsBaseline(absl::string_view name);

// megatron is tensor parallel within a node, data parallel across. Errors: an unknown name;
// NotFound if the baseline does not apply to the model (megatron, without a column-parallel product
// that a row-parallel one follows; published, see there).
absl::StatusOr<MappedModel> MapBaseline(const std::string& name, const Graph& graph,
                                        CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_BASELINES_H_
