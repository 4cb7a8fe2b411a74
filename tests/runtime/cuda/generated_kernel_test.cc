// The kernels that are generated for GPUs, compiled for the host, against the reference evaluator
// in double: on every example call, in every precision, forward and gradient, the whole call and
// each of its shards; and with the channels of images innermost.
#include "runtime/cuda/generated_kernel.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "runtime/cpu/cpu_backend.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/execution/make_backend.h"
#include "tests/runtime/cuda/fake_cuda_driver.h"
#include "tests/runtime/kernel_checker.h"
#include "tests/runtime/staging_backend.h"

namespace isomer {
namespace {

using HostFunction = void (*)(const void* arguments);

// Notes which kernels are asked for.
class RecordingBackend : public Backend {
 public:
  absl::string_view name() const override { return "recording"; }
  void EnterDevice(int32_t device, int32_t count) override { cpu_->EnterDevice(device, count); }
  absl::StatusOr<Memory> Allocate(int64_t bytes) override { return cpu_->Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) override {
    calls_.emplace(call.Key(), call);
    return cpu_->MakeKernel(call);
  }
  const std::map<std::string, KernelCall>& calls() const { return calls_; }

 private:
  std::unique_ptr<Backend> cpu_ = MakeCpuBackend();
  std::map<std::string, KernelCall> calls_;
};

class HostKernel : public Kernel {
 public:
  HostKernel(const GeneratedKernel& kernel, std::vector<HostFunction> functions)
      : kernel_(kernel), functions_(std::move(functions)) {}
  int64_t workspace_bytes() const override { return kernel_.workspace_bytes; }
  absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                   void* workspace) override {
    int64_t error[3] = {0, 0, 0};
    const std::vector<char> arguments =
        PackArguments(kernel_, reads, writes, workspace, error, /*number=*/0);
    for (const HostFunction function : functions_) function(arguments.data());
    return error[0] == 0 ? absl::OkStatus()
                         : absl::InvalidArgumentError(absl::StrCat("index ", error[1]));
  }

 private:
  const GeneratedKernel kernel_;
  const std::vector<HostFunction> functions_;
};

// Generated kernels of the calls that were recorded; of others, and of what leaves something for a
// gradient that is not generated, the cpu's.
class HostBackend : public Backend {
 public:
  // Compiles them all, in as many files as there are cores. `emulates`: blocks of threads.
  explicit HostBackend(const std::map<std::string, KernelCall>& calls, bool emulates = false) {
    constexpr size_t kFiles = 2;
    std::string texts[kFiles];
    for (std::string& text : texts) text = std::string(KernelPrelude());
    size_t number = 0;
    for (const auto& [key, call] : calls) {
      // Some as if their few points and rows were many.
      SharingLimits limits;
      if (emulates || number % 4 < 2) limits.shortest_reduction = 2;
      if (emulates || number % 4 == 0) limits.fewest_rows = 1;
      std::optional<GeneratedKernel> kernel =
          GenerateKernel(call, absl::StrCat("k", number), limits);
      if (!kernel) {
        EXPECT_TRUE(call.gradient) << key;
        missing_.insert(std::string(OpName(call.op.kind())));
        continue;
      }
      texts[number++ % kFiles] += kernel->text;
      kernels_.emplace(key, *std::move(kernel));
    }
    std::vector<std::thread> compilers;
    for (size_t f = 0; f < kFiles; ++f) {
      compilers.emplace_back([&, f] {
        const std::string begin = emulates ? "#define ISOMER_EMULATES_BLOCKS\n" : "";
        Compile(begin + texts[f], absl::StrCat(emulates, f));
      });
    }
    for (std::thread& compiler : compilers) compiler.join();
    for (size_t f = 0; f < kFiles; ++f) {
      void* library = dlopen(Path(absl::StrCat(emulates, f, ".so")).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        ADD_FAILURE() << dlerror();
        return;
      }
      for (const auto& [key, kernel] : kernels_) {
        for (const GeneratedKernel::Launch& launch : kernel.launches) {
          const auto function = reinterpret_cast<HostFunction>(dlsym(library, launch.name.c_str()));
          if (function != nullptr) functions_[key].push_back(function);
        }
      }
    }
  }

