// What kernels take beside their operands and results, where no profile has measured it.
//
// Of the cpu backend (oneDNN 2.6 on cores with AVX-512), after its profiles: convolutions work on
// copies in which channels are padded to blocks of 16, of the result and, of 16 channels and more,
// of the operand; their gradients on such of the result's gradient and of the operand's gradient;
// matrix products pack panels, in at most 472 KB a core. What the others take is a few kilobytes.
// Other backends are not modelled: 0.
#ifndef ISOMER_OPTIMIZER_WORKSPACE_H_
#define ISOMER_OPTIMIZER_WORKSPACE_H_

#include <cstdint>
#include <vector>

#include "optimizer/machine.h"
#include "pcg/graph.h"

namespace isomer {

// Its devices are cores.
bool RunsOnCores(const Machine& machine);

// One task of a call of `node` in `graph` on a core; with `wanted` not empty, of its gradient with
// respect to those operands.
int64_t WorkspaceOnCore(const Graph& graph, const Node& node, const std::vector<bool>& wanted);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_WORKSPACE_H_
