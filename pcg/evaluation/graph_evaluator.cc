// The reference evaluator on whole graphs: values with partials and micro-batches, and gradients.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/partial_field.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Rows [begin, begin + extent) of dim `axis`.
template <typename T>
Array<T> Slice(const Array<T>& array, int axis, int64_t begin, int64_t extent) {
  std::vector<int64_t> shape = array.shape;
  shape[axis] = extent;
  Array<T> result(shape);
  int64_t inner = 1, outer = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int64_t o = 0; o < outer; ++o) {
    const T* from = array.data.data() + (o * array.shape[axis] + begin) * inner;
    std::copy(from, from + extent * inner, result.data.begin() + o * extent * inner);
  }
  return result;
}

// The parts joined along dim `axis`.
template <typename T>
Array<T> Join(const std::vector<const Array<T>*>& parts, int axis) {
  std::vector<int64_t> shape = parts[0]->shape;
  shape[axis] *= static_cast<int64_t>(parts.size());
  Array<T> result(shape);
  int64_t inner = 1, outer = 1;
  for (size_t i = axis; i < shape.size(); ++i) inner *= parts[0]->shape[i];
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  auto to = result.data.begin();
  for (int64_t o = 0; o < outer; ++o) {
    for (const Array<T>* part : parts) {
      to = std::copy(part->data.begin() + o * inner, part->data.begin() + (o + 1) * inner, to);
    }
  }
  return result;
}

template <typename T>
void AddTo(const Array<T>& from, Array<T>* to) {
  if (to->data.empty()) {
    *to = from;
    return;
  }
  for (size_t i = 0; i < from.data.size(); ++i) to->data[i] = to->data[i] + from.data[i];
}

int AxisOf(const Operator& op, const TensorType& type) {
  const int64_t axis = op.Int("axis");
  return static_cast<int>(axis < 0 ? axis + type.rank() : axis);
}

template <typename T>
Value<T> EvaluateParallel(const Node& node, const std::vector<const Value<T>*>& operands) {
  Value<T> result{node.outputs[0], {}};
  const Value<T>& x = *operands[0];
  const int64_t micro_batches = result.type.micro_batches, partials = result.type.partials;
  switch (node.op.kind()) {
    case OpKind::kReduce:
      for (int64_t q = 0; q < micro_batches * partials; ++q) {
        const int64_t d = node.op.Int("degree");
        Array<T> sum = x.parts[q * d];
        for (int64_t r = 1; r < d; ++r) AddTo(x.parts[q * d + r], &sum);
        result.parts.push_back(std::move(sum));
      }
      return result;
    case OpKind::kConcatPartials:
      for (int64_t m = 0; m < micro_batches; ++m) {
        for (const Value<T>* operand : operands) {
          for (int64_t p = 0; p < operand->type.partials; ++p)
            result.parts.push_back(operand->part(m, p));
        }
      }
      return result;
    case OpKind::kPipeline: {
      const int axis = AxisOf(node.op, x.type);
      const int64_t extent = result.type.dims[axis].size;
      for (int64_t m = 0; m < micro_batches; ++m) {
        for (const Array<T>& part : x.parts)
          result.parts.push_back(Slice(part, axis, m * extent, extent));
      }
      return result;
    }
    case OpKind::kBatch:
      for (int64_t p = 0; p < partials; ++p) {
        std::vector<const Array<T>*> sequence;
        for (int64_t m = 0; m < x.type.micro_batches; ++m) sequence.push_back(&x.part(m, p));
        result.parts.push_back(Join(sequence, AxisOf(node.op, x.type)));
      }
      return result;
    default:  // Partition, Combine, Replicate: how it is held, not what it is.
      result.parts = x.parts;
      return result;
  }
}

// One call of a declared operator: for each micro-batch and each partial of the output, a task.
template <typename T>
struct Call {
  Sharding sharding;
  std::vector<const Value<T>*> operands;
  std::vector<int64_t> sum_degrees;  // degrees of sum dims; the other dims are done as a whole

  struct Task {
    IterationBox box;
    std::vector<const Array<T>*> operands;
    Sharding::Task coordinates;
  };
  Task MakeTask(int64_t micro_batch, int64_t partial) const {
    Task task;
    const std::vector<int64_t> origin(sharding.outputs[0].dims.size(), 0);
    task.coordinates = sharding.TaskOfOutputShard(origin, partial);
    task.box = TaskBox(sharding.declaration, sum_degrees, task.coordinates.dims);
    for (size_t o = 0; o < operands.size(); ++o) {
      const int64_t m = operands[o]->type.micro_batches == 1 ? 0 : micro_batch;
      task.operands.push_back(
          &operands[o]->part(m, sharding.OperandPartial(task.coordinates, static_cast<int>(o))));
    }
    return task;
  }
};

