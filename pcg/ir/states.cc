#include "pcg/ir/states.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace isomer {

std::vector<State> StatesOf(const Graph& graph) {
  absl::flat_hash_map<std::string, NodeId> inputs;
  std::vector<bool> is_read(graph.num_nodes(), false);
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node({id});
    if (node.op.kind() == OpKind::kInput) inputs.emplace(node.name, NodeId{id});
    for (TensorRef input : node.inputs) is_read[input.node.value] = true;
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    is_read[output.tensor.node.value] = true;
  }
  std::vector<State> states;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    const auto input = inputs.find(output.name);
    if (input == inputs.end() || output.tensor.node == input->second) continue;
    if (is_read[input->second.value]) states.push_back({output.name, input->second, output.tensor});
  }
  return states;
}

std::vector<Graph::NamedOutput> OutputsForHost(const Graph& graph, bool training) {
  std::vector<Graph::NamedOutput> outputs = graph.outputs();
  if (training) return outputs;
  absl::flat_hash_set<std::string> states;
  for (State& state : StatesOf(graph)) states.insert(std::move(state.name));
  std::erase_if(outputs, [&](const auto& output) { return states.contains(output.name); });
  return outputs;
}

absl::Status CheckStates(const Graph& graph) {
  const std::vector<State> states = StatesOf(graph);
  absl::flat_hash_map<NodeId, std::string> names;  // by input
  for (const State& state : states) {
    const TensorType& before = graph.type({state.input, 0});
    const TensorType& next = graph.type(state.next);
    if (before != next) {
      return absl::InvalidArgumentError(absl::StrCat("state '", state.name, "' is ",
                                                     before.ToString(), ", and in the next step ",
                                                     next.ToString()));
    }
    if (!names.emplace(state.input, state.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("state '", state.name, "' has two next values"));
    }
  }
  for (const Graph::NamedOutput& output : OutputsForHost(graph, /*training=*/false)) {
    NodeId from = output.tensor.node;
    while (IsParallel(graph.node(from).op.kind())) from = graph.node(from).inputs[0].node;
    const auto state = names.find(from);
    if (state == names.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("output '", output.name, "' is state '",
                                                   state->second,
                                                   "' as it was, which the step writes over"));
  }
  return absl::OkStatus();
}

int64_t BytesOfStates(const Graph& graph) {
  int64_t bytes = 0;
  for (const State& state : StatesOf(graph)) bytes += graph.type({state.input, 0}).LocalBytes();
  return bytes;
}

}  // namespace isomer
