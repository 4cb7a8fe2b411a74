#include "optimizer/proposal/grid_graph.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/named_step.h"
#include "optimizer/proposal/striped_order.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

NamedStep UnshareKeys(const Graph& graph, NodeId attention, int64_t times, NodeId next) {
  const Node& node = graph.node(attention);
  NamedStep result(next);
  std::vector<TensorRef> inputs = node.inputs;
  for (const int o : {1, 2}) {
    const std::string name = absl::StrCat(node.name, o == 1 ? "/keys" : "/values");
    const std::vector<int64_t> shape = graph.type(inputs[o]).Sizes();
    const std::vector<int64_t> each = {shape[0], shape[1], times, shape[2], shape[3]};
    TensorRef repeated =
        result.Reshape(inputs[o], {shape[0], shape[1], 1, shape[2], shape[3]}, name);
    repeated = result.Add({OpKind::kExpand, {{"shape", each}}}, {repeated},
                          absl::StrCat(name, "_of_each_query_head"));
    inputs[o] = result.Reshape(repeated, {shape[0], shape[1] * times, shape[2], shape[3]},
                               absl::StrCat(name, "_repeated"));
  }
  const TensorRef unshared = result.Add(node.op, std::move(inputs), node.name);
  result.step.nodes = {attention};
  result.step.replaced = {{{attention, 0}, unshared}};
  return result;
}

class ContextRewriter {
 public:
  ContextRewriter(const Model& model, const ContextForm& form, const AreEqual& equal)
      : model_(model),
        graph_(model.graph),
        form_(form),
        equal_(equal),
        users_(graph_.Users()),
        is_output_(graph_.num_nodes(), false),
        rewriter_(model, model.graph, equal) {
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      is_output_[output.tensor.node.value] = true;
    }
  }

  std::optional<RewrittenGraph> Run() {
    for (NodeId id : graph_.TopologicalOrder()) {
      if (IsAttention(graph_.node(id).op.kind())) TryToUnshareKeys(id);
      if (graph_.node(id).op.kind() == OpKind::kCrossEntropy) TryToKeepDimsOfRows(id);
    }
    std::vector<DerivationStep> steps = rewriter_.TakeSteps();
    if (form_.stripes > 1 && SplitsSequences()) {
      StatedRewriter in_stripes(model_, rewriter_.graph(), equal_);
      if (OrderInStripes(form_.stripes, &in_stripes)) {
        for (DerivationStep& step : in_stripes.TakeSteps()) steps.push_back(std::move(step));
        return RewrittenGraph{in_stripes.graph(), std::move(steps)};
      }
    }
    if (!changes_) return std::nullopt;
    return RewrittenGraph{rewriter_.graph(), std::move(steps)};
  }

 private:
  // Heads are not split over all devices that share a sequence.
  bool SplitsSequences() const {
    for (NodeId id : graph_.TopologicalOrder()) {
      const Node& node = graph_.node(id);
      if (!IsAttention(node.op.kind())) continue;
      const int64_t heads = graph_.type(node.inputs[0]).dims[1].size;
      if (form_.head_degree == 1 || heads % form_.head_degree != 0) return true;
    }
    return false;
  }

  void TryToUnshareKeys(NodeId attention) {
    const Node& node = rewriter_.graph().node(attention);
    const int64_t heads = graph_.type(node.inputs[0]).dims[1].size;
    const int64_t key_heads = graph_.type(node.inputs[1]).dims[1].size;
    if (key_heads % std::gcd(heads, form_.head_degree) == 0) return;
    Try(UnshareKeys(rewriter_.graph(), attention, heads / key_heads, rewriter_.next_id()));
  }

  // cross_entropy(matmul(reshape(x), w), labels) is that of matmul(x, w), of labels in the dims of
  // x.
  void TryToKeepDimsOfRows(NodeId loss) {
    const Node& node = graph_.node(loss);
    const NodeId product = node.inputs[0].node;
    const OpKind kind = graph_.node(product).op.kind();
    if ((kind != OpKind::kMatMul && kind != OpKind::kLinear) || !IsUsedOnce(product)) return;
    const NodeId rows = graph_.node(product).inputs[0].node;
    if (graph_.node(rows).op.kind() != OpKind::kReshape || !IsUsedOnce(rows)) return;
    const TensorRef x = graph_.node(rows).inputs[0];
    const std::vector<int64_t> sizes = graph_.type(x).Sizes();
    const std::vector<int64_t> in_rows = graph_.type({rows, 0}).Sizes();
    if (sizes.size() != 3 || in_rows.size() != 2 || sizes.back() != in_rows.back()) return;
    NamedStep step(rewriter_.next_id());
    // Its operands are those of the growing graph: what leads here may have been replaced.
    std::vector<TensorRef> inputs = rewriter_.graph().node(product).inputs;
    inputs[0] = rewriter_.graph().node(rows).inputs[0];
    const TensorRef logits =
        step.Add(graph_.node(product).op, std::move(inputs), graph_.node(product).name);
    const TensorRef labels =
        step.Reshape(node.inputs[1], {sizes[0], sizes[1]}, absl::StrCat(node.name, "/labels"));
    const TensorRef of_dims = step.Add(node.op, {logits, labels}, node.name);
    step.step.nodes = {rows, product, loss};
    step.step.replaced = {{{loss, 0}, of_dims}};
    Try(std::move(step));
  }

  bool IsUsedOnce(NodeId id) const { return users_[id.value].size() == 1 && !is_output_[id.value]; }

  void Try(NamedStep step) { changes_ |= rewriter_.Try(std::move(step.step), step.names); }

  const Model& model_;
  const Graph& graph_;  // the model's
  const ContextForm form_;
  const AreEqual& equal_;
  const std::vector<std::vector<Graph::Use>> users_;
  std::vector<bool> is_output_;
  StatedRewriter rewriter_;
  bool changes_ = false;
};

}  // namespace

std::optional<RewrittenGraph> RewriteForContext(const Model& model, const ContextForm& form,
                                                const AreEqual& equal) {
  if (equal == nullptr) return std::nullopt;
  return ContextRewriter(model, form, equal).Run();
}

const RewrittenGraph* GridGraph::RewrittenFor(const GridDegrees& degrees) {
  if (degrees.context == 1) return nullptr;
  const ContextForm form = {
      .head_degree = degrees.context_by_heads ? degrees.tensor * degrees.context : 1,
      .stripes = degrees.in_stripes ? degrees.context : 1};
  const auto [at, is_new] = rewritten_.try_emplace(form);
  if (is_new) at->second = RewriteForContext(model_, form, equal_);
  return at->second.has_value() ? &*at->second : nullptr;
}

const Graph& GridGraph::Of(const GridDegrees& degrees) {
  const RewrittenGraph* const rewritten = RewrittenFor(degrees);
  return rewritten == nullptr ? model_.graph : rewritten->graph;
}

absl::StatusOr<MappedModel> GridGraph::Map(const GridDegrees& degrees, CostTables* tables,
                                           std::string* misfit) {
  ISOMER_ASSIGN_OR_RETURN(MappedModel mapped, MapGrid(Of(degrees), degrees, tables, misfit));
  if (const RewrittenGraph* const rewritten = RewrittenFor(degrees)) {
    mapped.steps = rewritten->steps;
  }
  return mapped;
}

}  // namespace isomer
