// Any declared operator, straight from its declaration.
#include <algorithm>
#include <memory>

#include "pcg/evaluator.h"
#include "pcg/support/status_macros.h"
#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

Array<float> EmptyArray(const Box& box) {
  Array<float> array(box.shape);
  array.origin = box.origin;
  return array;
}

// Null data, a value that is not needed, reads as zeros.
Array<float> ReadArray(const Box& box, DataType dtype, const void* data) {
  Array<float> array = EmptyArray(box);
  if (data == nullptr) return array;
  for (int64_t i = 0; i < array.size(); ++i) {
    array.data[i] =
        dtype == DataType::kInt64 ? static_cast<float>(Indices(data)[i]) : Floats(data)[i];
  }
  return array;
}

void WriteArray(const Array<float>& array, DataType dtype, void* data) {
  for (int64_t i = 0; i < array.size(); ++i) {
    if (dtype == DataType::kInt64) {
      static_cast<int64_t*>(data)[i] = static_cast<int64_t>(array.data[i]);
    } else {
      Floats(data)[i] = array.data[i];
    }
  }
}

std::vector<const Array<float>*> Pointers(const std::vector<Array<float>>& arrays) {
  std::vector<const Array<float>*> pointers;
  for (const Array<float>& array : arrays) pointers.push_back(&array);
  return pointers;
}

absl::Status RunForward(const KernelCall& call, Reads reads, Writes writes) {
  std::vector<Array<float>> operands;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    operands.push_back(ReadArray(call.operands[o], call.dtypes[o], reads[o]));
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Array<float>> outputs,
                          Evaluate<float>(call.declaration, call.iteration, Pointers(operands)));
  for (size_t t = 0; t < outputs.size(); ++t) {
    WriteArray(outputs[t], IsLayout(call.op.kind()) ? call.dtypes[0] : DataType::kFloat32,
               writes[t]);
  }
  return absl::OkStatus();
}

absl::Status RunGradient(const KernelCall& call, Reads reads, Writes writes) {
  const size_t num_operands = call.operands.size(), num_outputs = call.outputs.size();
  std::vector<Array<float>> operands, seeds, gradients;
  std::vector<Array<float>*> wanted;
  gradients.reserve(num_operands);
  for (size_t o = 0; o < num_operands; ++o) {
    operands.push_back(ReadArray(call.operands[o], call.dtypes[o], reads[o]));
    gradients.push_back(EmptyArray(call.operands[o]));
    wanted.push_back(writes[o] == nullptr ? nullptr : &gradients.back());
  }
  for (size_t t = 0; t < num_outputs; ++t) {
    seeds.push_back(
        ReadArray(call.outputs[t], DataType::kFloat32, reads[num_operands + num_outputs + t]));
  }
  ISOMER_RETURN_IF_ERROR(EvaluateGradient<float>(call.declaration, call.iteration,
                                                 Pointers(operands), Pointers(seeds), wanted));
  for (size_t o = 0; o < num_operands; ++o) {
    if (writes[o] != nullptr) WriteArray(gradients[o], DataType::kFloat32, writes[o]);
  }
  return absl::OkStatus();
}

}  // namespace

KernelFunction ReferenceKernel(const KernelCall& call) {
  const auto shared = std::make_shared<const KernelCall>(call);
  return [shared](Reads reads, Writes writes) {
    return shared->gradient ? RunGradient(*shared, reads, writes)
                            : RunForward(*shared, reads, writes);
  };
}

}  // namespace isomer
