#include "verifier/exhaustive/compare.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_call.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

template <typename Value>
using Tensors = std::vector<SparseTensor<Value>>;
template <typename Value>
using Pairs = std::vector<TensorPair<Value>>;

template <typename Value>
Pairs<Value> Paired(Tensors<Value> left, Tensors<Value> right) {
  Pairs<Value> pairs;
  for (size_t t = 0; t < left.size(); ++t) {
    pairs.emplace_back(std::move(left[t]), std::move(right[t]));
  }
  return pairs;
}

// What the indices of operand o must stay below; 0: it holds none.
int64_t IndexLimit(const Declaration& d, OpKind kind, int o) {
  if (!IsIndexOperand(kind, o)) return 0;
  int64_t limit = 4;
  for (const Statement& s : d.statements) {
    if (s.select >= 0 && d.accesses[s.select].tensor == o) {
      limit = std::min(limit, d.dims[s.select_dim].size.value());
    }
  }
  return limit;
}

template <typename Elements>
Tensors<typename Elements::Value> OperandsOf(const Operator& op, const Declaration& d,
                                             const std::vector<TensorType>& types,
                                             int64_t first_tensor, Operands<Elements>* operands) {
  Tensors<typename Elements::Value> made;
  for (size_t o = 0; o < types.size(); ++o) {
    made.push_back(operands->Make(first_tensor + static_cast<int64_t>(o), types[o].Sizes(),
                                  types[o].dtype, IndexLimit(d, op.kind(), static_cast<int>(o))));
  }
  return made;
}

template <typename Value>
SparseTensor<Value> Restricted(const SparseTensor<Value>& whole, const Box& box) {
  SparseTensor<Value> part{whole.shape, {}};
  part.elements.resize(whole.elements.size());
  std::vector<int64_t> end = box.origin;
  for (size_t i = 0; i < end.size(); ++i) end[i] += box.shape[i];
  ForEachPoint(box.origin, end, [&](const std::vector<int64_t>& at) {
    const int64_t offset = OffsetOf(whole.shape, at);
    part.elements[offset] = whole.elements[offset];
  });
  return part;
}

struct PiecesExperiment {
  const Operator& op;
  const std::vector<TensorType>& types;
  const Sharding& sharding;

  template <typename Elements>
  absl::StatusOr<Pairs<typename Elements::Value>> operator()(Operands<Elements>* operands) const {
    using Value = typename Elements::Value;
    const Declaration& d = sharding.declaration;
    Elements* elements = &operands->elements();
    const Tensors<Value> whole = OperandsOf(op, d, types, 0, operands);
    ISOMER_ASSIGN_OR_RETURN(Tensors<Value> expected, Interpret(d, WholeRanges(d), whole, elements));
    Tensors<Value> made;
    for (const SparseTensor<Value>& output : expected) {
      made.push_back({output.shape, {}});
      made.back().elements.resize(output.elements.size());
    }
    for (int64_t shard = 0; shard < sharding.outputs[0].NumShards(); ++shard) {
      const ShardCoordinates at = CoordinatesOfShard(sharding.outputs[0], shard);
      if (at.copy != 0) continue;
      ISOMER_ASSIGN_OR_RETURN(const Tensors<Value> part, RunTask(at, whole, elements));
      ISOMER_RETURN_IF_ERROR(PutTogether(part, at.partial == 0, elements, &made));
    }
    return Paired(std::move(expected), std::move(made));
  }

  template <typename Elements>
  absl::StatusOr<Tensors<typename Elements::Value>> RunTask(
      const ShardCoordinates& at, const Tensors<typename Elements::Value>& whole,
      Elements* elements) const {
    const Declaration& d = sharding.declaration;
    const Sharding::Task task = sharding.TaskOfOutputShard(at.dims, at.partial);
    DimRanges ranges;
    for (size_t v = 0; v < d.dims.size(); ++v) {
      const int64_t size = d.dims[v].size.value() / sharding.degrees[v];
      ranges.begin.push_back(task.dims[v] * size);
      ranges.end.push_back((task.dims[v] + 1) * size);
    }
    Tensors<typename Elements::Value> held;
    for (size_t o = 0; o < whole.size(); ++o) {
      held.push_back(Restricted(whole[o], sharding.OperandBox(task, static_cast<int>(o))));
    }
    return Interpret(d, ranges, held, elements);
  }

