#include "optimizer/workspace.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace isomer {
namespace {

constexpr int64_t kChannelBlock = 16;
constexpr int64_t kPanelBytes = 472'000;

// A shard of a tensor of [samples, channels, ..] in blocks of channels.
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

int64_t WorkspaceOnCore(const Graph& graph, const Node& node, const std::vector<bool>& wanted) {
  if (node.op.kind() == OpKind::kMatMul) return kPanelBytes;
  if (node.op.kind() != OpKind::kConv2d) return 0;
  const TensorType& operand = graph.type(node.inputs[0]);
  int64_t bytes = BlockedBytes(node.outputs[0]);
  if (IsBlocked(operand)) bytes += BlockedBytes(operand);
  if (!wanted.empty() && wanted[0]) bytes += BlockedBytes(operand);
  return bytes;
}

}  // namespace isomer
