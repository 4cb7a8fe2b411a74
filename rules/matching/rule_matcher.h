// Many rules, matched again and again on graphs that differ little: what a search does.
//
// Three things make this cheaper than FindMatches rule by rule. Rules whose operators a graph lacks
// are passed over by a bit set. Roots near a change are found once for all rules. And whether
// conditions hold, which takes most of a match's time, is asked once for calls that are alike,
// whatever graph they are in.
#ifndef ISOMER_RULES_MATCHING_RULE_MATCHER_H_
#define ISOMER_RULES_MATCHING_RULE_MATCHER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "rules/matching/rewrite.h"
#include "rules/matching/root_shape.h"

namespace isomer {

struct MatchMemo;

struct RuleMatch {
  const Rule* rule = nullptr;
  DerivationStep step;
  // Equal for equal rules at equal calls, in one run of the program.
  uint64_t signature = 0;
};

// Whether the step's nodes are live and still have the operands that they were matched with.
bool StillMatches(const GraphIndex& index, const RuleMatch& match);

// Not thread-safe: it remembers.
class RuleMatcher {
 public:
  // Rules whose source has no node are left out: x -> .. grows graphs without end.
  explicit RuleMatcher(const std::vector<const Rule*>& rules);
  ~RuleMatcher();

  // The matches of all rules as FindMatches finds them, in order of rules, then of roots.
  std::vector<RuleMatch> Find(const GraphIndex& index, const std::vector<NodeId>& near = {});

  // Operators that a rule matches or makes: no step touches others.
  const OpKindSet& kinds() const { return kinds_; }

 private:
  struct Entry {
    const Rule* rule;
    RootShape root;
    OpKindSet kinds;  // of the source
    int outputs;      // of the source
    bool connected;   // from each output to the next, through tensors that both depend on
  };
  // Per number of outputs (from 1): the nodes that may be the first root of a match near `near`.
  std::vector<std::vector<NodeId>> RootsNear(const GraphIndex& index,
                                             const std::vector<NodeId>& near) const;

  std::vector<Entry> entries_;
  OpKindSet kinds_;
  int max_depth_ = 1, max_outputs_ = 1;
  std::unique_ptr<MatchMemo> memo_;
};

}  // namespace isomer

#endif  // ISOMER_RULES_MATCHING_RULE_MATCHER_H_
