#include "optimizer/cost/workspace.h"

#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/schedule/memory/memory.h"

namespace isomer {
namespace {

constexpr int64_t kChannelBlock = 16;
constexpr int64_t kPanelBytes = 472'000;

// Bytes of a shard of [samples, channels, ..] with channels padded to blocks.
int64_t BlockedBytes(const TensorType& type) {
  const std::vector<int64_t> shape = type.LocalShape();
  const int64_t blocks = (shape[1] + kChannelBlock - 1) / kChannelBlock;
  return type.LocalBytes() / shape[1] * blocks * kChannelBlock;
}

bool IsBlocked(const TensorType& type) { return type.LocalShape()[1] >= kChannelBlock; }

}  // namespace

bool RunsOnCores(const Machine& machine) {
  const std::string name = absl::AsciiStrToLower(machine.device_name());
  return absl::StrContains(name, "core") || absl::StrContains(name, "cpu");
}

KernelBytes BytesOnCore(const Graph& graph, const Node& node, const std::vector<bool>& wanted,
                        const CallLayouts& layouts) {
  if (node.op.kind() == OpKind::kMatMul) return {.library = kPanelBytes};
  const TensorType& image = node.outputs[0];
  if (node.op.kind() == OpKind::kConvTranspose && image.rank() == 4) {
    // The result is the image of the convolution whose gradient this is.
    const bool copies_image = IsBlocked(image) || wanted.empty();
    return {.workspace = BlockedBytes(graph.type(node.inputs[0])) +
                         (copies_image ? BlockedBytes(image) : 0)};
  }
  if (node.op.kind() != OpKind::kConv2d) return {};
  const TensorType& operand = graph.type(node.inputs[0]);
  if (!layouts.AreRowMajor()) {
    const TensorType& weights = graph.type(node.inputs[1]);
    const bool turns_operand = layouts.OfOperand(0) == Layout::kRowMajor;
    const bool turns_result = layouts.OfOutput(0) == Layout::kRowMajor;
    if (!turns_operand && !turns_result &&
        HasPointFilters(node.op, operand.LocalShape(), weights.LocalShape())) {
      return {.library = kPanelBytes};
    }
    return {.workspace = weights.LocalBytes() + (turns_operand ? operand.LocalBytes() : 0) +
                         (turns_result ? node.outputs[0].LocalBytes() : 0)};
  }
  // Sequentially: the operand's gradient, then the operand for the weights' gradient.
  const bool copies_operand = IsBlocked(operand) || (!wanted.empty() && wanted[0]);
  return {.workspace =
              BlockedBytes(node.outputs[0]) + (copies_operand ? BlockedBytes(operand) : 0)};
}

int64_t WidenedBytes(const Graph& graph, const Schedule& schedule, const Task& task) {
  const OpKind kind = graph.node(task.node).op.kind();
  const std::optional<Sharding>& sharding = schedule.shardings[task.node.value];
  const bool forward = task.kind == TaskKind::kCompute;
  const bool moves = IsLayout(kind) || kind == OpKind::kCast;
  const bool one_by_one = sharding.has_value() && IsPointwise(sharding->declaration);
  if (moves || (forward && (IsLookUp(kind) || one_by_one))) return 0;
  int64_t bytes = 0;
  for (const BufferList* list : {&task.reads, &task.writes}) {
    for (BufferId id : *list) {
      if (id == kNoBuffer) continue;
      const Buffer& buffer = schedule.buffers[id];
      const bool is_low = IsFloat(buffer.dtype) && buffer.dtype != DataType::kFloat32;
      if (is_low) bytes += Aligned(buffer.box.Volume() * static_cast<int64_t>(sizeof(float)));
    }
  }
  return bytes;
}

int64_t SharesBesideSums(const Graph& graph, const Schedule& schedule, const Task& task) {
  if (task.adds == 0) return 0;
  const Node& node = graph.node(task.node);
  const OpKind kind = node.op.kind();
  const std::optional<Sharding>& sharding = schedule.shardings[task.node.value];
  const bool adds_itself =
      kind == OpKind::kMatMul || kind == OpKind::kLinear || IsLookUp(kind) ||
      kind == OpKind::kReduceSum || kind == OpKind::kReduceMean ||
      (sharding.has_value() && IsPointwise(sharding->declaration)) ||
      (IsConvolution(kind) && !LayoutsOf(graph, schedule, task).AreRowMajor() &&
       HasPointFilters(node.op, graph.type(node.inputs[0]).LocalShape(),
                       graph.type(node.inputs[1]).LocalShape()));
  int64_t bytes = 0;
  for (size_t w = 0; !adds_itself && w < task.writes.size(); ++w) {
    if (!Adds(task, w)) continue;
    bytes += schedule.buffers[task.writes[w]].box.Volume() *
             BytesPerElement(graph.type(node.inputs[w]).dtype);
  }
  return bytes;
}

}  // namespace isomer