  // The first partials make every element once; the others are added to them.
  template <typename Elements>
  static absl::Status PutTogether(const Tensors<typename Elements::Value>& part, bool first,
                                  Elements* elements, Tensors<typename Elements::Value>* made) {
    for (size_t t = 0; t < part.size(); ++t) {
      for (size_t i = 0; i < part[t].elements.size(); ++i) {
        const auto& element = part[t].elements[i];
        auto& sum = (*made)[t].elements[i];
        if (!element) continue;
        if (first == sum.has_value()) {
          return absl::FailedPreconditionError("an element is made by two tasks, or by none");
        }
        sum = first ? *element : elements->Sum({*sum, *element});
      }
    }
    return absl::OkStatus();
  }
};

struct LinearExperiment {
  const Operator& op;
  const std::vector<TensorType>& types;
  const Declaration& d;
  const std::vector<bool>& linear;

  template <typename Elements>
  absl::StatusOr<Pairs<typename Elements::Value>> operator()(Operands<Elements>* operands) const {
    using Value = typename Elements::Value;
    Elements& e = operands->elements();
    const Tensors<Value> x = OperandsOf(op, d, types, 0, operands);
    const Tensors<Value> other = OperandsOf(op, d, types, 100, operands);
    const Value factor = *operands->Make(200, {}, DataType::kFloat32).elements[0];
    Tensors<Value> sum = x, y = x, scaled = x;
    for (size_t o = 0; o < x.size(); ++o) {
      if (!linear[o]) continue;
      y[o] = other[o];
      for (size_t i = 0; i < x[o].elements.size(); ++i) {
        sum[o].elements[i] = e.Sum({*x[o].elements[i], *y[o].elements[i]});
        scaled[o].elements[i] = e.Product({factor, *x[o].elements[i]});
      }
    }
    const DimRanges whole = WholeRanges(d);
    ISOMER_ASSIGN_OR_RETURN(Tensors<Value> of_sum, Interpret(d, whole, sum, &e));
    ISOMER_ASSIGN_OR_RETURN(Tensors<Value> of_scaled, Interpret(d, whole, scaled, &e));
    ISOMER_ASSIGN_OR_RETURN(Tensors<Value> of_x, Interpret(d, whole, x, &e));
    ISOMER_ASSIGN_OR_RETURN(Tensors<Value> of_y, Interpret(d, whole, y, &e));
    Pairs<Value> pairs;
    for (size_t t = 0; t < of_x.size(); ++t) {
      for (size_t i = 0; i < of_x[t].elements.size(); ++i) {
        of_y[t].elements[i] = e.Sum({*of_x[t].elements[i], *of_y[t].elements[i]});
        of_x[t].elements[i] = e.Product({factor, *of_x[t].elements[i]});
      }
      pairs.emplace_back(of_sum[t], of_y[t]);
      pairs.emplace_back(of_scaled[t], of_x[t]);
    }
    return pairs;
  }
};

// The smallest range of the indices that a graph looks up; 0 if it looks up none.
int64_t IndexLimitOf(const Graph& graph) {
  int64_t limit = 0;
  for (int n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(n);
    if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind())) continue;
    std::vector<Shape> shapes;
    for (TensorRef input : node.inputs) shapes.push_back(graph.type(input).GlobalShape());
    const absl::StatusOr<Declaration> d = Declare(node.op, shapes);
    if (!d.ok()) continue;
    for (int o = 0; o < d->num_operands(); ++o) {
      const int64_t here = IndexLimit(*d, node.op.kind(), o);
      if (here > 0) limit = limit == 0 ? here : std::min(limit, here);
    }
  }
  return limit;
}

struct GraphsExperiment {
  const Graph& left;
  const Graph& right;
  int64_t index_limit;

  template <typename Elements>
  absl::StatusOr<Pairs<typename Elements::Value>> operator()(Operands<Elements>* operands) const {
    using Value = typename Elements::Value;
    ISOMER_ASSIGN_OR_RETURN(Tensors<Value> first, Outputs(left, operands));
    ISOMER_ASSIGN_OR_RETURN(Tensors<Value> second, Outputs(right, operands));
    if (first.size() != second.size()) {
      return absl::InvalidArgumentError("other numbers of outputs");
    }
    return Paired(std::move(first), std::move(second));
  }

