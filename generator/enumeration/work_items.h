// What there is to generate at one size: lists of operands whose terms are alike.
#ifndef ISOMER_GENERATOR_ENUMERATION_WORK_ITEMS_H_
#define ISOMER_GENERATOR_ENUMERATION_WORK_ITEMS_H_

#include <map>
#include <utility>
#include <vector>

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
  void PlanTuples(int op, int arity, int size, bool linear, std::vector<WorkItem>* items);
  // Pairs of tensors that share nodes and need size - 1 of them, by their types.
  void CollectSharingPairs(int size);
  void AddSharingPair(int a, int b);

  const Configuration& configuration_;
  EnumeratedCalls* const calls_;
  TermStore* const store_;
  int sharing_size_ = -1;
  std::map<std::pair<int, int>, std::vector<TensorList>> sharing_;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_WORK_ITEMS_H_
