// In which order a buffer holds the elements of its box.
//
// Tensors of channels and space, [batch, channels, d1, .., dn] with n of 1 to 3, are row-major as
// all others, or have their channels innermost (NHWC): what convolutions of CPUs and GPUs want to
// read and write. What a network does between convolutions mostly does not care, so layouts are
// chosen for whole regions of it, and nothing is reordered inside of one; at its borders a
// convolution reads one layout and writes the other.
#ifndef ISOMER_PCG_SCHEDULE_LAYOUT_H_
#define ISOMER_PCG_SCHEDULE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pcg/ir/box.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

struct Schedule;
struct Task;

enum class Layout : uint8_t { kRowMajor, kChannelsLast };

// The sizes are of a tensor whose two layouts differ: it has channels, more than one, and space,
// more than one element of it.
bool HasLayouts(absl::Span<const int64_t> sizes);

// The dims of a tensor in the order in which `layout` has them, the outermost first.
Box InMemory(const Box& box, Layout layout);

// How a call takes operands and results whose channels are innermost.
enum class LayoutUse {
  kRowMajor,  // not at all
  kTogether,  // all that have layouts have the same
  kEach,      // a convolution: its image and its result have each its own; weights are row-major
};
// `operands`, `outputs`: logical types.
LayoutUse LayoutUseOf(const Operator& op, absl::Span<const TensorType> operands,
                      absl::Span<const TensorType> outputs);

// Of the buffers that a call's task has, values and gradients alike; empty: row-major.
struct CallLayouts {
  std::vector<Layout> operands, outputs;
  Layout OfOperand(size_t o) const { return operands.empty() ? Layout::kRowMajor : operands[o]; }
  Layout OfOutput(size_t t) const { return outputs.empty() ? Layout::kRowMajor : outputs[t]; }
  bool AreRowMajor() const;
};
CallLayouts LayoutsOf(const Graph& graph, const Schedule& schedule, const Task& task);

// Chooses the layouts of all buffers: channels are innermost wherever a region has a convolution or
// another operator of images that gains by it, and nothing that wants it row-major. What the host
// reads or writes, and what views read or write, is row-major.
void ChooseLayouts(const Graph& graph, Schedule* schedule);

// Calls find layouts that they take (LayoutUseOf), a value and its gradient the same; a
// communication, a sum or an update finds what it reads and writes in one layout; the host and
// views find row-major tensors.
absl::Status CheckLayouts(const Graph& graph, const Schedule& schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LAYOUT_H_
