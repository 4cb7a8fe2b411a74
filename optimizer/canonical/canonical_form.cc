#include "optimizer/canonical/canonical_form.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "optimizer/canonical/attention_step.h"
#include "optimizer/canonical/layout_form.h"
#include "pcg/ir/constant_number.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

// Most calls fused into one operator; and most ancestors of its last call among which they are
// sought, which include calls that only lead to the tensor itself.
constexpr size_t kMostCalls = 16, kMostBehind = 64;
// Most operands of such calls, besides numbers.
constexpr size_t kMostOperands = 3;

// An operator whose operand 0 has the output's type, and the kinds that its decomposition must
// contain.
struct Definition {
  OpKind kind;
  std::vector<OpKind> parts;
};

const std::vector<Definition>& Definitions() {
  static const auto* const definitions =
      new std::vector<Definition>{{OpKind::kLayerNorm, {OpKind::kReduceMean, OpKind::kSqrt}},
                                  {OpKind::kRmsNorm, {OpKind::kReduceMean, OpKind::kSqrt}},
                                  {OpKind::kRotary, {OpKind::kConcat, OpKind::kMul, OpKind::kAdd}},
                                  {OpKind::kGeluTanh, {OpKind::kTanh, OpKind::kAdd}},
                                  {OpKind::kSwish, {OpKind::kSigmoid}},
                                  {OpKind::kSoftmax, {OpKind::kExp, OpKind::kReduceSum}}};
  return *definitions;
}

// A candidate subgraph, as a function of the first of its operands.
struct Region {
  std::vector<NodeId> nodes;  // in topological order; the last computes the output
  std::vector<TensorRef> inputs;
  std::vector<NodeId> constant;  // those of the nodes that depend on constants only
};