  absl::string_view name() const override { return "generated"; }
  void EnterDevice(int32_t device, int32_t count) override { cpu_->EnterDevice(device, count); }
  absl::StatusOr<Memory> Allocate(int64_t bytes) override { return cpu_->Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) override {
    const auto kernel = kernels_.find(call.Key());
    if (kernel == kernels_.end() || (!call.gradient && call.saved.has_value())) {
      return cpu_->MakeKernel(call);
    }
    EXPECT_EQ(functions_[kernel->first].size(), kernel->second.launches.size()) << kernel->first;
    return std::make_unique<HostKernel>(kernel->second, functions_[kernel->first]);
  }
  // Operators whose gradients are not generated.
  const std::set<std::string>& missing() const { return missing_; }
  size_t size() const { return kernels_.size(); }

 private:
  static std::string Path(absl::string_view name) {
    return absl::StrCat(testing::TempDir(), "/generated_kernels_", getpid(), "_", name);
  }
  static void Compile(const std::string& text, const std::string& name) {
    const std::string source = Path(name + ".cc"), library = Path(name + ".so");
    std::ofstream(source) << text;
    const std::string sanitize =
        std::string(ISOMER_SANITIZE).empty() ? "" : absl::StrCat(" -fsanitize=", ISOMER_SANITIZE);
    const std::string command =
        absl::StrCat(ISOMER_CXX_COMPILER, " -std=c++20 -O0 -w -fPIC -shared", sanitize, " -o ",
                     library, " ", source);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

  std::unique_ptr<Backend> cpu_ = MakeCpuBackend();
  std::map<std::string, GeneratedKernel> kernels_;
  std::map<std::string, std::vector<HostFunction>> functions_;
  std::set<std::string> missing_;
};

// Beside the examples: integers with more digits than a float has, and beyond what their results
// hold.
struct Extreme {
  const char* op;
  std::vector<const char*> operands;
  std::vector<double> values;  // of all elements of each operand
};
const std::vector<Extreme>& Extremes() {
  static const auto* extremes = new std::vector<Extreme>{
      {"clip(min=0,max=9.2e18)", {"i64[4]"}, {16777217}},
      {"clip(min=0.5,max=1e9)", {"i64[4]"}, {123456789}},
      {"div", {"i64[4]", "i64[4]"}, {1e12 + 1, 1}},
      {"pow", {"i64[4]", "i64[4]"}, {3, 20}},
      {"scale(factor=0.5)", {"i64[4]"}, {100000002}},
      {"reduce_mean(axes=[0])", {"i64[3]"}, {16777217}},
      {"reduce_prod(axes=[0])", {"i32[40]"}, {6}},
      {"reduce_sum(axes=[0])", {"i32[4]"}, {2e9}},
      {"pad(padding=[1,0],value=1.5)", {"i64[4]"}, {16777217}},
      {"cast(to=4)", {"i64[4]"}, {3e9}},
      {"cast(to=2)", {"i64[4]"}, {16842753}},
      {"cast(to=3)", {"i64[4]"}, {4099}},
      {"add", {"i32[4]", "i32[4]"}, {2147483647, 1}},
      {"mul", {"i32[4]", "i32[4]"}, {65536, 65536}},
      {"clip(min=-1e300,max=1e300)", {"f32[4]"}, {3e38}},
      {"scale(factor=1e-46)", {"f32[4]"}, {1}},
  };
  return *extremes;
}
ExampleCall CallOf(const Extreme& extreme) {
  ExampleCall call = {extreme.op, ParseOperator(extreme.op).value(), {}};
  for (const char* type : extreme.operands) {
    call.operands.push_back(ParseTensorType(type).value());
  }
  return call;
}

void CheckAll(const std::shared_ptr<Backend>& backend) {
  for (const Extreme& extreme : Extremes()) {
    SCOPED_TRACE(extreme.op);
    Checker checker(CallOf(extreme), backend);
    for (size_t o = 0; o < extreme.values.size(); ++o) checker.Set(o, extreme.values[o]);
    checker.CheckWholeCall();
  }
  for (const ExampleCall& example : CallsOfImages()) {
    for (const CallLayouts& layouts : LayoutsOf(example)) {
      SCOPED_TRACE(absl::StrCat(example.name, ", channels innermost"));
      Checker(example, backend, layouts).CheckWholeCall();
    }
  }
  for (const ExampleCall& example : Examples()) {
    for (const ExampleCall& call : Variants(example)) {
      SCOPED_TRACE(call.name);
      Checker checker(call, backend);
      checker.CheckWholeCall();
      if (call.name == example.name) checker.CheckEveryShard();
    }
  }
}

TEST(GeneratedKernels, AgreeWithTheDeclarations) {
  const auto recording = std::make_shared<RecordingBackend>();
  CheckAll(recording);
  const auto generated = std::make_shared<HostBackend>(recording->calls());
  EXPECT_THAT(generated->missing(), testing::IsEmpty());
  EXPECT_GT(generated->size(), 6000);
  CheckAll(generated);
}

// What the threads of a block do together, as a GPU runs them: elements side by side and lanes of
// each, elements that are left over, maxima with their places.
TEST(GeneratedKernels, BlocksOfThreadsAgree) {
  const std::vector<Extreme> calls = {
      {"reduce_sum(axes=[0])", {"f32[70,40]"}, {}},
      {"reduce_max(axes=[1])", {"f32[20,3]"}, {}},
      {"reduce_max(axes=[0])", {"f32[100,33]"}, {}},
      {"reduce_prod(axes=[0])", {"f32[12,35]"}, {}},
      {"argmax(axis=1)", {"f32[6,300]"}, {}},
      {"layer_norm(epsilon=0.001)", {"f32[6,50]", "f32[50]", "f32[50]"}, {}},
  };
  const auto check = [&](const std::shared_ptr<Backend>& backend) {
    for (const Extreme& call : calls) {
      SCOPED_TRACE(call.op);
      Checker(CallOf(call), backend).CheckWholeCall();
    }
  };
  const auto recording = std::make_shared<RecordingBackend>();
  check(recording);
  check(std::make_shared<HostBackend>(recording->calls(), /*emulates=*/true));
}

// A small piece may be far from the beginning of its tensor.
TEST(GeneratedKernels, IndicesOfLargeTensorsHave64Bits) {
  const auto text_of = [](const char* type, int64_t shard) {
    const std::vector<TensorType> types = {ParseTensorType(type).value()};
    const auto sharding = InferSharding(OpKind::kRelu, types);
    EXPECT_TRUE(sharding.ok()) << sharding.status();
    return GenerateKernel(MakeKernelCall(OpKind::kRelu, *sharding, types, shard, false), "k")->text;
  };
  using testing::HasSubstr;
  EXPECT_THAT(text_of("f32[1024:8,1024]", 7), HasSubstr("const int v0"));
  EXPECT_THAT(text_of("f32[65536:8,65536]", 7), HasSubstr("const long long v0"));
  EXPECT_THAT(text_of("f16[16384:4,151936]", 3), HasSubstr("const long long v0"));
  EXPECT_THAT(text_of("f32[3000000000]", 0), HasSubstr("const long long v0"));
}

// On the GPU of this machine, if there is one.
TEST(GpuKernels, AgreeWithTheDeclarations) {
  const auto gpu = MakeBackend("cuda");
  if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
  const auto staging = std::make_shared<StagingBackend>(gpu->get());
  for (const ExampleCall& example : Examples()) {
    for (const ExampleCall& call : Variants(example)) {
      SCOPED_TRACE(call.name);
      Checker(call, staging).CheckWholeCall();
    }
  }
  for (const ExampleCall& example : CallsOfImages()) {
    for (const CallLayouts& layouts : LayoutsOf(example)) {
      SCOPED_TRACE(absl::StrCat(example.name, ", channels innermost"));
      Checker(example, staging, layouts).CheckWholeCall();
    }
  }
}

// The same way, some calls on a driver without a GPU: a pointwise one, one with a workspace, a
// look-up, and one whose gradient has its result.
TEST(GpuKernels, AgreeOnADriverWithoutAGpu) {
  const auto gpu = MakeCudaBackend(FakeCudaToolchain(/*gpus=*/1));
  const auto staging = std::make_shared<StagingBackend>(gpu.get());
  for (const OpKind kind :
       {OpKind::kMul, OpKind::kLayerNorm, OpKind::kEmbedding, OpKind::kSigmoid}) {
    const ExampleCall example = ExamplesOf(kind)[0];
    SCOPED_TRACE(example.name);
    Checker(example, staging).CheckWholeCall();
  }
}

// On a library that computes products by the manual of cuBLASLt; all of it does, but for lines of
// two bytes, which that refuses and generated kernels take.
void CheckProducts(const std::vector<ExampleCall>& examples, int64_t most_part_bytes) {
  CudaToolchain toolchain = FakeCudaToolchain(/*gpus=*/1);
  toolchain.most_part_bytes = most_part_bytes;
  const auto gpu = MakeCudaBackend(toolchain);
  const auto staging = std::make_shared<StagingBackend>(gpu.get());
  for (const ExampleCall& example : examples) {
    for (const ExampleCall& call : Variants(example)) {
      SCOPED_TRACE(call.name);
      const int before = fake_cuda_products;
      Checker checker(call, staging);
      checker.CheckWholeCall();
      const bool is_refused = call.name == "OfOneRow of bf16" || call.name == "OfOneRow of f16";
      EXPECT_EQ(fake_cuda_products > before, IsFloat(call.operands[0].dtype) && !is_refused);
      if (call.name == example.name) checker.CheckEveryShard();
    }
  }
}

TEST(GpuKernels, ProductsAgreeOnADriverWithoutAGpu) {
  std::vector<ExampleCall> examples = ExamplesOf(OpKind::kMatMul);
  absl::c_copy(ExamplesOf(OpKind::kLinear), std::back_inserter(examples));
  const auto add = [&](std::string name, std::vector<int64_t> a, std::vector<int64_t> b) {
    examples.push_back({std::move(name), OpKind::kMatMul, {SequentialType(a), SequentialType(b)}});
  };
  // Batches that share matrices on one side, on the other, in one dim and not in the next.
  add("SharedLeft", {2, 4}, {3, 4, 6});
  add("SharedRight", {3, 2, 4}, {4, 6});
  add("SharedInTheFirstDim", {1, 2, 2, 4}, {3, 2, 4, 6});
  add("SharedInTheSecondDim", {3, 1, 2, 4}, {3, 2, 4, 6});
  add("SharedCrosswise", {3, 1, 2, 4}, {1, 2, 4, 6});
  add("OfOneRow", {1, 4}, {4, 1});
  CheckProducts(examples, kMostPartBytes);
}

TEST(GpuKernels, AttentionAgreesOnADriverWithoutAGpu) {
  CheckProducts(ExamplesOf(OpKind::kAttention), kMostPartBytes);
}

TEST(GpuKernels, CappedAttentionAgreesOnADriverWithoutAGpu) {
  CheckProducts(ExamplesOf(OpKind::kCappedAttention), kMostPartBytes);
}

TEST(GpuKernels, SinkAttentionAgreesOnADriverWithoutAGpu) {
  CheckProducts(ExamplesOf(OpKind::kSinkAttention), kMostPartBytes);
  const ExampleCall call = {
      "SinksOfParts",
      Operator(OpKind::kSinkAttention,
               {{"causal", int64_t{1}}, {"scale", 0.5}, {"window", int64_t{3}}}),
      {SequentialType({3, 6, 4, 2}), SequentialType({3, 3, 6, 2}), SequentialType({3, 3, 6, 2}),
       SequentialType({6})}};
  constexpr int64_t kOfHead = 2 * 4 * 6 * sizeof(float);
  for (const int64_t bytes : {int64_t{1}, 2 * kOfHead, 3 * kOfHead, 6 * kOfHead}) {
    CheckProducts({call}, bytes);
  }
}

// Scores of a head at a time, of some heads, of some samples; masks of all shapes.
TEST(GpuKernels, AttentionInPartsAgrees) {
  constexpr int64_t kOfHead = 2 * 4 * 6 * sizeof(float);  // two query heads, 4 queries, 6 keys
  const auto example = [](std::string name, std::vector<int64_t> mask, int64_t causal) {
    ExampleCall call = {
        std::move(name),
        Operator(OpKind::kAttention, {{"causal", causal}, {"scale", 0.5}}),
        {SequentialType({3, 6, 4, 2}), SequentialType({3, 3, 6, 2}), SequentialType({3, 3, 6, 2})}};
    if (!mask.empty()) call.operands.push_back(SequentialType(mask));
    return call;
  };
  const std::vector<ExampleCall> examples = {example("Plain", {}, 0),
                                             example("Causal", {}, 1),
                                             example("MaskOfAll", {3, 6, 4, 6}, 0),
                                             example("MaskOfSamples", {3, 1, 1, 6}, 0),
                                             example("MaskOfHeads", {6, 4, 6}, 1),
                                             example("MaskOfPairs", {4, 6}, 0)};
  for (const int64_t bytes : {int64_t{1}, 2 * kOfHead, 3 * kOfHead, 6 * kOfHead}) {
    SCOPED_TRACE(bytes);
    CudaToolchain toolchain = FakeCudaToolchain(/*gpus=*/1);
    toolchain.most_part_bytes = bytes;
    const auto gpu = MakeCudaBackend(toolchain);
    const auto staging = std::make_shared<StagingBackend>(gpu.get());
    for (const ExampleCall& call : examples) {
      SCOPED_TRACE(call.name);
      Checker(call, staging).CheckWholeCall();
    }
  }
}

// What the library has no algorithm for is generated, product by product.
TEST(GpuKernels, RefusedProductsAgree) {
  std::vector<ExampleCall> examples;
  for (const OpKind kind : {OpKind::kMatMul, OpKind::kLinear, OpKind::kAttention}) {
    absl::c_copy(ExamplesOf(kind), std::back_inserter(examples));
  }
  fake_cuda_refuses_products = true;
  const int before = fake_cuda_products;
  const auto gpu = MakeCudaBackend(FakeCudaToolchain(/*gpus=*/1));
  const auto staging = std::make_shared<StagingBackend>(gpu.get());
  for (const ExampleCall& call : examples) {
    SCOPED_TRACE(call.name);
    Checker(call, staging).CheckWholeCall();
  }
  fake_cuda_refuses_products = false;
  EXPECT_EQ(fake_cuda_products, before);
}

// Kernels that are written for gradients of rows; and as they are derived, of other axes.
TEST(GpuKernels, GradientsOfRowsAgreeOnADriverWithoutAGpu) {
  const auto gpu = MakeCudaBackend(FakeCudaToolchain(/*gpus=*/1));
  const auto staging = std::make_shared<StagingBackend>(gpu.get());
  for (const OpKind kind :
       {OpKind::kLayerNorm, OpKind::kRmsNorm, OpKind::kSoftmax, OpKind::kLogSoftmax}) {
    for (const ExampleCall& example : ExamplesOf(kind)) {
      for (const ExampleCall& call : Variants(example)) {
        SCOPED_TRACE(call.name);
        Checker checker(call, staging);
        checker.CheckWholeCall();
        if (call.name == example.name) checker.CheckEveryShard();
      }
    }
  }
}

ExampleCall Convolution(std::string name, OpKind kind, std::vector<int64_t> x,
                        std::vector<int64_t> w, std::vector<int64_t> stride,
                        std::vector<int64_t> padding, int64_t groups,
                        std::vector<int64_t> dilation = {}) {
  if (dilation.empty()) dilation.assign(stride.size(), 1);
  return {std::move(name),
          Operator(kind, {{"stride", std::move(stride)},
                          {"padding", std::move(padding)},
                          {"dilation", std::move(dilation)},
                          {"groups", groups}}),
          {SequentialType(x), SequentialType(w)}};
}

TEST(GpuKernels, ConvolutionsAgreeOnADriverWithoutAGpu) {
  CheckProducts(
      {Convolution("Padded", OpKind::kConv2d, {3, 4, 4, 6}, {8, 4, 3, 3}, {1, 1}, {1, 1, 1, 1}, 1),
       Convolution("Lopsided", OpKind::kConv2d, {2, 4, 7, 5}, {8, 4, 2, 3}, {2, 1}, {0, 2, 1, 0}, 1,
                   {3, 1}),
       Convolution("OfPoints", OpKind::kConv2d, {3, 8, 4, 2}, {8, 8, 1, 1}, {1, 1}, {0, 0, 0, 0},
                   1),
       Convolution("OfSomePoints", OpKind::kConv2d, {2, 8, 5, 4}, {8, 8, 1, 1}, {2, 2},
                   {0, 0, 0, 0}, 1),
       Convolution("Grouped", OpKind::kConv2d, {3, 8, 3, 4}, {16, 4, 3, 2}, {1, 1}, {1, 1, 1, 0},
                   2),
       Convolution("GroupsOfPoints", OpKind::kConv2d, {2, 24, 2, 2}, {24, 8, 1, 1}, {1, 1},
                   {0, 0, 0, 0}, 3),
       Convolution("OfLines", OpKind::kConv1d, {2, 4, 9}, {8, 4, 3}, {2}, {1, 1}, 1),
       Convolution("OfVolumes", OpKind::kConv3d, {2, 2, 3, 4, 3}, {8, 2, 2, 2, 2}, {1, 1, 1},
                   {1, 0, 0, 0, 1, 1}, 1)},
      kMostPartBytes);
}

// Channels innermost on either side, and on both.
TEST(GpuKernels, ConvolutionsOfAllLayoutsAgree) {
  const std::vector<ExampleCall> examples = {
      Convolution("Lopsided", OpKind::kConv2d, {2, 4, 7, 5}, {8, 4, 2, 3}, {2, 1}, {0, 2, 1, 0}, 1,
                  {3, 1}),
      Convolution("OfPoints", OpKind::kConv2d, {3, 8, 4, 2}, {8, 8, 1, 1}, {1, 1}, {0, 0, 0, 0}, 1),
      Convolution("Grouped", OpKind::kConv2d, {3, 8, 3, 4}, {16, 4, 3, 2}, {1, 1}, {1, 1, 1, 0}, 2),
      Convolution("GroupsOfPoints", OpKind::kConv2d, {2, 24, 2, 2}, {24, 8, 1, 1}, {1, 1},
                  {0, 0, 0, 0}, 3)};
  for (const int64_t bytes : {int64_t{1}, kMostPartBytes}) {
    CudaToolchain toolchain = FakeCudaToolchain(/*gpus=*/1);
    toolchain.most_part_bytes = bytes;
    const auto gpu = MakeCudaBackend(toolchain);
    const auto staging = std::make_shared<StagingBackend>(gpu.get());
    for (const ExampleCall& example : examples) {
      for (const ExampleCall& call : Variants(example)) {
        for (const CallLayouts& layouts : LayoutsOf(call)) {
          SCOPED_TRACE(absl::StrCat(call.name, " ", bytes, " ",
                                    static_cast<int>(layouts.OfOperand(0)),
                                    static_cast<int>(layouts.OfOutput(0))));
          const int before = fake_cuda_products;
          Checker(call, staging, layouts).CheckWholeCall();
          // Others may have an odd number of windows, which the fake refuses.
          if (call.operands[0].dtype == DataType::kFloat32) {
            EXPECT_GT(fake_cuda_products, before);
          }
        }
      }
    }
  }
}

// A sample at a time, and some.
TEST(GpuKernels, ConvolutionsInPartsAgree) {
  const ExampleCall padded =
      Convolution("Padded", OpKind::kConv2d, {3, 4, 4, 6}, {8, 4, 3, 3}, {1, 1}, {1, 1, 1, 1}, 1);
  const ExampleCall grouped = Convolution("Grouped", OpKind::kConv2d, {3, 24, 3, 2}, {24, 8, 3, 3},
                                          {1, 1}, {1, 1, 1, 1}, 3);
  for (const int64_t bytes : {int64_t{1}, int64_t{8000}}) {
    SCOPED_TRACE(bytes);
    CudaToolchain toolchain = FakeCudaToolchain(/*gpus=*/1);
    toolchain.most_part_bytes = bytes;
    const auto gpu = MakeCudaBackend(toolchain);
    const auto staging = std::make_shared<StagingBackend>(gpu.get());
    for (const ExampleCall& call : {padded, grouped}) {
      SCOPED_TRACE(call.name);
      Checker(call, staging).CheckWholeCall();
    }
  }
}

}  // namespace
}  // namespace isomer
