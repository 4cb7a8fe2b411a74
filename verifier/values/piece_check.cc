#include "verifier/values/piece_check.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/number.h"
#include "pcg/ir/box.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using FieldArray = Array<PrimeField>;

// Integers are 0 or 1: indices of any dim that can be split.
FieldArray DrawOperand(const TensorType& type, uint64_t seed) {
  FieldArray array(type.Sizes());
  for (int64_t i = 0; i < array.size(); ++i) {
    const uint64_t drawn = HashCombine(seed, static_cast<uint64_t>(i));
    array.data[i] =
        PrimeField::FromRaw(IsFloat(type.dtype) ? drawn % PrimeField::kPrime : drawn % 2);
  }
  return array;
}

// Calls f(offset in the whole, offset in the piece) for every element of `box`.
template <typename Function>
void ForEachElement(const Box& box, const std::vector<int64_t>& whole, Function f) {
  for (int64_t element = 0; element < box.Volume(); ++element) {
    int64_t rest = element, offset = 0, stride = 1;
    for (int i = static_cast<int>(whole.size()) - 1; i >= 0; --i) {
      offset += (box.origin[i] + rest % box.shape[i]) * stride;
      rest /= box.shape[i];
      stride *= whole[i];
    }
    f(offset, element);
  }
}

FieldArray Piece(const FieldArray& whole, const Box& box) {
  FieldArray piece(box.shape);
  piece.origin = box.origin;
  ForEachElement(box, whole.shape,
                 [&](int64_t from, int64_t to) { piece.data[to] = whole.data[from]; });
  return piece;
}

std::vector<const FieldArray*> Pointers(const std::vector<FieldArray>& arrays) {
  std::vector<const FieldArray*> pointers;
  for (const FieldArray& array : arrays) pointers.push_back(&array);
  return pointers;
}

// The outputs that the tasks of one copy of the call make together.
absl::StatusOr<std::vector<FieldArray>> Assemble(const Sharding& sharding,
                                                 const std::vector<FieldArray>& operands) {
  std::vector<FieldArray> assembled;
  for (const TensorType& output : sharding.outputs) assembled.emplace_back(output.Sizes());
  for (int64_t shard = 0; shard < sharding.outputs[0].NumShards(); ++shard) {
    const ShardCoordinates at = CoordinatesOfShard(sharding.outputs[0], shard);
    if (at.copy != 0) continue;
    const Sharding::Task task = sharding.TaskOfOutputShard(at.dims, at.partial);
    std::vector<FieldArray> pieces;
    for (size_t o = 0; o < operands.size(); ++o) {
      pieces.push_back(Piece(operands[o], sharding.OperandBox(task, static_cast<int>(o))));
    }
    ISOMER_ASSIGN_OR_RETURN(
        const std::vector<FieldArray> outputs,
        Evaluate<PrimeField>(sharding.declaration,
                             TaskBox(sharding.declaration, sharding.degrees, task.dims),
                             Pointers(pieces)));
    for (size_t t = 0; t < outputs.size(); ++t) {
      const Box box{outputs[t].origin, outputs[t].shape};
      ForEachElement(box, assembled[t].shape, [&](int64_t to, int64_t from) {
        assembled[t].data[to] = assembled[t].data[to] + outputs[t].data[from];
      });
    }
  }
  return assembled;
}

}  // namespace

absl::Status CheckPiecesOfCall(const Operator& op, const std::vector<TensorType>& types,
                               uint64_t seed) {
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(op, types));
  // Operands that hold partial sums are another lemma's.
  if (sharding.operand_partials > 1) return absl::OkStatus();
  std::vector<FieldArray> operands;
  for (const TensorType& type : types) {
    operands.push_back(DrawOperand(type, HashCombine(seed, operands.size())));
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<FieldArray> whole,
                          Evaluate<PrimeField>(sharding.declaration, FullBox(sharding.declaration),
                                               Pointers(operands)));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<FieldArray> assembled, Assemble(sharding, operands));
  for (size_t t = 0; t < whole.size(); ++t) {
    for (int64_t i = 0; i < whole[t].size(); ++i) {
      if (whole[t].data[i] == assembled[t].data[i]) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "the tasks of ", op.ToString(), " on ",
          absl::StrJoin(types, ", ",
                        [](std::string* out, const TensorType& t) { out->append(t.ToString()); }),
          " do not make what the whole call makes: element ", i, " of output ", t, " differs"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPieces(const Pattern& pattern, const Binding& binding, uint64_t seed) {
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, InstantiatePattern(pattern, binding));
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind())) continue;
    std::vector<TensorType> types;
    for (TensorRef input : node.inputs) types.push_back(graph.type(input));
    ISOMER_RETURN_IF_ERROR(CheckPiecesOfCall(node.op, types, seed));
  }
  return absl::OkStatus();
}

}  // namespace isomer
