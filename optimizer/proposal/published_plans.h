// What experts did by hand for kinds of models that neither data parallelism nor Megatron-LM suits.
// Which kind a model is of is read off its operators; the first that fits:
//
//   mixture      GShard (Lepikhin et al. 2021, section 3.2): the experts' products are split over
//                experts, all else is data parallel; tokens go there and back by all-to-all.
//   tables       Neo (Mudigere et al., ISCA 2022, section 4.1): embedding tables are spread over
//                devices, one table each where there are enough, by columns or by rows else, over
//                as many as that goes; all else is data parallel.
//   recurrent    GNMT (Wu et al. 2016, section 5; FlexFlow, MLSys 2019, section 8.1): data
//                parallel across nodes; of a node, every device has some of the layers.
//   convolution  Krizhevsky 2014, "One weird trick": convolutions are data parallel, dense layers
//                are split in their outputs over all devices.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PUBLISHED_PLANS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PUBLISHED_PLANS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"

namespace isomer {

enum class PublishedKind { kMixture, kTables, kRecurrent, kConvolution };
// Absent: of none of these kinds (a transformer: Megatron-LM is what experts do).
std::optional<PublishedKind> PublishedKindOf(const Graph& graph);

// Errors: NotFound, of none of these kinds.
absl::StatusOr<MappedModel> MapPublished(const Graph& graph, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_PUBLISHED_PLANS_H_
