// What optimizer/workspace.h says of kernels that no profile has measured, against kernels of the
// cpu backend that run.
#include "optimizer/workspace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/loss.h"
#include "models/zoo/zoo.h"
#include "optimizer/memory_cost.h"
#include "pcg/schedule/memory.h"
#include "pcg/schedule/schedule.h"
#include "runtime/allocation_count.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/kernel_timer.h"
#include "runtime/profile_calls.h"

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
                    "gpt?layers=2&hidden=256&heads=4&vocabulary=1000&seq=128&batch=2"));

TEST_P(WorkspaceTest, IsThatOfKernelsWithinFivePercentOfADevicesMemory) {
  if (!AllocationsAreCounted()) GTEST_SKIP() << "nothing is counted here";
  auto model = BuildZooModel(GetParam());
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(AttachLoss(&*model, "auto"), absl::OkStatus());
  const Graph& graph = model->graph;
  for (const bool training : {false, true}) {
    const auto schedule =
        LowerGraph(graph, SequentialViews(graph), {.training = training, .loss = model->loss});
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ProfiledKernels kernels;
    AddKernelsOf(graph, *schedule, /*cache_bytes=*/0, &kernels);
    const auto backend = MakeCpuBackend();
    backend->EnterDevice(0, 1);
    Profile profile;
    for (const auto& [key, kernel] : kernels) {
      const auto bytes = KernelTimer::BytesOf(kernel);
      ASSERT_TRUE(bytes.ok()) << key << ": " << bytes.status();
      const auto memory = backend->Allocate(*bytes);
      ASSERT_TRUE(memory.ok()) << memory.status();
      const auto timer = KernelTimer::Make(kernel, backend.get(), memory->get());
      ASSERT_TRUE(timer.ok()) << key << ": " << timer.status();
      profile.kernels[key].workspace_bytes = (*timer)->workspace_bytes();
    }
    const MemoryPlan memory = PlanMemory(*schedule);
    const auto measured =
        static_cast<double>(BytesPerDevice(&profile, graph, *schedule, memory)[0]);
    const auto estimated =
        static_cast<double>(BytesPerDevice(nullptr, graph, *schedule, memory, /*cores=*/true)[0]);
    EXPECT_NEAR(estimated / measured, 1, 0.05)
        << (training ? "training" : "inference") << ": arena " << memory.arena_bytes[0];
  }
}

}  // namespace
}  // namespace isomer
