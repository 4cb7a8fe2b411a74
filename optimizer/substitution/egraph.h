// An e-graph: classes of equal tensors, and the calls that compute them (Willsey et al., "egg",
// POPL'21). A rewriting adds calls and merges classes and forgets nothing, so the order in which
// rules are applied does not matter; extraction picks one call per class afterwards.
//
// A call of several outputs is one e-node that is a member of several classes, so no tuples are
// needed (as in TENSAT, MLSys'21). Two calls of one operator on equal operands are one e-node:
// merging classes may make calls equal, whose outputs are then merged in turn (congruence), which
// Rebuild() does for all merges at once.
//
// Every e-node remembers the rule application that made it, and every application the e-nodes that
// it matched: what is extracted can be replayed as steps of a derivation (egraph_replay.h).
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_H_

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

// A rule used somewhere: what it matched and what it made.
struct Application {
  const Rule* rule;
  std::vector<ENodeId> source;  // per node of the source pattern
  std::vector<bool> swapped;    // per node of the source pattern: operands taken the other way
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

  // A class per tensor of the live nodes of `graph`. `training` says what is loaded
  // (compute_graph.h).
  EGraph(const Graph& graph, bool training);

  // The class of a tensor of the graph that this was made from.
  ClassId ClassOf(TensorRef tensor) const { return Find(tensors_.at(tensor)); }

  // The classes that stand for merged ones. Ids that were merged away go on to be accepted.
  ClassId Find(ClassId id) const;
  ENodeId FindNode(ENodeId id) const;

  int num_classes() const { return static_cast<int>(classes_.size()); }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }  // merged ones included
  const ENode& node(ENodeId id) const { return nodes_[id]; }
  bool IsCanonical(ENodeId id) const { return forward_[id] == id; }
  const Operator& op(ENodeId id) const { return operators_[nodes_[id].op]; }
  const TensorType& type(ClassId id) const { return types_[classes_[Find(id)].type]; }
  int32_t type_id(ClassId id) const { return classes_[Find(id)].type; }
  // Known to be loaded before the step, however it is computed.
  bool IsStored(ClassId id) const { return classes_[Find(id)].stored; }
  // A call that makes stored tensors of stored ones.
  bool IsPrepared(OpKind kind) const { return training_ ? IsLayout(kind) : CanRunOnHost(kind); }
  const std::vector<Member>& members(ClassId id) const { return classes_[Find(id)].members; }
  // Calls that take the class as an operand; may name calls that were merged with others.
  const std::vector<ENodeId>& users(ClassId id) const { return classes_[Find(id)].users; }
  // Calls of a kind, in order of their making; may name calls that were merged with others.
  const std::vector<ENodeId>& NodesOf(OpKind kind) const;

  // The call of `op` on these classes, if it is there; else -1.
  ENodeId Lookup(const Operator& op, const std::vector<ClassId>& operands) const;
  // The same, made if it is not there. `types`: of its outputs.
  ENodeId Add(const Operator& op, std::vector<ClassId> operands,
              const std::vector<TensorType>& types);
  // From now on one class. REQUIRES: equal types. Rebuild() must follow before the next Lookup.
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

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_H_
