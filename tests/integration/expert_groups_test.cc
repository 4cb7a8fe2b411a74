// Experts in groups: rows go to the node of a group once, and from there to the experts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/plan.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::string GroupedModel(int64_t groups, int64_t chosen_groups) {
  return absl::StrCat(
      "zoo:qwen3_moe?layers=1&hidden=16&heads=4&key_heads=2&head_size=4&experts=16&chosen=4&"
      "intermediate=16&vocabulary=32&seq=8&batch=16&groups=",
      groups, "&chosen_groups=", chosen_groups);
}

// On two nodes of four devices.
ProgramResult Planned(const std::string& model, int64_t experts, const std::string& plan) {
  return RunBinary("isomer-optimize",
                   {model, "--machine=dgx_h100", "--nodes=2", "--devices_per_node=4", "--plan=grid",
                    absl::StrCat("--expert=", experts), "--micro_batch_size=1", "--loss_alone",
                    "--without=data_parallel,zero3,megatron,published,grids", "--out=" + plan});
}

// What devices have of the rows of groups, before the rows go on to the experts.
std::vector<int64_t> DegreesOfGroupRows(const Plan& plan, MachineView* view) {
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const Node& node = plan.graph.node({id});
    const TensorType& type = node.outputs[0];
    if (node.op.kind() != OpKind::kGatherRows || type.rank() != 5) continue;
    *view = plan.views[id];
    std::vector<int64_t> degrees;
    for (const Dim& dim : type.dims) degrees.push_back(dim.degree);
    return degrees;
  }
  return {};
}

struct Case {
  int64_t groups, chosen_groups, experts;
  std::vector<int64_t> degrees;  // with those of two micro-batches, in the batch
  int64_t group_stride;
};

class ExpertGroups : public testing::TestWithParam<Case> {};

TEST_P(ExpertGroups, PlanIsCertifiedAndGivesTheModelsGradients) {
  const Case& is = GetParam();
  const std::string path = ScratchFile("groups.plan");
  const ProgramResult made = Planned(GroupedModel(is.groups, is.chosen_groups), is.experts, path);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const absl::StatusOr<Plan> plan = LoadPlan(path);
  ASSERT_TRUE(plan.ok()) << plan.status();
  MachineView view;
  EXPECT_EQ(DegreesOfGroupRows(*plan, &view), is.degrees);
  ASSERT_GT(view.strides.size(), 1u);
  EXPECT_EQ(view.strides[1], is.group_stride);
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", path});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
  const ProgramResult run = RunBinary("isomer-run", {path, "--check", "--steps=1"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, ExpertGroups,
    testing::Values(
        // A group on each node, whose four devices have a part of the batch each.
        Case{2, 1, 8, {8, 2, 1, 1, 1}, 4},
        // Four groups, each on two devices.
        Case{4, 2, 8, {4, 4, 1, 1, 1}, 2},
        // As many groups as devices: nothing is left to send.
        Case{8, 2, 8, {2, 8, 1, 1, 1}, 1},
        // Experts on one node, and again on the other: the batch is split over both, and within
        // the two devices of a group.
        Case{2, 2, 4, {8, 2, 1, 1, 1}, 2}));

TEST(ExpertGroupsOfTheZoo, AreRefusedWhereTheyDoNotSuit) {
  const ProgramResult made = Planned(GroupedModel(3, 1), 8, ScratchFile("none.plan"));
  EXPECT_EQ(made.exit_code, 2);
  EXPECT_THAT(made.err, HasSubstr("16 experts in 3 groups are not as many in each"));
}

}  // namespace
}  // namespace isomer
