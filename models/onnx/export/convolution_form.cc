#include "models/onnx/export/convolution_form.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int kRank = 4, kSamples = 0, kChannels = 1;

class Former {
 public:
  explicit Former(Graph graph) : graph_(std::move(graph)) {}

  absl::StatusOr<Graph> Run() {
    // Each rewrite takes something nearer to a convolution, so that there is an end.
    for (bool is_changed = true; is_changed;) {
      Look();
      is_changed = false;
      for (NodeId id : graph_.TopologicalOrder()) {
        ISOMER_ASSIGN_OR_RETURN(is_changed, Rewrite(id));
        if (is_changed) break;
      }
    }
    return std::move(graph_);
  }

 private:
  // What is used how often, and what depends on inputs.
  void Look() {
    users_ = graph_.Users();
    outputs_.clear();
    for (const Graph::NamedOutput& output : graph_.outputs()) outputs_.insert(output.tensor);
    depends_.assign(graph_.num_nodes(), false);
    for (NodeId id : graph_.TopologicalOrder()) {
      const Node& node = graph_.node(id);
      depends_[id.value] = node.op.kind() == OpKind::kInput ||
                           std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&](TensorRef in) { return depends_[in.node.value]; });
    }
  }

  absl::StatusOr<bool> Rewrite(NodeId id) {
    switch (graph_.node(id).op.kind()) {
      case OpKind::kSplit:
        return RewriteSplit(id);
      case OpKind::kRelu:
        return RewriteBehind(id, 0, std::nullopt);
      case OpKind::kAdd:
        for (int x : {0, 1}) {
          const TensorRef c = graph_.node(id).inputs[1 - x];
          if (!IsOfChannels(c)) continue;
          ISOMER_ASSIGN_OR_RETURN(const bool is_changed, RewriteBehindSum(id, x, c));
          return is_changed ? true : RewriteBehind(id, x, c);
        }
        return false;
      case OpKind::kSub:
        return RewriteDifference(id);
      case OpKind::kScale:
        return RewriteDouble(id);
      case OpKind::kConcat:
        return RewriteConcat(id);
      default:
        return false;
    }
  }

  // relu(x) or x + c, where x is a pooling or a concatenation of convolutions.
  absl::StatusOr<bool> RewriteBehind(NodeId id, int operand, std::optional<TensorRef> c) {
    const Node node = graph_.node(id);
    const TensorRef x = node.inputs[operand];
    const Node inner = graph_.node(x.node);
    const bool is_pool = inner.op.kind() == OpKind::kMaxPool;
    if ((!is_pool && !IsOverChannels(inner, OpKind::kConcat)) || !IsImage(x) ||
        !IsUsedHereOnly(x) || !EndsInConvolutions(x)) {
      return false;
    }
    std::vector<TensorRef> parts = inner.inputs, constants;
    if (c.has_value()) {
      ISOMER_ASSIGN_OR_RETURN(constants, Parts(*c, ChannelsOf(parts), kChannels, node.name));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      std::vector<TensorRef> operands = {parts[i]};
      if (c.has_value()) operands.push_back(constants[i]);
      ISOMER_ASSIGN_OR_RETURN(parts[i], graph_.AddOp(node.op, std::move(operands), node.name));
    }
    ISOMER_ASSIGN_OR_RETURN(const TensorRef y,
                            graph_.AddOp(inner.op, std::move(parts), inner.name));
    graph_.ReplaceUses({id, 0}, y);
    return true;
  }

  // (x + y) + c, where y is a convolution: x + (y + c).
  absl::StatusOr<bool> RewriteBehindSum(NodeId id, int operand, TensorRef c) {
    const Node node = graph_.node(id);
    const TensorRef sum = node.inputs[operand];
    const Node inner = graph_.node(sum.node);
    if (inner.op.kind() != OpKind::kAdd || !IsUsedHereOnly(sum)) return false;
    for (int y : {0, 1}) {
      if (IsOfChannels(inner.inputs[1 - y]) || !EndsInConvolutions(inner.inputs[y]) ||
          graph_.type(inner.inputs[y]) != graph_.type(sum)) {
        continue;
      }
      ISOMER_ASSIGN_OR_RETURN(const TensorRef biased,
                              graph_.AddOp(OpKind::kAdd, {inner.inputs[y], c}, node.name));
      ISOMER_ASSIGN_OR_RETURN(
          const TensorRef both,
          graph_.AddOp(OpKind::kAdd, {inner.inputs[1 - y], biased}, inner.name));
      graph_.ReplaceUses({id, 0}, both);
      return true;
    }
    return false;
  }

  absl::StatusOr<TensorRef> Negative(TensorRef x) {
    return graph_.AddOp({OpKind::kScale, {{"factor", -1.0}}}, {x}, graph_.node(x.node).name);
  }

  // Two of the same: a sum stays in the layout that a product with a number leaves.
  absl::StatusOr<bool> RewriteDouble(NodeId id) {
    const Node node = graph_.node(id);
    const TensorRef x = node.inputs[0];
    if (node.op.Number("factor") != 2 || !IsImage(x) || !depends_[x.node.value]) return false;
    ISOMER_ASSIGN_OR_RETURN(const TensorRef sum, graph_.AddOp(OpKind::kAdd, {x, x}, node.name));
    graph_.ReplaceUses({id, 0}, sum);
    return true;
  }

  // Concatenations of concatenations copy twice.
  absl::StatusOr<bool> RewriteConcat(NodeId id) {
    const Node node = graph_.node(id);
    if (!IsImage({id, 0}) || !IsOverChannels(node, OpKind::kConcat) || !depends_[id.value]) {
      return false;
    }
    std::vector<TensorRef> parts;
    for (TensorRef part : node.inputs) {
      const Node& inner = graph_.node(part.node);
      if (IsOverChannels(inner, OpKind::kConcat) && IsUsedHereOnly(part)) {
        parts.insert(parts.end(), inner.inputs.begin(), inner.inputs.end());
      } else {
        parts.push_back(part);
      }
    }
    if (parts.size() == node.inputs.size()) return false;
    ISOMER_ASSIGN_OR_RETURN(const TensorRef flat,
                            graph_.AddOp(node.op, std::move(parts), node.name));
    graph_.ReplaceUses({id, 0}, flat);
    return true;
  }

  absl::StatusOr<bool> RewriteDifference(NodeId id) {
    const Node node = graph_.node(id);
    if (IsOfChannels(node.inputs[1])) {
      ISOMER_ASSIGN_OR_RETURN(const TensorRef minus, Negative(node.inputs[1]));
      ISOMER_ASSIGN_OR_RETURN(const TensorRef sum,
                              graph_.AddOp(OpKind::kAdd, {node.inputs[0], minus}, node.name));
      graph_.ReplaceUses({id, 0}, sum);
      return true;
    }
    const TensorRef c = node.inputs[0], x = node.inputs[1];
    const Node inner = graph_.node(x.node);
    if (!IsOfChannels(c) || inner.op.kind() != OpKind::kConv2d ||
        depends_[inner.inputs[1].node.value] || !IsUsedHereOnly(x)) {
      return false;
    }
    ISOMER_ASSIGN_OR_RETURN(const TensorRef weight, Negative(inner.inputs[1]));
    ISOMER_ASSIGN_OR_RETURN(const TensorRef y,
                            graph_.AddOp(inner.op, {inner.inputs[0], weight}, inner.name));
    ISOMER_ASSIGN_OR_RETURN(const TensorRef sum, graph_.AddOp(OpKind::kAdd, {y, c}, node.name));
    graph_.ReplaceUses({id, 0}, sum);
    return true;
  }

  // The samples of a convolution of several tensors: a convolution of each.
  absl::StatusOr<bool> RewriteSplitOfSamples(NodeId id) {
    const Node node = graph_.node(id);
    const TensorRef x = node.inputs[0];
    if (!IsImage(x) || !IsUsedHereOnly(x)) return false;
    const Node convolution = graph_.node(x.node);
    if (convolution.op.kind() != OpKind::kConv2d) return false;
    const Node concat = graph_.node(convolution.inputs[0].node);
    if (!IsOver(concat, OpKind::kConcat, kSamples) || concat.inputs.size() != node.outputs.size()) {
      return false;
    }
    for (size_t i = 0; i < concat.inputs.size(); ++i) {
      if (graph_.type(concat.inputs[i]).dims[kSamples] != node.outputs[i].dims[kSamples])
        return false;
    }
    for (size_t i = 0; i < concat.inputs.size(); ++i) {
      ISOMER_ASSIGN_OR_RETURN(
          const TensorRef part,
          graph_.AddOp(convolution.op, {concat.inputs[i], convolution.inputs[1]},
                       convolution.name));
      graph_.ReplaceUses({id, static_cast<int32_t>(i)}, part);
    }
    return true;
  }

  absl::StatusOr<bool> RewriteSplit(NodeId id) {
    const Node node = graph_.node(id);
    const TensorRef x = node.inputs[0];
    if (IsOver(node, OpKind::kSplit, kSamples)) return RewriteSplitOfSamples(id);
    if (!IsOverChannels(node, OpKind::kSplit) || !IsImage(x) || !IsUsedHereOnly(x) ||
        !EndsInConvolutions(x)) {
      return false;
    }
    const Node inner = graph_.node(x.node);
    std::vector<int64_t> sizes;
    for (const TensorType& type : node.outputs) sizes.push_back(type.dims[kChannels].size);
    std::vector<TensorRef> parts;
    switch (inner.op.kind()) {
      case OpKind::kConv2d: {
        const std::vector<Piece> pieces = PiecesOf(inner, sizes);
        if (pieces.empty() || depends_[inner.inputs[1].node.value]) return false;
        ISOMER_ASSIGN_OR_RETURN(parts, Parts(inner.inputs[1], sizes, 0, inner.name));
        for (size_t i = 0; i < parts.size(); ++i) {
          Operator piece = inner.op;
          piece.Set("groups", pieces[i].groups);
          ISOMER_ASSIGN_OR_RETURN(
              parts[i], graph_.AddOp(std::move(piece), {pieces[i].x, parts[i]}, inner.name));
        }
        break;
      }
      case OpKind::kRelu:
      case OpKind::kAdd: {
        const int y = inner.inputs.size() == 2 && IsOfChannels(inner.inputs[0]) ? 1 : 0;
        if (inner.inputs.size() == 2 && !IsOfChannels(inner.inputs[1 - y])) return false;
        ISOMER_ASSIGN_OR_RETURN(parts, Parts(inner.inputs[y], sizes, kChannels, node.name));
        std::vector<TensorRef> constants;
        if (inner.inputs.size() == 2) {
          ISOMER_ASSIGN_OR_RETURN(constants,
                                  Parts(inner.inputs[1 - y], sizes, kChannels, inner.name));
        }
        for (size_t i = 0; i < parts.size(); ++i) {
          std::vector<TensorRef> operands = {parts[i]};
          if (!constants.empty()) operands.push_back(constants[i]);
          ISOMER_ASSIGN_OR_RETURN(parts[i],
                                  graph_.AddOp(inner.op, std::move(operands), inner.name));
        }
        break;
      }
      default:
        return false;
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      graph_.ReplaceUses({id, static_cast<int32_t>(i)}, parts[i]);
    }
    return true;
  }

  struct Piece {
    TensorRef x;
    int64_t groups;
  };
  // A convolution as ones that have so many channels each: of all of its operand; or, if it has
  // groups, of what was concatenated for them. Empty: it is no such.
  std::vector<Piece> PiecesOf(const Node& convolution, const std::vector<int64_t>& sizes) const {
    const TensorRef x = convolution.inputs[0];
    const int64_t groups = convolution.op.Int("groups");
    if (groups == 1) return std::vector<Piece>(sizes.size(), {x, 1});
    const Node& concat = graph_.node(x.node);
    if (!IsOverChannels(concat, OpKind::kConcat) || concat.inputs.size() != sizes.size()) return {};
    const int64_t in = graph_.type(x).dims[kChannels].size / groups;
    const int64_t out = convolution.outputs[0].dims[kChannels].size / groups;
    std::vector<Piece> pieces;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t channels = graph_.type(concat.inputs[i]).dims[kChannels].size;
      if (sizes[i] % out != 0 || channels != sizes[i] / out * in) return {};
      pieces.push_back({concat.inputs[i], sizes[i] / out});
    }
    return pieces;
  }

  // x cut along a dim.
  absl::StatusOr<std::vector<TensorRef>> Parts(TensorRef x, const std::vector<int64_t>& sizes,
                                               int64_t axis, const std::string& name) {
    if (sizes.size() == 1) return std::vector<TensorRef>{x};
    ISOMER_ASSIGN_OR_RETURN(
        const NodeId split,
        graph_.Add({OpKind::kSplit, {{"axis", axis}, {"sizes", sizes}}}, {x}, name));
    std::vector<TensorRef> parts;
    for (size_t i = 0; i < sizes.size(); ++i) parts.push_back({split, static_cast<int32_t>(i)});
    return parts;
  }

  std::vector<int64_t> ChannelsOf(const std::vector<TensorRef>& tensors) const {
    std::vector<int64_t> sizes;
    for (TensorRef tensor : tensors) sizes.push_back(graph_.type(tensor).dims[kChannels].size);
    return sizes;
  }

  bool IsImage(TensorRef x) const { return graph_.type(x).dims.size() == kRank; }

  static bool IsOver(const Node& node, OpKind kind, int dim) {
    if (node.op.kind() != kind) return false;
    const int64_t axis = node.op.Int("axis");
    return (axis < 0 ? axis + kRank : axis) == dim;
  }
  static bool IsOverChannels(const Node& node, OpKind kind) {
    return IsOver(node, kind, kChannels);
  }

  // A number for each channel, of weights alone.
  bool IsOfChannels(TensorRef c) const {
    if (depends_[c.node.value] || !IsImage(c)) return false;
    const std::vector<Dim>& dims = graph_.type(c).dims;
    return dims[0].size == 1 && dims[2].size == 1 && dims[3].size == 1;
  }

  bool IsUsedHereOnly(TensorRef x) const {
    const auto& users = users_[x.node.value];
    return users.size() == 1 && !outputs_.contains(x);
  }

  // A convolution, or what is fused with ones: then nothing of it is used elsewhere.
  bool EndsInConvolutions(TensorRef x) const {
    const Node& node = graph_.node(x.node);
    if (!IsImage(x) || !IsUsedHereOnly(x)) return false;
    switch (node.op.kind()) {
      case OpKind::kConv2d:
        return true;
      case OpKind::kRelu:
      case OpKind::kMaxPool:
        return EndsInConvolutions(node.inputs[0]);
      case OpKind::kAdd:
        return IsOfChannels(node.inputs[1])
                   ? EndsInConvolutions(node.inputs[0])
                   : IsOfChannels(node.inputs[0]) && EndsInConvolutions(node.inputs[1]);
      case OpKind::kConcat:
        return IsOverChannels(node, OpKind::kConcat) &&
               std::all_of(node.inputs.begin(), node.inputs.end(),
                           [this](TensorRef part) { return EndsInConvolutions(part); });
      default:
        return false;
    }
  }

  Graph graph_;
  std::vector<std::vector<Graph::Use>> users_;
  std::set<TensorRef> outputs_;
  std::vector<bool> depends_;  // per node: on an input
};

}  // namespace

absl::StatusOr<Graph> ConvolutionForm(Graph graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    for (const TensorType& type : graph.node(id).outputs) {
      if (type.IsParallel()) return graph;
    }
  }
  return Former(std::move(graph)).Run();
}

}  // namespace isomer