class DefinitionFinder {
 public:
  DefinitionFinder(const Model& model, const std::function<bool(const std::string&)>& keeps,
                   StatedRewriter* rewriter)
      : model_(model),
        graph_(rewriter->graph()),
        keeps_(keeps),
        users_(graph_.Users()),
        rewriter_(*rewriter) {
    is_output_.assign(graph_.num_nodes(), false);
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      is_output_[output.tensor.node.value] = true;
    }
  }

  // Later calls first, as their regions include earlier ones.
  void Run() {
    const std::vector<NodeId> order = graph_.TopologicalOrder();
    place_.assign(graph_.num_nodes(), 0);
    for (size_t i = 0; i < order.size(); ++i) place_[order[i].value] = static_cast<int>(i);
    for (auto root = order.rbegin(); root != order.rend(); ++root) {
      const OpKind kind = graph_.node(*root).op.kind();
      const bool is_one = graph_.node(*root).outputs.size() == 1;
      if (IsLeaf(kind) || !is_one || taken_.contains(*root)) continue;
      if (kind == OpKind::kMatMul && (StateAttention(*root) || StateGatherMatMul(*root))) continue;
      for (const Region& region : RegionsOf(*root)) {
        if (StateDefinition(region)) break;
      }
      if (IsAttention(kind)) StateSharedKeys(*root);
    }
  }

 private:
  // All regions that end in `root`, largest first.
  std::vector<Region> RegionsOf(NodeId root) const {
    std::vector<NodeId> behind = {root};
    for (size_t n = 0; n < behind.size(); ++n) {
      for (TensorRef input : graph_.node(behind[n]).inputs) {
        const bool is_known = std::find(behind.begin(), behind.end(), input.node) != behind.end();
        if (is_known || IsLeaf(graph_.node(input.node).op.kind())) continue;
        if (behind.size() < kMostBehind) behind.push_back(input.node);
      }
    }
    std::sort(behind.begin(), behind.end(),
              [&](NodeId a, NodeId b) { return place_[a.value] < place_[b.value]; });
    std::set<TensorRef> candidates;
    for (NodeId id : behind) {
      for (TensorRef input : graph_.node(id).inputs) {
        if (graph_.type(input) == graph_.type({root, 0})) candidates.insert(input);
      }
    }
    std::vector<Region> regions;
    for (TensorRef x : candidates) {
      std::optional<Region> region = RegionBetween(x, behind);
      if (region.has_value()) regions.push_back(*std::move(region));
    }
    std::stable_sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
      return a.nodes.size() > b.nodes.size();
    });
    return regions;
  }

  // The calls that depend on `x`, if there are several and only the last has other users.
  std::optional<Region> RegionBetween(TensorRef x, const std::vector<NodeId>& calls) const {
    Region region;
    region.inputs = {x};
    std::set<NodeId> inside;
    for (NodeId id : calls) {
      const std::vector<TensorRef>& inputs = graph_.node(id).inputs;
      if (std::any_of(inputs.begin(), inputs.end(),
                      [&](TensorRef input) { return input == x || inside.contains(input.node); })) {
        inside.insert(id);
        region.nodes.push_back(id);
      }
    }
    if (region.nodes.size() < 2 || region.nodes.size() > kMostCalls ||
        region.nodes.back() != calls.back())
      return std::nullopt;
    for (NodeId id : region.nodes) {
      if (taken_.contains(id)) return std::nullopt;
      for (TensorRef input : graph_.node(id).inputs) {
        if (inside.contains(input.node)) continue;
        if (IsOfConstants(input.node)) {
          AddTo(&region.constant, input.node);
          for (TensorRef constant : graph_.node(input.node).inputs) {
            AddTo(&region.inputs, constant);
          }
        } else {
          AddTo(&region.inputs, input);
        }
      }
      if (id == region.nodes.back()) continue;
      if (is_output_[id.value] || keeps_(graph_.node(id).name)) return std::nullopt;
      for (const Graph::Use& use : users_[id.value]) {
        if (!inside.contains(use.user)) return std::nullopt;
      }
    }
    region.nodes.insert(region.nodes.begin(), region.constant.begin(), region.constant.end());
    return region;
  }

  template <typename T>
  static void AddTo(std::vector<T>* distinct, T element) {
    if (std::find(distinct->begin(), distinct->end(), element) == distinct->end()) {
      distinct->push_back(element);
    }
  }

  // Whether the call only rearranges constants, such as a table of angles whose halves are equal.
  bool IsOfConstants(NodeId id) const {
    const Node& node = graph_.node(id);
    return IsLayout(node.op.kind()) &&
           std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorRef input) {
             return graph_.node(input.node).op.kind() == OpKind::kConstant;
           });
  }

  bool StateDefinition(const Region& region) {
    for (const Definition& definition : Definitions()) {
      const bool has_parts =
          std::all_of(definition.parts.begin(), definition.parts.end(), [&](OpKind part) {
            return std::any_of(region.nodes.begin(), region.nodes.end(),
                               [&](NodeId id) { return graph_.node(id).op.kind() == part; });
          });
      if (has_parts && StateAs(definition.kind, region)) return true;
    }
    return false;
  }

  bool StateAs(OpKind kind, const Region& region) {
    std::map<int, double> numbers;
    std::vector<TensorRef> others;
    for (size_t i = 1; i < region.inputs.size(); ++i) {
      const std::optional<double> number =
          NumberOfConstant(model_, graph_.node(region.inputs[i].node));
      if (number.has_value()) {
        numbers[static_cast<int>(i)] = *number;
      } else {
        others.push_back(region.inputs[i]);
      }
    }
    const size_t operands = static_cast<size_t>(MinOperands(kind));
    if (others.size() + 1 != operands || operands > kMostOperands) return false;
    std::sort(others.begin(), others.end());
    do {
      std::vector<TensorRef> inputs = {region.inputs[0]};
      inputs.insert(inputs.end(), others.begin(), others.end());
      for (const Operator& op : OperatorsOf(kind, region, numbers)) {
        if (State(region, op, inputs)) return true;
      }
    } while (std::next_permutation(others.begin(), others.end()));
    return false;
  }

  static constexpr size_t kMostNumbers = 6;

  // Numbers that the region uses, or scales by; empty if they are too many to try.
  std::set<double> NumbersOf(const Region& region, const std::map<int, double>& numbers) const {
    std::set<double> known;
    for (const auto& [input, number] : numbers) known.insert(number);
    for (NodeId id : region.nodes) {
      const Operator& op = graph_.node(id).op;
      if (op.kind() == OpKind::kScale) known.insert(op.Number("factor"));
    }
    return known.size() > kMostNumbers ? std::set<double>() : known;
  }

  // Candidate operators, with the region's numbers and axes as attributes.
  std::vector<Operator> OperatorsOf(OpKind kind, const Region& region,
                                    const std::map<int, double>& numbers) const {
    if (kind == OpKind::kSwish) return {Operator(kind)};
    if (kind == OpKind::kRotary) {
      return {{kind, {{"interleaved", int64_t{0}}}}, {kind, {{"interleaved", int64_t{1}}}}};
    }
    std::vector<Operator> operators;
    if (kind == OpKind::kGeluTanh) {
      // The proof decides which number is which attribute.
      const std::set<double> known = NumbersOf(region, numbers);
      for (double slope : known) {
        for (double cubic : known)
          operators.push_back({kind, {{"slope", slope}, {"cubic", cubic}}});
      }
      return operators;
    }
    if (kind == OpKind::kSoftmax) {
      for (NodeId id : region.nodes) {
        const Operator& op = graph_.node(id).op;
        if (op.kind() != OpKind::kReduceSum || op.Ints("axes").size() != 1) continue;
        operators.push_back({kind, {{"axis", op.Ints("axes")[0]}}});
      }
      return operators;
    }
    for (const auto& [input, number] : numbers) {
      if (number > 0) operators.push_back({kind, {{"epsilon", number}}});
    }
    return operators;
  }

  // The call that computes `x`, if it is of that kind and may be part of a larger operator.
  const Node* InnerCall(OpKind kind, TensorRef x) const {
    const Node& node = graph_.node(x.node);
    const bool is_inner = node.op.kind() == kind && users_[x.node.value].size() == 1 &&
                          !is_output_[x.node.value] && !keeps_(node.name) &&
                          !taken_.contains(x.node);
    return is_inner ? &node : nullptr;
  }

  // Strips scalings off `x`, multiplying `factor` by theirs.
  TensorRef WithoutScales(TensorRef x, double* factor, std::vector<NodeId>* calls) const {
    while (const Node* scale = InnerCall(OpKind::kScale, x)) {
      *factor *= scale->op.Number("factor");
      calls->push_back(x.node);
      x = scale->inputs[0];
    }
    return x;
  }

  // matmul(softmax(scale(matmul(q, k')) + mask), v); the scale may be on q and k' instead, the
  // scores may be capped by tanh, the mask is optional. Samples and heads may be one dim, as
  // nn.MultiheadAttention has them where it gives its weights, too.
  bool StateAttention(NodeId root) {
    const Node& last = graph_.node(root);
    Region region;
    region.nodes = {root};
    const Node* const softmax = InnerCall(OpKind::kSoftmax, last.inputs[0]);
    const int rank = graph_.type({root, 0}).rank();
    if (softmax == nullptr || (rank != 4 && rank != 3) ||
        (softmax->op.Int("axis") != -1 && softmax->op.Int("axis") != rank - 1)) {
      return false;
    }
    region.nodes.push_back(last.inputs[0].node);
    std::vector<TensorRef> scores = {softmax->inputs[0]};
    const Node* const add = InnerCall(OpKind::kAdd, scores[0]);
    if (add != nullptr) {
      region.nodes.push_back(scores[0].node);
      scores = add->inputs;
    }
    for (size_t s = 0; s < scores.size(); ++s) {
      Region whole = region;
      double factor = 1, scale = 1;
      Operator op(OpKind::kAttention, {{"causal", int64_t{0}}});
      TensorRef x = WithoutScales(scores[s], &factor, &whole.nodes);
      if (const Node* tanh = InnerCall(OpKind::kTanh, x)) {
        op = Operator(OpKind::kCappedAttention, {{"causal", int64_t{0}}, {"cap", factor}});
        whole.nodes.push_back(x.node);
        factor = 1;
        x = WithoutScales(tanh->inputs[0], &factor, &whole.nodes);
      }
      scale *= factor;
      const Node* const product = InnerCall(OpKind::kMatMul, x);
      if (product == nullptr || graph_.type(x).rank() != rank) continue;
      whole.nodes.push_back(x.node);
      const TensorRef q = WithoutScales(product->inputs[0], &scale, &whole.nodes);
      const TensorRef k = WithoutScales(product->inputs[1], &scale, &whole.nodes);
      op.Set("scale", scale);
      if (graph_.type(q).rank() != rank || graph_.type(k).rank() != rank) continue;
      std::vector<TensorRef> operands = {q, k, last.inputs[1]};
      if (add != nullptr) operands.push_back(scores[1 - s]);
      std::sort(whole.nodes.begin(), whole.nodes.end(),
                [&](NodeId a, NodeId b) { return place_[a.value] < place_[b.value]; });
      std::vector<std::string> names;
      std::optional<DerivationStep> step =
          AttentionStep(graph_, op, operands, root, rewriter_.next_id(), &names);
      if (!step.has_value()) continue;
      step->nodes = whole.nodes;
      if (!rewriter_.Try(*std::move(step), names)) continue;
      taken_.insert(whole.nodes.begin(), whole.nodes.end());
      return true;
    }
    return false;
  }

  // A product of each row with a matrix that it looks up, which copies the matrix per row: by the
  // index alone. The row is a column on the right, or a row on the left.
  bool StateGatherMatMul(NodeId root) {
    const Node& product = graph_.node(root);
    for (const int matrix : {0, 1}) {
      const Node* const gather = InnerCall(OpKind::kGather, product.inputs[matrix]);
      if (gather == nullptr) continue;
      const TensorRef x = product.inputs[1 - matrix], table = gather->inputs[0],
                      indices = gather->inputs[1];
      std::vector<int64_t> row = graph_.type(indices).Sizes(), one = graph_.type(x).Sizes();
      const int rank = graph_.type(table).rank(), i = static_cast<int>(row.size());
      const int64_t axis = gather->op.Int("axis");
      if (rank != 3 || (axis != 0 && axis != -rank)) continue;
      row.push_back(one[one.size() - 2 + matrix]);
      const bool is_row = static_cast<int>(one.size()) == i + 2 && one[i + 1 - matrix] == 1 &&
                          std::equal(row.begin(), row.end() - 1, one.begin());
      if (!is_row) continue;
      DerivationStep step;
      step.nodes = {product.inputs[matrix].node, root};
      const auto call = [&](int n) { return TensorRef{NodeId{rewriter_.next_id().value + n}, 0}; };
      step.calls = {{{OpKind::kReshape, {{"shape", row}}}, {x}}};
      TensorRef matrices = table;
      if (matrix == 0) {
        matrices = call(static_cast<int>(step.calls.size()));
        step.calls.push_back(
            {{OpKind::kTranspose, {{"perm", std::vector<int64_t>{0, 2, 1}}}}, {table}});
      }
      step.calls.push_back({Operator(OpKind::kGatherMatMul), {call(0), matrices, indices}});
      step.calls.push_back({{OpKind::kReshape, {{"shape", graph_.type({root, 0}).Sizes()}}},
                            {call(static_cast<int>(step.calls.size()) - 1)}});
      step.replaced = {{{root, 0}, call(static_cast<int>(step.calls.size()) - 1)}};
      std::vector<std::string> names = {product.name + "/rows", product.name + "/of_rows",
                                        product.name};
      if (matrix == 0) names.insert(names.begin() + 1, product.name + "/matrices");
      const std::vector<NodeId> nodes = step.nodes;
      if (!rewriter_.Try(std::move(step), names)) continue;
      taken_.insert(nodes.begin(), nodes.end());
      return true;
    }
    return false;
  }

  // Removes the repetition of keys and values for the query heads that share them: attention does
  // that itself.
  void StateSharedKeys(NodeId attention) {
    const Node& node = graph_.node(attention);
    Region region;
    std::vector<TensorRef> inputs = node.inputs;
    for (int o : {1, 2}) {
      bool is_repeated = false;
      do {
        const NodeId from = inputs[o].node;
        const OpKind kind = graph_.node(from).op.kind();
        if (kind != OpKind::kReshape && kind != OpKind::kExpand) return;
        is_repeated |= kind == OpKind::kExpand;
        AddTo(&region.nodes, from);
        inputs[o] = graph_.node(from).inputs[0];
      } while (!is_repeated || graph_.type(inputs[o]).rank() != 4);
    }
    region.nodes.push_back(attention);
    std::sort(region.nodes.begin(), region.nodes.end(),
              [&](NodeId a, NodeId b) { return place_[a.value] < place_[b.value]; });
    for (TensorRef input : inputs) AddTo(&region.inputs, input);
    for (NodeId id : region.nodes) {
      if (taken_.contains(id) || (id != attention && keeps_(graph_.node(id).name))) return;
    }
    State(region, node.op, inputs);
  }

  // Replaces the region by `op` of `inputs` if that is proved; returns whether it was.
  bool State(const Region& region, const Operator& op, const std::vector<TensorRef>& inputs) {
    DerivationStep step;
    step.nodes = region.nodes;
    step.calls = {{op, inputs}};
    const NodeId last = region.nodes.back();
    step.replaced = {{{last, 0}, {rewriter_.next_id(), 0}}};
    if (!rewriter_.Try(std::move(step), {graph_.node(last).name})) return false;
    for (NodeId id : region.nodes) {
      const bool is_shared =
          std::find(region.constant.begin(), region.constant.end(), id) != region.constant.end();
      if (!is_shared) taken_.insert(id);
    }
    return true;
  }

  const Model& model_;
  const Graph& graph_;
  const std::function<bool(const std::string&)>& keeps_;
  const std::vector<std::vector<Graph::Use>> users_;
  StatedRewriter& rewriter_;
  std::vector<bool> is_output_;
  std::vector<int> place_;  // per node: position in the topological order
  std::set<NodeId> taken_;  // nodes replaced by a step
};

