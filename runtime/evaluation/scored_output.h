#ifndef ISOMER_RUNTIME_EVALUATION_SCORED_OUTPUT_H_
#define ISOMER_RUNTIME_EVALUATION_SCORED_OUTPUT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "pcg/ir/graph.h"

namespace isomer {

enum class ScoreKind {
  kClasses,  // [.., classes], the label is a class
  kLogits,   // one for each label, which is 0, 1 or a probability: above 0 means 1
  kValues,   // one for each label, which is a number
};

// An output of a model and the input that says what it should be, row-major: the i-th label is for
// the i-th score, or line of scores.
struct ScoredOutput {
  std::string output = "", labels = "";
  ScoreKind kind = ScoreKind::kValues;
  int64_t classes = 1;       // of kClasses
  int64_t labels_count = 0;  // of a batch
  int64_t batch = 1;         // rows, dim 0 of the labels' file
  bool IsBinary() const { return kind != ScoreKind::kClasses || classes == 2; }
};

// What `loss` compares, where that is an output and an input, seen through reshapes and changes of
// precision. Of a model with a loss of its own: the first output that has a line of as many scores
// as the one input of labels has classes, or else a number for each. Nothing: there is none, or
// its scores are too many to come to the host.
std::optional<ScoredOutput> FindScoredOutput(const Graph& graph, absl::string_view loss);

// Whether the loss is a mean over rows that do not know of each other: a batch's loss then is the
// mean of its rows' losses.
bool LossIsMeanOverRows(const Graph& graph, absl::string_view loss);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EVALUATION_SCORED_OUTPUT_H_
