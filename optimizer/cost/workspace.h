// What kernels take beside their operands and results, where no profile has measured it.
//
// Of the cpu backend (oneDNN 2.6 on cores with AVX-512), after its profiles: matrix products pack
// panels, in about 472 KB of the library's own (of thousands of columns in up to 16 MB, which is
// little beside them). The rest is workspace that kernels ask for. Kernels that compute in float32
// what is of lower precision have copies of it (WidenedBytes). Not known here: what oneDNN's
// convolutions over groups need themselves, up to the size of their images.
// Convolutions of images with channels innermost reorder the weights, and an image that is
// row-major beside one that is not; of points, they are matrix products. Of row-major images they
// work on copies in which channels are padded to blocks of 16, of the result and, of 16 channels
// and more, of the operand; their gradients on such of the result's gradient and of the operand's
// gradient. What the others take is a few kilobytes. Other backends are not modelled: 0.
#ifndef ISOMER_OPTIMIZER_COST_WORKSPACE_H_
#define ISOMER_OPTIMIZER_COST_WORKSPACE_H_

#include <cstdint>
#include <vector>

#include "optimizer/machine/machine.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/layout.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Its devices are cores.
bool RunsOnCores(const Machine& machine);

// In bytes: in the arena, and of a library's own beside it.
struct KernelBytes {
  int64_t workspace = 0, library = 0;
};

// One task of a call of `node` in `graph` on a core; with `wanted` not empty, of its gradient with
// respect to those operands.
KernelBytes BytesOnCore(const Graph& graph, const Node& node, const std::vector<bool>& wanted,
                        const CallLayouts& layouts);

// Of a task on a core: the copies in float32 of what it reads and writes in lower precision. None
// where elements are moved, or computed one by one.
int64_t WidenedBytes(const Graph& graph, const Schedule& schedule, const Task& task);

// Of the gradients that a task adds to sums, those that its kernel on a core first writes beside
// them, in bytes: products of matrices, look-ups and elementwise operators add what they compute.
int64_t SharesBesideSums(const Graph& graph, const Schedule& schedule, const Task& task);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_WORKSPACE_H_
