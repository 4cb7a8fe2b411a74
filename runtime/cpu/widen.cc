#include "runtime/cpu/widen.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/elements.h"
#include "runtime/device/workspace.h"

namespace isomer {
namespace {

DataType WideType(DataType dtype) {
  if (IsFloat(dtype)) return DataType::kFloat32;
  return IsInteger(dtype) ? DataType::kInt64 : dtype;
}

struct BufferForm {
  DataType dtype;
  int64_t elements;
  // What it cannot hold is its greatest number: activations are flat there, and infinite, what is
  // in front of one has no derivative.
  bool saturates = false;
  bool is_wide() const { return WideType(dtype) == dtype; }
};

// The forms of what Kernel::Run reads and writes.
struct Forms {
  std::vector<BufferForm> reads, writes;
  std::vector<bool> is_read, is_written;
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
    is_read.assign(reads.size(), true);
    is_written.assign(writes.size(), true);
    if (!call.gradient) {
      if (call.saved.has_value()) Append(*call.saved, &writes, &is_written);
      adds.resize(writes.size(), false);
      return;
    }
    reads.insert(reads.end(), outputs.begin(), outputs.end());
    reads.insert(reads.end(), outputs.begin(), outputs.end());
    const GradientNeeds needs = NeedsOf(call);
    is_read = needs.operands;
    is_read.insert(is_read.end(), needs.outputs.begin(), needs.outputs.end());
    is_read.resize(reads.size(), true);
    if (call.saved.has_value()) Append(*call.saved, &reads, &is_read);
    is_written = call.wanted;
  }

 private:
  static void Append(const SavedForGradient& saved, std::vector<BufferForm>* forms,
                     std::vector<bool>* are_used) {
    forms->push_back({saved.dtype, saved.elements, /*saturates=*/true});
    are_used->push_back(true);
  }
};

int64_t WideBytes(const BufferForm& form) {
  return form.elements * BytesPerElement(WideType(form.dtype));
}

void Widen(const BufferForm& form, const void* data, void* wide) {
  if (IsFloat(form.dtype)) {
    LoadElements(form.dtype, data, form.elements, static_cast<float*>(wide));
  } else {
    std::copy_n(static_cast<const int32_t*>(data), form.elements, static_cast<int64_t*>(wide));
  }
}

void Narrow(void* wide, const BufferForm& form, void* data) {
  if (form.saturates && form.dtype == DataType::kFloat16) {
    constexpr float kMost = 65504;
    auto* values = static_cast<float*>(wide);
    for (int64_t i = 0; i < form.elements; ++i) values[i] = std::clamp(values[i], -kMost, kMost);
  }
  if (IsFloat(form.dtype)) {
    StoreElements(static_cast<const float*>(wide), form.elements, form.dtype, data);
  } else {
    const auto* from = static_cast<const int64_t*>(wide);
    int32_t* integers = static_cast<int32_t*>(data);
    for (int64_t i = 0; i < form.elements; ++i) integers[i] = static_cast<int32_t>(from[i]);
  }
}

}  // namespace

KernelCall Widened(const KernelCall& call) {
  KernelCall wide = call;
  for (size_t o = 0; o < wide.dtypes.size(); ++o) {
    wide.dtypes[o] = WideType(wide.dtypes[o]);
  }
  for (DataType& dtype : wide.output_dtypes) dtype = WideType(dtype);
  if (wide.saved) wide.saved->dtype = WideType(wide.saved->dtype);
  for (KernelCall::Sum& sum : wide.sums) sum.dtype = WideType(sum.dtype);
  return wide;
}

KernelFunction OnWidenedCopies(const KernelCall& call, KernelFunction kernel) {
  const Forms forms(call);
  // Per read and write: where its copy is, if it has one.
  struct Copy {
    BufferForm form;
    Place<char> at;
    bool adds = false;
  };
  WorkspacePlan plan;
  std::vector<std::optional<Copy>> read(forms.reads.size()), written(forms.writes.size());
  for (size_t i = 0; i < read.size(); ++i) {
    const BufferForm& form = forms.reads[i];
    if (forms.is_read[i] && !form.is_wide()) read[i] = {form, plan.Add<char>(WideBytes(form))};
  }
  for (size_t i = 0; i < written.size(); ++i) {
    const BufferForm& form = forms.writes[i];
    if (!forms.is_written[i] || form.is_wide()) continue;
    written[i] = {form, plan.Add<char>(WideBytes(form)), forms.adds[i]};
  }
  const Place<char> rest = plan.Add<char>(kernel.workspace_bytes());
  return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) -> absl::Status {
            absl::InlinedVector<const void*, 12> wide_reads(reads.begin(), reads.end());
            absl::InlinedVector<void*, 12> wide_writes(writes.begin(), writes.end());
            for (size_t i = 0; i < reads.size(); ++i) {
              if (!read[i].has_value()) continue;
              char* copy = read[i]->at.In(workspace);
              Widen(read[i]->form, reads[i], copy);
              wide_reads[i] = copy;
            }
            for (size_t i = 0; i < writes.size(); ++i) {
              if (!written[i].has_value()) continue;
              char* copy = written[i]->at.In(workspace);
              if (written[i]->adds) Widen(written[i]->form, writes[i], copy);
              wide_writes[i] = copy;
            }
            ISOMER_RETURN_IF_ERROR(kernel(wide_reads, wide_writes, rest.In(workspace)));
            for (size_t i = 0; i < writes.size(); ++i) {
              if (written[i].has_value()) Narrow(wide_writes[i], written[i]->form, writes[i]);
            }
            return absl::OkStatus();
          }};
}

}  // namespace isomer
