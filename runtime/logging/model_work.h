#ifndef ISOMER_RUNTIME_LOGGING_MODEL_WORK_H_
#define ISOMER_RUNTIME_LOGGING_MODEL_WORK_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "pcg/ir/graph.h"

namespace isomer {

// FLOPs of a step of a model, whatever a plan computes twice or on several devices: forward, and
// with a loss the gradients that weights need, as Chowdhery et al. count them for model FLOPs
// utilization ("PaLM", 2022, appendix B). `graph` is sequential.
double ModelFlops(const Graph& graph, absl::string_view loss);

// Of language models: the tokens of a batch, where an input of indices [batch, sequence] has a
// label for each. Nothing: it is none.
std::optional<int64_t> TokensOfBatch(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_LOGGING_MODEL_WORK_H_
