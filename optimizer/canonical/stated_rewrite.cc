#include "optimizer/canonical/stated_rewrite.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/constant_number.h"
#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

std::string TextOf(const ConcreteSide& side) {
  std::string text;
  for (const ConcreteCall& call : side.calls) {
    absl::StrAppend(&text, call.op.ToString(), "(");
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      absl::StrAppend(&text, call.inputs[i].node, ".", call.inputs[i].index, "[");
      for (const Extent& size : call.operands[i]) absl::StrAppend(&text, size.ToString(), ",");
      absl::StrAppend(&text, "]");
    }
    absl::StrAppend(&text, ")");
  }
  for (const PatternRef& output : side.outputs) {
    absl::StrAppend(&text, " -> ", output.node, ".", output.index);
  }
  return text;
}

}  // namespace

bool StatedRewriter::Try(DerivationStep step, const std::vector<std::string>& names) {
  const NodeId first = next_id();
  std::vector<std::vector<TensorType>> types;  // per call: types of its outputs
  const auto type = [&](TensorRef tensor) {
    return tensor.node < first ? graph_.type(tensor)
                               : types[tensor.node.value - first.value][tensor.output];
  };
  for (AddedCall& call : step.calls) {
    std::vector<TensorType> operands;
    for (TensorRef input : call.inputs) operands.push_back(type(input));
    if (!NormalizeAttributes(&call.op).ok()) return false;
    auto inferred = InferTypes(call.op, operands);
    if (!inferred.ok()) return false;
    types.push_back(*std::move(inferred));
  }
  for (const auto& [from, to] : step.replaced) {
    if (type(from) != type(to)) return false;
  }
  if (!IsShown(step, types)) return false;
  for (size_t c = 0; c < step.calls.size(); ++c) {
    graph_.AddOp(step.calls[c].op, step.calls[c].inputs, names[c]).value();
  }
  for (const auto& [from, to] : step.replaced) graph_.ReplaceUses(from, to, first);
  steps_.push_back(std::move(step));
  return true;
}

bool StatedRewriter::IsShown(const DerivationStep& step,
                             const std::vector<std::vector<TensorType>>& types) {
  ConcreteSide source, target;
  std::map<TensorRef, int> outside;
  std::map<int, double> numbers;
  std::map<NodeId, PatternRef> made;
  const NodeId first = next_id();
  const auto reference = [&](TensorRef tensor) {
    if (const auto at = made.find(tensor.node); at != made.end()) {
      return PatternRef::Node(at->second.node, tensor.output);
    }
    const auto [at, is_new] = outside.try_emplace(tensor, static_cast<int>(outside.size()));
    if (is_new) {
      const auto number = NumberOfConstant(*model_, graph_.node(tensor.node));
      if (number.has_value()) numbers[at->second] = *number;
    }
    return PatternRef::Input(at->second);
  };
  const auto add = [&](const Operator& op, const std::vector<TensorRef>& inputs, NodeId id,
                       ConcreteSide* side) {
    ConcreteCall call{op, {}, {}};
    for (TensorRef input : inputs) {
      call.inputs.push_back(reference(input));
      call.operands.push_back((input.node < first
                                   ? graph_.type(input)
                                   : types[input.node.value - first.value][input.output])
                                  .GlobalShape());
    }
    made[id] = PatternRef::Node(static_cast<int>(side->calls.size()));
    side->calls.push_back(std::move(call));
  };
  for (NodeId id : step.nodes) add(graph_.node(id).op, graph_.node(id).inputs, id, &source);
  for (const auto& [from, to] : step.replaced) source.outputs.push_back(reference(from));
  NodeId id = first;
  for (const AddedCall& call : step.calls) {
    add(call.op, call.inputs, id, &target);
    ++id.value;
  }
  for (const auto& [from, to] : step.replaced) target.outputs.push_back(reference(to));
  const auto [known, is_new] =
      known_.try_emplace(absl::StrCat(TextOf(source), " = ", TextOf(target), " with ",
                                      absl::StrJoin(numbers, ",", absl::PairFormatter("="))),
                         false);
  if (is_new) known->second = (*equal_)(source, target, numbers);
  return known->second;
}

}  // namespace isomer
