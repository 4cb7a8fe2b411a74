#include "generator/checking/sharded.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/evaluation/partial_field.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool Covers(const Box& box, const std::vector<int64_t>& whole) { return box.shape == whole; }

// Calls visit(offset in the whole, offset in the box, length) for the contiguous runs of a box.
template <typename Visit>
void ForEachRun(const Box& box, const std::vector<int64_t>& whole, Visit visit) {
  if (box.empty()) return;
  const int rank = static_cast<int>(whole.size());
  const int64_t run = rank == 0 ? 1 : box.shape[rank - 1];
  const int64_t runs = box.Volume() / run;
  std::vector<int64_t> at(rank, 0);
  for (int64_t r = 0; r < runs; ++r) {
    int64_t offset = 0;
    for (int i = 0; i < rank; ++i) offset = offset * whole[i] + box.origin[i] + at[i];
    visit(offset, r * run, run);
    for (int i = rank - 2; i >= 0 && ++at[i] == box.shape[i]; --i) at[i] = 0;
  }
}

template <typename T>
Array<T> Cut(const Array<T>& whole, const Box& box) {
  Array<T> piece(box.shape);
  piece.origin = box.origin;
  ForEachRun(box, whole.shape, [&](int64_t from, int64_t to, int64_t length) {
    std::copy_n(whole.data.begin() + from, length, piece.data.begin() + to);
  });
  return piece;
}

template <typename T>
void AddAt(const Array<T>& piece, const Box& box, Array<T>* whole) {
  ForEachRun(box, whole->shape, [&](int64_t to, int64_t from, int64_t length) {
    for (int64_t i = 0; i < length; ++i) whole->data[to + i] += piece.data[from + i];
  });
}

template <typename T>
void AddTo(const Array<T>& from, Array<T>* to) {
  for (size_t i = 0; i < from.data.size(); ++i) to->data[i] += from.data[i];
}

// Integers are truncated towards zero, truth values are 0 or 1; floats stay real numbers.
template <typename T>
void Normalize(DataType dtype, Array<T>* array) {
  if constexpr (std::is_floating_point_v<T>) {
    if (IsFloat(dtype)) return;
    for (T& value : array->data) value = dtype == DataType::kBool ? value != 0 : std::trunc(value);
  }
}

// Of micro-batch m of a tensor, or of the one that serves all.
template <typename V>
auto& PartAt(V& value, int64_t m, const ShardTask::Place& place) {
  return value.part(value.type.micro_batches == 1 ? 0 : m, place.partial, place.copy);
}

absl::StatusOr<ShardedCall> SpreadDeclared(const Operator& op,
                                           const std::vector<TensorType>& operands) {
  ShardedCall call{op, {}, {}, {}};
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(op, operands));
  call.outputs = sharding.outputs;
  call.declaration = sharding.declaration;
  const TensorType& first = sharding.outputs[0];
  // How many tasks have taken a copy of an operand's shard.
  std::vector<std::map<std::pair<std::vector<int64_t>, int64_t>, int64_t>> taken(operands.size());
  for (int64_t shard = 0; shard < first.NumShards(); ++shard) {
    const ShardCoordinates at = CoordinatesOfShard(first, shard);
    const Sharding::Task coordinates = sharding.TaskOfOutputShard(at.dims, at.partial);
    ShardTask task;
    task.box = TaskBox(sharding.declaration, sharding.degrees, coordinates.dims);
    for (size_t o = 0; o < operands.size(); ++o) {
      const int operand = static_cast<int>(o);
      const int64_t partial = sharding.OperandPartial(coordinates, operand);
      int64_t& copies = taken[o][{sharding.OperandCoordinates(coordinates, operand), partial}];
      task.operands.push_back({sharding.OperandBox(coordinates, operand), partial, copies++});
    }
    for (size_t t = 0; t < call.outputs.size(); ++t) {
      std::vector<int64_t> dims;
      for (int i = 0; i < call.outputs[t].rank(); ++i) {
        const int lead = sharding.declaration.LeadOfOutputDim(static_cast<int>(t), i);
        dims.push_back(lead < 0 ? 0 : coordinates.dims[lead]);
      }
      task.outputs.push_back({ShardBox(call.outputs[t], dims), at.partial, at.copy});
    }
    call.tasks.push_back(std::move(task));
  }
  for (size_t o = 0; o < operands.size(); ++o) {
    for (const auto& [place, copies] : taken[o]) {
      if (copies != operands[o].copies) {
        return absl::InternalError(absl::StrCat(op.name(), ": operand ", o, " has ",
                                                operands[o].copies, " copies for ", copies,
                                                " tasks that read a shard"));
      }
    }
  }
  return call;
}