// Integers are truncated towards zero, truth values are 0 or 1; floats stay real numbers.
template <typename T>
void NormalizeElements(DataType dtype, Array<T>* array) {
  if constexpr (std::is_floating_point_v<T>) {
    if (IsFloat(dtype)) return;
    for (T& value : array->data) value = dtype == DataType::kBool ? value != 0 : std::trunc(value);
  }
}

template <typename T>
absl::StatusOr<Call<T>> MakeCall(const Graph& graph, const Node& node, const Values<T>& values) {
  Call<T> call;
  std::vector<TensorType> types;
  for (TensorRef input : node.inputs) {
    types.push_back(graph.type(input));
    call.operands.push_back(&values[input.node.value][input.output]);
  }
  ISOMER_ASSIGN_OR_RETURN(call.sharding, InferSharding(node.op, types));
  for (size_t v = 0; v < call.sharding.degrees.size(); ++v) {
    const bool is_sum = call.sharding.declaration.dims[v].kind == DimKind::kSum;
    call.sum_degrees.push_back(is_sum ? call.sharding.degrees[v] : 1);
  }
  return call;
}

}  // namespace

template <typename T>
std::vector<Array<T>> Meaning(const Value<T>& value) {
  std::vector<Array<T>> meaning;
  for (int64_t m = 0; m < value.type.micro_batches; ++m) {
    Array<T> sum = value.part(m, 0);
    for (int64_t p = 1; p < value.type.partials; ++p) AddTo(value.part(m, p), &sum);
    meaning.push_back(std::move(sum));
  }
  return meaning;
}

template <typename T>
absl::StatusOr<Values<T>> EvaluateGraph(const Graph& graph,
                                        const std::map<NodeId, Value<T>>& leaves) {
  Values<T> values(graph.num_nodes());
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    std::vector<Value<T>>& results = values[id.value];
    if (IsLeaf(node.op.kind())) {
      auto leaf = leaves.find(id);
      if (leaf == leaves.end())
        return absl::InvalidArgumentError(absl::StrCat(graph.Label(id), " has no value"));
      results.push_back(leaf->second);
      continue;
    }
    if (IsParallel(node.op.kind())) {
      std::vector<const Value<T>*> operands;
      for (TensorRef input : node.inputs)
        operands.push_back(&values[input.node.value][input.output]);
      results.push_back(EvaluateParallel(node, operands));
      continue;
    }
    ISOMER_ASSIGN_OR_RETURN(const Call<T> call, MakeCall(graph, node, values));
    for (const TensorType& type : node.outputs) results.push_back({type, {}});
    for (int64_t m = 0; m < node.outputs[0].micro_batches; ++m) {
      for (int64_t p = 0; p < node.outputs[0].partials; ++p) {
        const typename Call<T>::Task task = call.MakeTask(m, p);
        absl::StatusOr<std::vector<Array<T>>> outputs =
            Evaluate<T>(call.sharding.declaration, task.box, task.operands);
        if (!outputs.ok())
          return absl::InvalidArgumentError(
              absl::StrCat(graph.Label(id), ": ", outputs.status().message()));
        for (size_t t = 0; t < results.size(); ++t) {
          NormalizeElements(node.outputs[t].dtype, &(*outputs)[t]);
          results[t].parts.push_back(std::move((*outputs)[t]));
        }
      }
    }
  }
  return values;
}

