// Graphs of attention: by a cuDNN that computes what they say, and by the real one, which makes
// plans of them for GPUs that are not here.
#include "runtime/cuda/fused_attention.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/ir/operator.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/cuda/products.h"
#include "tests/runtime/cuda/fake_cuda_driver.h"
#include "tests/runtime/cuda/fake_cudnn.h"
#include "tests/runtime/kernel_checker.h"
#include "tests/runtime/staging_backend.h"

namespace isomer {
namespace {

// Query heads of a key head, a causal one, one of values wider than keys.
std::vector<ExampleCall> CallsToFuse(DataType dtype) {
  const auto call = [&](std::string name, int64_t causal, std::vector<int64_t> q,
                        std::vector<int64_t> k, std::vector<int64_t> v) {
    return ExampleCall{
        std::move(name),
        Operator(OpKind::kAttention, {{"causal", causal}, {"scale", 0.5}}),
        {SequentialType(q, dtype), SequentialType(k, dtype), SequentialType(v, dtype)}};
  };
  return {call("Plain", 0, {2, 3, 4, 8}, {2, 3, 5, 8}, {2, 3, 5, 8}),
          call("Causal", 1, {2, 3, 5, 8}, {2, 3, 5, 8}, {2, 3, 5, 8}),
          call("Grouped", 1, {2, 6, 4, 8}, {2, 3, 4, 8}, {2, 3, 4, 8}),
          call("WideValues", 0, {1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 6})};
}

class FusedAttentionOf : public testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Types, FusedAttentionOf,
                         testing::Values(DataType::kBFloat16, DataType::kFloat16),
                         [](const auto& info) { return std::string(DataTypeName(info.param)); });

TEST_P(FusedAttentionOf, AgreesWithTheEvaluator) {
  const auto gpu = MakeCudaBackend(FakeCudaToolchain(/*gpus=*/1));
  const auto staging = std::make_shared<StagingBackend>(gpu.get());
  for (const ExampleCall& call : CallsToFuse(GetParam())) {
    SCOPED_TRACE(call.name);
    const int runs = fake_cudnn_runs;
    Checker(call, staging).CheckWholeCall();
    EXPECT_GT(fake_cudnn_runs, runs);
  }
}

// What a library does not do, or where there is none, products do.
TEST_P(FusedAttentionOf, GivesWayToProducts) {
  CudaToolchain without = FakeCudaToolchain(/*gpus=*/1);
  without.open_cudnn = [] { return absl::UnavailableError("not installed"); };
  CudaToolchain none = FakeCudaToolchain(/*gpus=*/1);
  none.open_cudnn = nullptr;
  const CudaToolchain refusing = FakeCudaToolchain(/*gpus=*/1);
  const int runs = fake_cudnn_runs;
  fake_cudnn_refuses = FakeCudnnRefuses::kAll;
  for (const CudaToolchain& toolchain : {without, none, refusing}) {
    const auto gpu = MakeCudaBackend(toolchain);
    const auto staging = std::make_shared<StagingBackend>(gpu.get());
    const int products = fake_cuda_products;
    Checker(CallsToFuse(GetParam())[0], staging).CheckWholeCall();
    EXPECT_GT(fake_cuda_products, products);
  }
  fake_cudnn_refuses = FakeCudnnRefuses::kNothing;
  EXPECT_EQ(fake_cudnn_runs, runs);
}

// Products find what the library's forward pass has left for them: as for heads of 256 on an A100.
TEST_P(FusedAttentionOf, IsFollowedByAGradientOfProducts) {
  fake_cudnn_refuses = FakeCudnnRefuses::kGradients;
  const auto gpu = MakeCudaBackend(FakeCudaToolchain(/*gpus=*/1));
  const auto staging = std::make_shared<StagingBackend>(gpu.get());
  for (const ExampleCall& call : CallsToFuse(GetParam())) {
    SCOPED_TRACE(call.name);
    const int runs = fake_cudnn_runs, products = fake_cuda_products;
    Checker(call, staging).CheckWholeCall();
    EXPECT_GT(fake_cudnn_runs, runs);
    EXPECT_GT(fake_cuda_products, products);
  }
  fake_cudnn_refuses = FakeCudnnRefuses::kNothing;
}

TEST(FusedAttention, IsOfWhatTheLibraryTakesAlone) {
  const auto is_fused = [](const ExampleCall& example, bool gradient, std::vector<bool> wanted) {
    const auto sharding = InferSharding(example.op, example.operands);
    const KernelCall call =
        MakeKernelCall(example.op, *sharding, example.operands, 0, gradient, wanted);
    return absl::c_any_of(StepsOfProducts(call)->steps, [](const GpuStep& step) {
      return std::holds_alternative<FusedStep>(step);
    });
  };
  ExampleCall call = CallsToFuse(DataType::kBFloat16)[0];
  EXPECT_TRUE(is_fused(call, false, {}));
  EXPECT_TRUE(is_fused(call, true, {true, true, true}));
  EXPECT_FALSE(is_fused(call, true, {true, false, true}));
  EXPECT_FALSE(is_fused(CallsToFuse(DataType::kFloat32)[0], false, {}));
  // The first query sees more than the first key.
  call.op = Operator(OpKind::kAttention, {{"causal", int64_t{1}}, {"scale", 0.5}});
  EXPECT_FALSE(is_fused(call, false, {}));
  call = CallsToFuse(DataType::kBFloat16)[0];
  call.operands.push_back(SequentialType({4, 5}, DataType::kBFloat16));
  EXPECT_FALSE(is_fused(call, false, {}));
}

// What cuDNN wants to know of a GPU, as it writes it down itself.
std::string DeviceOf(int capability, int multiprocessors, int64_t shared, const std::string& name) {
  return absl::StrCat(
      R"({"cudaDeviceId":0,"driverVer":13000,"maxGridSize":[2147483647,65535,65535],)",
      R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"warpSize":32,)",
      R"("maxSharedMemoryPerBlock":49152,"reservedSharedMemoryPerBlock":1024,)",
      R"("maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)",
      R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,)",
      R"("smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,)",
      R"("totalGlobalMem":85000000000,"deviceVer":)", capability, R"(,"multiProcessorCount":)",
      multiprocessors, R"(,"maxSharedMemoryPerBlockOptin":)", shared, R"(,"deviceName":")", name,
      R"("})");
}

