#include "optimizer/bound/bound_tree.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace isomer {
namespace {

// Branchings tried, with so many solutions each, before one is made.
constexpr int kTried = 4, kTrialSolutions = 2;
// Disagreement of a mixture that is worth branching on.
constexpr double kDisagreement = 0.02;

// Branchings after which the bound must have grown by a minimum.
constexpr int kPatience = 8;
constexpr double kProgress = 0.002;

// Fraction of the step that a message must take for its number to be worth branching on.
constexpr double kShortStep = 0.005;

// A branch of the space.
struct Leaf {
  BoundMixture::Allowed allowed;
  RelaxedStep::Messages messages = RelaxedStep::Messages::kAny;
  BoundMixture::Best best;
};

// Kinds of choices.
enum class Kind { kOneDevice, kOnAll, kOnFirst, kSynchronised, kMoreThanHalf, kNumKinds };

class BoundTree {
 public:
  BoundTree(const RelaxedStep& step, const BoundedCalls& calls, const BoundTreeOptions& options,
            CostTables* tables)
      : step_(step), calls_(calls), options_(options), mixture_(step, calls, tables) {}

  double Run() {
    Leaf root;
    root.best = mixture_.Find({}, nullptr, options_.enough_us, options_.solutions);
    std::vector<Leaf> leaves = ByMessages(std::move(root));
    double before_us = std::min_element(leaves.begin(), leaves.end(), IsLess)->best.us;
    for (int cut = 0; cut < options_.cuts; ++cut) {
      Leaf& least = *std::min_element(leaves.begin(), leaves.end(), IsLess);
      if (least.best.us >= options_.enough_us || options_.deadline.Reached().has_value()) break;
      if (cut % kPatience == kPatience - 1) {
        if (least.best.us < before_us * (1 + kProgress)) break;
        before_us = least.best.us;
      }
      std::pair<Leaf, Leaf> parts;
      if (!Cut(least, &parts)) break;
      least = std::move(parts.first);
      leaves.push_back(std::move(parts.second));
    }
    return std::min_element(leaves.begin(), leaves.end(), IsLess)->best.us;
  }

 private:
  struct Split {
    int call;
    Kind kind;
    double score;
  };

  // Branches on whether all weights are synchronised in one message.
  std::vector<Leaf> ByMessages(Leaf root) {
    using Messages = RelaxedStep::Messages;
    std::vector<Leaf> leaves;
    if (options_.cuts == 0 || root.best.us >= options_.enough_us || step_.trained() < 0 ||
        step_.message_us() < kShortStep * root.best.us) {
      leaves.push_back(std::move(root));
      return leaves;
    }
    const Split split = {step_.trained(), Kind::kSynchronised, 0};
    leaves.push_back(PartOf(root, split, false, options_.solutions));
    for (Messages messages : {Messages::kOne, Messages::kSeveral}) {
      root.messages = messages;
      leaves.push_back(PartOf(root, split, true, options_.solutions));
    }
    return leaves;
  }

  static bool IsLess(const Leaf& a, const Leaf& b) { return a.best.us < b.best.us; }

  bool IsOf(int call, int choice, Kind kind) const {
    const ChoiceParts& p = (*calls_.parts[call])[choice];
    switch (kind) {
      case Kind::kOneDevice:
        return p.devices == 1;
      case Kind::kOnAll:
        return p.devices == calls_.devices;
      case Kind::kOnFirst:
        return p.on_first;
      case Kind::kSynchronised:
        return p.sync_us > 0;
      case Kind::kMoreThanHalf:
        return p.devices > calls_.devices / 2;
      case Kind::kNumKinds:
        break;
    }
    return false;
  }

  // Splits where the solutions disagree most, weighted by the call's time.
  std::vector<Split> SplitsOf(const Leaf& leaf) const {
    const BoundMixture::Best& best = leaf.best;
    std::vector<Split> splits;
    for (int n = 0; n < static_cast<int>(calls_.parts.size()); ++n) {
      double longest_us = 0;
      for (const std::vector<int>& solution : best.solutions) {
        const ChoiceParts& p = (*calls_.parts[n])[solution[n]];
        longest_us = std::max(longest_us, p.compute_us() + p.sync_us);
      }
      for (int k = 0; k < static_cast<int>(Kind::kNumKinds); ++k) {
        const Kind kind = static_cast<Kind>(k);
        double share = 0;
        for (size_t s = 0; s < best.solutions.size(); ++s) {
          if (IsOf(n, best.solutions[s][n], kind)) share += best.shares[s];
        }
        const double score = std::min(share, 1 - share);
        if (score > kDisagreement) splits.push_back({n, kind, score * longest_us});
      }
    }
    std::stable_sort(splits.begin(), splits.end(),
                     [](const Split& a, const Split& b) { return a.score > b.score; });
    return splits;
  }

  bool Cut(const Leaf& leaf, std::pair<Leaf, Leaf>* parts) {
    std::vector<Split> splits = SplitsOf(leaf);
    if (splits.size() > kTried) splits.resize(kTried);
    double greatest = -1;
    const Split* best = nullptr;
    for (const Split& split : splits) {
      double least = options_.enough_us;
      for (bool is_of : {true, false}) {
        if (least <= greatest) break;
        const Leaf part = PartOf(leaf, split, is_of, kTrialSolutions);
        least = std::min(least, part.best.us);
      }
      if (least <= greatest) continue;
      greatest = least;
      best = &split;
    }
    if (best == nullptr) return false;
    *parts = {PartOf(leaf, *best, true, options_.solutions),
              PartOf(leaf, *best, false, options_.solutions)};
    return true;
  }

  Leaf PartOf(const Leaf& leaf, const Split& split, bool is_of, int solutions) {
    Leaf part;
    part.allowed = leaf.allowed;
    part.messages = leaf.messages;
    if (part.allowed.empty()) {
      for (const auto* parts : calls_.parts) part.allowed.emplace_back(parts->size(), true);
    }
    std::vector<bool>& allowed = part.allowed[split.call];
    for (size_t k = 0; k < allowed.size(); ++k) {
      if (IsOf(split.call, static_cast<int>(k), split.kind) != is_of) allowed[k] = false;
    }
    part.best =
        mixture_.Find(part.allowed, &leaf.best, options_.enough_us, solutions, part.messages);
    part.best.us = std::max(part.best.us, leaf.best.us);
    return part;
  }

  const RelaxedStep& step_;
  const BoundedCalls& calls_;
  const BoundTreeOptions& options_;
  BoundMixture mixture_;
};

}  // namespace

double BestBoundUs(const RelaxedStep& step, const BoundedCalls& calls,
                   const BoundTreeOptions& options, CostTables* tables) {
  return BoundTree(step, calls, options, tables).Run();
}

}  // namespace isomer
