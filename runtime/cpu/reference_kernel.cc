// Any declared operator, straight from its declaration.
#include <algorithm>
#include <memory>

#include "pcg/evaluation/evaluator.h"
#include "pcg/support/status_macros.h"
#include "runtime/cpu/kernels.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

// In double: indices, hashes and integers up to 2^53 are exact.
Array<double> EmptyArray(const Box& box) {
  Array<double> array(box.shape);
  array.origin = box.origin;
  return array;
}

// The elements of a box of [batch, channels, d1 ..] in the other layout than `from`.
std::vector<double> Turned(const Box& box, Layout from, const std::vector<double>& elements) {
  const int64_t outer = box.shape[0], channels = box.shape[1];
  const int64_t inner = Product(absl::MakeConstSpan(box.shape).subspan(2));
  std::vector<double> turned(elements.size());
  for (int64_t n = 0; n < outer; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t first = n * channels * inner;
        const int64_t row_major = first + c * inner + i, last = first + i * channels + c;
        const bool turns_back = from == Layout::kChannelsLast;
        turned[turns_back ? row_major : last] = elements[turns_back ? last : row_major];
      }
    }
  }
  return turned;
}

// Null data, a value that is not needed, reads as zeros.
Array<double> ReadArray(const Box& box, DataType dtype, Layout layout, const void* data) {
  Array<double> array = EmptyArray(box);
  if (data == nullptr) return array;
  LoadElements(dtype, data, array.size(), array.data.data());
  if (layout != Layout::kRowMajor) array.data = Turned(box, layout, array.data);
  return array;
}

void WriteArray(const Array<double>& array, DataType dtype, Layout layout, void* data) {
  if (layout == Layout::kRowMajor) {
    return StoreElements(array.data.data(), array.size(), dtype, data);
  }
  const std::vector<double> turned =
      Turned({array.origin, array.shape}, Layout::kRowMajor, array.data);
  StoreElements(turned.data(), array.size(), dtype, data);
}

std::vector<const Array<double>*> Pointers(const std::vector<Array<double>>& arrays) {
  std::vector<const Array<double>*> pointers;
  for (const Array<double>& array : arrays) pointers.push_back(&array);
  return pointers;
}

absl::Status RunForward(const KernelCall& call, Reads reads, Writes writes) {
  std::vector<Array<double>> operands;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    operands.push_back(
        ReadArray(call.operands[o], call.dtypes[o], call.layouts.OfOperand(o), reads[o]));
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Array<double>> outputs,
                          Evaluate<double>(call.declaration, call.iteration, Pointers(operands)));
  for (size_t t = 0; t < outputs.size(); ++t) {
    WriteArray(outputs[t], call.output_dtypes[t], call.layouts.OfOutput(t), writes[t]);
  }
  // The gradient below looks at operands alone.
  if (call.saved) std::fill_n(static_cast<char*>(writes.back()), call.saved->bytes(), char{0});
  return absl::OkStatus();
}

absl::Status RunGradient(const KernelCall& call, Reads reads, Writes writes) {
  const size_t num_operands = call.operands.size(), num_outputs = call.outputs.size();
  std::vector<Array<double>> operands, seeds, gradients;
  std::vector<Array<double>*> wanted;
  gradients.reserve(num_operands);
  for (size_t o = 0; o < num_operands; ++o) {
    operands.push_back(
        ReadArray(call.operands[o], call.dtypes[o], call.layouts.OfOperand(o), reads[o]));
    gradients.push_back(EmptyArray(call.operands[o]));
    wanted.push_back(writes[o] == nullptr ? nullptr : &gradients.back());
  }
  for (size_t t = 0; t < num_outputs; ++t) {
    seeds.push_back(ReadArray(call.outputs[t], call.output_dtypes[t], call.layouts.OfOutput(t),
                              reads[num_operands + num_outputs + t]));
  }
  ISOMER_RETURN_IF_ERROR(EvaluateGradient<double>(call.declaration, call.iteration,
                                                  Pointers(operands), Pointers(seeds), wanted));
  for (size_t o = 0; o < num_operands; ++o) {
    if (writes[o] == nullptr) continue;
    WriteArray(gradients[o], call.dtypes[o], call.layouts.OfOperand(o), writes[o]);
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
