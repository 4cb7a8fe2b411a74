#include "pcg/profile/fp8_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "pcg/support/file.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Products with w1, w2 and w3, of 1, 2 and 1 times the arithmetic.
Graph ThreeProducts() {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({4, 8}));
  const TensorRef w1 = graph.AddWeight("w1", SequentialType({8, 8}));
  const TensorRef w2 = graph.AddWeight("w2", SequentialType({8, 16}));
  const TensorRef w3 = graph.AddWeight("w3", SequentialType({16, 4}));
  TensorRef y = *graph.AddOp(OpKind::kMatMul, {x, w1});
  y = *graph.AddOp(OpKind::kMatMul, {y, w2});
  graph.AddOutput("y", *graph.AddOp(OpKind::kMatMul, {y, w3}));
  return graph;
}

Fp8Errors ErrorsOfThree() {
  return {.model = "three",
          .mode = "training",
          .scaling = Fp8Scaling::kBlock,
          .bfloat16 = 0.01,
          .of_weights = {{"w1", 0.03}, {"w2", 0.04}, {"w3", 0.05}}};
}

TEST(Fp8Errors, SquaresAddUp) {
  EXPECT_NEAR(ErrorsOfThree().Predicted({}), std::sqrt(0.0051), 1e-12);
  EXPECT_NEAR(ErrorsOfThree().Predicted({"w1", "w3"}), std::sqrt(0.0017), 1e-12);
}

TEST(Fp8Errors, KeepsWhatMakesMostErrorForItsArithmetic) {
  const Graph graph = ThreeProducts();
  const Fp8Errors errors = ErrorsOfThree();
  const auto kept = [&](double budget, const std::vector<std::string>& also = {}) {
    const auto found = KeptWithin(budget, graph, errors, also);
    EXPECT_TRUE(found.ok()) << found.status();
    if (found.ok()) {
      EXPECT_LE(errors.Predicted(*found), budget);
    }
    return found.ok() ? *found : std::vector<std::string>();
  };
  EXPECT_THAT(kept(0.1), IsEmpty());
  EXPECT_THAT(kept(0.06), ElementsAre("w3"));
  // w2 is worth more for its square than w1: 2 / 16 and 1 / 9.
  EXPECT_THAT(kept(0.045), ElementsAre("w1", "w3"));
  // It does not fit, but w1 does.
  EXPECT_THAT(kept(0.04), ElementsAre("w2", "w3"));
  EXPECT_THAT(kept(0.1, {"w2"}), ElementsAre("w2"));
}

TEST(Fp8Errors, WhatWasNotMeasuredIsKept) {
  Fp8Errors errors = ErrorsOfThree();
  errors.of_weights.erase("w2");
  const auto kept = KeptWithin(0.1, ThreeProducts(), errors, {});
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_THAT(*kept, ElementsAre("w2"));
}

TEST(Fp8Errors, BudgetsThatNothingKeepsAreRefused) {
  const auto message = [](double budget) {
    return std::string(KeptWithin(budget, ThreeProducts(), ErrorsOfThree(), {}).status().message());
  };
  EXPECT_THAT(message(0.005), HasSubstr("less than bfloat16 alone makes, 0.01"));
  EXPECT_THAT(message(0.02), HasSubstr("leaves no product in 8 bits; the least that one makes is "
                                       "0.03"));
}

TEST(Fp8Errors, FilesAreReadAsTheyWereWritten) {
  const std::string path = testing::TempDir() + "/fp8_errors.txt";
  ASSERT_EQ(SaveFp8Errors(path, ErrorsOfThree()), absl::OkStatus());
  const auto read = LoadFp8Errors(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->scaling, Fp8Scaling::kBlock);
  EXPECT_EQ(read->bfloat16, 0.01);
  EXPECT_EQ(read->of_weights, ErrorsOfThree().of_weights);
  Fp8Errors broken = ErrorsOfThree();
  broken.of_weights["w2"] = -1;
  ASSERT_EQ(SaveFp8Errors(path, broken), absl::OkStatus());
  EXPECT_THAT(std::string(LoadFp8Errors(path).status().message()),
              HasSubstr("weight 'w2': -1 is not an error"));
}

}  // namespace
}  // namespace isomer
