#include "generator/inspect/example.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "generator/assignments/sampler.h"
#include "generator/inspect/instances.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int64_t kMostShownPieces = 8, kMostShownElements = 32;

int64_t Elements(const Binding& binding) {
  int64_t elements = 0;
  for (const TensorType& type : binding.inputs) elements += type.NumElements() * type.partials;
  return elements;
}

// The smallest instance; of equally small ones the first.
std::optional<Binding> SmallInstance(const Rule& rule) {
  TypeOracle oracle;
  for (const int64_t size : {2, 4, 8}) {
    const std::vector<Binding> instances = InstancesAtDegreeTwo(rule, &oracle, size);
    if (instances.empty()) continue;
    return *std::min_element(instances.begin(), instances.end(), [](const auto& a, const auto& b) {
      return Elements(a) < Elements(b);
    });
  }
  return std::nullopt;
}

// Small integers; `positive`: for what is undefined elsewhere, such as log.
Value<double> SmallValue(const TensorType& type, bool positive, Random* random) {
  Value<double> value{type, {}};
  for (int64_t part = 0; part < type.partials * type.micro_batches; ++part) {
    Array<double> array(type.Sizes());
    for (double& element : array.data) {
      if (!IsFloat(type.dtype)) {
        element = static_cast<double>(Below(random, 2));
      } else {
        element = static_cast<double>(1 + Below(random, 3));
        if (!positive && Chance(random, 40)) element = -element;
      }
    }
    value.parts.push_back(std::move(array));
  }
  return value;
}

struct SideRun {
  Graph graph;
  std::vector<Value<double>> outputs;
};

absl::StatusOr<SideRun> RunSide(const Pattern& pattern, const Binding& binding,
                                const std::vector<Value<double>>& inputs) {
  SideRun run;
  ISOMER_ASSIGN_OR_RETURN(run.graph, InstantiatePattern(pattern, binding));
  std::map<NodeId, Value<double>> leaves;
  for (size_t i = 0; i < inputs.size(); ++i) leaves[NodeId{static_cast<int32_t>(i)}] = inputs[i];
  ISOMER_ASSIGN_OR_RETURN(const Values<double> values, EvaluateGraph<double>(run.graph, leaves));
  for (const Graph::NamedOutput& output : run.graph.outputs()) {
    run.outputs.push_back(values[output.tensor.node.value][output.tensor.output]);
  }
  return run;
}

bool IsFinite(const SideRun& run) {
  for (const Value<double>& value : run.outputs) {
    for (const Array<double>& part : value.parts) {
      if (!std::all_of(part.data.begin(), part.data.end(),
                       [](double x) { return std::isfinite(x); }))
        return false;
    }
  }
  return true;
}

// Rows of the piece of `array` that begins at `origin`: the last dim along a line.
std::vector<std::string> Rows(const Array<double>& array, const std::vector<int64_t>& origin,
                              const std::vector<int64_t>& shape) {
  std::vector<std::string> rows;
  std::vector<int64_t> at(shape.size(), 0);
  int64_t elements = 1;
  for (int64_t size : shape) elements *= size;
  std::string row;
  for (int64_t e = 0; e < std::min(elements, kMostShownElements); ++e) {
    int64_t offset = 0;
    for (size_t i = 0; i < shape.size(); ++i) offset = offset * array.shape[i] + origin[i] + at[i];
    absl::StrAppendFormat(&row, " %8.4g", array.data[offset] == 0 ? 0.0 : array.data[offset]);
    size_t i = shape.size();
    while (i > 0 && ++at[i - 1] == shape[i - 1]) at[--i] = 0;
    if (i < shape.size() || shape.empty()) rows.push_back(std::move(row)), row.clear();
  }
  if (elements > kMostShownElements) rows.push_back(row + "  ..");
  return rows;
}

// One shard: its title, and its rows. Copies are equal and shown once.
struct Piece {
  std::string title;
  std::vector<std::string> rows;
};

std::vector<Piece> PiecesOf(const Value<double>& value) {
  std::vector<Piece> pieces;
  const TensorType& type = value.type;
  const std::vector<int64_t> shape = type.LocalShape();
  for (size_t part = 0; part < value.parts.size(); ++part) {
    std::vector<int64_t> piece(shape.size(), 0);
    while (true) {
      std::vector<int64_t> origin;
      std::vector<std::string> ranges;
      for (size_t i = 0; i < shape.size(); ++i) {
        origin.push_back(piece[i] * shape[i]);
        ranges.push_back(absl::StrCat(origin[i], ":", origin[i] + shape[i]));
      }
      std::string title = absl::StrCat("[", absl::StrJoin(ranges, ", "), "]");
      if (type.micro_batches > 1) {
        absl::StrAppend(&title, " micro-batch ", part / type.partials);
      }
      if (type.partials > 1) absl::StrAppend(&title, " partial ", part % type.partials);
      if (type.copies > 1) absl::StrAppend(&title, " x ", type.copies, " copies");
      pieces.push_back({std::move(title), Rows(value.parts[part], origin, shape)});
      size_t i = shape.size();
      while (i > 0 && ++piece[i - 1] == type.dims[i - 1].degree) piece[--i] = 0;
      if (i == 0) break;
    }
  }
  return pieces;
}