template <typename T>
absl::Status RunTasks(const ShardedCall& call, const std::vector<const ShardedValue<T>*>& operands,
                      std::vector<ShardedValue<T>>* outputs) {
  for (int64_t m = 0; m < call.outputs[0].micro_batches; ++m) {
    for (const ShardTask& task : call.tasks) {
      std::vector<Array<T>> cut(operands.size());
      std::vector<const Array<T>*> pieces;
      for (size_t o = 0; o < operands.size(); ++o) {
        const Array<T>& whole = PartAt(*operands[o], m, task.operands[o]);
        const bool all = Covers(task.operands[o].box, whole.shape);
        if (!all) cut[o] = Cut(whole, task.operands[o].box);
        pieces.push_back(all ? &whole : &cut[o]);
      }
      ISOMER_ASSIGN_OR_RETURN(std::vector<Array<T>> results,
                              Evaluate<T>(call.declaration, task.box, pieces));
      for (size_t t = 0; t < results.size(); ++t) {
        if (results[t].shape != task.outputs[t].box.shape) {
          return absl::InternalError(absl::StrCat(call.op.name(), ": a task gives another piece of",
                                                  " output ", t, " than its shard"));
        }
        Normalize(call.outputs[t].dtype, &results[t]);
        AddAt(results[t], task.outputs[t].box, &PartAt((*outputs)[t], m, task.outputs[t]));
      }
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status RunTasksBackward(const ShardedCall& call,
                              const std::vector<const ShardedValue<T>*>& operands,
                              const std::vector<ShardedValue<T>>& seeds,
                              const std::vector<ShardedValue<T>*>& gradients) {
  for (int64_t m = 0; m < call.outputs[0].micro_batches; ++m) {
    for (const ShardTask& task : call.tasks) {
      std::vector<Array<T>> pieces, shares, seed_pieces;
      std::vector<const Array<T>*> piece_pointers, seed_pointers;
      std::vector<Array<T>*> wanted;
      for (size_t o = 0; o < operands.size(); ++o) {
        const Box& box = task.operands[o].box;
        pieces.push_back(Cut(PartAt(*operands[o], m, task.operands[o]), box));
        shares.emplace_back(box.shape);
        shares.back().origin = box.origin;
      }
      for (size_t t = 0; t < seeds.size(); ++t) {
        seed_pieces.push_back(Cut(PartAt(seeds[t], m, task.outputs[t]), task.outputs[t].box));
      }
      for (size_t o = 0; o < operands.size(); ++o) {
        piece_pointers.push_back(&pieces[o]);
        wanted.push_back(IsFloat(operands[o]->type.dtype) ? &shares[o] : nullptr);
      }
      for (const Array<T>& seed : seed_pieces) seed_pointers.push_back(&seed);
      ISOMER_RETURN_IF_ERROR(
          EvaluateGradient<T>(call.declaration, task.box, piece_pointers, seed_pointers, wanted));
      for (size_t o = 0; o < operands.size(); ++o) {
        if (wanted[o] == nullptr) continue;
        AddAt(shares[o], task.operands[o].box, &PartAt(*gradients[o], m, task.operands[o]));
      }
    }
  }
  return absl::OkStatus();
}

// The box of the whole batch that micro-batch m is.
Box MicroBatch(const Operator& op, const TensorType& batch, const TensorType& piece, int64_t m) {
  Box box{std::vector<int64_t>(batch.dims.size(), 0), piece.Sizes()};
  const int64_t axis = op.Int("axis");
  const size_t at = axis < 0 ? axis + batch.rank() : axis;
  box.origin[at] = m * box.shape[at];
  return box;
}

// Forward, or with `backward` from the output to the operands: which arrays a parallel operator
// adds to which. visit(operand, its micro-batch, partial, copy, output's micro-batch, partial,
// copy).
template <typename Visit>
void ForEachMove(const Operator& op, const std::vector<TensorType>& operands,
                 const TensorType& output, Visit visit) {
  const OpKind kind = op.kind();
  int64_t first_partial = 0;  // of the operand, among those of ConcatPartials
  for (size_t o = 0; o < operands.size(); ++o) {
    const TensorType& x = operands[o];
    const int64_t degree =
        kind == OpKind::kReplicate || kind == OpKind::kReduce ? op.Int("degree") : 1;
    for (int64_t m = 0; m < std::max(x.micro_batches, output.micro_batches); ++m) {
      const int64_t xm = x.micro_batches == 1 ? 0 : m, ym = output.micro_batches == 1 ? 0 : m;
      for (int64_t p = 0; p < x.partials; ++p) {
        const int64_t yp = kind == OpKind::kReduce ? p / degree : first_partial + p;
        for (int64_t c = 0; c < output.copies; ++c) {
          const int64_t xc = kind == OpKind::kReplicate ? c / degree : c;
          visit(o, xm, p, xc, ym, yp, c, m);
        }
      }
    }
    first_partial += x.partials;
  }
}

// The dual of an operator moves the same arrays the other way: what is copied is summed.
template <typename T>
void RunParallel(const ShardedCall& call, bool backward,
                 const std::vector<const ShardedValue<T>*>& from,
                 const std::vector<ShardedValue<T>*>& to) {
  const std::vector<const ShardedValue<T>*> none;
  std::vector<TensorType> operands;
  if (backward) {
    for (const ShardedValue<T>* operand : to) operands.push_back(operand->type);
  } else {
    for (const ShardedValue<T>* operand : from) operands.push_back(operand->type);
  }
  const OpKind kind = call.op.kind();
  ForEachMove(call.op, operands, call.outputs[0],
              [&](size_t o, int64_t xm, int64_t xp, int64_t xc, int64_t ym, int64_t yp, int64_t yc,
                  int64_t m) {
                const Array<T>& source =
                    backward ? from[0]->part(ym, yp, yc) : from[o]->part(xm, xp, xc);
                Array<T>& target = backward ? to[o]->part(xm, xp, xc) : to[0]->part(ym, yp, yc);
                if (kind != OpKind::kPipeline && kind != OpKind::kBatch) {
                  AddTo(source, &target);
                  return;
                }
                const bool cuts = (kind == OpKind::kPipeline) != backward;
                const TensorType& x = operands[0];
                const TensorType& y = call.outputs[0];
                const Box box = kind == OpKind::kPipeline ? MicroBatch(call.op, x, y, m)
                                                          : MicroBatch(call.op, y, x, m);
                if (cuts) {
                  AddTo(Cut(source, box), &target);
                } else {
                  AddAt(source, box, &target);
                }
              });
}

}  // namespace

template <typename T>
ShardedValue<T>::ShardedValue(const TensorType& type)
    : type(type), parts(type.micro_batches * type.partials * type.copies, Array<T>(type.Sizes())) {}

template <typename T>
ShardedValue<T>::ShardedValue(const Value<T>& value) : type(value.type) {
  for (const Array<T>& part : value.parts) parts.insert(parts.end(), type.copies, part);
}

absl::StatusOr<std::shared_ptr<const ShardedCall>> ShardedCalls::Spread(
    const Operator& op, const std::vector<TensorType>& operands) {
  constexpr size_t kMostCalls = 20000;
  if (known_.size() > kMostCalls) known_.clear();
  auto [entry, fresh] = known_.try_emplace(Key{op, operands});
  if (!fresh && entry->second != nullptr) return entry->second;
  if (IsParallel(op.kind())) {
    ISOMER_ASSIGN_OR_RETURN(const TensorType type, InferParallelType(op, operands));
    entry->second = std::make_shared<const ShardedCall>(ShardedCall{op, {type}, {}, {}});
  } else {
    ISOMER_ASSIGN_OR_RETURN(ShardedCall call, SpreadDeclared(op, operands));
    entry->second = std::make_shared<const ShardedCall>(std::move(call));
  }
  return entry->second;
}

absl::StatusOr<ShardedPattern> Spread(const Pattern& pattern, const Binding& binding,
                                      ShardedCalls* calls) {
  ShardedPattern spread{
      .inputs = binding.inputs, .operands = {}, .calls = {}, .outputs = pattern.outputs};
  for (const PatternNode& node : pattern.nodes) {
    std::vector<TensorType> operands;
    for (PatternRef ref : node.inputs) operands.push_back(spread.TypeOf(ref));
    ISOMER_ASSIGN_OR_RETURN(const Operator op,
                            InstantiateOperator(node, binding, operands[0].rank()));
    ISOMER_ASSIGN_OR_RETURN(auto call, calls->Spread(op, operands));
    spread.calls.push_back(std::move(call));
    spread.operands.push_back(node.inputs);
  }
  return spread;
}

template <typename T>
absl::StatusOr<ShardedValues<T>> RunForward(const ShardedPattern& pattern,
                                            std::vector<ShardedValue<T>> inputs) {
  ShardedValues<T> values{std::move(inputs), {}};
  for (size_t n = 0; n < pattern.calls.size(); ++n) {
    const ShardedCall& call = *pattern.calls[n];
    std::vector<const ShardedValue<T>*> operands;
    for (PatternRef ref : pattern.operands[n]) operands.push_back(&values[ref]);
    std::vector<ShardedValue<T>> outputs;
    for (const TensorType& type : call.outputs) outputs.emplace_back(type);
    if (IsParallel(call.op.kind())) {
      RunParallel<T>(call, /*backward=*/false, operands, {&outputs[0]});
    } else {
      ISOMER_RETURN_IF_ERROR(RunTasks(call, operands, &outputs));
    }
    values.nodes.push_back(std::move(outputs));
  }
  return values;
}

template <typename T>
absl::StatusOr<std::vector<ShardedValue<T>>> RunBackward(
    const ShardedPattern& pattern, const ShardedValues<T>& values,
    const std::vector<ShardedValue<T>>& seeds) {
  ShardedValues<T> gradients;
  for (const ShardedValue<T>& input : values.inputs) gradients.inputs.emplace_back(input.type);
  for (const auto& outputs : values.nodes) {
    gradients.nodes.emplace_back();
    for (const ShardedValue<T>& output : outputs) gradients.nodes.back().emplace_back(output.type);
  }
  for (size_t o = 0; o < seeds.size(); ++o) {
    ShardedValue<T>& gradient = gradients[pattern.outputs[o]];
    for (size_t i = 0; i < seeds[o].parts.size(); ++i) {
      AddTo(seeds[o].parts[i], &gradient.parts[i]);
    }
  }
  for (int n = static_cast<int>(pattern.calls.size()) - 1; n >= 0; --n) {
    const ShardedCall& call = *pattern.calls[n];
    std::vector<const ShardedValue<T>*> operands;
    std::vector<ShardedValue<T>*> wanted;
    for (PatternRef ref : pattern.operands[n]) {
      operands.push_back(&values[ref]);
      wanted.push_back(&gradients[ref]);
    }
    if (IsParallel(call.op.kind())) {
      RunParallel<T>(call, /*backward=*/true, {&gradients.nodes[n][0]}, wanted);
    } else {
      ISOMER_RETURN_IF_ERROR(RunTasksBackward(call, operands, gradients.nodes[n], wanted));
    }
  }
  return std::move(gradients.inputs);
}

template struct ShardedValue<double>;
template struct ShardedValue<PartialField>;
template absl::StatusOr<ShardedValues<double>> RunForward<double>(
    const ShardedPattern&, std::vector<ShardedValue<double>>);
template absl::StatusOr<ShardedValues<PartialField>> RunForward<PartialField>(
    const ShardedPattern&, std::vector<ShardedValue<PartialField>>);
template absl::StatusOr<std::vector<ShardedValue<double>>> RunBackward<double>(
    const ShardedPattern&, const ShardedValues<double>&, const std::vector<ShardedValue<double>>&);

}  // namespace isomer
