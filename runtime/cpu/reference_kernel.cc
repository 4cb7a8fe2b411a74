// Any declared operator, straight from its declaration.
#include <algorithm>
#include <memory>

#include "pcg/evaluator.h"
#include "pcg/support/status_macros.h"
#include "runtime/cpu/kernels.h"
#include "runtime/elements.h"

namespace isomer {
namespace {

// In double: indices, hashes and integers up to 2^53 are exact.
Array<double> EmptyArray(const Box& box) {
  Array<double> array(box.shape);
  array.origin = box.origin;
  return array;
}

// Null data, a value that is not needed, reads as zeros.
Array<double> ReadArray(const Box& box, DataType dtype, const void* data) {
  Array<double> array = EmptyArray(box);
  if (data != nullptr) LoadElements(dtype, data, array.size(), array.data.data());
  return array;
}

std::vector<const Array<double>*> Pointers(const std::vector<Array<double>>& arrays) {
  std::vector<const Array<double>*> pointers;
  for (const Array<double>& array : arrays) pointers.push_back(&array);
  return pointers;
}

absl::Status RunForward(const KernelCall& call, Reads reads, Writes writes) {
  std::vector<Array<double>> operands;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    operands.push_back(ReadArray(call.operands[o], call.dtypes[o], reads[o]));
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Array<double>> outputs,
                          Evaluate<double>(call.declaration, call.iteration, Pointers(operands)));
  for (size_t t = 0; t < outputs.size(); ++t) {
    StoreElements(outputs[t].data.data(), outputs[t].size(), call.output_dtypes[t], writes[t]);
  }
  return absl::OkStatus();
}

absl::Status RunGradient(const KernelCall& call, Reads reads, Writes writes) {
  const size_t num_operands = call.operands.size(), num_outputs = call.outputs.size();
  std::vector<Array<double>> operands, seeds, gradients;
  std::vector<Array<double>*> wanted;
  gradients.reserve(num_operands);
  for (size_t o = 0; o < num_operands; ++o) {
    operands.push_back(ReadArray(call.operands[o], call.dtypes[o], reads[o]));
    gradients.push_back(EmptyArray(call.operands[o]));
    wanted.push_back(writes[o] == nullptr ? nullptr : &gradients.back());
  }
  for (size_t t = 0; t < num_outputs; ++t) {
    seeds.push_back(
        ReadArray(call.outputs[t], call.output_dtypes[t], reads[num_operands + num_outputs + t]));
  }
  ISOMER_RETURN_IF_ERROR(EvaluateGradient<double>(call.declaration, call.iteration,
                                                  Pointers(operands), Pointers(seeds), wanted));
  for (size_t o = 0; o < num_operands; ++o) {
    if (writes[o] == nullptr) continue;
    StoreElements(gradients[o].data.data(), gradients[o].size(), call.dtypes[o], writes[o]);
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
