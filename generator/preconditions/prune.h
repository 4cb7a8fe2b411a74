// What a rule set already says: so that nothing is said twice.
#ifndef ISOMER_GENERATOR_PRECONDITIONS_PRUNE_H_
#define ISOMER_GENERATOR_PRECONDITIONS_PRUNE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "generator/preconditions/generalize.h"
#include "rules/language/rule.h"
#include "rules/matching/rewrite.h"
#include "rules/matching/root_shape.h"

namespace isomer {

// The two sides of a candidate as graphs, in canonical form.
struct CandidateGraphs {
  Graph source, target;
};
absl::StatusOr<CandidateGraphs> GraphsOf(const Candidate& candidate);

// Equal for graphs of the same inputs that differ in the order of nodes, in whether equal nodes are
// one, or in the order of operands of commutative operators: matching tries both orders.
uint64_t FormHash(const Graph& graph);

// Rules accepted so far. Reading is safe from several threads while nothing is added.
class RuleBook {
 public:
  void Add(const Rule& rule);

  // Rules and inverses of reversible ones, in the order in which they were added.
  int num_entries() const { return static_cast<int>(entries_.size()); }
  // With the mark of an inverse.
  const std::string& IdOf(int entry) const { return entries_[entry].rule.id; }

  // Calls `visit` with every graph that one application of an entry from `first` on makes of
  // `graph`, and the entry. `reversible`: only with entries that lead back from there, too.
  void ForEachApplication(const Graph& graph, int first, bool reversible,
                          absl::FunctionRef<void(int entry, const Graph& result)> visit) const;

 private:
  struct Entry {
    Rule rule;
    std::optional<RootShape> root;
    OpKindSet kinds;             // of the source
    std::vector<Binding> given;  // values of the degrees that it introduces
  };
  void AddEntry(const Rule& rule);
  // Of the entries from `first` on, in order.
  std::vector<int> EntriesFor(const GraphIndex& index, int first) const;

  std::vector<Entry> entries_;
  // Those with a root of each kind, and without one, in order.
  std::array<std::vector<int>, kNumOpKinds> by_root_;
  std::vector<int> rootless_;
};

// Whether and how a book derives one side of a candidate from the other: the graphs that it makes
// of either side, until one is found from both.
//
// One step from the source that gives the target: the candidate is an instance of that rule.
// Otherwise up to `steps` steps from the source and, backwards, from the target meet in some graph:
// it is a composition. Steps are taken in turn until they meet. Only graphs no larger than the
// larger side are rewritten further, so that no derivation passes through larger graphs, except for
// the one where the two ways meet.
class Derivations {
 public:
  // How far the search has come: graphs that were reached from one side, by FormHash.
  struct Way {
    int latest = -1;           // of the entries
    std::vector<int> entries;  // applied in this order
  };
  using Reached = absl::flat_hash_map<uint64_t, Way>;
  struct State {
    // Entries looked at: for an instance, and for all.
    int known_source = 0, known_target = 0;
    Reached from_source, from_target;
  };

  Derivations(CandidateGraphs graphs, int steps) : Derivations(std::move(graphs), steps, {}) {}
  // Goes on where another one with the same graphs and steps, and a book that this one continues,
  // had come to.
  Derivations(CandidateGraphs graphs, int steps, State state);

  enum class Kind { kNone, kInstance, kComposition };
  struct Result {
    Kind kind = Kind::kNone;
    std::vector<std::string> rules;  // from the source to the target
  };
  // With all rules of the book. What an earlier call found with fewer of them is used, and the
  // result is that of one call; of several steps, the kind is, and a composition that was found
  // stays what it was. REQUIRES: always the same book.
  Result Find(const RuleBook& book);
  // Only whether it is an instance.
  bool IsInstance(const RuleBook& book);

  const CandidateGraphs& graphs() const { return graphs_; }
  const State& state() const { return state_; }

 private:
  using Reach = std::pair<Graph, Way>;
  struct Front {
    int steps = 0;
    std::vector<Reach> latest;  // by the last step, and no larger than the larger side
    Reached* reached;
  };
  static Front Begin(const Graph& from, Reached* reached);
  static void Take(const Reached& by_new, Reached* reached);
  // One step more, by entries from `first` on; from where one of these led, by all.
  void Step(bool reversible, const RuleBook& book, int first, Front* front) const;
  // One step from `from`, by entries that are not `known`.
  void StepOnce(const Graph& from, bool reversible, const RuleBook& book, int* known,
                Reached* reached) const;
  void StepUntilTheyMeet(const RuleBook& book);
  Result Meeting(const RuleBook& book) const;

  const CandidateGraphs graphs_;
  const int steps_;
  const int largest_;  // operators of the larger side
  State state_;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PRECONDITIONS_PRUNE_H_
