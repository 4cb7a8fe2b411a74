#include "pcg/profile/expert_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two groups of 6 tokens, each of which chose one of four experts.
ExpertLoads LoadsOfOneCall() {
  return {
      .model = "small",
      .calls = {{.node = "routing", .groups = 2, .even = 1.5, .tokens = {5, 1, 4, 2}, .most = 4}}};
}

std::string ErrorOf(const ExpertLoads& loads) {
  const std::string path = testing::TempDir() + "/expert_loads_test.txt";
  EXPECT_TRUE(SaveExpertLoads(path, loads).ok());
  return std::string(LoadExpertLoads(path).status().message());
}

TEST(ExpertLoads, ReadBack) {
  const std::string path = testing::TempDir() + "/expert_loads_test.loads";
  ASSERT_TRUE(SaveExpertLoads(path, LoadsOfOneCall()).ok());
  const auto read = LoadExpertLoads(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->model, "small");
  ASSERT_EQ(read->calls.size(), 1u);
  EXPECT_EQ(read->calls[0].node, "routing");
  EXPECT_THAT(read->calls[0].tokens, ElementsAre(5, 1, 4, 2));
  EXPECT_EQ(read->Imbalance(), 2.67);  // 4 of 1.5, rounded up
}

TEST(ExpertLoads, EvenLoadsAreOne) {
  ExpertLoads loads = LoadsOfOneCall();
  loads.calls[0].most = 1;
  EXPECT_EQ(loads.Imbalance(), 1);
  EXPECT_EQ(ExpertLoads().Imbalance(), 1);
}

TEST(ExpertLoads, WhatNoRunCountsIsRefused) {
  const auto with = [](auto change) {
    ExpertLoads loads = LoadsOfOneCall();
    change(&loads.calls[0]);
    return ErrorOf(loads);
  };
  EXPECT_EQ(ErrorOf(LoadsOfOneCall()), "");
  EXPECT_THAT(with([](ExpertLoad* load) { load->tokens[0] = 6; }),
              HasSubstr("'routing': experts got 13 tokens of 12"));
  EXPECT_THAT(with([](ExpertLoad* load) { load->most = 7; }),
              HasSubstr("an expert got 7 tokens of one group and 5 of all"));
  EXPECT_THAT(with([](ExpertLoad* load) { load->groups = 0; }), HasSubstr("0 groups of tokens"));
  EXPECT_THAT(with([](ExpertLoad* load) { load->tokens.clear(); }), HasSubstr("it has no experts"));
  EXPECT_THAT(with([](ExpertLoad* load) { load->tokens[1] = -1; }),
              HasSubstr("less than no token"));
  EXPECT_THAT(with([](ExpertLoad* load) { load->even = 0; }), HasSubstr("an even load of 0"));
  EXPECT_THAT(ErrorOf({}), HasSubstr("it has no loads of experts"));
}

}  // namespace
}  // namespace isomer
