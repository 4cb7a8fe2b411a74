// One GPU: its context, its stream, and what was compiled for it.
//
// A thread's work is given to the stream that it uses (UseStream), or else to the device's own.
#ifndef ISOMER_RUNTIME_CUDA_CUDA_DEVICE_H_
#define ISOMER_RUNTIME_CUDA_CUDA_DEVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/cuda/fused_attention.h"
#include "runtime/cuda/generated_kernel.h"
#include "runtime/cuda/prepared_product.h"

namespace isomer {

class CudaDevice {
 public:
  // Errors: there is no such GPU; it is too old.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(
      std::shared_ptr<const CudaToolchain> toolchain, int ordinal);

  // REQUIRES: what was allocated is freed, but for what it has itself.
  ~CudaDevice();

  const std::string& name() const { return name_; }  // "NVIDIA H100 80GB HBM3"
  int64_t last_cache_bytes() const { return last_cache_bytes_; }

  // Of the thread that calls, from now on; null: the device's own.
  void UseStream(void* stream);
  void* stream() const;
  const CudaDriver& driver() const { return toolchain_->driver; }
  // Makes its context that of this thread.
  absl::Status Enter() const;
  // Of one of the driver's calls: the error names the GPU and `what` it does not do.
  absl::Status Check(int error, absl::string_view what) const;

  // What follows may be called from all threads.
  absl::StatusOr<void*> Allocate(int64_t bytes);
  void Free(void* address);
  absl::StatusOr<void*> AllocateOnHost(int64_t bytes);
  void FreeOnHost(void* memory);
  absl::Status FromHost(const void* host, int64_t bytes, void* device);
  absl::Status Copy(const void* from, int64_t bytes, void* to);
  // Both wait for all work that this stream was given before. Errors of that work are returned
  // here: of a kernel that broke down, and of an index that a look-up could not find.
  absl::Status ToHost(const void* device, int64_t bytes, void* host);
  absl::Status Wait();

  // The kernels of a text behind KernelPrelude(), compiled, or as an earlier run has left them.
  absl::StatusOr<void*> Load(const std::string& text);
  absl::StatusOr<void*> FunctionOf(void* module, const std::string& name);
  // Runs a kernel that defines so many elements, of which a block may do more than it does at a
  // time. `parameters`: its struct.
  absl::Status Launch(void* function, int64_t elements, const void* parameters,
                      int elements_per_block = GeneratedKernel::kBlock);

  // A product on this device; RunProduct gives it to the stream.
  absl::StatusOr<std::unique_ptr<PreparedProduct>> Prepare(const Product& product,
                                                           int64_t alignment);
  absl::Status RunProduct(const PreparedProduct& product, const void* a, const void* b, void* d,
                          const void* bias, void* workspace);

  // Attention by cuDNN. Unimplemented: there is none, or it does not do this one.
  absl::StatusOr<std::unique_ptr<CudnnPlan>> Prepare(const FusedAttention& attention);
  absl::Status RunPlan(CudnnPlan* plan, absl::Span<void* const> tensors, void* workspace);

  // Where kernels report bad indices, by a number that stands for this text in errors.
  void* error_words() const { return error_words_; }
  int64_t NumberOf(std::string kernel);

 private:
  explicit CudaDevice(std::shared_ptr<const CudaToolchain> toolchain)
      : toolchain_(std::move(toolchain)) {}
  absl::Status Synchronize() const;
  absl::Status CopyOut(const void* device, int64_t bytes, void* host) const;
  // Of a text; `finds`: as an earlier run may have left it, and then `is_found`.
  absl::StatusOr<std::string> Compiled(const std::string& text, bool finds, bool* is_found) const;

  const std::shared_ptr<const CudaToolchain> toolchain_;
  int ordinal_ = 0, driver_device_ = 0;
  std::string architecture_, name_;
  int64_t last_cache_bytes_ = 0;
  void *context_ = nullptr, *own_stream_ = nullptr, *error_words_ = nullptr, *products_ = nullptr;
  std::mutex errors_;                     // who reads the error words and clears them
  std::mutex mutex_;                      // guards what follows
  std::map<std::string, void*> modules_;  // by text
  std::vector<std::string> kernels_;      // by number
  std::mutex graphs_;                     // guards what follows, of which one thread is at a time
  std::optional<absl::StatusOr<Cudnn>> cudnn_;
  Cudnn::Handle cudnn_handle_ = nullptr;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_CUDA_DEVICE_H_
