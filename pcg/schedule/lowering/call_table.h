// What equal calls of a graph have in common, once for all of them: how they are spread over tasks,
// and the work of a task. A model of a hundred thousand operators has some dozens of them.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_CALL_TABLE_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_CALL_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/type_inference.h"
#include "pcg/profile/work.h"

namespace isomer {

class CallTable {
 public:
  explicit CallTable(int num_nodes = 0) : call_of_(num_nodes, kNone) {}

  int num_nodes() const { return static_cast<int>(call_of_.size()); }
  // Notes the call at a node. REQUIRES: it is declared. Errors are those of InferSharding.
  absl::Status Add(const Graph& graph, NodeId node);
  bool Contains(NodeId node) const { return call_of_[node.value] != kNone; }

  // REQUIRES of the following: Contains(node). What they return stays until the next Add.
  const Sharding& ShardingOf(NodeId node) const { return At(node).sharding; }
  const Work& ForwardWorkOf(NodeId node) const { return At(node).forward; }
  // What a task leaves for its gradient, beside that work, if anything.
  const std::optional<SavedForGradient>& SavedBy(NodeId node) const { return At(node).saved; }
  const GradientNeeds& NeedsOf(NodeId node);
  const Work& GradientWorkOf(NodeId node, const std::vector<bool>& wanted);

 private:
  static constexpr int32_t kNone = -1;
  struct Call {
    Operator op;
    std::vector<TensorType> operands;
    Sharding sharding;
    Work forward;
    std::optional<SavedForGradient> saved;
    std::optional<GradientNeeds> needs = {};
    std::map<std::vector<bool>, Work> gradient = {};  // by wanted operands
    int32_t next = kNone;                             // of the same hash
  };
  const Call& At(NodeId node) const { return calls_[call_of_[node.value]]; }
  Call& At(NodeId node) { return calls_[call_of_[node.value]]; }

  std::vector<int32_t> call_of_;  // per node
  std::vector<Call> calls_;
  absl::flat_hash_map<uint64_t, int32_t> last_;  // by QuickHashOfCall
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_CALL_TABLE_H_
