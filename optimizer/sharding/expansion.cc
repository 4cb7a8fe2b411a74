#include "optimizer/sharding/expansion.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"
#include "rules/language/splittable_dims.h"
#include "rules/matching/rewrite.h"

namespace isomer {
namespace {

// The smallest prime factor worth trying as a degree; 1: none.
int64_t TrialDegree(int64_t size) {
  for (int64_t p : {2, 3, 5, 7, 11, 13}) {
    if (size % p == 0) return p;
  }
  return 1;
}

// Degrees worth trying: for every iteration dim, and for the common divisors of a spatial dim and
// the operand dims that it leads.
std::set<int64_t> TrialDegrees(const Sharding& sharding, absl::Span<const TensorType> operands) {
  std::set<int64_t> degrees;
  for (const IterationDim& dim : sharding.declaration.dims) {
    if (dim.size.known()) degrees.insert(TrialDegree(dim.size.value()));
  }
  for (const SplittableDim& dim : SplittableDims(sharding, operands)) {
    degrees.insert(TrialDegree(dim.size));
  }
  degrees.erase(1);
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

// A call's operator with its axis counted from the end, as rules write it.
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

// The only dim of the call at `inner` that is split by `degree`, or -1.
int DimOfSplit(const Graph& graph, NodeId inner, int64_t degree) {
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

// Adds the splits by `rule`, with the one free degree `free`. `tried`: splits so far, with any
// degree.
void TrySplits(const Rule& rule, const std::string& free, const GraphIndex& index, NodeId call,
               int64_t degree, std::vector<DerivationStep>* tried, Expansions* found) {
  const Graph& graph = index.graph();
  Binding given;
  given.variables[free] = degree;
  for (const DerivationStep& step : MatchesAt(index, rule, call, given)) {
    DerivationStep of_any_degree = step;
    of_any_degree.variables.erase(free);
    if (std::find(tried->begin(), tried->end(), of_any_degree) != tried->end()) continue;
    Graph copy = graph;
    const NodeId first{copy.num_nodes()};
    if (!ApplyStep(rule, step, &copy).ok()) continue;
    const NodeId inner{first.value + InnerNode(rule.target)};
    const int dim = DimOfSplit(copy, inner, degree);
    if (dim < 0 || found->SplitOf(dim) != nullptr) continue;
    if (WithAxisFromEnd(copy, inner) != WithAxisFromEnd(graph, call)) continue;
    tried->push_back(std::move(of_any_degree));
    Expansion expansion = MakeExpansion(rule, free, step, graph.node(call));
    expansion.dim = dim;
    for (TensorRef operand : copy.node(inner).inputs) {
      while (IsParallel(copy.node(operand.node).op.kind())) {
        operand = copy.node(operand.node).inputs[0];
      }
      // Inputs are the first nodes.
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

namespace {

Expansions ExpansionsOf(const RuleIndex& rules, const Operator& op,
                        absl::Span<const TensorType> operands, const Sharding& sharding) {
  Expansions found;
  const auto graph = GraphOfCall(op, operands);
  if (!graph.ok()) return found;
  const GraphIndex index(*graph);
  const NodeId call{graph->num_nodes() - 1};
  const std::set<int64_t> degrees = TrialDegrees(sharding, operands);
  for (const Rule* rule : rules.ExpansionsOf(op.kind())) {
    const std::vector<std::string> free = FreeDegrees(*rule);
    if (free.size() != 1) continue;
    std::vector<DerivationStep> tried;
    for (int64_t degree : degrees) TrySplits(*rule, free[0], index, call, degree, &tried, &found);
  }
  std::sort(found.splits.begin(), found.splits.end(),
            [](const Expansion& a, const Expansion& b) { return a.dim < b.dim; });
  return found;
}

bool IsOpaque(const AttributePattern& attribute) {
  return std::holds_alternative<AttributeVariable>(attribute.value);
}

// Whether the rule's only requirement is a dim of its call, besides what holds for all sequential
// operands.
bool AsksForDimOnly(const Rule& rule) {
  return HasCondition(rule, Condition::Kind::kSplitsDim) &&
         std::all_of(rule.conditions.begin(), rule.conditions.end(), [](const Condition& c) {
           return c.kind == Condition::Kind::kSplitsDim || c.kind == Condition::Kind::kNoPartials ||
                  c.kind == Condition::Kind::kUnpartitioned;
         });
}

}  // namespace

Expansions FindExpansions(const RuleIndex& rules, const Operator& op,
                          absl::Span<const TensorType> operands) {
  const auto sharding = InferSharding(op, operands);
  return sharding.ok() ? ExpansionsOf(rules, op, operands, *sharding) : Expansions();
}

Expansions ExpansionMemo::Find(const RuleIndex& rules, const Operator& op,
                               absl::Span<const TensorType> operands, const Sharding& sharding) {
  const std::optional<std::string> key = KeyOf(rules, op, operands, sharding);
  if (!key.has_value()) return ExpansionsOf(rules, op, operands, sharding);
  const auto [known, added] = known_.try_emplace(*key);
  if (added) known->second = ExpansionsOf(rules, op, operands, sharding);
  return known->second;
}

std::optional<std::string> ExpansionMemo::KeyOf(const RuleIndex& rules, const Operator& op,
                                                absl::Span<const TensorType> operands,
                                                const Sharding& sharding) {
  const auto [seen, added] = sees_.try_emplace(op.kind(), Sees::kDims);
  if (added) {
    // Rules exclude calls that round integers, which depends on attributes.
    if (MayRoundIntegers(op.kind())) seen->second = Sees::kAttributes;
    for (const Rule* rule : rules.ExpansionsOf(op.kind())) {
      const auto& attributes = rule->source.nodes[0].attributes;
      const bool opaque = std::all_of(attributes.begin(), attributes.end(), IsOpaque);
      const Sees sees = !AsksForDimOnly(*rule) ? Sees::kMore
                        : opaque               ? Sees::kDims
                                               : Sees::kAttributes;
      seen->second = std::max(seen->second, sees);
    }
  }
  if (seen->second == Sees::kMore) return std::nullopt;
  std::string key;
  const auto add = [&key](int64_t number) { key.append(absl::StrCat(number, " ")); };
  add(static_cast<int64_t>(op.kind()));
  if (seen->second == Sees::kAttributes) absl::StrAppend(&key, op.ToString(), " ");
  for (const TensorType& type : operands) {
    add(static_cast<int64_t>(type.dtype));
    add(type.rank());
  }
  constexpr int64_t kNoAxis = 0;  // axes are negative
  for (const SplittableDim& dim : SplittableDims(sharding, operands)) {
    if (TrialDegree(dim.size) == 1) continue;
    add(dim.dim);
    for (const auto& axis : dim.operand_axes) add(axis.value_or(kNoAxis));
    for (const auto& axis : dim.output_axes) add(axis.value_or(kNoAxis));
  }
  return key;
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
