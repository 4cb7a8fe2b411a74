#include "runtime/evaluation/scored_output.h"

#include <vector>

#include "runtime/data/input_binding.h"

namespace isomer {
namespace {

// Scores come to the host as doubles.
constexpr int64_t kMostScores = int64_t{1} << 24;

// The same elements, in the same order, under other dims or in another precision.
TensorRef SeenThrough(const Graph& graph, TensorRef tensor) {
  while (true) {
    const Node& node = graph.node(tensor.node);
    if (node.op.kind() != OpKind::kReshape && node.op.kind() != OpKind::kCast) return tensor;
    tensor = node.inputs[0];
  }
}

const Node* LossCall(const Graph& graph, absl::string_view loss) {
  for (const Graph::NamedOutput& output : graph.outputs()) {
    if (output.name != loss) continue;
    return &graph.node(SeenThrough(graph, output.tensor).node);
  }
  return nullptr;
}

std::optional<std::string> OutputOf(const Graph& graph, TensorRef tensor) {
  const TensorRef seen = SeenThrough(graph, tensor);
  for (const Graph::NamedOutput& output : graph.outputs()) {
    if (SeenThrough(graph, output.tensor) == seen) return output.name;
  }
  return std::nullopt;
}

bool IsKnownLoss(OpKind kind) {
  return kind == OpKind::kCrossEntropy || kind == OpKind::kBinaryCrossEntropy ||
         kind == OpKind::kMeanSquaredError;
}

// Of a model with a loss of its own.
std::optional<ScoredOutput> BySizes(const Graph& graph, absl::string_view loss) {
  const std::vector<ModelInput> inputs = InputsForData(graph);
  const ModelInput* labels = nullptr;
  for (const ModelInput& input : inputs) {
    if (!input.is_label) continue;
    if (labels != nullptr) return std::nullopt;
    labels = &input;
  }
  if (labels == nullptr) return std::nullopt;
  ScoredOutput scored = {.labels = labels->name, .labels_count = labels->type.NumElements()};
  for (const Graph::NamedOutput& output : graph.outputs()) {
    const TensorType& type = graph.type(output.tensor);
    if (output.name == loss || !IsFloat(type.dtype) || type.rank() < 1) continue;
    scored.output = output.name;
    if (labels->is_class) {
      scored.kind = ScoreKind::kClasses;
      scored.classes = type.dims.back().size;
      const bool fits = type.rank() >= 2 &&
                        type.NumElements() == scored.classes * scored.labels_count &&
                        static_cast<double>(scored.classes) == labels->range.most + 1;
      if (fits) return scored;
    } else if (type.NumElements() == scored.labels_count) {
      return scored;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<ScoredOutput> FindScoredOutput(const Graph& graph, absl::string_view loss) {
  const Node* const call = LossCall(graph, loss);
  std::optional<ScoredOutput> scored;
  if (call != nullptr && IsKnownLoss(call->op.kind())) {
    const std::optional<std::string> output = OutputOf(graph, call->inputs[0]);
    const Node& labels = graph.node(SeenThrough(graph, call->inputs[1]).node);
    if (!output.has_value() || labels.op.kind() != OpKind::kInput) return std::nullopt;
    scored = ScoredOutput{
        .output = *output, .labels = labels.name, .labels_count = labels.outputs[0].NumElements()};
    if (call->op.kind() == OpKind::kCrossEntropy) {
      scored->kind = ScoreKind::kClasses;
      scored->classes = graph.type(call->inputs[0]).dims.back().size;
    } else if (call->op.kind() == OpKind::kBinaryCrossEntropy) {
      scored->kind = ScoreKind::kLogits;
    }
  } else {
    scored = BySizes(graph, loss);
  }
  if (!scored.has_value()) return std::nullopt;
  scored->batch = RowsOfBatch(graph).value_or(1);
  const bool fits = scored->labels_count * scored->classes <= kMostScores &&
                    scored->labels_count % scored->batch == 0;
  return fits ? scored : std::nullopt;
}

bool LossIsMeanOverRows(const Graph& graph, absl::string_view loss) {
  const Node* const call = LossCall(graph, loss);
  return call != nullptr && IsKnownLoss(call->op.kind());
}

}  // namespace isomer
