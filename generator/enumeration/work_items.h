// What there is to generate at one size: lists of operands whose terms are alike.
#ifndef ISOMER_GENERATOR_ENUMERATION_WORK_ITEMS_H_
#define ISOMER_GENERATOR_ENUMERATION_WORK_ITEMS_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "generator/enumeration/configuration.h"
#include "generator/enumeration/term_store.h"

namespace isomer {

// Terms of one call. Either every tensor of `first`, or every pair of `first` and `second`, or the
// tuples listed.
struct WorkItem {
  const EnumeratedCall* call = nullptr;
  NamingId naming = -1;  // of all terms; -1: they differ
  bool linear = false;
  const std::vector<int>* first = nullptr;
  const std::vector<int>* second = nullptr;
  std::vector<TensorList> tuples;
  bool may_share = false;    // pairs may share nodes: then they are of a smaller size
  bool commutative = false;  // pairs in order of orbits
  bool both_orders = false;  // the exchanged pair is generated too

  // Calls `visit` with the operands of each term, in order.
  void ForEach(const TermStore& store, absl::FunctionRef<void(const TensorList&)> visit) const;
};

class WorkPlanner {
 public:
  WorkPlanner(const Configuration& configuration, EnumeratedCalls* calls, TermStore* store)
      : configuration_(configuration), calls_(calls), store_(store) {}

  // The canonical terms of `size` operators that are linear, or those that are not. REQUIRES: all
  // smaller ones are in the store.
  std::vector<WorkItem> Plan(int size, bool linear);

 private:
  void PlanUnary(int op, int size, bool linear, std::vector<WorkItem>* items);
  void PlanPairs(int op, int size, bool linear, std::vector<WorkItem>* items);
  void PlanSharingPairs(int op, std::vector<WorkItem>* items);
  // Tuples of three tensors or more that share no nodes, and those that do.
  void PlanTuples(int op, int arity, int size, bool linear, std::vector<WorkItem>* items);
  void PlanSharingTuples(int op, int arity, int size, std::vector<WorkItem>* items);
  // Pairs of tensors that share nodes and need size - 1 of them, by their types.
  void CollectSharingPairs(int size);
  void AddSharingPair(int a, int b);

  // Nodes that a tensor needs, with all that these need, and the tensors that need them.
  using SharedParts = std::map<std::vector<int>, std::vector<int>>;
  // Parts of `part_size` nodes of the tensors of `size`.
  SharedParts PartsOfSize(int size, int part_size) const;
  // Tensors of less than `size` operators by the nodes that they need.
  void CollectContaining(int size);
  // The types of the operands of calls, and all beginnings of such lists.
  using TypeLists = absl::flat_hash_set<std::vector<int>>;
  TypeLists BeginningsOfCalls(int op, int arity, int size) const;
  bool HasOperandsOf(int node, const std::vector<int>& nodes) const;
  void ForEachOfSize(int size, absl::FunctionRef<void(int)> visit) const;

  const Configuration& configuration_;
  EnumeratedCalls* const calls_;
  TermStore* const store_;
  int sharing_size_ = -1;
  std::map<std::pair<int, int>, std::vector<TensorList>> sharing_;
  int containing_size_ = -1;
  absl::flat_hash_map<int, std::vector<int>> containing_;  // by node
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_WORK_ITEMS_H_
