#include "optimizer/canonical/attention_step.h"

#include <cstdint>
#include <numeric>
#include <utility>

namespace isomer {
namespace {

// How many heads share dim 0 of `q` with the samples: a reshape before it took them from the
// features, [.., samples, features] -> [.., samples * heads, features / heads]. 1: none is seen.
int64_t HeadsInDim0(const Graph& graph, TensorRef q) {
  const Node* node = &graph.node(q.node);
  while (node->op.kind() == OpKind::kTranspose || node->op.kind() == OpKind::kScale) {
    node = &graph.node(node->inputs[0].node);
  }
  if (node->op.kind() != OpKind::kReshape) return 1;
  const std::vector<int64_t> from = graph.type(node->inputs[0]).Sizes();
  const std::vector<int64_t> to = node->outputs[0].Sizes();
  if (from.empty() || to.empty() || from.back() % to.back() != 0) return 1;
  const int64_t heads = from.back() / to.back();
  return graph.type(q).Sizes()[0] % heads == 0 ? heads : 1;
}

class AttentionCalls {
 public:
  AttentionCalls(const std::string& name, NodeId next, std::vector<std::string>* names)
      : name_(name), next_(next), names_(*names) {}

  TensorRef Add(Operator op, std::vector<TensorRef> inputs, const std::string& suffix) {
    const int n = static_cast<int>(step.calls.size());
    step.calls.push_back({std::move(op), std::move(inputs)});
    names_.push_back(name_ + suffix);
    return {NodeId{next_.value + n}, 0};
  }
  TensorRef Reshape(TensorRef x, std::vector<int64_t> sizes, const std::string& suffix) {
    return Add({OpKind::kReshape, {{"shape", std::move(sizes)}}}, {x}, suffix);
  }
  // Of [samples * heads, ..], or of [1, ..] for all; what has fewer dims is for all, too.
  TensorRef WithHeads(TensorRef x, std::vector<int64_t> sizes, int64_t heads,
                      const std::string& suffix) {
    if (sizes.size() < 3) return x;
    const int64_t own = sizes[0] == 1 ? 1 : heads;
    sizes[0] /= own;
    sizes.insert(sizes.begin() + 1, own);
    return Reshape(x, std::move(sizes), suffix);
  }

  DerivationStep step;

 private:
  const std::string name_;
  const NodeId next_;
  std::vector<std::string>& names_;
};

}  // namespace

std::optional<DerivationStep> AttentionStep(const Graph& graph, const Operator& op,
                                            const std::vector<TensorRef>& operands, NodeId root,
                                            NodeId next, std::vector<std::string>* names) {
  static constexpr const char* kSuffixes[] = {"/queries", "/keys_of_heads", "/values", "/mask"};
  const int rank = graph.type({root, 0}).rank();
  const int64_t heads = rank == 3 ? HeadsInDim0(graph, operands[0]) : 1;
  if (rank == 3 && heads == 1) return std::nullopt;
  AttentionCalls calls(graph.node(root).name, next, names);
  std::vector<int64_t> turn(rank);
  std::iota(turn.begin(), turn.end(), 0);
  std::swap(turn[rank - 2], turn[rank - 1]);
  std::vector<TensorRef> inputs;
  for (size_t o = 0; o < operands.size(); ++o) {
    TensorRef x = operands[o];
    std::vector<int64_t> sizes = graph.type(x).Sizes();
    if (o == 1) {
      x = calls.Add({OpKind::kTranspose, {{"perm", turn}}}, {x}, "/keys");
      std::swap(sizes[rank - 2], sizes[rank - 1]);
    }
    inputs.push_back(rank == 3 ? calls.WithHeads(x, std::move(sizes), heads, kSuffixes[o]) : x);
  }
  TensorRef result = calls.Add(op, std::move(inputs), rank == 3 ? "/heads" : "");
  if (rank == 3) result = calls.Reshape(result, graph.type({root, 0}).Sizes(), "");
  calls.step.replaced = {{{root, 0}, result}};
  return std::move(calls.step);
}

}  // namespace isomer
