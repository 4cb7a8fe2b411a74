#include "tests/optimizer/direct_mapping.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/sharding/compute_graph.h"

namespace isomer {
namespace {

class DirectMapping {
 public:
  explicit DirectMapping(const MappedModel& mapped)
      : mapped_(mapped), from_(mapped.graph), compute_(AnalyzeCompute(from_)) {
    for (const auto& node : compute_.nodes) {
      const ShardingChoice& choice = mapped.choices.at(node.id);
      for (size_t o = 0; o < choice.operands.size(); ++o) {
        wishes_[from_.node(node.id).inputs[o]].push_back(choice.operands[o]);
      }
    }
  }

  MappedGraph Run() {
    for (const auto& node : compute_.nodes) {
      const ShardingChoice& choice = mapped_.choices.at(node.id);
      std::vector<TensorRef> operands;
      for (size_t o = 0; o < choice.operands.size(); ++o) {
        operands.push_back(Delivered(from_.node(node.id).inputs[o], choice.operands[o]));
      }
      const NodeId call = to_.graph.Add(from_.node(node.id).op, operands).value();
      View(call, choice.outputs[0].view);
      for (int t = 0; t < static_cast<int>(choice.outputs.size()); ++t) {
        at_[{node.id, t}] = {call, t};
      }
    }
    for (const Graph::NamedOutput& output : from_.outputs()) {
      const TensorType& type = from_.type(output.tensor);
      Placement whole{type, {}};
      whole.view.strides.assign(type.rank() + 2, 0);
      whole.view.start = to_.views[at_.at(output.tensor).node.value].start;
      to_.graph.AddOutput(output.name, Delivered(output.tensor, whole));
    }
    return std::move(to_);
  }

 private:
  void View(NodeId id, MachineView view) {
    to_.views.resize(to_.graph.num_nodes());
    to_.views[id.value] = std::move(view);
  }

  // Leaves, and what arranges weights, when they are first needed.
  TensorRef Loaded(TensorRef tensor) {
    const auto found = at_.find(tensor);
    if (found != at_.end()) return found->second;
    const Node& node = from_.node(tensor.node);
    TensorRef added;
    if (node.op.kind() == OpKind::kInput) {
      added = to_.graph.AddInput(node.name, node.outputs[0]);
    } else if (node.op.kind() == OpKind::kWeight) {
      added = to_.graph.AddWeight(node.name, node.outputs[0]);
    } else if (node.op.kind() == OpKind::kConstant) {
      added = to_.graph.AddConstant(node.name, node.outputs[0]);
    } else {
      std::vector<TensorRef> inputs;
      for (TensorRef input : node.inputs) inputs.push_back(Loaded(input));
      added = {to_.graph.Add(node.op, inputs).value(), tensor.output};
    }
    MachineView view;
    view.strides.assign(from_.type(tensor).rank() + 2, 0);
    if (wishes_.contains(tensor)) {
      view.start = wishes_[tensor][0].view.start;
      if (node.op.kind() == OpKind::kInput) {
        for (const Placement& wish : wishes_[tensor]) {
          if (wish.type.IsParallel()) continue;
          view.start = wish.view.start;  // The other forms have leaves of their own, in effect.
          break;
        }
      }
    }
    View(added.node, view);
    return at_[tensor] = added;
  }

  TensorRef Add(Operator op, TensorRef input) {
    const TensorRef added = to_.graph.AddOp(std::move(op), {input}).value();
    View(added.node, RowMajorView(to_.graph.type(added)));
    return added;
  }

  TensorRef Delivered(TensorRef tensor, const Placement& placement) {
    TensorRef at = Loaded(tensor);
    if (to_.graph.type(at) == placement.type) return at;
    auto [it, added] = delivered_.try_emplace({tensor, placement.type.ToString()});
    if (!added) return it->second;
    const TensorType from = to_.graph.type(at);
    if (from.partials > 1) at = Add(Operator(OpKind::kReduce, {{"degree", from.partials}}), at);
    for (int64_t i = 0; i < from.rank(); ++i) {
      const int64_t d = from.dims[i].degree;
      if (d == 1) continue;
      at = Add(Operator(OpKind::kCombine, {{"axis", i}, {"degree", d}}), at);
    }
    for (int64_t i = 0; i < from.rank(); ++i) {
      const int64_t d = placement.type.dims[i].degree;
      if (d == 1) continue;
      at = Add(Operator(OpKind::kPartition, {{"axis", i}, {"degree", d}}), at);
    }
    const int64_t copies = placement.type.copies;
    if (copies > 1) at = Add(Operator(OpKind::kReplicate, {{"degree", copies}}), at);
    View(at.node, placement.view);
    return it->second = at;
  }

  const MappedModel& mapped_;
  const Graph& from_;
  const ComputeGraph compute_;
  std::map<TensorRef, std::vector<Placement>> wishes_;
  MappedGraph to_;
  std::map<TensorRef, TensorRef> at_;
  std::map<std::pair<TensorRef, std::string>, TensorRef> delivered_;
};

}  // namespace

MappedGraph MapDirectly(const MappedModel& mapped) { return DirectMapping(mapped).Run(); }

}  // namespace isomer