  template <typename Elements>
  absl::StatusOr<Tensors<typename Elements::Value>> Outputs(const Graph& graph,
                                                            Operands<Elements>* operands) const {
    using Value = typename Elements::Value;
    Elements& e = operands->elements();
    std::vector<Tensors<Value>> made;
    int64_t leaves = 0;
    for (int n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(n);
      if (IsLeaf(node.op.kind())) {
        const TensorType& type = node.outputs[0];
        made.push_back({operands->Make(leaves++, type.Sizes(), type.dtype,
                                       IsInteger(type.dtype) ? index_limit : 0)});
        continue;
      }
      Tensors<Value> arguments;
      for (TensorRef input : node.inputs) {
        arguments.push_back(made[input.node.value][input.output]);
      }
      if (IsParallel(node.op.kind())) {
        for (size_t i = 0; i < arguments[0].elements.size(); ++i) {
          std::vector<Value> parts;
          for (const auto& argument : arguments) parts.push_back(*argument.elements[i]);
          arguments[0].elements[i] = e.Sum(parts);
        }
        made.push_back({std::move(arguments[0])});
        continue;
      }
      std::vector<Shape> shapes;
      for (TensorRef input : node.inputs) shapes.push_back(graph.type(input).GlobalShape());
      ISOMER_ASSIGN_OR_RETURN(const Declaration d, Declare(node.op, shapes));
      ISOMER_ASSIGN_OR_RETURN(Tensors<Value> outputs, Interpret(d, WholeRanges(d), arguments, &e));
      made.push_back(std::move(outputs));
    }
    Tensors<Value> outputs;
    for (const Graph::NamedOutput& output : graph.outputs()) {
      outputs.push_back(made[output.tensor.node.value][output.tensor.output]);
    }
    return outputs;
  }
};

}  // namespace

template <typename Elements>
std::string FirstDifference(const std::vector<TensorPair<typename Elements::Value>>& pairs,
                            Elements* elements) {
  for (size_t t = 0; t < pairs.size(); ++t) {
    const auto& [left, right] = pairs[t];
    if (left.shape != right.shape) return absl::StrCat("the shapes of output ", t, " differ");
    for (size_t i = 0; i < left.elements.size(); ++i) {
      const auto &a = left.elements[i], &b = right.elements[i];
      if (!a || !b || !elements->Equal(*a, *b)) {
        return absl::StrCat("element ", i, " of output ", t, " differs");
      }
    }
  }
  return "";
}

template std::string FirstDifference(const std::vector<TensorPair<SymbolicElements::Value>>&,
                                     SymbolicElements*);
template std::string FirstDifference(const std::vector<TensorPair<NumericElements::Value>>&,
                                     NumericElements*);

absl::StatusOr<LemmaComparison> ComparePieces(const Operator& op,
                                              const std::vector<TensorType>& types,
                                              uint64_t index_seed) {
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(op, types));
  return ComparePieces(op, types, sharding, index_seed);
}

absl::StatusOr<LemmaComparison> ComparePieces(const Operator& op,
                                              const std::vector<TensorType>& types,
                                              const Sharding& sharding, uint64_t index_seed) {
  if (sharding.operand_partials > 1) return absl::InvalidArgumentError("operands are partial");
  return Compare(PiecesExperiment{op, types, sharding}, index_seed);
}

absl::StatusOr<LemmaComparison> CompareLinear(const Operator& op,
                                              const std::vector<TensorType>& types,
                                              const std::vector<bool>& linear) {
  ISOMER_ASSIGN_OR_RETURN(const Declaration d, Declare(op, ShapesOf(types)));
  return Compare(LinearExperiment{op, types, d, linear});
}

absl::StatusOr<LemmaComparison> CompareGraphs(const Graph& left, const Graph& right,
                                              uint64_t index_seed) {
  const int64_t a = IndexLimitOf(left), b = IndexLimitOf(right);
  const int64_t limit = a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
  return Compare(GraphsExperiment{left, right, limit}, index_seed);
}

int64_t PointsOf(const Declaration& declaration) {
  int64_t points = 0;
  for (const Statement& s : declaration.statements) {
    std::vector<bool> loops(declaration.dims.size(), false);
    for (int dim : s.reduced) loops[dim] = dim != s.select_dim;
    for (const Index& index : s.indices) {
      for (const auto& [dim, stride] : index.terms) loops[dim] = true;
    }
    int64_t here = 1;
    for (size_t v = 0; v < loops.size(); ++v) {
      if (loops[v]) here *= declaration.dims[v].size.value();
    }
    points += here;
  }
  return points;
}

}  // namespace isomer
