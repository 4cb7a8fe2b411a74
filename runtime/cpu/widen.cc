#include "runtime/cpu/widen.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pcg/support/status_macros.h"
#include "runtime/elements.h"

namespace isomer {
namespace {

DataType WideType(DataType dtype) {
  if (IsFloat(dtype)) return DataType::kFloat32;
  return IsInteger(dtype) ? DataType::kInt64 : dtype;
}

struct BufferForm {
  DataType dtype;
  int64_t elements;
  bool is_wide() const { return WideType(dtype) == dtype; }
};

// The forms of what Kernel::Run reads and writes.
struct Forms {
  std::vector<BufferForm> reads, writes;
  std::vector<bool> adds;  // per write: to what is there

  explicit Forms(const KernelCall& call) {
    std::vector<BufferForm> operands, outputs;
    for (size_t o = 0; o < call.operands.size(); ++o) {
      operands.push_back({call.dtypes[o], call.operands[o].Volume()});
    }
    for (size_t t = 0; t < call.outputs.size(); ++t) {
      outputs.push_back({call.output_dtypes[t], call.outputs[t].Volume()});
    }
    reads = operands;
    writes = call.gradient ? operands : outputs;
    adds.assign(writes.size(), false);
    for (size_t o = 0; o < call.sums.size(); ++o) {
      writes[o].dtype = call.sums[o].dtype;
      adds[o] = call.sums[o].adds;
    }
    if (!call.gradient) return;
    reads.insert(reads.end(), outputs.begin(), outputs.end());
    reads.insert(reads.end(), outputs.begin(), outputs.end());
  }
};

using WideBuffer = std::vector<int64_t>;  // Aligned for either type.

void Resize(const BufferForm& form, WideBuffer* buffer) {
  buffer->resize(form.elements * BytesPerElement(WideType(form.dtype)) / 8 + 1);
}

const void* WideCopy(const BufferForm& form, const void* data, WideBuffer* buffer) {
  Resize(form, buffer);
  if (IsFloat(form.dtype)) {
    LoadElements(form.dtype, data, form.elements, reinterpret_cast<float*>(buffer->data()));
  } else {
    const int32_t* integers = static_cast<const int32_t*>(data);
    std::copy_n(integers, form.elements, buffer->begin());
  }
  return buffer->data();
}

void CopyBack(const WideBuffer& buffer, const BufferForm& form, void* data) {
  if (IsFloat(form.dtype)) {
    const float* floats = reinterpret_cast<const float*>(buffer.data());
    StoreElements(floats, form.elements, form.dtype, data);
  } else {
    int32_t* integers = static_cast<int32_t*>(data);
    for (int64_t i = 0; i < form.elements; ++i) integers[i] = static_cast<int32_t>(buffer[i]);
  }
}

}  // namespace

KernelCall Widened(const KernelCall& call) {
  KernelCall wide = call;
  for (size_t o = 0; o < wide.dtypes.size(); ++o) {
    wide.dtypes[o] = WideType(wide.dtypes[o]);
  }
  for (DataType& dtype : wide.output_dtypes) dtype = WideType(dtype);
  for (KernelCall::Sum& sum : wide.sums) sum.dtype = WideType(sum.dtype);
  return wide;
}

KernelFunction OnWidenedCopies(const KernelCall& call, KernelFunction kernel) {
  return [forms = Forms(call), kernel = std::move(kernel)](Reads reads,
                                                           Writes writes) -> absl::Status {
    std::vector<WideBuffer> read(reads.size()), written(writes.size());
    std::vector<const void*> wide_reads(reads.begin(), reads.end());
    std::vector<void*> wide_writes(writes.begin(), writes.end());
    for (size_t i = 0; i < reads.size(); ++i) {
      if (reads[i] == nullptr || forms.reads[i].is_wide()) continue;
      wide_reads[i] = WideCopy(forms.reads[i], reads[i], &read[i]);
    }
    for (size_t i = 0; i < writes.size(); ++i) {
      if (writes[i] == nullptr || forms.writes[i].is_wide()) continue;
      if (forms.adds[i]) {
        WideCopy(forms.writes[i], writes[i], &written[i]);
      } else {
        Resize(forms.writes[i], &written[i]);
      }
      wide_writes[i] = written[i].data();
    }
    ISOMER_RETURN_IF_ERROR(kernel(wide_reads, wide_writes));
    for (size_t i = 0; i < writes.size(); ++i) {
      if (!written[i].empty()) CopyBack(written[i], forms.writes[i], writes[i]);
    }
    return absl::OkStatus();
  };
}

}  // namespace isomer
