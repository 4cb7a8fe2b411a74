#include "generator/inspect/drawing.h"

#include <set>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

class TreeWriter {
 public:
  explicit TreeWriter(const Pattern& pattern) : pattern_(pattern) {}

  std::string Write() {
    for (size_t o = 0; o < pattern_.outputs.size(); ++o) {
      absl::StrAppend(&text_, "y", o, "\n");
      Draw(pattern_.outputs[o], "", true);
    }
    return text_;
  }

 private:
  void Draw(PatternRef ref, const std::string& indent, bool last) {
    absl::StrAppend(&text_, indent, last ? "`- " : "|- ");
    if (ref.node < 0) {
      absl::StrAppend(&text_, "x", ref.index, "\n");
      return;
    }
    const PatternNode& node = pattern_.nodes[ref.node];
    absl::StrAppend(&text_, NodeText(node));
    if (node.kind == OpKind::kSplit) absl::StrAppend(&text_, " part ", ref.index);
    if (!drawn_.insert(ref.node).second) {
      absl::StrAppend(&text_, "  (node ", ref.node, ", above)\n");
      return;
    }
    absl::StrAppend(&text_, IsShared(ref.node) ? absl::StrCat("  (node ", ref.node, ")") : "",
                    "\n");
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Draw(node.inputs[i], absl::StrCat(indent, last ? "   " : "|  "), i + 1 == node.inputs.size());
    }
  }

  bool IsShared(int node) const {
    int uses = 0;
    for (const PatternNode& user : pattern_.nodes) {
      for (PatternRef ref : user.inputs) uses += ref.node == node;
    }
    for (PatternRef ref : pattern_.outputs) uses += ref.node == node;
    return uses > 1;
  }

  const Pattern& pattern_;
  std::set<int> drawn_;
  std::string text_;
};

// Rule inputs that a side uses.
std::set<int> InputsOf(const Pattern& pattern) {
  std::set<int> inputs;
  auto use = [&](PatternRef ref) {
    if (ref.node < 0) inputs.insert(ref.index);
  };
  for (const PatternNode& node : pattern.nodes) {
    for (PatternRef ref : node.inputs) use(ref);
  }
  for (PatternRef ref : pattern.outputs) use(ref);
  return inputs;
}

void AppendSide(const Pattern& pattern, const std::string& side, std::string* dot) {
  auto name = [&](PatternRef ref) {
    return ref.node < 0 ? absl::StrCat(side, "_x", ref.index) : absl::StrCat(side, "_", ref.node);
  };
  auto edge = [&](PatternRef ref, const std::string& to) {
    const bool part = ref.node >= 0 && pattern.nodes[ref.node].kind == OpKind::kSplit;
    absl::StrAppend(dot, "    ", name(ref), " -> ", to,
                    part ? absl::StrCat(" [label=\"", ref.index, "\"]") : "", ";\n");
  };
  absl::StrAppend(dot, "  subgraph cluster_", side, " {\n    label=\"", side, "\";\n");
  for (int input : InputsOf(pattern)) {
    absl::StrAppend(dot, "    ", side, "_x", input, " [label=\"x", input,
                    "\", shape=ellipse, style=filled, fillcolor=\"#e4f2e1\"];\n");
  }
  for (size_t n = 0; n < pattern.nodes.size(); ++n) {
    const PatternNode& node = pattern.nodes[n];
    absl::StrAppend(dot, "    ", side, "_", n, " [label=\"", absl::CEscape(NodeText(node)), "\"",
                    IsParallel(node.kind) ? ", style=filled, fillcolor=\"#dbe9f6\"" : "", "];\n");
    for (PatternRef ref : node.inputs) edge(ref, absl::StrCat(side, "_", n));
  }
  for (size_t o = 0; o < pattern.outputs.size(); ++o) {
    absl::StrAppend(dot, "    ", side, "_y", o, " [label=\"y", o, "\", shape=ellipse];\n");
    edge(pattern.outputs[o], absl::StrCat(side, "_y", o));
  }
  absl::StrAppend(dot, "  }\n");
}

}  // namespace

std::string NodeText(const PatternNode& node) {
  // The text of a rule of this node alone has the attributes as they are shown everywhere:
  // "scale(; factor=f) -> {}".
  Rule alone;
  alone.source.nodes = {{node.kind, node.attributes, {}}};
  alone.source.outputs = {PatternRef::Node(0)};
  const std::string text = alone.ToString();
  const size_t attributes = text.find("(; ");
  if (attributes == text.npos) return std::string(OpName(node.kind));
  const size_t end = text.find(" -> ");
  const size_t close = text.rfind(')', end);
  return absl::StrCat(OpName(node.kind), "(", text.substr(attributes + 3, close - attributes - 3),
                      ")");
}

std::string RefName(const Pattern& pattern, PatternRef ref) {
  if (ref.node < 0) return absl::StrCat("x", ref.index);
  const bool part = pattern.nodes[ref.node].kind == OpKind::kSplit;
  return part || ref.index > 0 ? absl::StrCat(ref.node, ".", ref.index) : absl::StrCat(ref.node);
}

std::string NodeLines(const Pattern& pattern) {
  std::string text;
  for (size_t n = 0; n < pattern.nodes.size(); ++n) {
    const PatternNode& node = pattern.nodes[n];
    std::string call = NodeText(node);
    const std::string operands = absl::StrJoin(
        node.inputs, ", ",
        [&](std::string* out, PatternRef ref) { out->append(RefName(pattern, ref)); });
    const size_t attributes = call.find('(');
    call = attributes == call.npos ? absl::StrCat(call, "(", operands, ")")
                                   : absl::StrCat(call.substr(0, attributes), "(", operands, "; ",
                                                  call.substr(attributes + 1));
    absl::StrAppend(&text, n, " = ", call, "\n");
  }
  for (size_t o = 0; o < pattern.outputs.size(); ++o) {
    absl::StrAppend(&text, "y", o, " = ", RefName(pattern, pattern.outputs[o]), "\n");
  }
  return text;
}

std::string TreeText(const Pattern& pattern) { return TreeWriter(pattern).Write(); }

std::string RuleToDot(const Rule& rule) {
  std::string dot = absl::StrCat(
      "digraph \"", rule.id, "\" {\n  node [shape=box, fontname=\"Helvetica\", fontsize=10];\n");
  AppendSide(rule.source, "source", &dot);
  AppendSide(rule.target, "target", &dot);
  return dot + "}\n";
}

}  // namespace isomer
