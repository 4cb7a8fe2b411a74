#include "verifier/certificate/fp8_calls.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/fp8.h"

namespace isomer {
namespace {

// What a tensor is an arrangement of.
struct ArrangedWeights {
  bool alone = false;  // of weights, and of nothing else
  bool kept = false;   // one of them is kept in bfloat16
};

bool ArrangesAlone(const Operator& op) {
  switch (op.kind()) {
    case OpKind::kTranspose:
    case OpKind::kReshape:
    case OpKind::kConcat:
    case OpKind::kSplit:
    case OpKind::kPartition:
    case OpKind::kCombine:
    case OpKind::kReplicate:
      return true;
    case OpKind::kCast:
      return IsFloat(static_cast<DataType>(op.Int("to")));
    default:
      return false;
  }
}

}  // namespace

absl::Status CheckFp8Calls(const Plan& plan, const Graph& graph) {
  const std::set<std::string> kept(plan.fp8.kept.begin(), plan.fp8.kept.end());
  std::vector<ArrangedWeights> arranged(graph.num_nodes());
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    ArrangedWeights& own = arranged[id.value];
    if (node.op.kind() == OpKind::kWeight) own = {true, kept.contains(node.name)};
    if (ArrangesAlone(node.op)) {
      own.alone = true;
      for (TensorRef input : node.inputs) {
        own.alone = own.alone && arranged[input.node.value].alone;
        own.kept = own.kept || arranged[input.node.value].kept;
      }
    }
    Fp8Scaling expected = Fp8Scaling::kNone;
    if (node.op.kind() == OpKind::kMatMul || node.op.kind() == OpKind::kLinear) {
      const ArrangedWeights &a = arranged[node.inputs[0].node.value],
                            &b = arranged[node.inputs[1].node.value];
      const bool is_low = graph.type(node.inputs[0]).dtype == DataType::kBFloat16;
      if (is_low && a.alone != b.alone && !(a.alone ? a : b).kept) expected = plan.fp8.scaling;
    }
    if (Fp8ScalingOf(node.op) == expected) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        graph.Label(id), " multiplies in 8 bits with a scale per ",
        Fp8ScalingName(Fp8ScalingOf(node.op)), ", and the plan says ", Fp8ScalingName(expected)));
  }
  return absl::OkStatus();
}

}  // namespace isomer