// A driver that loads every kernel and does nothing else, under the name by which cuDNN asks for
// one.
bool LoadDriverThatLoadsKernels() {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) return true;  // There is one.
  const std::string path = absl::StrCat(testing::TempDir(), "/driver_that_loads_kernels");
  std::ofstream text(path + ".cc");
  text << "static long handle[64];\n";
  for (const char* loads : {"cuLibraryLoadData", "cuLibraryGetKernel", "cuModuleGetFunction",
                            "cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary"}) {
    text << "extern \"C\" int " << loads << "(void** made) { *made = handle; return 0; }\n";
  }
  for (const char* does :
       {"cuFuncSetAttribute", "cuKernelSetAttribute", "cuLibraryUnload", "cuModuleUnload"}) {
    text << "extern \"C\" int " << does << "() { return 0; }\n";
  }
  text << "extern \"C\" int cuDriverGetVersion(int* version) { *version = 13000; return 0; }\n";
  constexpr int kStubLibrary = 34;  // CUDA_ERROR_STUB_LIBRARY
  for (absl::string_view does_not : absl::StrSplit(
           "cuCtxGetCurrent cuCtxGetDevice cuCtxGetLimit cuCtxPopCurrent cuCtxPushCurrent "
           "cuDeviceGet cuDeviceGetAttribute cuDeviceGetCount cuDevicePrimaryCtxRelease "
           "cuDevicePrimaryCtxReset cuDevicePrimaryCtxRetain cuFuncGetAttribute cuGetErrorName "
           "cuGetErrorString cuInit cuKernelGetAttribute cuLaunchCooperativeKernel cuLaunchKernel "
           "cuLaunchKernelEx cuLibraryLoadFromFile cuLinkAddData cuLinkAddData_v2 "
           "cuLinkAddFile_v2 cuLinkComplete cuLinkCreate cuLinkCreate_v2 cuLinkDestroy "
           "cuMemcpyDtoH_v2 cuModuleGetGlobal_v2 cuOccupancyMaxActiveBlocksPerMultiprocessor "
           "cuOccupancyMaxPotentialClusterSize cuStreamGetCtx cuStreamSynchronize "
           "cuTensorMapEncodeTiled",
           ' ')) {
    text << "extern \"C\" int " << does_not << "() { return " << kStubLibrary << "; }\n";
  }
  text.close();
  const std::string command =
      absl::StrCat(ISOMER_CXX_COMPILER, " -w -fPIC -shared -Wl,-soname,libcuda.so.1 -o ", path,
                   ".so ", path, ".cc");
  return std::system(command.c_str()) == 0 && dlopen((path + ".so").c_str(), RTLD_NOW) != nullptr;
}

// 0: all is well. In a process of its own, as the driver stays.
int MakePlans(const Cudnn& cudnn) {
  if (!LoadDriverThatLoadsKernels()) return 1;
  const std::vector<std::string> devices = {DeviceOf(800, 108, 166912, "NVIDIA A100-SXM4-80GB"),
                                            DeviceOf(900, 132, 232448, "NVIDIA H100 80GB HBM3"),
                                            DeviceOf(1000, 148, 232448, "NVIDIA B200")};
  int failed = 0;
  for (const std::string& device : devices) {
    for (const bool gradient : {false, true}) {
      for (const int64_t key_heads : {16, 4}) {
        const FusedAttention attention = {.batch = 4,
                                          .heads = 16,
                                          .key_heads = key_heads,
                                          .queries = 512,
                                          .keys = 512,
                                          .e = 64,
                                          .f = 64,
                                          .dtype = DataType::kBFloat16,
                                          .scale = 0.125,
                                          .causal = key_heads == 4,
                                          .gradient = gradient};
        const auto plan = GraphOf(cudnn, attention).Build(/*handle=*/nullptr, device);
        if (plan.ok() && (*plan)->workspace_bytes() >= 0) continue;
        ++failed;
        std::fprintf(stderr, "%s, gradient %d, %d key heads: %s\n", device.c_str(), gradient,
                     static_cast<int>(key_heads), plan.status().ToString().c_str());
      }
    }
  }
  return failed == 0 ? 0 : 2;
}

TEST(FusedAttention, HasPlansForGpusThatAreNotHere) {
  const absl::StatusOr<Cudnn> cudnn = OpenCudnn();
  if (!cudnn.ok()) GTEST_SKIP() << cudnn.status().message();
  if (std::string(ISOMER_SANITIZE) != "") GTEST_SKIP() << "a library's own leaks are not ours";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(std::_Exit(MakePlans(*cudnn)), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace isomer
