#include "models/prepare_model.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/load.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kDigits = ISOMER_SOURCE_DIR "/models/data/digits_cnn.onnx";

TEST(PrepareModel, ALossThatIsGuessedIsANote) {
  Model model = LoadAnyModel(kDigits).value();
  std::vector<std::string> notes;
  ASSERT_TRUE(PrepareModel(kDigits, {}, &model, &notes).ok());
  EXPECT_EQ(model.loss, "loss");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("the loss is cross_entropy of ")));
}

TEST(PrepareModel, OneThatIsSaidIsNone) {
  Model model = LoadAnyModel(kDigits).value();
  std::vector<std::string> notes;
  ASSERT_TRUE(PrepareModel(kDigits, {.loss = "mse", .loss_alone = true}, &model, &notes).ok());
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_EQ(model.graph.outputs().size(), 1u);
}

TEST(PrepareModel, InferenceAddsNothing) {
  Model model = LoadAnyModel(kDigits).value();
  const int nodes = model.graph.num_nodes();
  std::vector<std::string> notes;
  ASSERT_TRUE(PrepareModel(kDigits, {.training = false}, &model, &notes).ok());
  EXPECT_EQ(model.graph.num_nodes(), nodes);
  EXPECT_EQ(PrepareModel(kDigits, {.training = false, .loss = "mse"}, &model, &notes).message(),
            "--loss is for --mode=training");
}

TEST(PrepareModel, RefusesWhatIsNotThere) {
  Model model = LoadAnyModel(kDigits).value();
  std::vector<std::string> notes;
  EXPECT_THAT(std::string(PrepareModel(kDigits, {.loss = "mse:nothing"}, &model, &notes).message()),
              HasSubstr("nothing"));
  model = LoadAnyModel(kDigits).value();
  EXPECT_THAT(
      std::string(PrepareModel(kDigits, {.unfused_attention = true}, &model, &notes).message()),
      HasSubstr("--attention=unfused"));
}

}  // namespace
}  // namespace isomer
