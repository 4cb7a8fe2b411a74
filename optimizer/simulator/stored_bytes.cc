#include "optimizer/simulator/stored_bytes.h"

#include <algorithm>
#include <map>
#include <vector>

#include "pcg/ir/weight_cuts.h"

namespace isomer {
namespace {

// Bytes per device of a weight's shard, and its states, on `copies` devices.
struct ShardBytes {
  int64_t stored = 0, gradient = 0;
};
ShardBytes BytesOfShard(const UpdateOptions& update, const std::string& weight, DataType stored,
                        int64_t numbers, int64_t copies, int64_t micro_batches) {
  const auto named = update.methods.find(weight);
  const UpdateMethod method = named == update.methods.end() ? update.method : named->second;
  const UpdateMethodTraits& traits = TraitsOf(method);
  const WeightBytes each = BytesOfWeight(stored, update.optimizer, update.gradient_sums,
                                         update.averages, update.clips, update.state_precision);
  const auto on_device = [&](int64_t bytes_each, bool splits) {
    return numbers * bytes_each / (splits ? copies : 1);
  };
  // All but the owner have no states.
  const bool has_states = method != UpdateMethod::kOwner && !update.states_on_host;
  return {on_device(each.stored, traits.splits_weight) +
              (has_states ? on_device(each.trained, traits.splits_trained) : 0),
          on_device(each.gradient, traits.SplitsGradient(micro_batches))};
}

// Of the device that stores most, beyond what its memory is larger than the smallest.
ShardBytes MostBytes(const Plan& plan, const UpdateOptions& update, int64_t micro_batches,
                     const Machine* machine) {
  const Graph& graph = plan.graph;
  const std::vector<std::vector<Graph::Use>> users = graph.Users();
  // A view's first device has the first shard.
  std::map<int64_t, ShardBytes> on_device;
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
      return BytesOfShard(update, graph.node({id}).name, stored, type.LocalElements(), copies,
                          micro_batches);
    };
    const ShardBytes low = bytes_in(dtype), own = bytes_in(type.dtype);
    ShardBytes& bytes = on_device[view.start];
    bytes.stored += std::min(low.stored, own.stored);
    bytes.gradient += std::min(low.gradient, own.gradient);
  }
  ShardBytes most;
  const bool are_alike = machine == nullptr || machine->kinds_in_use().size() == 1;
  for (auto& [device, bytes] : on_device) {
    if (!are_alike) bytes.stored -= machine->more_memory_bytes(device);
    if (bytes.stored + bytes.gradient > most.stored + most.gradient) most = bytes;
  }
  return most;
}

}  // namespace

int64_t LeastStoredBytes(const Plan& plan, const UpdateOptions& update, const Machine* machine) {
  const int64_t micro_batches = NumMicroBatches(plan.graph, plan.views).value_or(1);
  const ShardBytes most = MostBytes(plan, update, micro_batches, machine);
  return most.stored + (micro_batches > 1 ? most.gradient : 0);
}

int64_t LeastStoredOnAll(const Graph& graph, DataType precision, const UpdateOptions& update,
                         Keeps keeps, const Machine& machine) {
  const bool has_states =
      keeps != Keeps::kWeights && !update.states_on_host && !machine.has_host_memory();
  const auto bytes_of = [&](const TensorType& type, DataType stored) {
    const WeightBytes each = BytesOfWeight(stored, update.optimizer, update.gradient_sums,
                                           update.averages, update.clips, update.state_precision);
    return type.LocalElements() * (each.stored + (has_states ? each.trained : 0) +
                                   (keeps == Keeps::kSums ? each.gradient : 0));
  };
  int64_t bytes = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node({id}).op.kind() != OpKind::kWeight) continue;
    const TensorType& type = graph.node({id}).outputs[0];
    const DataType low = type.dtype == DataType::kFloat32 ? precision : type.dtype;
    bytes += std::min(bytes_of(type, low), bytes_of(type, type.dtype));
  }
  return bytes;
}

int64_t EstimatedPeakWith(const UpdateOptions& update, const Plan& plan, const Machine* machine) {
  const int64_t micro_batches = NumMicroBatches(plan.graph, plan.views).value_or(1);
  const ShardBytes now = MostBytes(plan, plan.update, micro_batches, machine);
  const int64_t besides = plan.predicted_peak_bytes - now.stored - now.gradient;
  return LeastStoredBytes(plan, update, machine) + std::max<int64_t>(0, besides);
}

}  // namespace isomer
