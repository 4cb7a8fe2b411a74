#include "runtime/device/backend.h"

#include "absl/strings/str_cat.h"

namespace isomer {

std::string KernelCall::Key() const {
  const auto name = [](Layout layout) {
    return layout == Layout::kChannelsLast ? "channels_last" : "";
  };
  std::string key = op.ToString();
  for (size_t o = 0; o < operands.size(); ++o) {
    absl::StrAppend(&key, " ", DataTypeName(dtypes[o]), operands[o].ToString(),
                    name(layouts.OfOperand(o)));
  }
  absl::StrAppend(&key, " ->");
  for (size_t t = 0; t < outputs.size(); ++t) {
    absl::StrAppend(&key, " ", outputs[t].ToString(), name(layouts.OfOutput(t)));
  }
  // Boxes alone do not say how far a coordinate is from the end of its tensor.
  absl::StrAppend(&key, " at");
  for (size_t v = 0; v < declaration.dims.size(); ++v) {
    absl::StrAppend(&key, " ", iteration.begin[v], ":", iteration.end[v], "/",
                    declaration.dims[v].size.value());
  }
  if (!gradient && saved.has_value()) absl::StrAppend(&key, " saving");
  if (gradient) {
    absl::StrAppend(&key, " gradient");
    for (size_t o = 0; o < wanted.size(); ++o) {
      absl::StrAppend(&key, wanted[o] ? "+" : "-");
      if (sums.empty() || !wanted[o]) continue;
      absl::StrAppend(&key, sums[o].adds ? "to_" : "in_", DataTypeName(sums[o].dtype));
    }
  }
  return key;
}

KernelCall MakeKernelCall(const Operator& op, const Sharding& sharding,
                          absl::Span<const TensorType> operands, int64_t shard, bool gradient,
                          std::vector<bool> wanted) {
  KernelCall call;
  call.op = op;
  call.declaration = sharding.declaration;
  call.gradient = gradient;
  call.wanted = std::move(wanted);
  const ShardCoordinates at = CoordinatesOfShard(sharding.outputs[0], shard);
  const Sharding::Task task = sharding.TaskOfOutputShard(at.dims, at.partial);
  call.iteration = TaskBox(sharding.declaration, sharding.degrees, task.dims);
  for (size_t o = 0; o < operands.size(); ++o) {
    call.operands.push_back(sharding.OperandBox(task, static_cast<int>(o)));
    call.dtypes.push_back(operands[o].dtype);
  }
  for (const TensorType& output : sharding.outputs) {
    call.outputs.push_back(ShardBox(output, CoordinatesOfShard(output, shard).dims));
    call.output_dtypes.push_back(output.dtype);
  }
  if (gradient) call.saved = SavedBy(call);
  return call;
}

std::optional<SavedForGradient> SavedBy(const KernelCall& call) {
  if (call.operands.empty()) return std::nullopt;
  return SavedBy(call.op, call.declaration, SequentialType(call.operands[0].shape, call.dtypes[0]),
                 SequentialType(call.outputs[0].shape, call.output_dtypes[0]));
}

GradientNeeds NeedsOf(const KernelCall& call) {
  std::vector<TensorType> types;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    types.push_back(SequentialType(call.operands[o].shape, call.dtypes[o]));
  }
  return NeedsOfGradient(call.op, call.declaration, types);
}

DeviceOperations& Backend::operations() {
  static DeviceOperations of_cores;
  return of_cores;
}

}  // namespace isomer
