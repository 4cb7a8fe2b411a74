// A device whose memory the host cannot reach: its addresses mean nothing to anybody but its
// kernels and its operations, as a GPU's do. Whoever looks into it from outside crashes.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cpu/cpu_backend.h"
#include "tests/runtime/short_training.h"

namespace isomer {
namespace {

// No processor has such addresses.
constexpr uintptr_t kElsewhere = uintptr_t{1} << 62;

template <typename T>
T* Away(T* pointer) {
  return pointer == nullptr
             ? nullptr
             : reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) + kElsewhere);
}
template <typename T>
T* Home(T* pointer) {
  return pointer == nullptr
             ? nullptr
             : reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) - kElsewhere);
}

class RemoteOperations : public DeviceOperations {
 public:
  absl::Status Copy(const void* from, int64_t bytes, void* to) override {
    return DeviceOperations::Copy(Home(from), bytes, Home(to));
  }
  absl::Status Fill(double value, int64_t count, DataType dtype, void* to) override {
    return DeviceOperations::Fill(value, count, dtype, Home(to));
  }
  absl::Status Add(DataType from_dtype, const void* from, int64_t count, DataType dtype,
                   void* to) override {
    return DeviceOperations::Add(from_dtype, Home(from), count, dtype, Home(to));
  }
  absl::Status Convert(DataType from_dtype, const void* from, int64_t count, DataType dtype,
                       void* to) override {
    return DeviceOperations::Convert(from_dtype, Home(from), count, dtype, Home(to));
  }
  absl::Status FillScaled(double value, const double* factor, int64_t count, DataType dtype,
                          void* to) override {
    return DeviceOperations::FillScaled(value, Home(factor), count, dtype, Home(to));
  }
  absl::Status Update(const UpdateRule& rule, const UpdateFactors* factors,
                      const Gradient& gradient, int64_t count, const float* weights, float* updated,
                      absl::Span<float* const> states, const LowWeights& low) override {
    std::vector<float*> home;
    for (float* state : states) home.push_back(Home(state));
    return DeviceOperations::Update(rule, Home(factors), {gradient.dtype, Home(gradient.data)},
                                    count, Home(weights), Home(updated), home,
                                    {low.dtype, Home(low.data)});
  }
  absl::Status CopyRegion(const Box& region, const Box& from_box, const void* from,
                          const Box& to_box, void* to, int64_t element_bytes) override {
    return DeviceOperations::CopyRegion(region, from_box, Home(from), to_box, Home(to),
                                        element_bytes);
  }
  absl::Status SumPieces(absl::Span<const MovedPiece> pieces, const Box& box, DataType dtype,
                         void* buffer) override {
    std::vector<MovedPiece> home(pieces.begin(), pieces.end());
    for (MovedPiece& piece : home) piece.data = Home(piece.data);
    return DeviceOperations::SumPieces(home, box, dtype, Home(buffer));
  }
  absl::StatusOr<bool> AreFinite(DataType dtype, const void* data, int64_t count) override {
    return DeviceOperations::AreFinite(dtype, Home(data), count);
  }
  absl::StatusOr<double> SumOfSquares(DataType dtype, const void* data, int64_t count) override {
    return DeviceOperations::SumOfSquares(dtype, Home(data), count);
  }
  absl::Status FromHost(const void* host, int64_t bytes, void* device) override {
    from_host += bytes;
    return DeviceOperations::Copy(host, bytes, Home(device));
  }
  absl::Status ToHost(const void* device, int64_t bytes, void* host) override {
    to_host += bytes;
    return DeviceOperations::Copy(Home(device), bytes, host);
  }
  bool shares_host_memory() const override { return false; }

  std::atomic<int64_t> from_host = 0, to_host = 0;
};

class RemoteBackend : public Backend {
 public:
  absl::string_view name() const override { return "remote"; }
  void EnterDevice(int32_t device, int32_t devices) override { cpu_->EnterDevice(device, devices); }
  absl::StatusOr<Memory> Allocate(int64_t bytes) override {
    absl::StatusOr<Memory> memory = cpu_->Allocate(bytes);
    if (!memory.ok()) return memory;
    return Memory(Away(memory->release()), [](char* p) { std::free(Home(p)); });
  }
  absl::StatusOr<Memory> AllocateOnHost(int64_t bytes) override {
    return cpu_->AllocateOnHost(bytes);
  }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) override {
    auto kernel = cpu_->MakeKernel(call);
    if (!kernel.ok()) return kernel;
    return std::make_unique<RemoteKernel>(*std::move(kernel));
  }
  RemoteOperations& operations() override { return operations_; }

 private:
  class RemoteKernel : public Kernel {
   public:
    explicit RemoteKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
    int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
    absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                     void* workspace) override {
      std::vector<const void*> read;
      std::vector<void*> written;
      for (const void* buffer : reads) read.push_back(Home(buffer));
      for (void* buffer : writes) written.push_back(Home(buffer));
      return kernel_->Run(read, written, Home(workspace));
    }

   private:
    const std::unique_ptr<Kernel> kernel_;
  };

  const std::unique_ptr<Backend> cpu_ = MakeCpuBackend();
  RemoteOperations operations_;
};

TEST(DeviceMemory, IsReachedByKernelsAndOperationsAlone) {
  for (DataType precision : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    SCOPED_TRACE(PrecisionName(precision));
    RemoteBackend remote;
    const auto cpu = MakeCpuBackend();
    const Trained expected = TrainedOn(cpu.get(), precision, 0.1);
    const Trained actual = TrainedOn(&remote, precision, 0.1);
    EXPECT_EQ(actual.loss, expected.loss);
    ASSERT_EQ(actual.parameters.size(), 2u);
    for (const auto& [name, value] : expected.parameters) {
      EXPECT_EQ(actual.parameters.at(name).data, value.data) << name;
      EXPECT_EQ(actual.gradients.at(name).data, expected.gradients.at(name).data) << name;
    }
    // Weights, inputs, results: none came in another way.
    EXPECT_GT(remote.operations().from_host, 0);
    EXPECT_GT(remote.operations().to_host, 0);
  }
}

}  // namespace
}  // namespace isomer
