// Mappings by hand of parallel configurations, for any model: dims are found by structure
// (batch_dims.h), not by names.
//
// From the outermost axis of devices to the innermost:
//   data     the batch
//   expert   products of experts in their experts; of all other calls a part of the batch. Where
//            experts are in groups of which a token chooses some, rows go to a group first, to the
//            one of its devices that has their part of the batch, and from there to the experts: a
//            row is sent between nodes once for each group, if a group is a node's
//   context  the sequence, of all calls; attention gathers keys and values (Llama 3, Grattafiori et
//            al. 2024), where of a causal one the last device works longest, unless the sequence is
//            in stripes (striped_order.h); or exchanges its sequence for heads, which are split
//            over as many of tensor x context devices as divide them (DeepSpeed-Ulysses, Jacobs et
//            al. 2023), and the sequence over the rest
//   tensor   products with weights alternate between column and row parallel, attention by heads,
//            look-ups by rows of the table; what lies between a row-parallel product and the next
//            column-parallel one is split in the sequence (Megatron-LM, Shoeybi et al. 2019, with
//            the sequence parallelism of Korthikanti et al. 2022); without sequence parallelism,
//            or where the sequence is no dim of its own, each device computes all of that for
//            itself. Attention of fewer key heads than devices, and what leads to its keys and
//            values, is split by as much as divides the heads and in the sequence by what is left:
//            no rule splits the queries of one key head (Megatron-LM does, with copies of it)
#ifndef ISOMER_OPTIMIZER_PROPOSAL_GRID_MAPPING_H_
#define ISOMER_OPTIMIZER_PROPOSAL_GRID_MAPPING_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"

namespace isomer {

// Of any one; three of them multiply.
inline constexpr int64_t kMostDegree = int64_t{1} << 20;

struct GridDegrees {
  int64_t tensor = 1, context = 1, expert = 1;
  bool sequence_parallel = true;  // of tensor parallelism
  bool context_by_heads = false;  // attention exchanges the sequence for heads, where these divide
  bool in_stripes = false;        // causal attention on a split sequence is (striped_order.h)
  friend auto operator<=>(const GridDegrees&, const GridDegrees&) = default;
};

// Over the devices, and micro-batches, of the tables' options; data parallelism has what the other
// degrees leave. A call whose dim a degree does not divide is split by less of it, or in another;
// `misfit` (may be null) is set to a line that names the first, or to "". Errors: NotFound if the
// model has no column-parallel product that a row-parallel one follows (tensor), no sequence
// (context), no attention with heads for more than tensor parallelism (context_by_heads), no
// products of experts (expert). REQUIRES: tensor x context, and expert x context x tensor, divide
// the devices.
absl::StatusOr<MappedModel> MapGrid(const Graph& graph, const GridDegrees& degrees,
                                    CostTables* tables, std::string* misfit = nullptr);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_GRID_MAPPING_H_
