#include "models/loss.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "pcg/ir/plan.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// x w, by these names.
Model SmallModel(const std::string& input, const std::string& output) {
  Model model;
  model.name = "small";
  const TensorRef x = model.graph.AddInput(input, SequentialType({4, 3}));
  const TensorRef w = model.graph.AddWeight("w", SequentialType({3, 2}));
  model.graph.AddOutput(output, *model.graph.AddOp(OpKind::kMatMul, {x, w}, "product"));
  return model;
}

std::vector<std::string> InputNames(const Model& model) {
  std::vector<std::string> names;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (node.op.kind() == OpKind::kInput) names.push_back(node.name);
  }
  return names;
}

std::vector<std::string> OutputNames(const Model& model) {
  std::vector<std::string> names;
  for (const Graph::NamedOutput& output : model.graph.outputs()) names.push_back(output.name);
  return names;
}

// Names that the model has are its own.
TEST(Loss, TakesNamesThatAreFree) {
  Model model = SmallModel("target", "loss");
  ASSERT_TRUE(AttachLoss(&model, "auto").ok());
  EXPECT_EQ(model.loss, "loss_1");
  EXPECT_THAT(InputNames(model), ElementsAre("target", "target_1"));
  EXPECT_EQ(KindOfLoss(model), "mse");
  EXPECT_THAT(LossText(model), HasSubstr("mse of 'loss' f32[4,2] and 'target_1'"));
  ASSERT_TRUE(DropLoss(&model).ok());
  EXPECT_THAT(OutputNames(model), ElementsAre("loss"));
  // What the loss compared with is no input of what is left.
  EXPECT_THAT(InputNames(model), ElementsAre("target"));
}

// A first output that is a single number is the loss itself, whatever its name is.
TEST(Loss, IsTheFirstOutputWhereThatIsOneNumber) {
  Model plain;
  plain.name = "plain";
  const TensorRef x = plain.graph.AddInput("x", SequentialType({4, 3}));
  const TensorRef w = plain.graph.AddWeight("w", SequentialType({3, 2}));
  const TensorRef to = plain.graph.AddInput("to", SequentialType({4, 2}));
  const TensorRef product = *plain.graph.AddOp(OpKind::kMatMul, {x, w}, "product");
  plain.graph.AddOutput("val", *plain.graph.AddOp(OpKind::kMeanSquaredError, {product, to}, "val"));
  ASSERT_TRUE(AttachLoss(&plain, "auto").ok());
  EXPECT_EQ(plain.loss, "val");
  EXPECT_THAT(InputNames(plain), ElementsAre("x", "to"));
}

TEST(Loss, SaysWhatMakesOneNumber) {
  Model model = SmallModel("x", "y");
  EXPECT_THAT(AttachLoss(&model, "none").message(),
              HasSubstr("its first output 'y' is f32[4,2], not a single number; cross_entropy and "
                        "mse make one"));
}

}  // namespace
}  // namespace isomer
