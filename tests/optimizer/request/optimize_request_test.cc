#include "optimizer/request/optimize_request.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const OptimizeRequest& request) {
  return std::string(OptionsOf(request).status().message());
}

TEST(OptimizeRequest, DefaultsAreASearchOfTraining) {
  const OptimizeOptions options = OptionsOf(OptimizeRequest()).value();
  EXPECT_TRUE(options.training);
  EXPECT_TRUE(options.plan.empty());
  EXPECT_TRUE(options.choose_update_method);
  EXPECT_EQ(options.search.budget, SearchOptions().budget);
  EXPECT_FALSE(options.grid.has_value());
}

TEST(OptimizeRequest, ErrorsNameTheOption) {
  OptimizeRequest request;
  request.mode = "foo";
  EXPECT_EQ(ErrorOf(request), "--mode=foo: there are training and inference");
  request = {};
  request.time_limit = -1;
  EXPECT_THAT(ErrorOf(request), HasSubstr("--time_limit"));
  request = {};
  request.threads = 5000;
  EXPECT_THAT(ErrorOf(request), HasSubstr("--threads=5000"));
  request = {};
  request.without = {"nobody"};
  EXPECT_THAT(ErrorOf(request), HasSubstr("--without"));
}

TEST(OptimizeRequest, RefusesWhatIsStatedAndDoesNotApply) {
  OptimizeRequest request;
  EXPECT_TRUE(OptionsOf(request).ok());
  request.given = {"tensor"};
  EXPECT_EQ(ErrorOf(request), "--tensor is for --plan=grid");
  request.plan = "grid";
  request.tensor = 2;
  const OptimizeOptions options = OptionsOf(request).value();
  EXPECT_EQ(options.grid->degrees.tensor, 2);
}

TEST(OptimizeRequest, GradientsMayLoseByPermissionAlone) {
  OptimizeRequest request;
  EXPECT_EQ(OptionsOf(request)->update.gradient_sums, DataType::kFloat32);
  EXPECT_FALSE(OptionsOf(request)->choose_gradient_sums);
  request.gradient_precision = "bfloat16";
  EXPECT_EQ(OptionsOf(request)->update.gradient_sums, DataType::kBFloat16);
  request.gradient_precision = "auto";
  EXPECT_EQ(OptionsOf(request)->update.gradient_sums, DataType::kFloat32);
  EXPECT_TRUE(OptionsOf(request)->choose_gradient_sums);
  // Which lacks the range, of plans without a loss scale; those in float16 have one.
  request.gradient_precision = "float16";
  EXPECT_EQ(ErrorOf(request),
            "--gradient_precision=float16: of --precision=float32 there are float32, bfloat16 and "
            "auto");
  // By the name that was given, of which bfloat16 is what is not in 8 bits.
  request.precision = "fp8";
  EXPECT_EQ(ErrorOf(request),
            "--gradient_precision=float16: of --precision=fp8 there are float32, bfloat16 and "
            "auto");
  request.precision = "float16";
  EXPECT_EQ(OptionsOf(request)->update.gradient_sums, DataType::kFloat16);
  request.gradient_precision = "bfloat16";
  EXPECT_THAT(ErrorOf(request), HasSubstr("there are float32, float16 and auto"));
  request = {};
  request.gradient_precision = "auto";
  request.search = "exhaustive";
  EXPECT_THAT(ErrorOf(request), HasSubstr("is for --gradient_precision=float32"));
  request.search = "hierarchical";
  request.mode = "inference";
  request.given = {"gradient_precision"};
  EXPECT_EQ(ErrorOf(request), "--gradient_precision is for --mode=training");
}

// Three products in a row.
Model ChainOfThree() {
  Model model;
  model.name = "chain";
  TensorRef x = model.graph.AddInput("x", SequentialType({4, 4}));
  for (const char* name : {"a", "b", "c"}) {
    x = *model.graph.AddOp(OpKind::kMatMul,
                           {x, model.graph.AddWeight(name, SequentialType({4, 4}))});
  }
  model.graph.AddOutput("y", x);
  return model;
}

