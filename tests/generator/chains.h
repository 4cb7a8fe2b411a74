// Chains of rewrites: which graphs rules turn into which.
#ifndef ISOMER_TESTS_GENERATOR_CHAINS_H_
#define ISOMER_TESTS_GENERATOR_CHAINS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pcg/ir/graph.h"
#include "rules/language/rule.h"

namespace isomer {

// Graphs of one output and what one application of a rule, in either direction, makes of them; two
// graphs are linked if there is a chain of such steps. Graphs count as equal up to sharing and up
// to the order of the operands of Add and Mul (matching tries both).
class Chains {
 public:
  explicit Chains(const std::vector<Rule>& rules);

  // The number of a graph. It is not expanded yet.
  int Add(const Graph& graph);
  // Links a graph with what one step makes of it; the new ones are added.
  void Expand(int graph);
  bool Linked(int a, int b);
  // Expands graphs that are linked with `a` or `b`, small ones first, `most` of each, until the two
  // are linked or there is nothing more to expand.
  bool Search(int a, int b, int most);
  // Whether a chain of steps leads from `from` to `to`, not back; what it can pass through is
  // expanded likewise.
  bool Reaches(int from, int to, int most);
  int size() const { return static_cast<int>(graphs_.size()); }

 private:
  struct Entry {
    Rule rule;
    OpKindSet kinds;
    std::vector<Binding> given;
  };
  int Root(int graph);
  void Link(int a, int b);
  void ExpandForm(int graph, const Graph& form);
  // The smallest of `graphs` that is not expanded, or -1.
  int NextToExpand(const std::vector<int>& graphs) const;

  std::vector<Entry> rules_;
  std::vector<Graph> graphs_;
  std::vector<bool> expanded_;
  std::vector<std::vector<int>> successors_;  // by one step, of those that are expanded
  std::vector<int> parent_;
  std::vector<std::vector<int>> members_;  // of a root
  absl::flat_hash_map<uint64_t, int> numbers_;
};

}  // namespace isomer

#endif  // ISOMER_TESTS_GENERATOR_CHAINS_H_
