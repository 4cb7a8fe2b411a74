// The text form of graphs, and DOT.
//
//   %0 = input "x" : f32[8,16]
//   %1 = weight "w" : f32[16,4]
//   %2 = matmul(%0, %1) : f32[8,4]  # layer0/q
//   %3 = split(%2) {axis=1, sizes=[2,2]} : f32[8,2], f32[8,2]
//   output "y" = %3.1
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pcg/ir/graph.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

std::string RefText(const Graph& graph, TensorRef ref) {
  if (graph.node(ref.node).outputs.size() == 1) return absl::StrCat("%", ref.node.value);
  return absl::StrCat("%", ref.node.value, ".", ref.output);
}

std::string TypesText(const std::vector<TensorType>& types) {
  return absl::StrJoin(
      types, ", ", [](std::string* out, const TensorType& type) { out->append(type.ToString()); });
}

std::string Quoted(const std::string& name) {
  return absl::StrCat("\"", absl::CEscape(name), "\"");
}

// Reads one line from left to right.
class LineParser {
 public:
  explicit LineParser(absl::string_view text) : rest_(text) {}

  bool Consume(absl::string_view token) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return absl::ConsumePrefix(&rest_, token);
  }
  absl::string_view Word() {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    size_t n = 0;
    while (n < rest_.size() &&
           (absl::ascii_isalnum(rest_[n]) || absl::StrContains("_.+-", rest_[n])))
      ++n;
    absl::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }
  absl::string_view Until(absl::string_view stop) {
    size_t n = rest_.find(stop);
    if (n == absl::string_view::npos) n = rest_.size();
    absl::string_view text = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return absl::StripAsciiWhitespace(text);
  }
  absl::StatusOr<std::string> QuotedString() {
    if (!Consume("\"")) return absl::InvalidArgumentError("a name in quotes is expected");
    size_t n = 0;
    while (n < rest_.size() && rest_[n] != '"') n += rest_[n] == '\\' ? 2 : 1;
    std::string name;
    if (n >= rest_.size() || !absl::CUnescape(rest_.substr(0, n), &name)) {
      return absl::InvalidArgumentError("the quoted name does not end");
    }
    rest_.remove_prefix(n + 1);
    return name;
  }
  absl::StatusOr<TensorRef> Ref() {
    if (!Consume("%")) return absl::InvalidArgumentError("a tensor like %3 or %3.1 is expected");
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(Word(), absl::MaxSplits('.', 1));
    TensorRef ref;
    if (!absl::SimpleAtoi(parts.first, &ref.node.value) ||
        (!parts.second.empty() && !absl::SimpleAtoi(parts.second, &ref.output))) {
      return absl::InvalidArgumentError("a tensor like %3 or %3.1 is expected");
    }
    return ref;
  }
  absl::StatusOr<AttributeValue> Attribute() {
    const absl::Status error = absl::InvalidArgumentError(
        "an attribute value is an integer, a number or a list of integers");
    if (Consume("[")) {
      std::vector<int64_t> list;
      for (absl::string_view item : absl::StrSplit(Until("]"), ',', absl::SkipWhitespace())) {
        int64_t value;
        if (!absl::SimpleAtoi(item, &value)) return error;
        list.push_back(value);
      }
      if (!Consume("]")) return error;
      return AttributeValue(list);
    }
    const absl::string_view word = Word();
    int64_t integer;
    double number;
    if (absl::SimpleAtoi(word, &integer)) return AttributeValue(integer);
    if (absl::SimpleAtod(word, &number)) return AttributeValue(number);
    return error;
  }
  absl::string_view rest() const { return rest_; }

 private:
  absl::string_view rest_;
};

absl::Status ParseAttributes(LineParser& line, absl::string_view end, Operator* op) {
  while (!line.Consume(end)) {
    const std::string name(line.Word());
    if (name.empty() || !line.Consume("=")) {
      return absl::InvalidArgumentError("name=value is expected");
    }
    ISOMER_ASSIGN_OR_RETURN(AttributeValue value, line.Attribute());
    op->Set(name, std::move(value));
    line.Consume(",");
  }
  return absl::OkStatus();
}

absl::Status ParseNode(LineParser& line, int expected_id, std::vector<Node>* nodes) {
  ISOMER_ASSIGN_OR_RETURN(const TensorRef id, line.Ref());
  if (id.node.value != expected_id || id.output != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes are numbered in order; %", expected_id, " is expected"));
  }
  if (!line.Consume("=")) return absl::InvalidArgumentError("'=' is expected");
  Node node;
  ISOMER_ASSIGN_OR_RETURN(const OpKind kind, ParseOpKind(line.Word()));
  node.op = Operator(kind);
  if (IsLeaf(kind)) {
    ISOMER_ASSIGN_OR_RETURN(node.name, line.QuotedString());
  } else if (!line.Consume("(")) {
    return absl::InvalidArgumentError("'(' is expected");
  } else {
    while (!line.Consume(")")) {
      ISOMER_ASSIGN_OR_RETURN(const TensorRef input, line.Ref());
      node.inputs.push_back(input);
      line.Consume(",");
    }
    if (line.Consume("{")) ISOMER_RETURN_IF_ERROR(ParseAttributes(line, "}", &node.op));
  }
  if (!line.Consume(":")) return absl::InvalidArgumentError("': type' is expected");
  // A type ends at a comma outside of brackets, or at the comment.
  while (true) {
    std::string text(line.Until("]"));
    if (line.Consume("]")) text += "]";
    while (!line.rest().empty() && !absl::StartsWith(line.rest(), ",") &&
           !absl::StartsWith(absl::StripLeadingAsciiWhitespace(line.rest()), "#")) {
      const absl::string_view word = line.Word();
      if (word.empty()) break;
      absl::StrAppend(&text, " ", word);
    }
    ISOMER_ASSIGN_OR_RETURN(TensorType type, ParseTensorType(text));
    node.outputs.push_back(std::move(type));
    if (!line.Consume(",")) break;
  }
  if (line.Consume("#") && !IsLeaf(kind))
    node.name = std::string(absl::StripAsciiWhitespace(line.rest()));
  nodes->push_back(std::move(node));
  return absl::OkStatus();
}

}  // namespace