TEST(OptimizeRequest, ProductsInFp8KeepTheFirstAndTheLastWeightsOrThoseThatAreNamed) {
  const Model model = ChainOfThree();
  OptimizeRequest request;
  request.precision = "fp8";
  request.fp8_scaling = "row";
  OptimizeOptions options = OptionsOf(request).value();
  EXPECT_EQ(options.precision, DataType::kBFloat16);
  EXPECT_EQ(options.fp8.scaling, Fp8Scaling::kRow);
  ASSERT_TRUE(AddKeptWeights(request, model, &options).ok());
  EXPECT_EQ(options.fp8.kept, (std::vector<std::string>{"a", "c"}));
  request.fp8_keep = {"b"};
  ASSERT_TRUE(AddKeptWeights(request, model, &options).ok());
  EXPECT_EQ(options.fp8.kept, std::vector<std::string>{"b"});
  request.fp8_keep = {"none"};
  ASSERT_TRUE(AddKeptWeights(request, model, &options).ok());
  EXPECT_TRUE(options.fp8.kept.empty());
  const auto refused = [&](std::vector<std::string> keep) {
    request.fp8_keep = std::move(keep);
    return std::string(AddKeptWeights(request, model, &options).message());
  };
  EXPECT_THAT(refused({"d"}), HasSubstr("no product is with a weight 'd'"));
  EXPECT_THAT(refused({"ends", "b"}), HasSubstr("keeps all 3 weights"));
  EXPECT_EQ(refused({"none", "ends"}), "--fp8_keep: none does not go with others");
  EXPECT_EQ(refused({"b", "none"}), "--fp8_keep: none does not go with others");
  EXPECT_EQ(refused({}), "--fp8_keep: names of weights, ends or none are expected");
}

TEST(OptimizeRequest, WhatTrainsWeightsIsForTraining) {
  for (const char* option : {"optimizer", "update", "bucket_bytes", "clip_norm", "average",
                             "loss_alone", "gradient_precision"}) {
    OptimizeRequest request;
    request.given = {option};
    EXPECT_TRUE(OptionsOf(request).ok()) << option;
    request.mode = "inference";
    EXPECT_EQ(ErrorOf(request), absl::StrCat("--", option, " is for --mode=training"));
  }
}

TEST(OptimizeRequest, OptionsOfFp8AreForFp8) {
  OptimizeRequest request;
  request.given = {"fp8_scaling"};
  EXPECT_EQ(ErrorOf(request), "--fp8_scaling is for --precision=fp8");
  request = {};
  request.precision = "fp8";
  request.fp8_scaling = "column";
  EXPECT_THAT(ErrorOf(request), HasSubstr("'column': there are tensor, row and block"));
  request.fp8_scaling = "block";
  request.fp8_error = 2;
  EXPECT_EQ(ErrorOf(request), "--fp8_error is 0 to 1");
  request.fp8_error = 0;
  request.fp8_errors = "some.fp8_errors";
  EXPECT_THAT(ErrorOf(request), HasSubstr("--fp8_errors needs --fp8_error"));
  request = {};
  request.precision = "fp4";
  EXPECT_THAT(ErrorOf(request), HasSubstr("there are float32, bfloat16, float16 and fp8"));
}

TEST(OptimizeRequest, PipelinesOfChunks) {
  OptimizeRequest request;
  request.plan = "grid";
  request.pipeline = "4x2";
  const OptimizeOptions options = OptionsOf(request).value();
  EXPECT_EQ(options.grid->stages, 4);
  EXPECT_EQ(options.grid->chunks, 2);
  request.pipeline = "4x2x1";
  EXPECT_THAT(ErrorOf(request), HasSubstr("--pipeline=4x2x1"));
}

TEST(MachineRequest, SearchesOfAlgebraHaveOneDevice) {
  MachineRequest request;
  request.machine = "dgx_h100";
  request.nodes = 2;
  EXPECT_EQ(MachineOf(request, "hierarchical")->num_devices(), 16);
  EXPECT_EQ(MachineOf(request, "algebra")->num_devices(), 1);
  request.device_memory_gib = 0.5;
  EXPECT_EQ(MachineOf(request, "")->memory_bytes(), int64_t{1} << 29);
  request.device_memory_gib = -1;
  EXPECT_THAT(std::string(MachineOf(request, "").status().message()),
              HasSubstr("--device_memory_gib"));
}

}  // namespace
}  // namespace isomer
