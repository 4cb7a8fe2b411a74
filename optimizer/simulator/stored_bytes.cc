#include "optimizer/simulator/stored_bytes.h"

#include <algorithm>
#include <map>
#include <vector>

#include "pcg/ir/weight_cuts.h"

namespace isomer {
namespace {

// Bytes per device of a weight's shard, and its states, on `copies` devices.
int64_t BytesOfShard(const UpdateOptions& update, const std::string& weight, DataType stored,
                     int64_t numbers, int64_t copies) {
  const auto named = update.methods.find(weight);
  const UpdateMethod method = named == update.methods.end() ? update.method : named->second;
  const WeightBytes each = BytesOfWeight(stored, update.optimizer, update.low_precision_sums);
  const int64_t bytes = numbers * each.stored;
  const int64_t trained = update.states_on_host ? 0 : numbers * each.trained;
  if (method == UpdateMethod::kOwner) return bytes;  // of all but the owner
  const UpdateMethodTraits& traits = TraitsOf(method);
  return bytes / (traits.splits_weight ? copies : 1) +
         trained / (traits.splits_trained ? copies : 1);
}

}  // namespace

int64_t LeastStoredBytes(const Plan& plan, const UpdateOptions& update) {
  const Graph& graph = plan.graph;
  const std::vector<std::vector<Graph::Use>> users = graph.Users();
  // A view's first device has the first shard.
  std::map<int64_t, int64_t> on_device;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node({id}).op.kind() != OpKind::kWeight) continue;
    // The result of layout calls on it, which is what is stored.
    int stored = id;
    while (users[stored].size() == 1 && IsParallel(graph.node(users[stored][0].user).op.kind())) {
      stored = users[stored][0].user.value;
    }
    const TensorType& type = graph.node({stored}).outputs[0];
    const MachineView& view = plan.views[stored];
    // Equal parts, or none.
    int64_t copies = std::max<int64_t>(1, type.copies / view.MomentsOfAxis(type.dims.size()));
    if (CutsOf(type.LocalShape(), copies).empty()) copies = 1;
    const DataType dtype = type.dtype == DataType::kFloat32 ? plan.precision : type.dtype;
    // Stored in low precision if all users compute in it, else in its own type.
    const auto bytes_in = [&](DataType stored) {
      return BytesOfShard(update, graph.node({id}).name, stored, type.LocalElements(), copies);
    };
    on_device[view.start] += std::min(bytes_in(dtype), bytes_in(type.dtype));
  }
  int64_t most = 0;
  for (const auto& [device, bytes] : on_device) most = std::max(most, bytes);
  return most;
}

}  // namespace isomer
