// What optimizer/cost/workspace.h says of kernels that no profile has measured, against kernels of
// the cpu backend that run.
#include "optimizer/cost/workspace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/loss.h"
#include "models/zoo/zoo.h"
#include "optimizer/cost/memory_cost.h"
#include "pcg/ir/precision.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/schedule.h"
#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/allocation_count.h"
#include "runtime/execution/job.h"
#include "runtime/profiler/kernel_timer.h"
#include "runtime/profiler/profile_calls.h"

namespace isomer {
namespace {

// Sizes at which workspaces are several megabytes.
class WorkspaceTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(
    Networks, WorkspaceTest,
    testing::Values("resnext50?batch=2&side=96", "squeezenet?batch=4&side=128",
                    "inception_v3?batch=1&side=171&thinner=4", "unet?batch=2&blocks=1",
                    "lenet?batch=256", "vgg19?batch=1&side=64&hidden=512",
                    "mlp?batch=64&hidden=2048&classes=1000&layers=2",
                    "gpt?layers=2&hidden=256&heads=4&vocabulary=1000&seq=128&batch=2"),
    [](const auto& info) { return info.param.substr(0, info.param.find('?')); });

TEST_P(WorkspaceTest, IsThatOfKernelsWithinFivePercentOfADevicesMemory) {
  if (!AllocationsAreCounted()) GTEST_SKIP() << "nothing is counted here";
  auto model = BuildZooModel(GetParam());
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(AttachLoss(&*model, "auto"), absl::OkStatus());
  const Graph& graph = model->graph;
  for (const bool training : {false, true}) {
    const auto lowered =
        LowerGraph(graph, SequentialViews(graph), {.training = training, .loss = model->loss});
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    ProfiledKernels kernels;
    AddKernelsOf(graph, *lowered, /*found=*/{}, &kernels);
    const auto backend = MakeCpuBackend();
    backend->EnterDevice(0, 1);
    Profile profile;
    for (const auto& [key, kernel] : kernels) {
      const auto bytes = KernelTimer::BytesOf(kernel);
      ASSERT_TRUE(bytes.ok()) << key << ": " << bytes.status();
      const auto memory = backend->Allocate(*bytes);
      ASSERT_TRUE(memory.ok()) << memory.status();
      const auto timer = KernelTimer::Make(kernel, backend.get(), memory->get(), nullptr);
      ASSERT_TRUE(timer.ok()) << key << ": " << timer.status();
      profile.kernels[key].workspace_bytes = (*timer)->workspace_bytes();
      profile.kernels[key].library_bytes = (*timer)->library_bytes();
    }
    const auto predicted = [&](const Profile* known) {
      Schedule schedule = *lowered;
      return static_cast<double>(
          PredictMemory(known, graph, /*cores=*/true, 1, &schedule).bytes_per_device[0]);
    };
    EXPECT_NEAR(predicted(nullptr) / predicted(&profile), 1, 0.05)
        << (training ? "training" : "inference") << ": " << predicted(&profile);
  }
}

// Kernels of float32 work on copies of what is in lower precision.
TEST(Workspace, IsThatOfAJobInLowPrecision) {
  auto model = BuildZooModel("lenet?batch=256");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(AttachLoss(&*model, "auto"), absl::OkStatus());
  const auto low =
      ApplyPrecision(model->graph, SequentialViews(model->graph), model->loss, DataType::kBFloat16);
  ASSERT_TRUE(low.ok()) << low.status();
  const auto lowered = LowerGraph(low->graph, low->views, {.training = true, .loss = model->loss});
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  Schedule schedule = *lowered;
  const PredictedMemory predicted =
      PredictMemory(nullptr, low->graph, /*cores=*/true, /*num_queues=*/1, &schedule);
  const auto backend = MakeCpuBackend();
  const auto job = Job::Start(low->graph, *lowered, backend.get());
  ASSERT_TRUE(job.ok()) << job.status();
  const auto arena = static_cast<double>((*job)->memory().arena_bytes[0]);
  EXPECT_NEAR(static_cast<double>(predicted.plan.arena_bytes[0]) / arena, 1, 0.1) << arena;
}

// Kernels of convolutions over more than points write shares of gradients beside the sums.
TEST(Workspace, IsThatOfAJobWhoseConvolutionsAddToSums) {
  if (!AllocationsAreCounted()) GTEST_SKIP() << "nothing is counted here";
  Graph graph;
  const Operator convolution(OpKind::kConv2d, {{"stride", std::vector<int64_t>{1, 1}},
                                               {"padding", std::vector<int64_t>{1, 1, 1, 1}},
                                               {"dilation", std::vector<int64_t>{1, 1}},
                                               {"groups", int64_t{1}}});
  const TensorType images = SequentialType({16, 16, 32, 32});
  TensorRef x = graph.AddInput("x", images);
  Model model;
  for (int block = 0; block < 5; ++block) {
    const TensorRef filter =
        graph.AddWeight(absl::StrCat("w", block), SequentialType({16, 16, 3, 3}));
    const TensorRef convolved = graph.AddOp(convolution, {x, filter}).value();
    const TensorRef positive = graph.AddOp(OpKind::kRelu, {convolved}).value();
    x = block == 0 ? positive : graph.AddOp(OpKind::kAdd, {x, positive}).value();
  }
  graph.AddOutput("y", x);
  model.graph = graph;
  ASSERT_EQ(AttachLoss(&model, "mse"), absl::OkStatus());
  auto schedule =
      LowerGraph(model.graph, SequentialViews(model.graph), {.training = true, .loss = model.loss});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  int64_t beside = 0;
  for (const Task& task : schedule->tasks) {
    beside = std::max(beside, SharesBesideSums(model.graph, *schedule, task));
  }
  EXPECT_EQ(beside, images.LocalBytes());
  const auto estimated = static_cast<double>(
      PredictMemory(nullptr, model.graph, /*cores=*/true, 1, &*schedule).bytes_per_device[0]);
  const auto backend = MakeCpuBackend();
  const auto job = Job::Start(model.graph, *schedule, backend.get());
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ((*job)->SetParameters(InitialWeights(model, 3).value()), absl::OkStatus());
  ASSERT_EQ((*job)->TrainStep(RandomInputs(model.graph, 5), 0.1), absl::OkStatus());
  const auto used = (*job)->UsedMemory();
  ASSERT_TRUE(used.ok()) << used.status();
  EXPECT_NEAR(estimated / static_cast<double>((*used)[0].peak), 1, 0.05)
      << "arena " << (*used)[0].arena;
}

}  // namespace
}  // namespace isomer
