#include "tests/derivations/derivation_values.h"

#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "pcg/evaluation/number.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

double Drawn(uint64_t hash) { return static_cast<double>(hash % 997 + 1); }

template <typename T>
T Draw(const TensorType& type, uint64_t hash) {
  if (!IsFloat(type.dtype)) return Number<T>::FromDouble(static_cast<double>(hash % 4));
  return Number<T>::FromDouble(std::is_same_v<T, double> ? Drawn(hash) / 997 : Drawn(hash));
}

template <typename T>
std::map<NodeId, Value<T>> LeavesOf(const Graph& graph) {
  std::map<NodeId, Value<T>> leaves;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    Value<T>& value = leaves[NodeId{id}];
    value.type = node.outputs[0];
    for (int64_t part = 0; part < value.type.partials * value.type.micro_batches; ++part) {
      Array<T> array(value.type.Sizes());
      for (int64_t i = 0; i < array.size(); ++i) {
        array.data[i] = Draw<T>(value.type, HashCombine(HashBytes(node.name), part, i));
      }
      value.parts.push_back(std::move(array));
    }
  }
  return leaves;
}

// The meanings of outputs, per output and micro-batch.
template <typename T>
std::vector<std::vector<Array<T>>> OutputsOf(const Graph& graph, const Values<T>& values) {
  std::vector<std::vector<Array<T>>> outputs;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    outputs.push_back(Meaning(values[output.tensor.node.value][output.tensor.output]));
  }
  return outputs;
}

template <typename T>
std::vector<Array<T>> Flat(std::vector<std::vector<Array<T>>> lists) {
  std::vector<Array<T>> flat;
  for (std::vector<Array<T>>& list : lists) {
    for (Array<T>& array : list) flat.push_back(std::move(array));
  }
  return flat;
}

}  // namespace

absl::StatusOr<Computed> ComputeInDouble(const Graph& graph) {
  ISOMER_ASSIGN_OR_RETURN(const Values<double> values,
                          EvaluateGraph<double>(graph, LeavesOf<double>(graph)));
  std::vector<std::vector<Array<double>>> outputs = OutputsOf(graph, values);
  std::vector<std::vector<Array<double>>> seeds = outputs;
  for (size_t o = 0; o < seeds.size(); ++o) {
    for (Array<double>& seed : seeds[o]) {
      for (int64_t i = 0; i < seed.size(); ++i) seed.data[i] = Drawn(HashCombine(o, i)) / 997;
    }
  }
  ISOMER_ASSIGN_OR_RETURN(auto gradients, EvaluateGradients<double>(graph, values, seeds));
  std::map<std::string, std::vector<Array<double>>> by_name;
  for (auto& [leaf, gradient] : gradients) by_name[graph.node(leaf).name] = std::move(gradient);
  Computed computed{Flat(std::move(outputs)), {}};
  for (auto& [name, gradient] : by_name) {
    for (Array<double>& array : gradient) computed.gradients.push_back(std::move(array));
  }
  return computed;
}

absl::StatusOr<std::vector<Array<PrimeField>>> OutputsInField(const Graph& graph) {
  ISOMER_ASSIGN_OR_RETURN(const Values<PrimeField> values,
                          EvaluateGraph<PrimeField>(graph, LeavesOf<PrimeField>(graph)));
  return Flat(OutputsOf(graph, values));
}

}  // namespace isomer
