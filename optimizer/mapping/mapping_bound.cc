#include "optimizer/mapping/mapping_bound.h"

#include <algorithm>
#include <array>
#include <utility>

namespace isomer {
namespace {

class MessagePassing {
 public:
  explicit MessagePassing(const PairwiseProblem& problem)
      : problem_(problem), at_(problem.us.size()) {
    for (const auto& edge : problem.edges) {
      const int e = static_cast<int>(messages_.size());
      at_[edge.a].push_back(e);
      at_[edge.b].push_back(e);
      messages_.push_back({std::vector<float>(problem.us[edge.a].size(), 0),
                           std::vector<float>(problem.us[edge.b].size(), 0)});
    }
  }

  // One pass. The bound is the sum of the normalisations and of the minima of nodes where chains
  // end.
  double Pass(bool forward) {
    double bound = 0;
    const int n = static_cast<int>(at_.size());
    for (int i = 0; i < n; ++i) {
      const int node = forward ? i : n - 1 - i;
      std::vector<float> total = Total(node);
      int ahead = 0;
      for (int e : at_[node]) ahead += IsAhead(e, node, forward);
      const int behind = static_cast<int>(at_[node].size()) - ahead;
      const float chains = static_cast<float>(std::max({ahead, behind, 1}));
      const float least = *std::min_element(total.begin(), total.end());
      // Chains ending here keep their part of the node's cost.
      bound += static_cast<double>(least) * (static_cast<double>(chains) - ahead) / chains;
      for (int e : at_[node]) {
        if (IsAhead(e, node, forward)) bound += Send(e, node, total, chains);
      }
    }
    return bound;
  }

  std::vector<float> Total(int node) const {
    std::vector<float> total = problem_.us[node];
    for (int e : at_[node]) {
      const std::vector<float>& message = messages_[e][problem_.edges[e].b == node];
      for (size_t k = 0; k < total.size(); ++k) total[k] += message[k];
    }
    return total;
  }

 private:
  bool IsAhead(int e, int node, bool forward) const {
    const auto& edge = problem_.edges[e];
    return (edge.a == node ? edge.b > node : edge.a > node) == forward;
  }

  // Sends the message over edge `e` from `node`; returns its minimum, which is subtracted.
  double Send(int e, int node, const std::vector<float>& total, float chains) {
    const auto& edge = problem_.edges[e];
    const bool rows = edge.a == node;  // the sender's choices are rows
    const std::vector<float>& back = messages_[e][rows ? 0 : 1];
    std::vector<float>& out = messages_[e][rows ? 1 : 0];
    const CostTable& table = *edge.table;
    std::vector<float> own(total.size());
    for (size_t k = 0; k < own.size(); ++k) {
      own[k] = total[k] >= kImpossibleUs / 2 ? kImpossibleUs : total[k] / chains - back[k];
    }
    std::fill(out.begin(), out.end(), kImpossibleUs);
    for (int r = 0; r < table.rows; ++r) {
      const float* row = table.us.data() + static_cast<size_t>(r) * table.cols;
      if (rows) {
        const float base = own[r];
        for (int c = 0; c < table.cols; ++c) out[c] = std::min(out[c], base + row[c]);
      } else {
        float best = kImpossibleUs;
        for (int c = 0; c < table.cols; ++c) best = std::min(best, own[c] + row[c]);
        out[r] = best;
      }
    }
    const float least = *std::min_element(out.begin(), out.end());
    if (least >= kImpossibleUs / 2) return least;
    for (float& us : out) us = us >= kImpossibleUs / 2 ? kImpossibleUs : us - least;
    return least;
  }

  const PairwiseProblem& problem_;
  std::vector<std::vector<int>> at_;  // per node: its edges
  // Per edge: messages to a and to b.
  std::vector<std::array<std::vector<float>, 2>> messages_;
};

}  // namespace

PairwiseBound BoundPairwise(const PairwiseProblem& problem, int passes) {
  MessagePassing passing(problem);
  PairwiseBound result;
  for (int pass = 0; pass < passes; ++pass) {
    const double there = passing.Pass(true), back = passing.Pass(false);
    const double least = std::max(there, back);
    const bool settled = pass > 0 && least <= result.us * (1 + 1e-6);
    result.us = pass == 0 ? least : std::max(result.us, least);
    if (settled || result.us >= kImpossibleUs / 2) break;
  }
  if (result.us >= kImpossibleUs / 2) result.us = kImpossibleUs;
  for (size_t n = 0; n < problem.us.size(); ++n) {
    result.reparametrised.push_back(passing.Total(static_cast<int>(n)));
  }
  return result;
}

}  // namespace isomer
