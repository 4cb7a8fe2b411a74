// Kernels of a device whose memory the host cannot touch, for tests that have their buffers on the
// host: what a kernel reads and writes is copied there and back.
#ifndef ISOMER_TESTS_RUNTIME_STAGING_BACKEND_H_
#define ISOMER_TESTS_RUNTIME_STAGING_BACKEND_H_

#include <memory>
#include <utility>
#include <vector>

#include "pcg/support/status_macros.h"
#include "runtime/device/backend.h"

namespace isomer {

class StagingBackend : public Backend {
 public:
  // REQUIRES: `device` outlives this.
  explicit StagingBackend(Backend* device) : device_(*device) {}

  absl::string_view name() const override { return device_.name(); }
  void EnterDevice(int32_t device, int32_t count) override { device_.EnterDevice(device, count); }
  absl::StatusOr<Memory> Allocate(int64_t bytes) override { return device_.Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) override {
    ISOMER_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, device_.MakeKernel(call));
    const auto bytes = [](const Box& box, DataType dtype) {
      return box.Volume() * BytesPerElement(dtype);
    };
    std::vector<int64_t> operands, outputs, reads, writes;
    for (size_t o = 0; o < call.operands.size(); ++o) {
      operands.push_back(bytes(call.operands[o], call.dtypes[o]));
    }
    for (size_t t = 0; t < call.outputs.size(); ++t) {
      outputs.push_back(bytes(call.outputs[t], call.output_dtypes[t]));
    }
    reads = operands;
    if (call.gradient) {
      for (int times = 0; times < 2; ++times) {
        reads.insert(reads.end(), outputs.begin(), outputs.end());
      }
      for (size_t o = 0; o < call.operands.size(); ++o) {
        writes.push_back(call.sums.empty() ? operands[o]
                                           : bytes(call.operands[o], call.sums[o].dtype));
      }
    } else {
      writes = outputs;
    }
    if (call.saved) (call.gradient ? reads : writes).push_back(call.saved->bytes());
    return std::make_unique<StagingKernel>(&device_, std::move(kernel), std::move(reads),
                                           std::move(writes));
  }

 private:
  class StagingKernel : public Kernel {
   public:
    StagingKernel(Backend* device, std::unique_ptr<Kernel> kernel, std::vector<int64_t> reads,
                  std::vector<int64_t> writes)
        : device_(*device),
          kernel_(std::move(kernel)),
          reads_(std::move(reads)),
          writes_(std::move(writes)) {}
    // The host has no workspace for it.
    absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                     void*) override {
      std::vector<Memory> memory;
      const auto staged = [&](const void* host, int64_t bytes) -> absl::StatusOr<void*> {
        if (host == nullptr) return nullptr;
        ISOMER_ASSIGN_OR_RETURN(Memory on_device, device_.Allocate(bytes));
        ISOMER_RETURN_IF_ERROR(device_.operations().FromHost(host, bytes, on_device.get()));
        memory.push_back(std::move(on_device));
        return memory.back().get();
      };
      std::vector<const void*> read;
      std::vector<void*> written;
      for (size_t i = 0; i < reads.size(); ++i) {
        ISOMER_ASSIGN_OR_RETURN(read.emplace_back(), staged(reads[i], reads_[i]));
      }
      for (size_t i = 0; i < writes.size(); ++i) {
        ISOMER_ASSIGN_OR_RETURN(written.emplace_back(), staged(writes[i], writes_[i]));
      }
      ISOMER_ASSIGN_OR_RETURN(const Memory workspace, device_.Allocate(kernel_->workspace_bytes()));
      ISOMER_RETURN_IF_ERROR(kernel_->Run(read, written, workspace.get()));
      for (size_t i = 0; i < writes.size(); ++i) {
        if (writes[i] == nullptr) continue;
        ISOMER_RETURN_IF_ERROR(device_.operations().ToHost(written[i], writes_[i], writes[i]));
      }
      return absl::OkStatus();
    }

   private:
    Backend& device_;
    const std::unique_ptr<Kernel> kernel_;
    const std::vector<int64_t> reads_, writes_;
  };

  Backend& device_;
};

}  // namespace isomer

#endif  // ISOMER_TESTS_RUNTIME_STAGING_BACKEND_H_
