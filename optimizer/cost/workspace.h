// Memory of kernels besides their operands and results, where no profile has measured it.
//
// For the cpu backend (oneDNN 2.6 on cores with AVX-512), fitted to its profiles: matrix products
// pack panels, in about 472 KB allocated by the library itself (with thousands of columns up to 16
// MB, still little compared with the matrices). All else is workspace that kernels request. Kernels
// that compute in float32 on tensors of lower precision make copies of them (WidenedBytes). Not
// modelled: grouped convolutions of oneDNN need up to the size of their images themselves.
// Convolutions of channels-last images reorder the weights, and an image that is row-major where
// the other is not; 1x1 convolutions are matrix products. Convolutions of row-major images work on
// copies with channels padded to blocks of 16: of the result and, from 16 channels on, of the
// operand; their gradients on such copies of the result's gradient and of the operand's gradient.
// Transposed convolutions are alike, with operand and result exchanged. Others take a few
// kilobytes. Other backends are not modelled: 0.
#ifndef ISOMER_OPTIMIZER_COST_WORKSPACE_H_
#define ISOMER_OPTIMIZER_COST_WORKSPACE_H_

#include <cstdint>
#include <vector>

#include "optimizer/machine/machine.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/layout.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Whether the machine's devices are cores.
bool RunsOnCores(const Machine& machine);

// Bytes in the arena, and those that a library allocates itself.
struct KernelBytes {
  int64_t workspace = 0, library = 0;
};

// One task of a call of `node` in `graph` on a core; if `wanted` is not empty, of the gradient of
// those operands.
KernelBytes BytesOnCore(const Graph& graph, const Node& node, const std::vector<bool>& wanted,
                        const CallLayouts& layouts);

// Bytes of the float32 copies of a task's lower-precision operands and results on a core. 0 for
// data movement and elementwise operators.
int64_t WidenedBytes(const Graph& graph, const Schedule& schedule, const Task& task);

// Bytes of the gradients that a task's kernel on a core writes to a temporary before adding them to
// sums. Matrix products, look-ups and elementwise operators add directly.
int64_t SharesBesideSums(const Graph& graph, const Schedule& schedule, const Task& task);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_WORKSPACE_H_
