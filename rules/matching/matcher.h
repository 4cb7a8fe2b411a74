// One rule on one graph, from given roots. Internal to rules/.
//
// The matcher walks the source pattern from its first output towards the inputs, in step with the
// graph, and backtracks over the order of commutative operands. A pattern with several outputs goes
// on from a neighbour of what is matched already: a user of a bound tensor. So the cost of a match
// is that of the pattern, and the graph is searched only for candidates of the first output's
// operator, which an index gives.
#ifndef ISOMER_RULES_MATCHING_MATCHER_H_
#define ISOMER_RULES_MATCHING_MATCHER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "rules/matching/match.h"
#include "rules/matching/rewrite.h"

namespace isomer {

// What was found out about calls before: a condition is a function of the matched calls (operators,
// operand types) and of the variables that they do not bind, and so is what can be split of a call.
struct MatchMemo {
  absl::flat_hash_map<uint64_t, bool> admitted;                    // by the signature of the match
  absl::node_hash_map<uint64_t, std::vector<SplittableDim>> dims;  // by the hash of the call
};

// Nodes of a graph that matches are wanted at, and those from which a path of operands, as long as
// those of patterns, leads to one.
struct NearNodes {
  std::vector<bool> is_in, leads_there;
};

// A hash of the operator and the operand types of a node.
uint64_t HashOfCall(const Graph& graph, NodeId id);

// The first output that a node computes, or -1 if no node is in the pattern.
int FirstRootOf(const Pattern& pattern);
// Longest path from an output of the pattern to a node, in nodes.
int DepthOf(const Pattern& pattern);

class Matcher {
 public:
  struct Found {
    DerivationStep step;
    uint64_t signature = 0;  // of rule, calls and variables; 0 without a memo
  };
  // `call_hashes` (per graph node; 0: not known yet) and `memo`: both or none. With them, nothing
  // may be given.
  // `near`: if not null, only matches with a node near it are wanted.
  Matcher(const GraphIndex& index, const Rule& rule, const Binding& given,
          std::vector<uint64_t>* call_hashes = nullptr, MatchMemo* memo = nullptr,
          const NearNodes* near = nullptr);

  // Matches in which `root` is the node of the first output, or `tensor` that output.
  void MatchRoot(NodeId root);
  void MatchTensor(TensorRef tensor);
  std::vector<Found>& found() { return found_; }
  std::vector<DerivationStep> TakeSteps();

 private:
  // What must still be matched: this tensor of the pattern is this tensor of the graph.
  struct Obligation {
    PatternRef pattern;
    TensorRef tensor;
  };
  using Call = std::pair<Operator, std::vector<TensorType>>;

  int NextRoot(const PartialMatch& match) const;
  void Resume(PartialMatch match, std::vector<Obligation> obligations);
  bool BindNode(int pattern_node, NodeId id, PartialMatch* match) const;
  std::vector<NodeId> RootCandidates(const PartialMatch& match, int pattern_node) const;
  bool HasNearNode(const PartialMatch& match) const;
  bool IsLastRoot(const PartialMatch& match, int output) const;
  bool BindFactors(PartialMatch* match) const;
  void Finish(PartialMatch match);
  void FinishSplit(const Condition& condition, const PartialMatch& match,
                   const std::vector<std::string>& free_axes);
  void ChooseAxes(const std::vector<std::string>& free_axes, size_t next, PartialMatch* match);
  void Emit(const PartialMatch& match);
  bool Holds(const PartialMatch& match) const;
  uint64_t SignatureOf(const PartialMatch& match) const;
  uint64_t CallHashOf(NodeId id) const;
  Call CallOf(const PartialMatch& match, int n) const;
  std::vector<SplittableDim> DimsOf(const PartialMatch& match, int n) const;
  bool DependsOnOutputs(const PartialMatch& match);
  // By node, whether this one is computed from it; each is from itself.
  const std::vector<bool>& SourcesOf(NodeId id);

  const GraphIndex& index_;
  const Graph& graph_;
  const Rule& rule_;
  std::vector<uint64_t>* call_hashes_;
  MatchMemo* memo_;
  const NearNodes* near_;
  PartialMatch start_;
  absl::node_hash_map<NodeId, std::vector<bool>> sources_;  // SourcesOf, as far as it was asked
  std::vector<Found> found_;
};

}  // namespace isomer

#endif  // ISOMER_RULES_MATCHING_MATCHER_H_
