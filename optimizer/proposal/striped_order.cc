#include "optimizer/proposal/striped_order.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/named_step.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/ir/operator_call.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

constexpr int kSequenceOfHeads = 2;  // [batch, heads, sequence, features]

// Of no fewer than `least`.
bool HasAttentionOfStripes(const Graph& graph, int64_t least) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Operator& op = graph.node({id}).op;
    if (IsAttention(op.kind()) && op.Int("causal") >= least) return true;
  }
  return false;
}

bool IsCausal(const Node& node) {
  return IsAttention(node.op.kind()) && node.op.Int("causal") == 1;
}

class StripedOrder {
 public:
  StripedOrder(int64_t stripes, StatedRewriter* rewriter)
      : stripes_(stripes),
        rewriter_(*rewriter),
        of_data_(OfData(rewriter->graph())),
        roles_(RolesOf(rewriter->graph())) {}

  bool Run() {
    const std::vector<NodeId> order = graph().TopologicalOrder();
    for (NodeId id : order) {
      if (IsCausal(graph().node(id)) && length_ == 0) length_ = LengthOf(id);
    }
    if (length_ == 0 || length_ % stripes_ != 0 || length_ == stripes_) return false;
    bool any = false;
    for (NodeId id : order) {
      const Node& node = graph().node(id);
      if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind())) continue;
      const bool should = IsCausal(node) && LengthOf(id) == length_;
      const bool does = TryCall(id);
      if (should && !does) return false;
      any |= should;
    }
    return any;
  }

 private:
  // A tensor in the order of the sequence that `chain` makes of one in stripes.
  struct Natural {
    TensorRef striped;
    int axis;
    std::array<NodeId, 3> chain;
  };
  // Dims of operands and outputs that are the sequence; -1: none.
  struct SequenceDims {
    std::vector<int> operands, outputs;
  };

  const Graph& graph() const { return rewriter_.graph(); }

  // Of a causal attention on a sequence with itself; 0: of none.
  int64_t LengthOf(NodeId attention) const {
    const Node& node = graph().node(attention);
    const TensorType &q = graph().type(node.inputs[0]), &k = graph().type(node.inputs[1]);
    if (q.rank() != 4 || q.dims[kSequenceOfHeads].size != k.dims[kSequenceOfHeads].size) return 0;
    const TensorRef result = {attention, 0};
    const bool is_sequence = roles_.of(result)[kSequenceOfHeads] == DimRole::kSequence;
    return is_sequence ? q.dims[kSequenceOfHeads].size : 0;
  }

  const Natural* NaturalOf(TensorRef tensor) const {
    const auto at = naturals_.find(tensor);
    return at == naturals_.end() ? nullptr : &at->second;
  }

  // Where the call's operands are in stripes, or where an input has the sequence.
  int AxisOf(TensorRef tensor) const {
    if (const Natural* natural = NaturalOf(tensor)) return natural->axis;
    if (graph().node(tensor.node).op.kind() != OpKind::kInput) return -1;
    const std::vector<DimRole>& roles = roles_.of(tensor);
    for (size_t i = 0; i < roles.size(); ++i) {
      const bool is_long = graph().type(tensor).dims[i].size == length_;
      if (roles[i] == DimRole::kSequence && is_long) return static_cast<int>(i);
    }
    return -1;
  }

  // By the iteration dim that an operand's sequence leads. nullopt: no operand has the sequence, or
  // the call is not of each of its tokens alone.
  std::optional<SequenceDims> DimsOf(const Node& node) const {
    const auto count = static_cast<int>(node.inputs.size());
    SequenceDims dims{std::vector<int>(count, -1), std::vector<int>(node.outputs.size(), -1)};
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](TensorRef input) { return AxisOf(input) >= 0; });
    if (!any) return std::nullopt;
    if (IsAttention(node.op.kind())) {
      std::fill_n(dims.operands.begin(), 3, kSequenceOfHeads);
      dims.outputs[0] = kSequenceOfHeads;
      return dims;
    }
    std::vector<Shape> shapes;
    for (TensorRef input : node.inputs) shapes.push_back(graph().type(input).GlobalShape());
    const auto d = Declare(node.op, shapes);
    if (!d.ok()) return std::nullopt;
    int tokens = -1;
    for (int o = 0; o < count && tokens < 0; ++o) {
      const int axis = AxisOf(node.inputs[o]);
      if (axis >= 0) tokens = d->LeadOfOperandDim(o, axis);
    }
    if (tokens < 0 || d->dims[tokens].size != Extent(length_) || !d->IsPartitionable(tokens)) {
      return std::nullopt;
    }
    for (int o = 0; o < count; ++o) {
      dims.operands[o] = DimLedBy(tokens, static_cast<int>(shapes[o].size()),
                                  [&](int i) { return d->LeadOfOperandDim(o, i); });
    }
    for (int t = 0; t < static_cast<int>(node.outputs.size()); ++t) {
      dims.outputs[t] = DimLedBy(tokens, static_cast<int>(d->outputs[t].size()),
                                 [&](int i) { return d->LeadOfOutputDim(t, i); });
    }
    return dims;
  }

  template <typename Lead>
  static int DimLedBy(int tokens, int rank, const Lead& lead) {
    for (int i = 0; i < rank; ++i) {
      if (lead(i) == tokens) return i;
    }
    return -1;
  }

  // Both orders are exchanges of the two dims that the sequence is: [C, n/C] in stripes, [n/C, C]
  // without.
  TensorRef Exchange(TensorRef x, const std::vector<int64_t>& sizes, int axis, int64_t outer,
                     const std::string& name, NamedStep* step) const {
    std::vector<int64_t> apart = sizes, perm(sizes.size() + 1);
    apart[axis] = outer;
    apart.insert(apart.begin() + axis + 1, length_ / outer);
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    std::swap(perm[axis], perm[axis + 1]);
    x = step->Reshape(x, std::move(apart), absl::StrCat(name, "/apart"));
    x = step->Add({OpKind::kTranspose, {{"perm", std::move(perm)}}}, {x},
                  absl::StrCat(name, "/exchanged"));
    return step->Reshape(x, sizes, name);
  }

  // As it is fed, or in other dims.
  bool IsInput(TensorRef tensor) const {
    const Node& node = graph().node(tensor.node);
    return node.op.kind() == OpKind::kInput ||
           (node.op.kind() == OpKind::kReshape && IsInput(node.inputs[0]));
  }

  // The operand with its dim `axis` in stripes, in a step. nullopt: it would have to be exchanged
  // between devices.
  std::optional<TensorRef> InStripes(TensorRef tensor, int axis, NamedStep* step) const {
    const Natural* const natural = NaturalOf(tensor);
    if (axis < 0) return natural == nullptr ? std::optional(tensor) : std::nullopt;
    if (natural != nullptr) {
      if (natural->axis != axis) return std::nullopt;
      for (NodeId id : natural->chain) {
        std::vector<NodeId>& nodes = step->step.nodes;
        if (std::find(nodes.begin(), nodes.end(), id) == nodes.end()) nodes.push_back(id);
      }
      return natural->striped;
    }
    const Node& made = graph().node(tensor.node);
    if (of_data_[tensor.node.value] && !IsInput(tensor)) return std::nullopt;
    const std::vector<int64_t> sizes = graph().type(tensor).Sizes();
    return Exchange(tensor, sizes, axis, length_ / stripes_, absl::StrCat(made.name, "/in_stripes"),
                    step);
  }

  bool TryCall(NodeId id) {
    const Node node = graph().node(id);
    const std::optional<SequenceDims> dims = DimsOf(node);
    if (!dims.has_value()) return false;
    NamedStep step(rewriter_.next_id());
    std::vector<TensorRef> inputs;
    for (size_t o = 0; o < node.inputs.size(); ++o) {
      const auto input = InStripes(node.inputs[o], dims->operands[o], &step);
      if (!input.has_value()) return false;
      inputs.push_back(*input);
    }
    step.step.nodes.push_back(id);
    Operator op = node.op;
    if (IsCausal(node)) op.Set("causal", stripes_);
    const NodeId made = step.Add(op, std::move(inputs), std::string(node.name)).node;
    std::vector<std::pair<TensorRef, Natural>> naturals;
    for (int t = 0; t < static_cast<int>(node.outputs.size()); ++t) {
      const TensorRef result = {made, t};
      TensorRef back = result;
      if (const int axis = dims->outputs[t]; axis >= 0) {
        const int first = step.next.value;
        back = Exchange(result, node.outputs[t].Sizes(), axis, stripes_,
                        absl::StrCat(node.name, "/in_order"), &step);
        naturals.push_back(
            {back, {result, axis, {NodeId{first}, NodeId{first + 1}, NodeId{first + 2}}}});
      }
      step.step.replaced.push_back({{id, t}, back});
    }
    if (!rewriter_.Try(std::move(step.step), step.names)) return false;
    for (auto& [tensor, natural] : naturals) naturals_[tensor] = natural;
    return true;
  }

  const int64_t stripes_;
  StatedRewriter& rewriter_;
  // Of the graph that is rewritten, whose nodes come first.
  const std::vector<bool> of_data_;
  const DimRoles roles_;
  int64_t length_ = 0;  // of the sequence
  std::map<TensorRef, Natural> naturals_;
};

}  // namespace

bool OrderInStripes(int64_t stripes, StatedRewriter* rewriter) {
  return StripedOrder(stripes, rewriter).Run();
}

bool HasCausalAttention(const Graph& graph) { return HasAttentionOfStripes(graph, 1); }
bool HasStripes(const Graph& graph) { return HasAttentionOfStripes(graph, 2); }

}  // namespace isomer
