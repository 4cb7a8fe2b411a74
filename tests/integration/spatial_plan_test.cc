// A residual network on one image: the plan divides images, is certified, and runs.
#include <gtest/gtest.h>

#include <string>

#include "pcg/ir/plan.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

// Devices whose links are quick enough for small images.
constexpr char kMachine[] = R"(
name: "quick"
device {
  name: "core"
  peak_tflops: 0.08
  peak_fraction: 0.7
  memory_gib: 4
  memory_gb_per_s: 10
  launch_us: 0.05
}
levels { name: "node" count: 4 gb_per_s: 50 latency_us: 0.05 }
levels { name: "cluster" count: 1 gb_per_s: 1 latency_us: 50 }
)";

constexpr char kWindowedModel[] =
    "zoo:resnet101?blocks1=1&blocks2=1&blocks3=1&blocks4=1&groups=1&group_width=8&stem=8&side=64"
    "&classes=16&training=0&batch=1";

// Its rows stay divided as long as they are many.
constexpr char kConstraints[] = R"(
tensor { name: "stem/conv" split { dim: 2 degree: 4 } }
tensor { name: "stage1/block0/group/conv" split { dim: 2 degree: 4 } }
)";

// Convolutions whose tasks read beyond their piece of the image.
int CountHalos(const Graph& graph) {
  int count = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() != OpKind::kConv2d) continue;
    std::vector<TensorType> types;
    for (TensorRef input : node.inputs) types.push_back(graph.type(input));
    const absl::StatusOr<Sharding> sharding = InferSharding(node.op, types);
    if (!sharding.ok()) continue;
    const std::vector<int64_t> first(4, 0);
    const Box box = sharding->OperandBox(sharding->TaskOfOutputShard(first, 0), 0);
    count += box != ShardBox(types[0], first);
  }
  return count;
}

TEST(SpatialPlan, IsCertifiedAndAgreesWithTheModel) {
  const std::string machine = ScratchFile("quick.textproto"), plan = ScratchFile("image.plan");
  const std::string constraints = ScratchFile("rows.textproto");
  ASSERT_TRUE(WriteFileAtomically(machine, kMachine).ok());
  ASSERT_TRUE(WriteFileAtomically(constraints, kConstraints).ok());
  const ProgramResult optimized = RunBinary(
      "isomer-optimize", {kWindowedModel, "--machine=" + machine, "--nodes=1",
                          "--devices_per_node=4", "--constraints=" + constraints, "--out=" + plan});
  ASSERT_EQ(optimized.exit_code, 0) << optimized.err;
  const absl::StatusOr<Plan> loaded = LoadPlan(plan);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_GT(CountHalos(loaded->graph), 0) << optimized.out;
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
  const ProgramResult run = RunBinary("isomer-run", {plan, "--check", "--steps=1"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

}  // namespace
}  // namespace isomer
