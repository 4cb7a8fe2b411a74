#include "optimizer/expansion.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "pcg/type_inference.h"
#include "rules/rewrite.h"

namespace isomer {
namespace {

// Degrees worth trying: the smallest prime factor of every iteration dim, and of what a spatial dim
// has in common with the operand dims it leads.
std::set<int64_t> TrialDegrees(const Operator& op, absl::Span<const TensorType> operands,
                               const Declaration& declaration) {
  std::vector<int64_t> sizes;
  for (const IterationDim& dim : declaration.dims) {
    if (dim.size.known()) sizes.push_back(dim.size.value());
  }
  for (const SplittableDim& dim : SplittableDims(op, {operands.begin(), operands.end()})) {
    sizes.push_back(dim.size);
  }
  std::set<int64_t> degrees;
  for (int64_t size : sizes) {
    for (int64_t p : {2, 3, 5, 7, 11, 13}) {
      if (size % p == 0) {
        degrees.insert(p);
        break;
      }
    }
  }
  return degrees;
}

// The degree variables that no node of the source binds.
std::vector<std::string> FreeDegrees(const Rule& rule) {
  std::vector<std::string> names;
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kDegree) names.push_back(variable.name);
  }
  return names;
}

// The operator of a call, an axis counted from the end: as rules write it, whatever the model says.
Operator WithAxisFromEnd(const Graph& graph, NodeId call) {
  Operator op = graph.node(call).op;
  const int rank = graph.type(graph.node(call).inputs[0]).rank();
  for (const Attribute& attribute : op.attributes()) {
    if (attribute.name != "axis") continue;
    const absl::StatusOr<int> axis = NormalizeAxis(op.Int("axis"), rank);
    if (axis.ok()) op.Set("axis", static_cast<int64_t>(*axis - rank));
    break;
  }
  return op;
}

// The dim that the call at `inner` is split in by `degree` and nothing else, or -1.
int SplitDim(const Graph& graph, NodeId inner, int64_t degree) {
  const Node& node = graph.node(inner);
  std::vector<TensorType> operands;
  for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
  auto sharding = InferSharding(node.op, operands);
  if (!sharding.ok() || sharding->copies != 1 || sharding->operand_partials != 1) return -1;
  int found = -1;
  for (int v = 0; v < static_cast<int>(sharding->degrees.size()); ++v) {
    if (sharding->degrees[v] == 1) continue;
    if (found >= 0 || sharding->degrees[v] != degree) return -1;
    found = v;
  }
  return found;
}

Expansion MakeExpansion(const Rule& rule, const std::string& degree, const DerivationStep& step,
                        const Node& call) {
  Expansion expansion;
  expansion.rule = &rule;
  expansion.degree = degree;
  expansion.step = step;
  expansion.inner = InnerNode(rule.target);
  for (TensorRef input : step.inputs) {
    const auto at = std::find(call.inputs.begin(), call.inputs.end(), input);
    expansion.operand_of_input.push_back(static_cast<int>(at - call.inputs.begin()));
  }
  return expansion;
}

void TrySplits(const Rule& rule, const Graph& graph, NodeId call, int64_t degree,
               Expansions* found) {
  const std::vector<std::string> free = FreeDegrees(rule);
  if (free.size() != 1) return;
  Binding given;
  given.variables[free[0]] = degree;
  for (const DerivationStep& step : FindMatches(graph, rule, given)) {
    Graph copy = graph;
    const NodeId first{copy.num_nodes()};
    if (!ApplyStep(rule, step, &copy).ok()) continue;
    const NodeId inner{first.value + InnerNode(rule.target)};
    const int dim = SplitDim(copy, inner, degree);
    if (dim < 0 || found->SplitOf(dim) != nullptr) continue;
    if (WithAxisFromEnd(copy, inner) != WithAxisFromEnd(graph, call)) continue;
    Expansion expansion = MakeExpansion(rule, free[0], step, graph.node(call));
    expansion.dim = dim;
    for (TensorRef operand : copy.node(inner).inputs) {
      while (IsParallel(copy.node(operand.node).op.kind())) {
        operand = copy.node(operand.node).inputs[0];
      }
      // Inputs are the first nodes of the graph.
      expansion.order.push_back(operand.node.value);
    }
    found->splits.push_back(std::move(expansion));
  }
}

}  // namespace

const Expansion* Expansions::SplitOf(int dim) const {
  for (const Expansion& split : splits) {
    if (split.dim == dim) return &split;
  }
  return nullptr;
}

absl::StatusOr<Graph> GraphOfCall(const Operator& op, absl::Span<const TensorType> operands) {
  Graph graph;
  std::vector<TensorRef> inputs;
  for (const TensorType& type : operands) {
    inputs.push_back(graph.AddInput(absl::StrCat("x", inputs.size()), type));
  }
  ISOMER_ASSIGN_OR_RETURN(const NodeId call, graph.Add(op, inputs));
  for (int i = 0; i < static_cast<int>(graph.node(call).outputs.size()); ++i) {
    graph.AddOutput(absl::StrCat("y", i), {call, i});
  }
  return graph;
}

Expansions FindExpansions(const RuleIndex& rules, const Operator& op,
                          absl::Span<const TensorType> operands) {
  Expansions found;
  auto graph = GraphOfCall(op, operands);
  auto sharding = InferSharding(op, operands);
  if (!graph.ok() || !sharding.ok()) return found;
  const NodeId call{graph->num_nodes() - 1};
  const std::set<int64_t> degrees = TrialDegrees(op, operands, sharding->declaration);
  for (const Rule* rule : rules.ExpansionsOf(op.kind())) {
    for (int64_t degree : degrees) TrySplits(*rule, *graph, call, degree, &found);
  }
  std::sort(found.splits.begin(), found.splits.end(),
            [](const Expansion& a, const Expansion& b) { return a.dim < b.dim; });
  return found;
}

DerivationStep StepAt(const Expansion& expansion, const Graph& graph, NodeId node, int64_t degree,
                      const std::vector<int>& order) {
  DerivationStep step = expansion.step;
  step.nodes = {node};
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const auto at = std::find(order.begin(), order.end(), expansion.operand_of_input[i]);
    step.inputs[i] = graph.node(node).inputs[at - order.begin()];
  }
  step.variables[expansion.degree] = degree;
  return step;
}

}  // namespace isomer
