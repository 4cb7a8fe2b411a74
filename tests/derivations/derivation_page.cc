#include "tests/derivations/derivation_page.h"

#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "pcg/support/status_macros.h"
#include "rules/matching/rewrite.h"

namespace isomer {
namespace {

// A tensor as an expression over tensors that `name` names (it gives "" for those to be written
// out).
std::string ExpressionText(const Graph& graph, TensorRef tensor,
                           const std::function<std::string(NodeId)>& name) {
  const Node& node = graph.node(tensor.node);
  if (const std::string known = name(tensor.node); !known.empty()) return known;
  const std::string operands = absl::StrJoin(
      node.inputs, ", ",
      [&](std::string* out, TensorRef input) { out->append(ExpressionText(graph, input, name)); });
  const std::string attributes = absl::StrJoin(
      node.op.attributes(), ", ", [](std::string* out, const isomer::Attribute& attribute) {
        absl::StrAppend(out, attribute.name, "=", AttributeText(attribute.value));
      });
  return absl::StrCat(node.op.name(), "(", operands, attributes.empty() ? "" : "; ", attributes,
                      ")", node.outputs.size() > 1 ? absl::StrCat(".", tensor.output) : "");
}

// A tensor of the graph in short: its name, or "matmul(..)".
std::string ShortName(const Graph& graph, TensorRef tensor) {
  const Node& node = graph.node(tensor.node);
  if (IsLeaf(node.op.kind())) return node.name;
  return absl::StrCat(node.op.name(), "(..)",
                      node.outputs.size() > 1 ? absl::StrCat(".", tensor.output) : "");
}

// One side of a rule at a step, its inputs written as the tensors of the graph that they are.
absl::StatusOr<std::string> SideText(const Graph& graph, const Pattern& side,
                                     const Binding& binding, const DerivationStep& step) {
  ISOMER_ASSIGN_OR_RETURN(const Graph calls, InstantiatePattern(side, binding));
  auto name = [&](NodeId id) {
    if (id.value >= static_cast<int>(step.inputs.size())) return std::string();
    return ShortName(graph, step.inputs[id.value]);
  };
  std::vector<std::string> outputs;
  for (const Graph::NamedOutput& output : calls.outputs()) {
    outputs.push_back(ExpressionText(calls, output.tensor, name));
  }
  const std::string text = absl::StrJoin(outputs, ", ");
  return outputs.size() == 1 ? text : absl::StrCat("{", text, "}");
}

}  // namespace

absl::StatusOr<std::string> StepText(const Graph& graph, const Rule& rule,
                                     const DerivationStep& step) {
  ISOMER_ASSIGN_OR_RETURN(const Binding binding, BindingOf(graph, rule, step));
  ISOMER_ASSIGN_OR_RETURN(const std::string from, SideText(graph, rule.source, binding, step));
  ISOMER_ASSIGN_OR_RETURN(const std::string to, SideText(graph, rule.target, binding, step));
  return absl::StrCat(from, "\n  -> ", to);
}

std::string RowText(const Derivation& derivation, const Chain& chain) {
  std::set<std::string> rules;
  int steps = 0;
  for (const std::vector<DerivationStep>& leg : chain) {
    for (const DerivationStep& step : leg) {
      rules.insert(step.rule);
      ++steps;
    }
  }
  return absl::StrCat("| ", derivation.title, " | ", steps, " | ", rules.size(), " |\n");
}

absl::StatusOr<std::string> SectionText(const RuleSet& rules, const Derivation& derivation,
                                        const Chain& chain) {
  std::string text = absl::StrCat("## ", derivation.title, "\n", derivation.prose, "\n");
  Graph graph = derivation.stages[0].graph;
  int number = 0;
  for (size_t s = 0; s < derivation.stages.size(); ++s) {
    const Stage& stage = derivation.stages[s];
    absl::StrAppend(&text, "**", stage.title, "**\n\n```\n", stage.text, "```\n\n");
    if (s == chain.size()) break;
    for (const DerivationStep& step : chain[s]) {
      const Rule* rule = rules.Find(step.rule);
      if (rule == nullptr) return absl::NotFoundError(absl::StrCat("no rule ", step.rule));
      ISOMER_ASSIGN_OR_RETURN(const std::string equation, StepText(graph, *rule, step));
      absl::StrAppend(&text, ++number, ". `", step.rule, "`\n   ```\n   ",
                      absl::StrReplaceAll(equation, {{"\n", "\n   "}}), "\n   ```\n");
      ISOMER_RETURN_IF_ERROR(ApplyStep(*rule, step, &graph));
    }
    if (!chain[s].empty()) text += "\n";
  }
  return text;
}

}  // namespace isomer