// Removes calls that no output needs. `ids`: per remaining node, its previous id.
Graph WithoutDead(const Graph& graph, std::vector<NodeId>* ids) {
  std::vector<Node> nodes;
  std::vector<NodeId> places(graph.num_nodes());
  *ids = graph.TopologicalOrder();
  for (NodeId id : *ids) {
    places[id.value] = NodeId{static_cast<int>(nodes.size())};
    nodes.push_back(graph.node(id));
    for (TensorRef& input : nodes.back().inputs) input.node = places[input.node.value];
  }
  std::vector<Graph::NamedOutput> outputs = graph.outputs();
  for (Graph::NamedOutput& output : outputs) {
    output.tensor.node = places[output.tensor.node.value];
  }
  return GraphFromParts(std::move(nodes), std::move(outputs)).value();
}

}  // namespace

CanonicalModel Canonicalize(const Model& model, const AreEqual& equal,
                            const std::function<bool(const std::string& name)>& keeps) {
  CanonicalModel canonical;
  canonical.model = {model.name, model.graph, {}, model.loss};
  Graph& graph = canonical.model.graph;
  if (equal != nullptr) {
    StatedRewriter rewriter(model, model.graph, equal);
    DefinitionFinder(model, keeps, &rewriter).Run();
    PutLayoutsTogether(keeps, &rewriter);
    graph = rewriter.graph();
    canonical.steps = rewriter.TakeSteps();
  }
  canonical.num_ids = graph.num_nodes();
  graph = WithoutDead(graph, &canonical.ids);
  return canonical;
}

Plan OverOriginal(Plan plan, const Model& original, const CanonicalModel& canonical) {
  const int kept = static_cast<int>(canonical.ids.size());
  const auto move = [&](NodeId* id) {
    *id =
        id->value < kept ? canonical.ids[id->value] : NodeId{id->value - kept + canonical.num_ids};
  };
  std::vector<DerivationStep> steps = canonical.steps;
  for (DerivationStep& step : plan.steps) {
    for (NodeId& id : step.nodes) move(&id);
    for (TensorRef& input : step.inputs) move(&input.node);
    for (AddedCall& call : step.calls) {
      for (TensorRef& input : call.inputs) move(&input.node);
    }
    for (auto& [from, to] : step.replaced) {
      move(&from.node);
      move(&to.node);
    }
    steps.push_back(std::move(step));
  }
  plan.steps = std::move(steps);
  plan.model = original;
  return plan;
}

}  // namespace isomer
