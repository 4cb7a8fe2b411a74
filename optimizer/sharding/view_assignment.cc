#include "optimizer/sharding/view_assignment.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

class ViewAssigner {
 public:
  ViewAssigner(const Graph& graph, const std::map<NodeId, const ShardingChoice*>& choices)
      : graph_(graph), choices_(choices), views_(graph.num_nodes()) {}

  std::vector<MachineView> Run() {
    const std::vector<NodeId> order = graph_.TopologicalOrder();
    for (NodeId id : order) {
      if (auto it = choices_.find(id); it != choices_.end()) {
        views_[id.value] = it->second->outputs[0].view;
      }
    }
    for (NodeId id : order) Forward(id);
    const auto users = graph_.Users();
    for (auto id = order.rbegin(); id != order.rend(); ++id) Backward(*id, users[id->value]);
    std::vector<MachineView> result;
    for (int i = 0; i < graph_.num_nodes(); ++i) {
      const TensorType& type = graph_.node(i).outputs[0];
      result.push_back(Cleaned(views_[i].has_value() ? *views_[i] : RowMajor(type), type));
    }
    return result;
  }

 private:
  // Index of the stride that the operator acts on.
  static int64_t StrideIndex(const Operator& op, int rank) {
    if (op.kind() == OpKind::kReplicate) return rank;
    if (op.kind() == OpKind::kReduce) return rank + 1;
    const int64_t axis = op.Int("axis");
    return axis < 0 ? axis + rank : axis;
  }

  // Of every `degree` of `op` neighbours along its axis the first stays; `fine` is the type that
  // has them. Devices vary faster than micro-batches, so they are combined first. False: no view
  // has what stays.
  static bool Coarsen(const Operator& op, const TensorType& fine, MachineView* view) {
    const int64_t axis = StrideIndex(op, fine.rank());
    int64_t degree = op.Int("degree");
    const int64_t on_devices = AxisExtents(fine)[axis] / view->MomentsOfAxis(axis);
    const int64_t combined = view->moments.empty() ? degree : std::gcd(on_devices, degree);
    const MachineView fine_view = *view;
    if (!CoarsenAxis(axis, combined, view)) return false;
    degree /= combined;
    if (degree == 1) return true;
    const int64_t left = view->MomentsOfAxis(axis) / degree;
    // Remaining shards are on as many devices, in one micro-batch.
    if (left > 1) *view = fine_view;
    view->moments[axis] = 1;
    const auto several = [](int64_t m) { return m > 1; };
    if (std::none_of(view->moments.begin(), view->moments.end(), several)) view->moments.clear();
    return true;
  }

  // Combine(d): keeps the shards whose old coordinate was a multiple of d.
  void Forward(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op.kind() != OpKind::kCombine && node.op.kind() != OpKind::kReduce) return;
    const TensorRef input = node.inputs[0];
    const auto call = choices_.find(input.node);
    // The view of the first output.
    const std::optional<MachineView> from = call == choices_.end()
                                                ? views_[input.node.value]
                                                : call->second->outputs[input.output].view;
    if (!from.has_value()) return;
    MachineView view = *from;
    if (!Coarsen(node.op, graph_.type(node.inputs[0]), &view)) return;
    views_[id.value] = std::move(view);
  }

  // Unsplit leaves are on their first user's first device.
  void BackwardToLeaf(NodeId id, const std::vector<Graph::Use>& users) {
    const auto strides = std::vector<int64_t>(graph_.node(id).outputs[0].rank() + 2, 0);
    for (const Graph::Use& use : users) {
      const auto call = choices_.find(use.user);
      const std::optional<MachineView>& view = views_[use.user.value];
      if (call == choices_.end() && !view.has_value()) continue;
      const int64_t start =
          call == choices_.end() ? view->start : call->second->operands[use.operand].view.start;
      views_[id.value] = MachineView{start, strides};
      if (call != choices_.end()) return;
    }
  }

  // The view that a user asks for: the first of those that are where the tensor comes from (of a
  // pipeline: of its stage, from which others get it), or the first of all.
  void Backward(NodeId id, const std::vector<Graph::Use>& users) {
    const Node& node = graph_.node(id);
    if ((IsLeaf(node.op.kind()) || CanRunOnHost(node.op.kind())) && !choices_.contains(id)) {
      return BackwardToLeaf(id, users);
    }
    std::optional<MachineView>& view = views_[id.value];
    if (!IsParallel(node.op.kind()) || view.has_value()) return;
    const std::optional<int64_t> start = StartOf(node.inputs[0].node);
    for (const Graph::Use& use : users) {
      std::optional<MachineView> asked = ViewFor(use);
      if (!asked.has_value()) continue;
      const bool is_there = asked->start == start;
      if (is_there || !view.has_value()) view = std::move(asked);
      if (is_there) return;
    }
  }

  // The first device of the call that the tensor comes from; nullopt: of none.
  std::optional<int64_t> StartOf(NodeId id) const {
    while (IsParallel(graph_.node(id).op.kind())) id = graph_.node(id).inputs[0].node;
    const auto call = choices_.find(id);
    return call == choices_.end() ? std::nullopt : std::optional(call->second->start);
  }

  // Of its operand, as a user asks for it; nullopt: it does not.
  std::optional<MachineView> ViewFor(const Graph::Use& use) const {
    if (auto it = choices_.find(use.user); it != choices_.end()) {
      return it->second->operands[use.operand].view;
    }
    const Node& user = graph_.node(use.user);
    const std::optional<MachineView>& to = views_[use.user.value];
    const OpKind kind = user.op.kind();
    if ((kind != OpKind::kPartition && kind != OpKind::kReplicate) || !to.has_value()) {
      return std::nullopt;
    }
    MachineView view = *to;
    if (!Coarsen(user.op, user.outputs[0], &view)) return std::nullopt;
    return view;
  }

  static MachineView RowMajor(const TensorType& type) {
    MachineView view{0, std::vector<int64_t>(type.rank() + 2, 0)};
    int64_t stride = 1;
    view.strides[type.rank() + 1] = stride;
    stride *= type.partials;
    view.strides[type.rank()] = stride;
    stride *= type.copies;
    for (int i = type.rank() - 1; i >= 0; --i) {
      view.strides[i] = stride;
      stride *= type.dims[i].degree;
    }
    return view;
  }

  // Zeroes strides of coordinates with extent 1.
  static MachineView Cleaned(MachineView view, const TensorType& type) {
    for (int i = 0; i < type.rank(); ++i) {
      if (type.dims[i].degree == 1) view.strides[i] = 0;
    }
    if (type.copies == 1) view.strides[type.rank()] = 0;
    if (type.partials == 1) view.strides[type.rank() + 1] = 0;
    return view;
  }

  const Graph& graph_;
  const std::map<NodeId, const ShardingChoice*>& choices_;
  std::vector<std::optional<MachineView>> views_;
};

}  // namespace

std::vector<MachineView> AssignViews(const Graph& graph,
                                     const std::map<NodeId, const ShardingChoice*>& choices) {
  return ViewAssigner(graph, choices).Run();
}

}  // namespace isomer
