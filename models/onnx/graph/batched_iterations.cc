#include "models/onnx/graph/batched_iterations.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pcg/ir/nested_parts.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

// Of fewer, a dim more costs what it saves, and a network's halves and quarters, such as heads and
// gates, are what rules know.
constexpr size_t kFewestIterations = 5;
// Calls of one iteration.
constexpr int kMostCalls = 64;

using Dims = std::vector<int64_t>;

// Elements [begin, begin + size) of dim `axis` of `whole`.
struct Piece {
  TensorRef whole;
  int64_t axis = 0, begin = 0, size = 0;
};

class IterationBatcher {
 public:
  explicit IterationBatcher(Model* model) : model_(*model) {}

  void Batch() {
    const int nodes = graph().num_nodes();
    const std::vector<std::vector<Graph::Use>> users = graph().Users();
    for (int id = 0; id < nodes; ++id) {
      const bool is_part = std::any_of(users[id].begin(), users[id].end(), [&](Graph::Use use) {
        return IsConcatAlong(use.user, NodeId{id});
      });
      if (IsConcatAlong(NodeId{id}, NodeId{id}) && !is_part) BatchOperands(NodeId{id});
    }
    if (graph().num_nodes() > nodes) graph() = graph().Canonical();
  }

 private:
  // A tensor of all iterations: with their dim before its own, or the same in each.
  struct Batched {
    TensorRef tensor;
    bool has_iterations = false;
  };

  Graph& graph() { return model_.graph; }
  // That both are concats, along one dim.
  bool IsConcatAlong(NodeId a, NodeId b) {
    return graph().node(a).op.kind() == OpKind::kConcat && graph().node(a).op == graph().node(b).op;
  }
  // Those of concats in it along the same dim instead of them.
  void AddOperands(NodeId concat, std::vector<TensorRef>* operands) {
    for (TensorRef operand : graph().node(concat).inputs) {
      if (IsConcatAlong(concat, operand.node)) {
        AddOperands(operand.node, operands);
      } else {
        operands->push_back(AsMean(operand));
      }
    }
  }
  // A sum of n elements of which each nth is taken: PyTorch's dynamo exporter writes the last bag's
  // mean so.
  TensorRef AsMean(TensorRef x) {
    const Node scale = graph().node(x.node);
    if (scale.op.kind() != OpKind::kScale) return x;
    const Node sum = graph().node(scale.inputs[0].node);
    if (sum.op.kind() != OpKind::kReduceSum) return x;
    const double count = static_cast<double>(graph().type(sum.inputs[0]).NumElements()) /
                         static_cast<double>(sum.outputs[0].NumElements());
    if (static_cast<float>(scale.op.Number("factor")) != static_cast<float>(1 / count)) return x;
    Operator mean = {OpKind::kReduceMean, sum.op.attributes()};
    return *graph().AddOp(std::move(mean), {sum.inputs[0]}, scale.name);
  }
  Dims SizesOf(TensorRef x) { return graph().type(x).Sizes(); }

  // Parts of parts along one dim are parts.
  std::optional<Piece> PieceOf(TensorRef x) {
    const Node& node = graph().node(x.node);
    if (node.op.kind() != OpKind::kSplit) return std::nullopt;
    Dims sizes;
    for (const TensorType& part : node.outputs) {
      sizes.push_back(part.Sizes()[node.op.Int("axis")]);
    }
    Piece piece = {node.inputs[0], node.op.Int("axis"), 0, sizes[x.output]};
    for (int i = 0; i < x.output; ++i) piece.begin += sizes[i];
    const std::optional<Piece> outer = PieceOf(piece.whole);
    if (outer && outer->axis == piece.axis) {
      piece.whole = outer->whole;
      piece.begin += outer->begin;
    }
    return piece;
  }

  static bool Follows(const Piece& a, const Piece& b) {
    return a.whole == b.whole && a.axis == b.axis && a.size == b.size &&
           a.begin + a.size == b.begin;
  }

  bool CanBatch(TensorRef x) {
    const Node& node = graph().node(x.node);
    switch (node.op.kind()) {
      case OpKind::kEmbedding:
      case OpKind::kLogSoftmax:
      case OpKind::kReduceSum:
      case OpKind::kReduceMean:
      case OpKind::kReduceMax:
      case OpKind::kReduceMin:
      case OpKind::kReduceProd:
      case OpKind::kReshape:
      case OpKind::kSoftmax:
      case OpKind::kTranspose:
        return true;
      default:
        break;
    }
    // Random numbers are those of places.
    const bool is_random = node.op.kind() == OpKind::kDropout;
    if (is_random || node.outputs.size() != 1 || node.inputs.empty()) return false;
    std::vector<Shape> shapes;
    for (TensorRef input : node.inputs) shapes.push_back(graph().type(input).GlobalShape());
    const absl::StatusOr<Declaration> declaration = Declare(node.op, shapes);
    return declaration.ok() && IsPointwise(*declaration);
  }

