#include "models/full_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/loss.h"
#include "tests/models/text_model.h"

namespace isomer {
namespace {

using testing::ElementsAre;

// As Hugging Face exports a network in bfloat16: norms are computed in float32.
constexpr char kLow[] = R"(
%0 = input "x" : bf16[4,8]
%1 = weight "g" : bf16[8]
%2 = weight "w" : bf16[8,8]
%3 = input "i" : i64[4]
%4 = cast(%0) {to=0} : f32[4,8]
%5 = mul(%4, %4) : f32[4,8]
%6 = cast(%5) {to=2} : bf16[4,8]
%7 = mul(%6, %1) : bf16[4,8]
%8 = matmul(%7, %2) : bf16[4,8]
%9 = cast(%3) {to=2} : bf16[4]
output "y" = %8
output "n" = %9
)";

std::vector<std::string> CallsOf(const Graph& graph) {
  std::vector<std::string> calls;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(NodeId{id});
    if (IsLeaf(node.op.kind())) continue;
    calls.push_back(std::string(node.op.name()) + " " + node.outputs[0].ToString());
  }
  return calls;
}

TEST(StateFloat32, KeepsTheFunctionAndNoCastsAmongFloats) {
  Model model = TextModel(kLow);
  EXPECT_EQ(StatedPrecision(model), DataType::kBFloat16);
  ASSERT_TRUE(StateFloat32(&model).ok());
  EXPECT_EQ(StatedPrecision(model), DataType::kFloat32);
  EXPECT_THAT(CallsOf(model.graph),
              ElementsAre("mul f32[4,8]", "mul f32[4,8]", "matmul f32[4,8]", "cast f32[4]"));
  EXPECT_EQ(model.graph.outputs()[0].name, "y");
}

TEST(StateFloat32, ModelsOfLowPrecisionGetALoss) {
  Model model = TextModel(kLow);
  ASSERT_TRUE(AttachLoss(&model, "auto").ok());
  EXPECT_EQ(LossText(model), "mse of 'y' f32[4,8] and 'target'");
  // One that has its loss is trained likewise.
  Model again = model;
  ASSERT_TRUE(AttachLoss(&again, "auto").ok());
  EXPECT_EQ(again.graph.ToString(), model.graph.ToString());
}

}  // namespace
}  // namespace isomer