std::string Graph::ToString() const {
  std::string text;
  for (int id = 0; id < num_nodes(); ++id) {
    const Node& n = nodes_[id];
    absl::StrAppend(&text, "%", id, " = ", n.op.name());
    if (IsLeaf(n.op.kind())) {
      absl::StrAppend(&text, " ", Quoted(n.name));
    } else {
      absl::StrAppend(&text, "(",
                      absl::StrJoin(n.inputs, ", ",
                                    [this](std::string* out, TensorRef ref) {
                                      out->append(RefText(*this, ref));
                                    }),
                      ")");
      if (!n.op.attributes().empty()) {
        absl::StrAppend(&text, " {",
                        absl::StrJoin(n.op.attributes(), ", ",
                                      [](std::string* out, const isomer::Attribute& a) {
                                        absl::StrAppend(out, a.name, "=", AttributeText(a.value));
                                      }),
                        "}");
      }
    }
    absl::StrAppend(&text, " : ", TypesText(n.outputs));
    if (!n.name.empty() && !IsLeaf(n.op.kind())) {
      absl::StrAppend(&text, "  # ", absl::StrReplaceAll(n.name, {{"\n", " "}}));
    }
    absl::StrAppend(&text, "\n");
  }
  for (const NamedOutput& output : outputs_) {
    absl::StrAppend(&text, "output ", Quoted(output.name), " = ", RefText(*this, output.tensor),
                    "\n");
  }
  return text;
}

absl::StatusOr<Operator> ParseOperator(absl::string_view text) {
  LineParser line(text);
  ISOMER_ASSIGN_OR_RETURN(const OpKind kind, ParseOpKind(line.Word()));
  Operator op(kind);
  if (line.Consume("(")) ISOMER_RETURN_IF_ERROR(ParseAttributes(line, ")", &op));
  ISOMER_RETURN_IF_ERROR(NormalizeAttributes(&op));
  if (!absl::StripAsciiWhitespace(line.rest()).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", line.rest(), "' after the operator"));
  }
  return op;
}

absl::StatusOr<Graph> ParseGraph(absl::string_view text) {
  std::vector<Node> nodes;
  std::vector<Graph::NamedOutput> outputs;
  int number = 0;
  for (absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view stripped = absl::StripAsciiWhitespace(raw);
    if (stripped.empty() || stripped[0] == '#') continue;
    LineParser line(stripped);
    absl::Status status;
    if (line.Consume("output")) {
      absl::StatusOr<std::string> name = line.QuotedString();
      status = name.status();
      if (status.ok() && !line.Consume("=")) status = absl::InvalidArgumentError("'=' is expected");
      if (status.ok()) {
        absl::StatusOr<TensorRef> ref = line.Ref();
        status = ref.status();
        if (status.ok()) outputs.push_back({*std::move(name), *ref});
      }
    } else {
      status = ParseNode(line, static_cast<int>(nodes.size()), &nodes);
    }
    if (!status.ok())
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
  }
  if (nodes.empty()) return absl::InvalidArgumentError("no nodes: not a graph");
  return GraphFromParts(std::move(nodes), std::move(outputs));
}

std::string Graph::ToDot() const {
  std::string dot = "digraph pcg {\n  node [shape=box, fontname=\"Helvetica\", fontsize=10];\n";
  for (NodeId id : TopologicalOrder()) {
    const Node& n = node(id);
    const char* style = IsParallel(n.op.kind())         ? ", style=filled, fillcolor=\"#dbe9f6\""
                        : IsStored(n.op.kind())         ? ", style=filled, fillcolor=\"#f3ead8\""
                        : n.op.kind() == OpKind::kInput ? ", style=filled, fillcolor=\"#e4f2e1\""
                                                        : "";
    absl::StrAppend(&dot, "  n", id.value, " [label=\"", absl::CEscape(n.op.ToString()),
                    n.name.empty() ? "" : absl::StrCat("\\n", absl::CEscape(n.name)), "\\n",
                    TypesText(n.outputs), "\"", style, "];\n");
    for (TensorRef input : n.inputs)
      absl::StrAppend(&dot, "  n", input.node.value, " -> n", id.value, ";\n");
  }
  for (const NamedOutput& output : outputs_) {
    absl::StrAppend(&dot, "  \"out_", absl::CEscape(output.name), "\" [label=\"",
                    absl::CEscape(output.name), "\", shape=ellipse];\n  n",
                    output.tensor.node.value, " -> \"out_", absl::CEscape(output.name), "\";\n");
  }
  return dot + "}\n";
}

}  // namespace isomer
