// A plan is verified against the model that it was made of, whatever isomer-optimize did to that
// model before the search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pcg/ir/plan.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

class OwnModel : public testing::Test {
 protected:
  void Optimize(const std::string& model, const std::vector<std::string>& flags) const {
    std::vector<std::string> arguments = {
        model,        "--machine=dgx_h100", "--nodes=1",     "--devices_per_node=2",
        "--budget=1", "--cache=false",      "--out=" + plan_};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult optimized = RunBinary("isomer-optimize", arguments);
    EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
  }
  ProgramResult Verify(const std::string& model) const {
    return RunBinary("isomer-verify", {"plan", plan_, "--model=" + model});
  }

  const std::string plan_ = ScratchFile("own_model.plan");
};

TEST_F(OwnModel, WithUnfusedAttentionIsThatOfTheUser) {
  const std::string sizes = "?layers=1&hidden=16&heads=2&vocabulary=32&seq=8&batch=4";
  const std::string model = "zoo:gpt" + sizes;
  for (const char* flags : {"--mode=inference", "--loss_alone"}) {
    Optimize(model, {flags, "--attention=unfused"});
    const ProgramResult verified = Verify(model);
    EXPECT_EQ(verified.exit_code, 0) << flags << verified.out << verified.err;
    EXPECT_THAT(verified.out, HasSubstr("with attention that writes and reads its scores"));
    const ProgramResult of_another = Verify("zoo:gpt?layers=2" + sizes.substr(9));
    EXPECT_EQ(of_another.exit_code, 1) << flags;
    EXPECT_THAT(of_another.out, HasSubstr("not that of zoo:gpt?layers=2"));
    Optimize(model, {flags});
    EXPECT_THAT(Verify(model).out, Not(HasSubstr("writes and reads")));
  }
}

// A table of the dynamo exporter with a row that is not trained: in training the row is put in its
// place, in inference the look-up is all there is.
std::string PaddedTable(float element) {
  OnnxFile file(18);
  file.Input("ids", {4, 3}, onnx::TensorProto::INT64);
  std::vector<float> table(16, 0.5f);
  table[0] = element;
  file.Floats("table", {8, 2}, table).Floats("head", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  file.Node("Gather", {"table", "ids"}, {"rows"}, "rows");
  onnx::StringStringEntryProto* const call = file.LastNode()->add_metadata_props();
  call->set_key("pkg.torch.onnx.fx_node");
  call->set_value(
      "%embedding : [num_users=1] = call_function[target=torch.ops.aten.embedding.default](args = "
      "(%p_table, %ids, 0), kwargs = {})");
  file.Node("MatMul", {"rows", "head"}, {"scores"}).Output("scores", {4, 3, 4});
  const std::string path = ScratchFile(element == 0 ? "zero.onnx" : "padded.onnx");
  EXPECT_TRUE(WriteFileAtomically(path, file.Bytes()).ok());
  return path;
}

int CallsOf(OpKind kind, const Graph& graph) {
  int calls = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) calls += graph.node({id}).op.kind() == kind;
  return calls;
}

TEST_F(OwnModel, WithARowOfPaddingIsThatOfTheUserInBothModes) {
  const std::string model = PaddedTable(0.25f), other = PaddedTable(0);
  for (const std::string mode : {"training", "inference"}) {
    Optimize(model, {"--mode=" + mode});
    const auto plan = LoadPlan(plan_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(CallsOf(OpKind::kWhere, plan->model.graph), mode == "training" ? 1 : 0);
    const ProgramResult verified = Verify(model);
    EXPECT_EQ(verified.exit_code, 0) << mode << verified.out << verified.err;
    const ProgramResult refused = Verify(other);
    EXPECT_EQ(refused.exit_code, 1) << mode;
    EXPECT_THAT(refused.out, HasSubstr(" is 0 in the model and 0.25 in the plan's"));
  }
}

// Nothing is left to cut into stages.
TEST_F(OwnModel, ThatComputesNothingHasAPlan) {
  OnnxFile file(18);
  file.Input("x", {4, 3}).Node("Identity", {"x"}, {"y"}).Output("y", {4, 3});
  const std::string model = ScratchFile("nothing.onnx");
  ASSERT_TRUE(WriteFileAtomically(model, file.Bytes()).ok());
  for (const char* search : {"--search=hierarchical", "--search=mcmc"}) {
    Optimize(model, {"--mode=inference", search});
    const ProgramResult verified = Verify(model);
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  }
}

}  // namespace
}  // namespace isomer
