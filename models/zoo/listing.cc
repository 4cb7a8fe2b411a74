#include "models/zoo/listing.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/zoo/zoo.h"
#include "pcg/profile/model_statistics.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr double kGiga = 1e9;

constexpr char kHeadOfPage[] = R"(# Models

<!-- Written by `isomer-optimize --list_models --out=docs/models.md`; a test compares. -->

The networks of the zoo, `zoo:NAME` or `zoo:NAME?key=value&key=value`, at their default sizes, which
are those of the source. `isomer-optimize --list_models` lists them with their parameters;
`isomer-optimize zoo:NAME --describe` counts any configuration. Building one takes no memory for
weights.

- *operators*: nodes of the graph that are no inputs, weights or constants; without the loss.
- *parameters*: elements of trained weights. *published* is what the source counts, or torchvision
  for its networks, for the defaults or for the settings given; a test holds us to it.
- *batch*: that of one node of four GPUs, four times what the paper gives for one, or what the paper
  has; of GShard's and later language models 16 sequences.
- *GFLOPs*: of a forward pass of that batch, all operators; twice the multiply-accumulates, and the
  element functions.

| model | operators | parameters | published | batch | GFLOPs | source | differences |
|---|---|---|---|---|---|---|---|
)";

// "25,028,904".
std::string Grouped(int64_t value) {
  std::string digits = absl::StrCat(value);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(at, 1, ',');
  return digits;
}

std::string ParametersText(const ZooModel& model) {
  return absl::StrJoin(model.parameters, " ", [](std::string* out, const ZooParameter& parameter) {
    absl::StrAppend(out, parameter.name, "=", parameter.value);
  });
}

absl::StatusOr<ModelStatistics> StatisticsOfDefaults(const ZooModel& model) {
  ISOMER_ASSIGN_OR_RETURN(const Model built, BuildZooModel(model.name));
  return StatisticsOf(built.graph);
}

int64_t DefaultBatch(const ZooModel& model) {
  const auto batch = std::find_if(model.parameters.begin(), model.parameters.end(),
                                  [](const ZooParameter& p) { return p.name == "batch"; });
  return batch == model.parameters.end() ? 0 : batch->value;
}

std::string PublishedText(const ZooModel& model) {
  if (model.published_parameters == 0) return "";
  return absl::StrCat(
      Grouped(model.published_parameters),
      model.published_for.empty() ? "" : absl::StrCat(" with `", model.published_for, "`"));
}

}  // namespace

absl::StatusOr<std::string> ModelListText() {
  std::string text = absl::StrFormat("%-14s %9s %17s %12s  %s\n", "model", "operators",
                                     "parameters", "GFLOPs", "description");
  for (const ZooModel& model : ListModels()) {
    ISOMER_ASSIGN_OR_RETURN(const ModelStatistics statistics, StatisticsOfDefaults(model));
    absl::StrAppendFormat(&text, "%-14s %9d %17s %12.4g  %s\n    %s\n", model.name,
                          statistics.operators, Grouped(statistics.parameters),
                          statistics.forward_flops / kGiga, model.description,
                          ParametersText(model));
  }
  return text;
}

absl::StatusOr<std::string> ModelListMarkdown() {
  std::string page = kHeadOfPage;
  for (const ZooModel& model : ListModels()) {
    ISOMER_ASSIGN_OR_RETURN(const ModelStatistics statistics, StatisticsOfDefaults(model));
    absl::StrAppendFormat(&page, "| `%s` | %d | %s | %s | %d | %.4g | %s | %s |\n", model.name,
                          statistics.operators, Grouped(statistics.parameters),
                          PublishedText(model), DefaultBatch(model),
                          statistics.forward_flops / kGiga, model.source, model.notes);
  }
  return page;
}

std::string DescribeModel(const Model& model) {
  const Graph& graph = model.graph;
  const ModelStatistics statistics = StatisticsOf(graph);
  std::string text =
      absl::StrFormat("%s: %s operators, %s parameters, %.6g GFLOPs forward (%.6g in products)\n",
                      model.name, Grouped(statistics.operators), Grouped(statistics.parameters),
                      statistics.forward_flops / kGiga, statistics.product_flops / kGiga);
  std::map<std::string, int64_t> kinds;
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    if (node.op.kind() == OpKind::kInput) {
      absl::StrAppend(&text, "  input ", node.name, " ", node.outputs[0].ToString(), "\n");
    }
    if (!IsLeaf(node.op.kind())) ++kinds[std::string(node.op.name())];
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    absl::StrAppend(&text, "  output ", output.name, " ", graph.type(output.tensor).ToString(),
                    "\n");
  }
  absl::StrAppend(&text, "  operators: ",
                  absl::StrJoin(kinds, ", ",
                                [](std::string* out, const auto& kind) {
                                  absl::StrAppend(out, kind.first, " ", kind.second);
                                }),
                  "\n");
  return text;
}

}  // namespace isomer