namespace {

// Gradients of meanings: [node][output][micro_batch]; an empty array is zero.
template <typename T>
using Gradients = std::vector<std::vector<std::vector<Array<T>>>>;

template <typename T>
void ParallelGradient(const Graph& graph, NodeId id, Gradients<T>* gradients) {
  const Node& node = graph.node(id);
  std::vector<Array<T>>& g = (*gradients)[id.value][0];
  for (Array<T>& part : g) {
    if (part.data.empty()) part = Array<T>(node.outputs[0].Sizes());
  }
  for (TensorRef input : node.inputs) {
    std::vector<Array<T>>& to = (*gradients)[input.node.value][input.output];
    if (node.op.kind() == OpKind::kPipeline) {
      std::vector<const Array<T>*> sequence;
      for (const Array<T>& part : g) sequence.push_back(&part);
      AddTo(Join(sequence, AxisOf(node.op, graph.type(input))), &to[0]);
    } else if (node.op.kind() == OpKind::kBatch) {
      const int axis = AxisOf(node.op, graph.type(input));
      const int64_t extent = graph.type(input).dims[axis].size;
      for (size_t m = 0; m < to.size(); ++m)
        AddTo(Slice(g[0], axis, static_cast<int64_t>(m) * extent, extent), &to[m]);
    } else {
      for (size_t m = 0; m < to.size(); ++m) AddTo(g[m], &to[m]);
    }
  }
}

template <typename T>
absl::Status CallGradient(const Graph& graph, NodeId id, const Values<T>& values,
                          Gradients<T>* gradients) {
  const Node& node = graph.node(id);
  ISOMER_ASSIGN_OR_RETURN(const Call<T> call, MakeCall(graph, node, values));
  for (int64_t m = 0; m < node.outputs[0].micro_batches; ++m) {
    std::vector<Array<T>> zeros;  // for outputs nobody uses
    zeros.reserve(node.outputs.size());
    std::vector<const Array<T>*> seeds;
    for (size_t t = 0; t < node.outputs.size(); ++t) {
      const Array<T>& seed = (*gradients)[id.value][t][m];
      if (seed.data.empty()) zeros.emplace_back(node.outputs[t].Sizes());
      seeds.push_back(seed.data.empty() ? &zeros.back() : &seed);
    }
    for (int64_t p = 0; p < node.outputs[0].partials; ++p) {
      const typename Call<T>::Task task = call.MakeTask(m, p);
      std::vector<Array<T>> shares(node.inputs.size());
      std::vector<Array<T>*> wanted(node.inputs.size(), nullptr);
      for (size_t o = 0; o < node.inputs.size(); ++o) {
        if (!IsFloat(graph.type(node.inputs[o]).dtype)) continue;
        // Each partial of a linear operand has the gradient of the whole: one of them tells it.
        if (call.sharding.linear_operands[o] && task.coordinates.operand_partial != 0) continue;
        shares[o] = Array<T>(task.operands[o]->shape);
        wanted[o] = &shares[o];
      }
      ISOMER_RETURN_IF_ERROR(
          EvaluateGradient<T>(call.sharding.declaration, task.box, task.operands, seeds, wanted));
      for (size_t o = 0; o < node.inputs.size(); ++o) {
        if (wanted[o] == nullptr) continue;
        std::vector<Array<T>>& to = (*gradients)[node.inputs[o].node.value][node.inputs[o].output];
        AddTo(shares[o], &to[to.size() == 1 ? 0 : m]);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

template <typename T>
absl::StatusOr<std::map<NodeId, std::vector<Array<T>>>> EvaluateGradients(
    const Graph& graph, const Values<T>& values, const std::vector<std::vector<Array<T>>>& seeds) {
  Gradients<T> gradients(graph.num_nodes());
  for (int id = 0; id < graph.num_nodes(); ++id) {
    for (const TensorType& type : graph.node(id).outputs)
      gradients[id].emplace_back(type.micro_batches);
  }
  for (size_t o = 0; o < graph.outputs().size(); ++o) {
    const TensorRef tensor = graph.outputs()[o].tensor;
    for (size_t m = 0; m < seeds[o].size(); ++m)
      AddTo(seeds[o][m], &gradients[tensor.node.value][tensor.output][m]);
  }
  const std::vector<NodeId> order = graph.TopologicalOrder();
  std::map<NodeId, std::vector<Array<T>>> result;
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const Node& node = graph.node(*id);
    std::vector<std::vector<Array<T>>>& of_node = gradients[id->value];
    bool zero = true;
    for (const auto& output : of_node) {
      for (const Array<T>& gradient : output) zero &= gradient.data.empty();
    }
    if (IsLeaf(node.op.kind())) {
      if (!IsFloat(node.outputs[0].dtype)) continue;
      for (Array<T>& gradient : of_node[0]) {
        if (gradient.data.empty()) gradient = Array<T>(node.outputs[0].Sizes());
      }
      result[*id] = of_node[0];
    } else if (!zero && IsParallel(node.op.kind())) {
      ParallelGradient(graph, *id, &gradients);
    } else if (!zero) {
      ISOMER_RETURN_IF_ERROR(CallGradient(graph, *id, values, &gradients));
    }
  }
  return result;
}

#define ISOMER_INSTANTIATE(T)                                                             \
  template std::vector<Array<T>> Meaning<T>(const Value<T>&);                             \
  template absl::StatusOr<Values<T>> EvaluateGraph<T>(const Graph&,                       \
                                                      const std::map<NodeId, Value<T>>&); \
  template absl::StatusOr<std::map<NodeId, std::vector<Array<T>>>> EvaluateGradients<T>(  \
      const Graph&, const Values<T>&, const std::vector<std::vector<Array<T>>>&);
ISOMER_INSTANTIATE(double)
ISOMER_INSTANTIATE(float)
ISOMER_INSTANTIATE(PrimeField)
#undef ISOMER_INSTANTIATE
template std::vector<Array<PartialField>> Meaning<PartialField>(const Value<PartialField>&);
template absl::StatusOr<Values<PartialField>> EvaluateGraph<PartialField>(
    const Graph&, const std::map<NodeId, Value<PartialField>>&);

}  // namespace isomer
