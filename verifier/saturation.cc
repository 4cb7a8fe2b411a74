#include "verifier/saturation.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace isomer {
namespace {

// Classes of terms known to be equal. The representative of a class is its oldest term.
class TermClasses {
 public:
  explicit TermClasses(TermPool* pool) : pool_(pool) {}

  TermId Find(TermId id) {
    Grow();
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }

  void Merge(TermId a, TermId b) {
    a = Find(a), b = Find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

  // Merges congruent terms until none are left, and lists the members of classes afresh: one of
  // each set of congruent terms.
  void Rebuild() {
    Grow();
    bool changed = true;
    while (changed) {
      changed = false;
      members_.assign(parent_.size(), {});
      std::map<std::pair<int, std::vector<TermId>>, TermId> signatures;
      for (TermId id = 0; id < static_cast<TermId>(parent_.size()); ++id) {
        std::vector<TermId> arguments;
        for (TermId argument : (*pool_)[id].arguments) arguments.push_back(Find(argument));
        auto [at, is_new] = signatures.emplace(std::pair(symbols_[id], std::move(arguments)), id);
        if (is_new) {
          members_[Find(id)].push_back(id);
        } else if (Find(at->second) != Find(id)) {
          Merge(at->second, id);
          changed = true;
        }
      }
    }
  }

  // Valid after Rebuild(), until the next Merge.
  const std::vector<TermId>& Members(TermId representative) const {
    return members_[representative];
  }
  int size() const { return static_cast<int>(members_.size()); }

 private:
  void Grow() {
    for (TermId id = static_cast<TermId>(parent_.size()); id < pool_->size(); ++id) {
      parent_.push_back(id);
      const std::string text = (*pool_)[id].symbol.ToString();
      symbols_.push_back(
          symbol_ids_.emplace(text, static_cast<int>(symbol_ids_.size())).first->second);
    }
  }

  TermPool* pool_;
  std::vector<TermId> parent_;
  std::vector<int> symbols_;
  std::map<std::string, int> symbol_ids_;
  std::vector<std::vector<TermId>> members_;
};

class Saturator {
 public:
  Saturator(TermPool* pool, LemmaBook* book) : pool_(pool), book_(book), classes_(pool) {}

  Saturation Run(const std::vector<Goal>& goals, int bound_rounds, int bound_nodes) {
    classes_.Rebuild();
    while (true) {
      result_.reached = std::all_of(goals.begin(), goals.end(), [&](const Goal& goal) {
        return classes_.Find(goal.left) == classes_.Find(goal.right);
      });
      const size_t before = result_.instances.size();
      if (result_.reached || result_.rounds == bound_rounds) break;
      ++result_.rounds;
      Round(bound_nodes);
      classes_.Rebuild();
      if (result_.instances.size() == before) break;  // Nothing more to find.
    }
    return std::move(result_);
  }

 private:
  struct Match {
    const Lemma* lemma;
    LemmaBinding binding;
  };

  void Round(int bound_nodes) {
    matches_.clear();
    for (TermId id = 0; id < classes_.size(); ++id) {
      for (TermId member : classes_.Members(id)) {
        for (const Lemma& lemma : LemmaTable()) {
          if (lemma.trigger) {
            MatchRoot(lemma, *lemma.trigger, member);
          } else {
            MatchRoot(lemma, lemma.left, member);
            MatchRoot(lemma, lemma.right, member);
          }
        }
      }
    }
    for (const Match& match : matches_) {
      if (pool_->size() > bound_nodes) return;
      Use(match);
    }
  }

  void MatchRoot(const Lemma& lemma, const TermPattern& pattern, TermId member) {
    if (pattern.letter != 0 || (*pool_)[member].symbol.kind != pattern.kind) return;
    std::vector<State> states = MatchTerm(pattern, member, {State{}});
    for (State& state : states) {
      if (!SolveDeferred(state.deferred, &state.binding)) continue;
      matches_.push_back({&lemma, std::move(state.binding)});
    }
  }

  struct State {
    LemmaBinding binding;
    Deferred deferred;
  };

  // All ways to match `pattern` on the term `member`, continuing each of `states`.
  std::vector<State> MatchTerm(const TermPattern& pattern, TermId member,
                               std::vector<State> states) {
    const Term& term = (*pool_)[member];
    if (term.symbol.kind != pattern.kind || term.arguments.size() != pattern.arguments.size()) {
      return {};
    }
    std::erase_if(states, [&](State& state) {
      return !BindAttributes(pattern, term.symbol, &state.binding, &state.deferred);
    });
    for (size_t i = 0; i < term.arguments.size() && !states.empty(); ++i) {
      states =
          MatchClass(pattern.arguments[i], classes_.Find(term.arguments[i]), std::move(states));
    }
    return states;
  }

  std::vector<State> MatchClass(const TermPattern& pattern, TermId representative,
                                std::vector<State> states) {
    if (pattern.letter != 0) {
      std::erase_if(states, [&](State& state) {
        auto [at, is_new] = state.binding.tensors.emplace(pattern.letter, representative);
        return !is_new && at->second != representative;
      });
      return states;
    }
    std::vector<State> found;
    for (TermId member : classes_.Members(representative)) {
      for (State& state : MatchTerm(pattern, member, states)) found.push_back(std::move(state));
    }
    return found;
  }

  // Adds both sides of the instance, and merges them, if it is new and holds.
  void Use(const Match& match) {
    const absl::StatusOr<TermId> left = Instantiate(match.lemma->left, match.binding, pool_);
    if (!left.ok()) return;
    const absl::StatusOr<TermId> right = Instantiate(match.lemma->right, match.binding, pool_);
    if (!right.ok()) return;
    if (*left == *right || !used_.emplace(match.lemma, *left, *right).second) return;
    if (book_->Status(*match.lemma, *pool_, match.binding) != LemmaStatus::kProved) return;
    classes_.Merge(*left, *right);
    result_.instances.push_back({match.lemma, *left, *right});
  }

  TermPool* pool_;
  LemmaBook* book_;
  TermClasses classes_;
  std::vector<Match> matches_;
  std::set<std::tuple<const Lemma*, TermId, TermId>> used_;
  Saturation result_;
};

}  // namespace

Saturation Saturate(const std::vector<Goal>& goals, TermPool* pool, LemmaBook* book,
                    int bound_rounds, int bound_nodes) {
  return Saturator(pool, book).Run(goals, bound_rounds, bound_nodes);
}

}  // namespace isomer
