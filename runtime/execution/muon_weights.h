// Which weights Muon is for.
#ifndef ISOMER_RUNTIME_EXECUTION_MUON_WEIGHTS_H_
#define ISOMER_RUNTIME_EXECUTION_MUON_WEIGHTS_H_

#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Names of the weights of a model, as it was imported, that Muon is for: of those of two dims the
// ones that the regular expression `names` (ECMAScript) matches somewhere. Without it those with
// which something is multiplied (MatMul, Linear), but for tables that a lookup reads, too (tied
// embeddings), and the weight of the last product (the classifier): its authors update these as
// Adam does.
//
// Errors: no expression; one that matches no weight of two dims.
absl::StatusOr<std::set<std::string>> MuonWeights(const Graph& model,
                                                  const std::optional<std::string>& names);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_MUON_WEIGHTS_H_
