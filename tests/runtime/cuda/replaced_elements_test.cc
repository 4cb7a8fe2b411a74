// The kernels of rows that are written into caches, compiled for the host.
#include "runtime/cuda/replaced_elements.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/parallel_operator.h"

namespace isomer {
namespace {

// Compiles the kernels of `call` and runs them on float32 and indices of 64 bits. False: an index
// was reported.
bool RunsReplacing(const KernelCall& call, const float* x, const std::vector<int64_t>& indices,
                   const std::vector<float>& updates, float* y) {
  static int number = 0;
  const auto kernel = ReplacingKernels(call, "k");
  EXPECT_TRUE(kernel.has_value());
  const std::string file =
      absl::StrCat(testing::TempDir(), "/replaced_elements_", getpid(), "_", number++);
  std::ofstream(file + ".cc") << KernelPrelude() << kernel->text;
  const std::string command = absl::StrCat(ISOMER_CXX_COMPILER, " -std=c++20 -O0 -w -fPIC -shared",
                                           " -o ", file, ".so ", file, ".cc");
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  void* const library = dlopen((file + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    return false;
  }
  int64_t error[3] = {0, 0, 0};
  const std::vector<char> arguments =
      PackArguments(*kernel, {x, indices.data(), updates.data()}, {y}, nullptr, error, 0);
  for (const GeneratedKernel::Launch& launch : kernel->launches) {
    const auto function =
        reinterpret_cast<void (*)(const void*)>(dlsym(library, launch.name.c_str()));
    EXPECT_NE(function, nullptr) << launch.name;
    if (function != nullptr) function(arguments.data());
  }
  return error[0] == 0;
}

KernelCall CallOnShard(const std::vector<TensorType>& operands, int64_t shard,
                       int64_t reduction = 0, bool gradient = false) {
  const Operator op(OpKind::kScatterElements, {{"axis", int64_t{1}}, {"reduction", reduction}});
  return MakeKernelCall(op, *InferSharding(op, operands), operands, shard, gradient);
}

const std::vector<TensorType> kOperands = {SequentialType({2, 4, 2}),
                                           SequentialType({2, 2, 2}, DataType::kInt64),
                                           SequentialType({2, 2, 2})};
// Of the second sample both rows go to one place: the later stays.
const std::vector<int64_t> kIndices = {1, 1, 3, 3, 2, 2, 2, 2};
const std::vector<float> kUpdates = {1, 2, 3, 4, 5, 6, 7, 8};
const std::vector<float> kExpected = {0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 7, 8, 0, 0};

TEST(ReplacedElements, AreWrittenBesideTheOperandOrOverIt) {
  const KernelCall call = CallOnShard(kOperands, 0);
  const std::vector<float> x(16, 0.0f);
  std::vector<float> y(16, -1.0f);
  EXPECT_TRUE(RunsReplacing(call, x.data(), kIndices, kUpdates, y.data()));
  EXPECT_EQ(y, kExpected);
  std::vector<float> in_place(16, 0.0f);
  EXPECT_TRUE(RunsReplacing(call, in_place.data(), kIndices, kUpdates, in_place.data()));
  EXPECT_EQ(in_place, kExpected);
}

TEST(ReplacedElements, AShardTakesWhatIsForIt) {
  // Of four rows the second device has the last two.
  std::vector<TensorType> operands = kOperands;
  operands[0].dims[1].degree = 2;
  operands[1].copies = operands[2].copies = 2;
  const KernelCall call = CallOnShard(operands, 1);
  ASSERT_EQ(call.operands[0].origin[1], 2);
  std::vector<float> y(8, 0.0f);
  EXPECT_TRUE(RunsReplacing(call, y.data(), kIndices, kUpdates, y.data()));
  EXPECT_EQ(y, (std::vector<float>{0, 0, 3, 4, 7, 8, 0, 0}));
}

TEST(ReplacedElements, AnIndexOutsideIsReported) {
  std::vector<int64_t> indices = kIndices;
  indices[5] = 4;
  std::vector<float> y(16, 0.0f);
  EXPECT_FALSE(RunsReplacing(CallOnShard(kOperands, 0), y.data(), indices, kUpdates, y.data()));
}

TEST(ReplacedElements, OthersAreGeneratedFromTheDeclaration) {
  EXPECT_FALSE(ReplacingKernels(CallOnShard(kOperands, 0, /*reduction=*/1), "k").has_value());
  EXPECT_FALSE(ReplacingKernels(CallOnShard(kOperands, 0, /*reduction=*/0, /*gradient=*/true), "k")
                   .has_value());
}

}  // namespace
}  // namespace isomer
