// An e-graph: classes of equal tensors, and the calls that compute them (Willsey et al., "egg",
// POPL'21). A rewrite adds calls and merges classes and never removes anything, so the order of
// rules does not matter; extraction picks one call per class afterwards.
//
// A call of several outputs is one e-node in several classes, so no tuples are needed (as in
// TENSAT, MLSys'21). Two calls of one operator on equal operands are one e-node: merging classes
// may make calls equal, whose outputs are then merged in turn (congruence), which Rebuild() does
// for all merges at once.
//
// Every e-node remembers the rule application that made it, and every application the e-nodes that
// it matched: an extracted selection can be replayed as steps of a derivation
// (optimizer/substitution/egraph_replay.h).
#ifndef ISOMER_RULES_EQUALITY_EGRAPH_H_
#define ISOMER_RULES_EQUALITY_EGRAPH_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/operator_facts.h"
#include "rules/language/rule.h"

namespace isomer {

using ClassId = int32_t;
using ENodeId = int32_t;
using OperatorId = int32_t;

struct ENode {
  OperatorId op;
  std::vector<ClassId> operands, outputs;
};

// One application of a rule: its match and the nodes that it made.
struct Application {
  const Rule* rule;
  std::vector<ENodeId> source;  // per node of the source pattern
  std::vector<bool> swapped;    // per node of the source pattern: operands exchanged
  std::vector<ClassId> inputs;  // per rule input
  std::map<std::string, int64_t> variables;
  std::map<std::string, double> numbers;
  std::vector<ENodeId> target;  // per node of the target pattern
};

class EGraph {
 public:
  struct Member {
    ENodeId node;
    int32_t output;
    friend bool operator==(const Member&, const Member&) = default;
  };

  // One class per tensor of the live nodes of `graph`. `training` decides what is loaded
  // (compute_graph.h).
  EGraph(const Graph& graph, bool training);

  // The class of a tensor of the original graph.
  ClassId ClassOf(TensorRef tensor) const { return Find(tensors_.at(tensor)); }

  // Representatives. Merged ids stay valid.
  ClassId Find(ClassId id) const;
  ENodeId FindNode(ENodeId id) const;

  int num_classes() const { return static_cast<int>(classes_.size()); }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }  // merged ones included
  const ENode& node(ENodeId id) const { return nodes_[id]; }
  bool IsCanonical(ENodeId id) const { return forward_[id] == id; }
  const Operator& op(ENodeId id) const { return operators_[nodes_[id].op]; }
  const TensorType& type(ClassId id) const { return types_[classes_[Find(id)].type]; }
  int32_t type_id(ClassId id) const { return classes_[Find(id)].type; }
  // Whether some member is loaded before the step.
  bool IsStored(ClassId id) const { return classes_[Find(id)].stored; }
  // Whether calls of the kind make stored tensors of stored operands.
  bool IsPrepared(OpKind kind) const { return training_ ? IsLayout(kind) : CanRunOnHost(kind); }
  const std::vector<Member>& members(ClassId id) const { return classes_[Find(id)].members; }
  // Calls with the class as an operand; may include calls merged with others.
  const std::vector<ENodeId>& users(ClassId id) const { return classes_[Find(id)].users; }
  // Calls of a kind, in order of creation; may include calls merged with others.
  const std::vector<ENodeId>& NodesOf(OpKind kind) const;

  // The call of `op` on these classes, or -1.
  ENodeId Lookup(const Operator& op, const std::vector<ClassId>& operands) const;
  // The same, added if absent. `types`: of its outputs.
  ENodeId Add(const Operator& op, std::vector<ClassId> operands,
              const std::vector<TensorType>& types);
  // Merges two classes. REQUIRES: equal types. Rebuild() must follow before the next Lookup.
  void Merge(ClassId a, ClassId b);
  // Restores congruence.
  void Rebuild();

  std::vector<Application>& applications() { return applications_; }
  const std::vector<Application>& applications() const { return applications_; }

 private:
  struct Class {
    int32_t type;
    bool stored;
    std::vector<Member> members;
    std::vector<ENodeId> users;
  };
  using Key = std::pair<OperatorId, std::vector<ClassId>>;

  OperatorId Intern(const Operator& op) const;
  ENodeId AddNode(OperatorId op, std::vector<ClassId> operands,
                  const std::vector<TensorType>& types);
  Key KeyOf(const ENode& node) const;

  const bool training_;
  std::vector<ENode> nodes_;
  mutable std::vector<ENodeId> forward_;
  std::vector<Class> classes_;
  mutable std::vector<ClassId> parent_;
  mutable std::vector<Operator> operators_;
  mutable absl::flat_hash_map<uint64_t, std::vector<OperatorId>> operator_ids_;
  std::vector<TensorType> types_;
  std::map<std::string, int32_t> type_ids_;
  absl::flat_hash_map<Key, ENodeId> calls_;
  std::map<OpKind, std::vector<ENodeId>> by_kind_;
  std::map<TensorRef, ClassId> tensors_;
  std::vector<ClassId> dirty_;  // merged since the last Rebuild
  std::vector<Application> applications_;
};

}  // namespace isomer

#endif  // ISOMER_RULES_EQUALITY_EGRAPH_H_
