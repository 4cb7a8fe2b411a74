// Mixtures of experts: layers of which every token uses a few.
#ifndef ISOMER_MODELS_ZOO_BLOCKS_EXPERT_BLOCKS_H_
#define ISOMER_MODELS_ZOO_BLOCKS_EXPERT_BLOCKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/zoo/blocks/model_builder.h"

namespace isomer {

struct ExpertSizes {
  int64_t experts;
  int64_t intermediate;
  // Tokens of a group that an expert takes, in percent of 2 * tokens / experts, which is what it
  // gets if all are used evenly.
  int64_t capacity_percent = 100;
  bool random = true;  // the second expert
  bool gated = false;  // down(swish(x gate) * (x up)) instead of down(relu(x up))
};

// The layers of one network, with their common seed and auxiliary loss (Lepikhin et al., 2021,
// algorithms 1 and 2). A group of tokens is a sequence. Experts are a dim of their weights and of
// batched products, so that they can be partitioned; their layers have no biases.
class ExpertLayers {
 public:
  ExpertLayers(ModelBuilder& b, const ExpertSizes& sizes) : b_(b), sizes_(sizes) {}

  // x [batch, sequence, hidden] to the same.
  TensorRef Layer(TensorRef x, const std::string& name);
  // The same, but no expert has a capacity: each row goes through the two matrices that it looks
  // up, and none is dropped. There is no auxiliary loss. Gated layers only.
  TensorRef DroplessLayer(TensorRef x, const std::string& name);

  // With `weight` > 0, adds the output `loss`: the mean cross-entropy of `logits` [batch *
  // sequence, vocabulary] and a new input `labels` [batch, sequence], plus `weight` times the mean
  // over the groups of the auxiliary loss of all layers.
  void AddLoss(TensorRef logits, int64_t batch, double weight);

 private:
  // [experts, rows, hidden] to the same.
  TensorRef Experts(TensorRef x, const std::string& name);
  TensorRef ExpertProduct(TensorRef x, int64_t outputs, const std::string& name);

  ModelBuilder& b_;
  const ExpertSizes sizes_;
  TensorRef seed_;
  std::vector<TensorRef> auxiliary_;  // [batch] of each layer
};

struct RoutedSizes {
  int64_t experts;
  int64_t chosen;  // by each token
  int64_t intermediate;
  // Tokens of a group that an expert takes, in percent of chosen * tokens / experts.
  int64_t capacity_percent = 100;
  enum class Scores { kSoftmax, kSigmoid };
  Scores scores = Scores::kSoftmax;
  bool biased_choice = false;  // a weight that is added to scores to choose, and gets no gradient
  // Experts are in `groups` of consecutive ones, of which a token chooses some, and as many experts
  // in each of them. 1: they are not.
  int64_t groups = 1, chosen_groups = 1;
  double scale = 1;     // of the sum of the experts
  int64_t shared = 0;   // experts that every token uses, as one
  bool biases = false;  // of the router and the experts
  // What is made of gate and up: swish(gate) * up, or that of gpt-oss.
  enum class Gate { kSwish, kClamped };
  Gate gate = Gate::kSwish;
};

// x [batch, sequence, hidden] to the same: the sum of the `chosen` experts of the highest scores,
// with weights that are their scores over the sum of these, and of the shared expert. A group of
// tokens is a sequence, of which an expert takes the first that choose it. Rows are moved to
// [batch, experts, capacity, hidden] and back by indices (topk_routing, gather_rows, gather_sum).
//
// Of experts in groups, a token chooses the groups whose best chosen / chosen_groups scores have
// the greatest sums, and the best experts in each, without a bias; weights are as above. Rows are
// moved to [batch, groups, group's capacity, hidden] first, and from there to the experts of the
// group; what these make of a row is summed before it goes back. So a row is sent once to a group,
// where a group is on a node, however many of its experts are to see it. A group takes the first
// tokens that choose it, as an expert does of those.
TensorRef RoutedExperts(ModelBuilder& b, TensorRef x, const RoutedSizes& sizes,
                        const std::string& name);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_BLOCKS_EXPERT_BLOCKS_H_
