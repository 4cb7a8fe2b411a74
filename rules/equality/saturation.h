// E-matching: finds matches of rules in an e-graph, and applies them.
//
// A pattern is matched from its first output downwards, through every member of each class on the
// way; further outputs are sought among the users of bound nodes, as in rules/matching/rewrite.h.
// Whether a rule's conditions hold at a match, and its target, depend on the matched operators and
// on types alone, and are computed once for all matches that agree in those.
#ifndef ISOMER_RULES_EQUALITY_SATURATION_H_
#define ISOMER_RULES_EQUALITY_SATURATION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "rules/equality/egraph.h"
#include "rules/language/rule.h"

namespace isomer {

struct SaturationOptions {
  int iterations = 4;
  int nodes = 2000;         // e-nodes
  int matches = 300;        // per rule and iteration
  int joint_matches = 100;  // the same for rules of several outputs, whose matches grow as a power
  // Nodes that are tried in a pattern, per rule and iteration: those of several outputs that hardly
  // match take a power of the nodes, too.
  int64_t tries = 1'000'000;
  // Whether two nodes of a pattern may be one call: equal all the same, but no step of a
  // derivation, which replaces calls of their own.
  bool shares_calls = false;
  // What variables of degrees may be that the target alone has; none: such rules are not applied.
  std::vector<int64_t> degrees = {};
};

enum class SaturationStop { kSaturated, kNodes, kIterations, kInterrupted };

class Saturation {
 public:
  using CallUs = absl::FunctionRef<double(const Operator&, const std::vector<TensorType>&)>;

  // Rules without source nodes (x -> ..) are skipped, as they apply without end. `stop` is polled,
  // within a rule, too. Most applications are not worth their space in an e-graph of limited size,
  // so each iteration makes them in order of the time they save, by `us_of` calls that are not
  // loaded.
  Saturation(const std::vector<const Rule*>& rules, const SaturationOptions& options, CallUs us_of,
             absl::FunctionRef<bool()> stop, EGraph* egraph);

  SaturationStop Run();

 private:
  // A source pattern's nodes in binding order.
  struct Visit {
    int node;
    const PatternNode* pattern;
    int parent = -1, operand = 0;  // bound earlier; -1: an output of the rule
    int output = 0;
    int number = 0;  // unique over all rules
  };
  struct Plan {
    const Rule* rule;
    uint64_t hash;
    bool symmetric;
    std::vector<Visit> visits;
  };
  // A rule instantiated on given operators and types: one per assignment of its free axes.
  struct Instance {
    std::map<std::string, int64_t> variables;
    std::map<std::string, double> numbers;
    Graph target;
    double saves_us = 0;
  };
  struct Found {
    const Plan* plan;
    std::vector<ENodeId> nodes;
    std::vector<bool> swapped;
    std::vector<ClassId> inputs;
    const Instance* instance;
    uint64_t hash;
  };

  static Plan PlanOf(const Rule& rule, int* num_visits);
  bool Usable(const Rule& rule) const;
  void MatchRule(const Plan& plan);
  void Step(const Plan& plan, size_t visit);
  bool Try();
  void Bind(const Plan& plan, size_t visit, ENodeId id);
  void BindOperands(const Plan& plan, size_t visit, bool swap);
  // A bound class among the operands of a further output, or -1.
  ClassId BoundOperand(const PatternNode& pattern) const;
  bool MayBe(const Visit& visit, ENodeId id);
  void Finish(const Plan& plan);
  const std::vector<Instance>& InstancesOf(const Plan& plan);
  std::vector<TensorType> OperandTypes(int pattern_node) const;
  void ChooseDegrees(const Rule& rule, Binding binding, std::vector<std::string> free_degrees,
                     const std::vector<std::string>& free_axes, std::vector<Instance>* instances);
  void FindInstances(const Rule& rule, Binding binding, std::vector<std::string> free_axes,
                     std::vector<Instance>* instances);
  std::vector<Binding> BindSplit(const Condition& condition, const Binding& binding) const;
  void FindAxes(const Rule& rule, Binding binding, std::vector<std::string> free_axes,
                std::vector<Instance>* instances);
  void TryInstance(const Rule& rule, const Binding& binding, std::vector<Instance>* instances);
  double SavesUs(const Graph& target);
  double UsOf(const Operator& op, const std::vector<TensorType>& operands);
  void Apply(const Found& found);

  const SaturationOptions& options_;
  const CallUs us_of_;
  const absl::FunctionRef<bool()> stop_;
  EGraph& egraph_;
  std::vector<Plan> plans_;
  // The partial match.
  std::vector<ENodeId> nodes_;  // per source node; -1: unbound
  std::vector<bool> swapped_;
  std::vector<ClassId> inputs_;  // per rule input; -1: unbound
  int left_ = 0;                 // matches left for the current rule
  int64_t tries_left_ = 0;       // likewise
  bool interrupted_ = false;
  std::vector<Found> found_;
  absl::flat_hash_set<uint64_t> seen_;  // hashes of applications
  absl::flat_hash_map<uint64_t, std::unique_ptr<std::vector<Instance>>> instances_;
  std::map<std::string, double> us_;
  std::vector<std::vector<int8_t>>
      may_be_;  // per visit, by operator and rank: no, yes, -1: unknown
};

}  // namespace isomer

#endif  // ISOMER_RULES_EQUALITY_SATURATION_H_
