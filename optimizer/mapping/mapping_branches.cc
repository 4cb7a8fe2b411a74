// Branches that only meet: nodes that fold into their successor (mapping_reduction.h).
#include <algorithm>
#include <utility>

#include "optimizer/mapping/mapping_reduction.h"
#include "optimizer/mapping/min_plus.h"

namespace isomer {
namespace {

// With more branches than this, all keep to one share: each part of a split has 3^branches
// assignments.
constexpr int kMostBranchesBeside = 5;

}  // namespace

// Folds `node` into its only neighbour: its best answer to each choice. It keeps to the neighbour's
// share, unless several independent branches meet there.
void MappingReduction::FoldInto(int node, int composite) {
  const Composite& c = composites_[composite];
  const int neighbour = c.a == node ? c.b : c.a;
  NodeState& at = nodes_[neighbour];
  Fold fold{node, neighbour, composite};
  for (int share = 0; share < NumShares(); ++share) {
    fold.us.push_back(AnswersIn(share, node, composite));
  }
  const bool is_branch = concurrent_branches_ && c.from == node && at.resources.empty();
  folds_.push_back(std::move(fold));
  nodes_[node].gone = true;
  RemoveLive(composite);
  if (is_branch) {
    if (at.branches.empty()) at.own_us = at.us;
    at.branches.push_back(static_cast<int>(folds_.size()) - 1);
  }
  for (int share = 0; share < NumShares(); ++share) {
    const int begin = OwnBegin(neighbour, share);
    const std::vector<int>& own = ChoicesOf(neighbour, share);
    const std::vector<float>& us = folds_.back().us[share];
    for (size_t n = 0; n < own.size(); ++n) {
      if (is_branch) {
        at.us[own[n]] = at.own_us[own[n]] + BranchesUs(neighbour, own[n], nullptr);
      } else {
        AddUs(neighbour, own[n], us.empty() ? kImpossibleUs : us[begin + n]);
      }
    }
  }
  if (!is_branch) folds_.back().us.clear();
}

// Each branch either keeps to the node's share, in sequence with the others, or to one part of a
// split of it, concurrent with those on the other part.
float MappingReduction::BranchesUs(int node, int choice, std::vector<int>* shares) const {
  const std::vector<int>& branches = nodes_[node].branches;
  const auto count = static_cast<int>(branches.size());
  const int share = ShareOf(node, choice);
  const auto us_in = [&](int in, std::vector<float>* us) {
    const int place = PlaceIn(node, choice, in);
    us->clear();
    for (int branch : branches) {
      const std::vector<float>& answers = folds_[branch].us[in];
      us->push_back(answers.empty() ? kImpossibleUs : answers[place]);
    }
  };
  std::vector<float> here, first, second;
  us_in(share, &here);
  float best = 0;
  for (float us : here) best += us;
  if (shares != nullptr) shares->assign(count, share);
  if (count < 2 || count > kMostBranchesBeside) return best;
  int ways = 1;
  for (int i = 0; i < count; ++i) ways *= 3;
  for (const ShareSplit& split : splits_) {
    if (static_cast<int>(split.of) != share) continue;
    us_in(static_cast<int>(split.first), &first);
    us_in(static_cast<int>(split.second), &second);
    for (int way = 1; way < ways; ++way) {
      float sum = 0, of_first = 0, of_second = 0;
      for (int i = 0, rest = way; i < count; ++i, rest /= 3) {
        (rest % 3 == 0   ? sum
         : rest % 3 == 1 ? of_first
                         : of_second) += (rest % 3 == 0   ? here
                                          : rest % 3 == 1 ? first
                                                          : second)[i];
      }
      const float us = sum + std::max(of_first, of_second);
      if (us >= best) continue;
      best = us;
      if (shares == nullptr) continue;
      for (int i = 0, rest = way; i < count; ++i, rest /= 3) {
        (*shares)[i] =
            rest % 3 == 0 ? share : static_cast<int>(rest % 3 == 1 ? split.first : split.second);
      }
    }
  }
  return best;
}

int MappingReduction::ShareOfFold(const Fold& fold, int choice) const {
  const std::vector<int>& branches = nodes_[fold.neighbour].branches;
  const auto branch =
      std::find(branches.begin(), branches.end(), static_cast<int>(&fold - folds_.data()));
  if (branch == branches.end()) return ShareOf(fold.neighbour, choice);
  std::vector<int> shares;
  BranchesUs(fold.neighbour, choice, &shares);
  return shares[branch - branches.begin()];
}

std::vector<float> MappingReduction::AnswersIn(int share, int node, int composite) const {
  const std::vector<int>& own = ChoicesOf(node, share);
  if (own.empty()) return {};
  std::vector<float> own_us;
  own_us.reserve(own.size());
  for (int k : own) own_us.push_back(nodes_[node].us[k]);
  const CostTable& table = Us(composite, share);
  const int begin = OwnBegin(node, share), count = static_cast<int>(own.size());
  if (composites_[composite].b == node) {
    std::vector<float> answers(table.rows, kImpossibleUs);
    MinOfSums(table.us.data() + begin, table.cols, own_us.data(), table.rows, count,
              answers.data());
    return answers;
  }
  std::vector<float> answers(table.cols, kImpossibleUs);
  const std::vector<float> nothing(count, 0);
  MinPlus(nothing.data(), count, own_us.data(),
          table.us.data() + static_cast<size_t>(begin) * table.cols, table.cols, 1, count,
          table.cols, answers.data(), table.cols);
  return answers;
}

}  // namespace isomer
