// The plans that people write by hand, as choices in the same space as the search's.
//
//   data_parallel  every call is split in the batch dim over all devices; weights are replicated.
//   zero3          as data_parallel, but weights, too, are kept in parts, one on each device, and
//                  gathered before use (Rajbhandari et al., "ZeRO", 2020, stage 3; FSDP). Training
//                  only; the plan's UpdateMethod is kShardedWeights.
//   megatron       Megatron-LM (Shoeybi et al. 2019), with the sequence parallelism of Korthikanti
//                  et al. 2022: over the innermost devices, matrix products with weights alternate
//                  between column and row parallel (attention by heads); what lies between a
//                  row-parallel product and the next column-parallel one is split in the sequence.
//                  Data parallel over the others.
//   published      what experts did by hand for such models (published_plans.h).
//   single_device  everything on device 0: what the other devices must beat.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_BASELINES_H_
#define ISOMER_OPTIMIZER_PROPOSAL_BASELINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"

namespace isomer {

inline constexpr char kDataParallel[] = "data_parallel";
inline constexpr char kZero3[] = "zero3";
inline constexpr char kMegatron[] = "megatron";
inline constexpr char kPublished[] = "published";
inline constexpr char kSingleDevice[] = "single_device";

// megatron is tensor parallel within a node, data parallel across. Errors: an unknown name;
// NotFound if the baseline does not apply to the model (megatron, without a column-parallel product
// that a row-parallel one follows; published, see there).
absl::StatusOr<MappedModel> MapBaseline(const std::string& name, const Graph& graph,
                                        CostTables* tables);

// Over the devices, and micro-batches, of the tables' options. Errors: as of megatron, unless
// `tensor_degree` is 1, which is data parallelism.
absl::StatusOr<MappedModel> MapTensorParallel(const Graph& graph, int64_t tensor_degree,
                                              CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_BASELINES_H_
