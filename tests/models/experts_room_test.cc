#include "models/experts_room.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/load.h"
#include "models/prepare_model.h"
#include "pcg/ir/expert_room.h"
#include "tests/models/text_model.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 8 experts, of which each of 6 tokens of a group chooses some.
constexpr char kSmall[] = "hidden=8&experts=8&intermediate=4&vocabulary=16&seq=6&batch=4";

std::string Mixture(const std::string& name, int64_t capacity_percent) {
  return absl::StrCat("zoo:", name, "?", kSmall, "&capacity_percent=", capacity_percent);
}

TEST(ExpertsRoom, IsThatOfTheModelWithSoMuchCapacity) {
  for (const std::string& name :
       {std::string("qwen3_moe?heads=2&key_heads=1&head_size=4&chosen=2&"),
        std::string("gpt_oss_20b?heads=2&key_heads=1&head_size=4&chosen=2&"),
        std::string("mixtral?heads=2&key_heads=1&aux=1&"), std::string("gshard_moe?heads=2&")}) {
    const auto model = [&](int64_t percent) {
      return LoadAnyModel(
          absl::StrCat("zoo:", name, kSmall, "&layers=4&capacity_percent=", percent));
    };
    absl::StatusOr<Model> even = model(100);
    const absl::StatusOr<Model> twice = model(200);
    ASSERT_TRUE(even.ok()) << even.status();
    ASSERT_TRUE(twice.ok()) << twice.status();
    EXPECT_NE(even->graph.StructuralHash(), twice->graph.StructuralHash()) << name;
    const absl::Status given = GiveExpertsRoom(2, &*even);
    ASSERT_TRUE(given.ok()) << name << given;
    EXPECT_EQ(even->graph.StructuralHash(), twice->graph.StructuralHash()) << name;
    EXPECT_TRUE(even->graph.Validate().ok());
    EXPECT_EQ(AssumedImbalance(*even), 2);
  }
}

TEST(ExpertsRoom, TheLastOneCounts) {
  Model model = LoadAnyModel(absl::StrCat(Mixture("qwen3_moe", 100), "&heads=2&key_heads=1&",
                                          "head_size=4&chosen=2"))
                    .value();
  const uint64_t even = model.graph.StructuralHash();
  ASSERT_TRUE(GiveExpertsRoom(3, &model).ok());
  ASSERT_TRUE(GiveExpertsRoom(1, &model).ok());
  EXPECT_EQ(model.graph.StructuralHash(), even);
  EXPECT_THAT(model.assumptions, ElementsAre(ImbalanceAssumption(1)));
}

// A capacity of one token is told from other dims of size 1, before and behind it.
TEST(ExpertsRoom, RoomForOneTokenBecomesMore) {
  Model model = TextModel(
      "%0 = input \"scores\" : f32[2,8,4]\n"
      "%1 = input \"rows\" : f32[2,8,3]\n"
      "%2 = topk_routing(%0) {k=1, capacity=1} : f32[2,8,1], i64[2,8,1], i64[2,4,1]\n"
      "%3 = gather_rows(%1, %2.2) : f32[2,4,1,3]\n"
      "%4 = reshape(%3) {shape=[2,4,3]} : f32[2,4,3]\n"
      "%5 = reshape(%4) {shape=[1,2,4,1,3]} : f32[1,2,4,1,3]\n"
      "%6 = reshape(%5) {shape=[2,4,3]} : f32[2,4,3]\n"
      "%7 = gather_sum(%6, %2.1, %2.0) : f32[2,8,3]\n"
      "output \"y\" = %7\n");
  ASSERT_TRUE(GiveExpertsRoom(1.5, &model).ok());
  // Even is 2 of 8 tokens.
  std::vector<std::string> types;
  for (int id : {3, 4, 5, 6}) types.push_back(model.graph.node(id).outputs[0].ToString());
  EXPECT_THAT(types, ElementsAre("f32[2,4,3,3]", "f32[2,12,3]", "f32[1,2,4,3,3]", "f32[2,12,3]"));
}

TEST(ExpertsRoom, RefusesByName) {
  const auto error = [](const std::string& spec) {
    absl::StatusOr<Model> model = LoadAnyModel(spec);
    EXPECT_TRUE(model.ok()) << model.status();
    return std::string(GiveExpertsRoom(2, &*model).message());
  };
  EXPECT_EQ(error("zoo:mlp"), "mlp sends no tokens to experts (topk_routing, top2_gating)");
  EXPECT_THAT(error(absl::StrCat("zoo:mixtral?", kSmall, "&heads=2&key_heads=1&dropless=1")),
              HasSubstr("rows that look up their matrix (gather_matmul)"));
  EXPECT_THAT(error(absl::StrCat("zoo:qwen3_moe?", kSmall,
                                 "&heads=2&key_heads=1&head_size=4&chosen=2&groups=2&"
                                 "chosen_groups=2")),
              HasSubstr("topk_routing 'layer0/moe/routing': experts in groups"));
}

TEST(ExpertsRoom, AnOutputKeepsItsSize) {
  Model model = TextModel(
      "%0 = input \"scores\" : f32[2,8,4]\n"
      "%1 = topk_routing(%0) {k=1, capacity=2} : f32[2,8,1], i64[2,8,1], i64[2,4,2]\n"
      "output \"tokens\" = %1.2\n");
  EXPECT_THAT(std::string(GiveExpertsRoom(2, &model).message()), HasSubstr("output tokens"));
}

TEST(ExpertsRoom, LoadsAreOfTheModel) {
  const std::string spec =
      absl::StrCat(Mixture("qwen3_moe", 100), "&heads=2&key_heads=1&head_size=4&chosen=2&layers=1");
  const Model model = LoadAnyModel(spec).value();
  const auto error = [&](const ExpertLoads& loads) {
    return std::string(CheckAreLoadsOf(model, loads).message());
  };
  ExpertLoad load{.node = "layer0/moe/routing",
                  .groups = 1,
                  .even = 1.5,
                  .tokens = {5, 1, 1, 1, 1, 1, 1, 1},
                  .most = 5};
  EXPECT_EQ(error({.model = "", .calls = {load}}), "");
  load.tokens.pop_back();
  EXPECT_THAT(error({.model = "", .calls = {load}}), HasSubstr("it has a load of 7 experts of"));
  load.node = "mine";
  EXPECT_THAT(error({.model = "", .calls = {load}}), HasSubstr("there is no load of"));
}

TEST(ExpertsRoom, PreparationNamesTheOptionAndTheFile) {
  Model model = LoadAnyModel("zoo:mlp").value();
  std::vector<std::string> notes;
  EXPECT_EQ(PrepareModel("zoo:mlp", {.expert_imbalance = 2}, &model, &notes).message(),
            "--expert_imbalance: mlp sends no tokens to experts (topk_routing, top2_gating)");
  EXPECT_THAT(
      std::string(PrepareModel("zoo:mlp", {.expert_loads = "/nowhere"}, &model, &notes).message()),
      HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace isomer