void AppendInput(const Value<double>& value, int index, std::string* text) {
  absl::StrAppend(text, "x", index, " : ", value.type.ToString(), "\n");
  const std::vector<Piece> pieces = PiecesOf(value);
  for (size_t p = 0; p < pieces.size(); ++p) {
    if (p == kMostShownPieces) {
      absl::StrAppend(text, "  .. ", pieces.size() - p, " more pieces\n");
      break;
    }
    absl::StrAppend(text, "  ", pieces[p].title, "\n");
    for (const std::string& row : pieces[p].rows) absl::StrAppend(text, "    ", row, "\n");
  }
}

// The pieces of both sides beside each other: their types are equal, so their pieces are.
void AppendOutputs(const Value<double>& source, const Value<double>& target, size_t index,
                   std::string* text) {
  absl::StrAppend(text, "y", index, " : ", source.type.ToString(), "\n");
  const std::vector<Piece> left = PiecesOf(source), right = PiecesOf(target);
  for (size_t p = 0; p < std::min(left.size(), right.size()); ++p) {
    if (p == kMostShownPieces) {
      absl::StrAppend(text, "  .. ", left.size() - p, " more pieces\n");
      break;
    }
    size_t width = 12;
    for (const std::string& row : left[p].rows) width = std::max(width, row.size());
    absl::StrAppendFormat(text, "  %s\n    %-*s | %s\n", left[p].title, static_cast<int>(width),
                          "source", "target");
    for (size_t r = 0; r < std::min(left[p].rows.size(), right[p].rows.size()); ++r) {
      absl::StrAppendFormat(text, "    %-*s | %s\n", static_cast<int>(width), left[p].rows[r],
                            right[p].rows[r]);
    }
  }
}

// The largest difference of what both sides mean: partials added up.
double LargestDifference(const SideRun& source, const SideRun& target) {
  double largest = 0;
  for (size_t o = 0; o < source.outputs.size(); ++o) {
    const auto a = Meaning(source.outputs[o]), b = Meaning(target.outputs[o]);
    for (size_t m = 0; m < a.size(); ++m) {
      for (size_t i = 0; i < a[m].data.size(); ++i) {
        largest = std::max(largest, std::abs(a[m].data[i] - b[m].data[i]));
      }
    }
  }
  return largest;
}

void AppendGraph(const char* side, const Graph& graph, std::string* text) {
  absl::StrAppend(text, side, "\n");
  for (absl::string_view line : absl::StrSplit(graph.ToString(), '\n', absl::SkipEmpty())) {
    absl::StrAppend(text, "  ", line, "\n");
  }
}

}  // namespace

absl::StatusOr<std::string> ExampleText(const Rule& rule) {
  const std::optional<Binding> binding = SmallInstance(rule);
  if (!binding.has_value()) return absl::NotFoundError("no small assignment was found");
  SideRun source, target;
  std::vector<Value<double>> inputs;
  for (const bool positive : {false, true}) {
    Random random(rule.Digest());
    inputs.clear();
    for (const TensorType& type : binding->inputs) {
      inputs.push_back(SmallValue(type, positive, &random));
    }
    ISOMER_ASSIGN_OR_RETURN(source, RunSide(rule.source, *binding, inputs));
    ISOMER_ASSIGN_OR_RETURN(target, RunSide(rule.target, *binding, inputs));
    if (IsFinite(source)) break;
  }
  std::vector<std::string> values;
  for (const auto& [name, value] : binding->variables) {
    values.push_back(absl::StrCat(name, " = ", value));
  }
  for (const auto& [name, value] : binding->numbers) {
    values.push_back(absl::StrCat(name, " = ", value));
  }
  for (const auto& [name, value] : binding->attributes) {
    values.push_back(absl::StrCat(name, " = ", AttributeText(value)));
  }
  std::string text;
  if (!values.empty()) absl::StrAppend(&text, absl::StrJoin(values, ", "), "\n");
  AppendGraph("source", source.graph, &text);
  AppendGraph("target", target.graph, &text);
  for (size_t i = 0; i < inputs.size(); ++i) AppendInput(inputs[i], static_cast<int>(i), &text);
  for (size_t o = 0; o < source.outputs.size(); ++o) {
    AppendOutputs(source.outputs[o], target.outputs[o], o, &text);
  }
  absl::StrAppendFormat(&text, "largest difference of the values: %.3g\n",
                        LargestDifference(source, target));
  return text;
}

}  // namespace isomer