  // Whether `b` is to the next part what `a` is to its own, and they share what the first two
  // operands of the run, `first` and `second`, share.
  bool AreAlike(TensorRef first, TensorRef second, TensorRef a, TensorRef b, int* calls_left) {
    if (first == second || a == b) return first == second && a == b;
    if (graph().type(a) != graph().type(b)) return false;
    const std::optional<Piece> piece = PieceOf(a), next = PieceOf(b);
    if (piece && next) return Follows(*piece, *next);
    const Node &node = graph().node(a.node), &other = graph().node(b.node);
    if (--*calls_left < 0 || a.output != b.output || node.op != other.op ||
        node.inputs.size() != other.inputs.size() || IsLeaf(node.op.kind()) || !CanBatch(a)) {
      return false;
    }
    const Node &of_first = graph().node(first.node), &of_second = graph().node(second.node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!AreAlike(of_first.inputs[i], of_second.inputs[i], node.inputs[i], other.inputs[i],
                    calls_left)) {
        return false;
      }
    }
    return true;
  }

  // The operands from `begin` on that are alike, one after the other.
  size_t EndOfRun(const std::vector<TensorRef>& operands, size_t begin) {
    size_t end = begin + 1;
    while (end < operands.size() && operands[end] != operands[begin]) {
      int calls_left = kMostCalls;
      if (!AreAlike(operands[begin], operands[begin + 1], operands[end - 1], operands[end],
                    &calls_left)) {
        break;
      }
      ++end;
    }
    return end;
  }

  // Nothing where an operator does not take it so.
  std::optional<TensorRef> Call(Operator op, std::vector<TensorRef> inputs) {
    absl::StatusOr<TensorRef> result = graph().AddOp(std::move(op), std::move(inputs), name_);
    if (!result.ok()) return std::nullopt;
    return *result;
  }
  std::optional<TensorRef> Reshaped(TensorRef x, Dims sizes) {
    if (SizesOf(x) == sizes) return x;
    return Call({OpKind::kReshape, {{"shape", std::move(sizes)}}}, {x});
  }
  std::optional<TensorRef> Transposed(TensorRef x, Dims perm) {
    if (std::is_sorted(perm.begin(), perm.end())) return x;
    return Call({OpKind::kTranspose, {{"perm", std::move(perm)}}}, {x});
  }

  // The parts from `first` on, as [iterations, ..].
  std::optional<TensorRef> Parts(const Piece& first) {
    Dims sizes = SizesOf(first.whole);
    const int64_t all = first.size * iterations_, behind = sizes[first.axis] - first.begin - all;
    std::optional<TensorRef> x = first.whole;
    if (all != sizes[first.axis]) {
      Dims cuts;
      if (first.begin > 0) cuts.push_back(first.begin);
      cuts.push_back(all);
      if (behind > 0) cuts.push_back(behind);
      const absl::StatusOr<NodeId> split = graph().Add(
          {OpKind::kSplit, {{"axis", first.axis}, {"sizes", std::move(cuts)}}}, {*x}, name_);
      if (!split.ok()) return std::nullopt;
      x = TensorRef{*split, first.begin > 0 ? 1 : 0};
    }
    sizes[first.axis] = first.size;
    sizes.insert(sizes.begin() + first.axis, iterations_);
    x = Reshaped(*x, sizes);
    if (!x) return std::nullopt;
    Dims perm = {first.axis};
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
      if (d != first.axis) perm.push_back(d);
    }
    return Transposed(*x, std::move(perm));
  }

  // `op` where its operand has one dim more, before the others.
  Operator WithDimBefore(Operator op) {
    // What counts from the end stays.
    auto shifted = [](int64_t dim) { return dim < 0 ? dim : dim + 1; };
    auto shift = [&](Dims dims) {
      for (int64_t& dim : dims) dim = shifted(dim);
      return dims;
    };
    if (op.Find("axes") != nullptr) op.Set("axes", shift(op.Ints("axes")));
    if (op.Find("axis") != nullptr) op.Set("axis", shifted(op.Int("axis")));
    if (op.kind() == OpKind::kTranspose) {
      Dims perm = shift(op.Ints("perm"));
      perm.insert(perm.begin(), 0);
      op.Set("perm", std::move(perm));
    }
    if (op.kind() == OpKind::kReshape) {
      Dims shape = op.Ints("shape");
      shape.insert(shape.begin(), iterations_);
      op.Set("shape", std::move(shape));
    }
    return op;
  }

  // Dims of 1 between the iterations and the tensor's own, so that it is broadcast as one part is.
  std::optional<TensorRef> AlignedTo(size_t rank, const Batched& operand) {
    if (!operand.has_iterations) return operand.tensor;
    Dims sizes = SizesOf(operand.tensor);
    sizes.insert(sizes.begin() + 1, rank + 1 - sizes.size(), 1);
    return Reshaped(operand.tensor, std::move(sizes));
  }

  // `x`, which belongs to the first iteration, and `next`, which is that of the second, of all.
  std::optional<Batched> Everywhere(TensorRef x, TensorRef next) {
    if (x == next) return Batched{x, false};
    if (const auto known = batched_.find(x); known != batched_.end()) return known->second;
    std::optional<TensorRef> all;
    if (const std::optional<Piece> piece = PieceOf(x)) {
      all = Parts(*piece);
    } else {
      all = CallEverywhere(x, next);
    }
    if (!all) return std::nullopt;
    Dims expected = SizesOf(x);
    expected.insert(expected.begin(), iterations_);
    if (SizesOf(*all) != expected || graph().type(*all).dtype != graph().type(x).dtype) {
      return std::nullopt;
    }
    return batched_[x] = Batched{*all, true};
  }

  std::optional<TensorRef> CallEverywhere(TensorRef x, TensorRef next) {
    const Node node = graph().node(x.node), other = graph().node(next.node);
    std::vector<Batched> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      std::optional<Batched> operand = Everywhere(node.inputs[i], other.inputs[i]);
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    }
    std::vector<TensorRef> inputs;
    const bool is_look_up = node.op.kind() == OpKind::kEmbedding;
    for (const Batched& operand : operands) {
      // A table is shared, or there is no look-up of this form.
      if (is_look_up && inputs.empty() && operand.has_iterations) return std::nullopt;
      const std::optional<TensorRef> aligned =
          is_look_up ? operand.tensor : AlignedTo(RankOfPart(node), operand);
      if (!aligned) return std::nullopt;
      inputs.push_back(*aligned);
    }
    return Call(WithDimBefore(node.op), std::move(inputs));
  }

  // That of what is computed where operands are broadcast, else that of the operand.
  size_t RankOfPart(const Node& node) {
    size_t rank = 0;
    for (TensorRef input : node.inputs) rank = std::max(rank, SizesOf(input).size());
    return rank;
  }

  // `operands[begin:end]` of a concat along `axis`, as one operand.
  std::optional<TensorRef> Together(const std::vector<TensorRef>& operands, size_t begin,
                                    size_t end, int64_t axis) {
    iterations_ = static_cast<int64_t>(end - begin);
    batched_.clear();
    const std::optional<Batched> all = Everywhere(operands[begin], operands[begin + 1]);
    if (!all || !all->has_iterations) return std::nullopt;
    Dims sizes = SizesOf(operands[begin]), perm;
    for (int64_t d = 1; d <= static_cast<int64_t>(sizes.size()); ++d) perm.push_back(d);
    perm.insert(perm.begin() + axis, 0);
    const std::optional<TensorRef> turned = Transposed(all->tensor, std::move(perm));
    if (!turned) return std::nullopt;
    sizes[axis] *= iterations_;
    return Reshaped(*turned, std::move(sizes));
  }

  void BatchOperands(NodeId concat) {
    const Node node = graph().node(concat);
    const int64_t axis = node.op.Int("axis");
    name_ = node.name;
    std::vector<TensorRef> apart, operands;
    AddOperands(concat, &apart);
    for (size_t begin = 0; begin < apart.size();) {
      const size_t end = EndOfRun(apart, begin);
      std::optional<TensorRef> together;
      if (end - begin >= kFewestIterations) together = Together(apart, begin, end, axis);
      if (together) operands.push_back(*together);
      for (size_t i = begin; i < end && !together; ++i) operands.push_back(apart[i]);
      begin = end;
    }
    if (operands.size() == apart.size()) return;
    const TensorRef result = NestedConcat(std::move(operands), [&](std::vector<TensorRef> group) {
      // Of dims that the operands of `concat` had.
      return *graph().AddOp(node.op, std::move(group), name_);
    });
    if (graph().type(result) == node.outputs[0]) graph().ReplaceUses({concat, 0}, result);
  }

  Model& model_;
  std::string name_;  // of calls that are added
  int64_t iterations_ = 0;
  std::map<TensorRef, Batched> batched_;
};

}  // namespace

void BatchIterations(Model* model) { IterationBatcher(model).Batch(); }

}  // namespace isomer
