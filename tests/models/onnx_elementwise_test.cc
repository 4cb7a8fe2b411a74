// Elementwise ONNX operators against the formulas of the standard.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/models/onnx_node.h"

namespace isomer {
namespace {

using testing::HasSubstr;

const std::vector<double> kAny = {-3.5, -1, -0.5, 0, 0.25, 1, 2.5, 4};
const std::vector<double> kPositive = {0.01, 0.5, 1, 2, 9};
const std::vector<double> kUnit = {-0.9, -0.3, 0, 0.001, 0.7};
const std::vector<double> kFromOne = {1, 1.5, 2, 30};

std::vector<double> Map(const std::vector<double>& x, const std::function<double(double)>& f) {
  std::vector<double> y;
  for (double v : x) y.push_back(f(v));
  return y;
}

TEST(OnnxElementwise, FunctionsOfOneNumber) {
  const struct {
    const char* op;
    const std::vector<double>& x;
    std::function<double(double)> f;
  } cases[] = {
      {"Abs", kAny, [](double x) { return std::abs(x); }},
      {"Acos", kUnit, [](double x) { return std::acos(x); }},
      {"Acosh", kFromOne, [](double x) { return std::acosh(x); }},
      {"Asin", kUnit, [](double x) { return std::asin(x); }},
      {"Asinh", kAny, [](double x) { return std::asinh(x); }},
      {"Atan", kAny, [](double x) { return std::atan(x); }},
      {"Atanh", kUnit, [](double x) { return std::atanh(x); }},
      {"Ceil", kAny, [](double x) { return std::ceil(x); }},
      {"Cos", kAny, [](double x) { return std::cos(x); }},
      {"Cosh", kAny, [](double x) { return std::cosh(x); }},
      {"Erf", kAny, [](double x) { return std::erf(x); }},
      {"Erfc", kAny, [](double x) { return std::erfc(x); }},
      {"Exp", kAny, [](double x) { return std::exp(x); }},
      {"Floor", kAny, [](double x) { return std::floor(x); }},
      {"Log", kPositive, [](double x) { return std::log(x); }},
      {"Neg", kAny, [](double x) { return -x; }},
      {"Reciprocal", kPositive, [](double x) { return 1 / x; }},
      {"Round", kAny, [](double x) { return std::nearbyint(x); }},
      {"Sign", kAny, [](double x) { return x > 0   ? 1
                                           : x < 0 ? -1
                                                   : 0; }},
      {"Sin", kAny, [](double x) { return std::sin(x); }},
      {"Sinh", kAny, [](double x) { return std::sinh(x); }},
      {"Sqrt", kPositive, [](double x) { return std::sqrt(x); }},
      {"Tan", kAny, [](double x) { return std::tan(x); }},
      {"Tanh", kAny, [](double x) { return std::tanh(x); }},
      {"Relu", kAny, [](double x) { return x > 0 ? x : 0; }},
      {"Sigmoid", kAny, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Softplus", kAny, [](double x) { return std::log1p(std::exp(x)); }},
      {"Softsign", kAny, [](double x) { return x / (1 + std::abs(x)); }},
      {"Mish", kAny, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"LeakyRelu", kAny, [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"Elu", kAny, [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"Selu", kAny,
       [](double x) {
         return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * std::expm1(x) : x);
       }},
      {"HardSigmoid", kAny, [](double x) { return std::min(1.0, std::max(0.0, 0.2 * x + 0.5)); }},
      {"HardSwish", kAny, [](double x) { return x * std::min(1.0, std::max(0.0, x / 6 + 0.5)); }},
      {"ThresholdedRelu", kAny, [](double x) { return x > 1 ? x : 0; }},
      {"Shrink", kAny, [](double x) { return std::abs(x) > 0.5 ? x : 0; }},
      {"Gelu", kAny, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2))); }},
      {"IsNaN", kAny, [](double) { return 0; }},
  };
  for (const auto& c : cases) {
    const int64_t n = static_cast<int64_t>(c.x.size());
    ExpectValues(OnnxNodeRun(c.op, 20).X({n}, c.x).Run()[0], {n}, Map(c.x, c.f), c.op);
  }
}

TEST(OnnxElementwise, AttributesOfActivations) {
  ExpectValues(OnnxNodeRun("Celu").X({8}, kAny).WithFloat("alpha", 2).Run()[0], {8},
               Map(kAny, [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); }));
  ExpectValues(OnnxNodeRun("Gelu", 20).X({8}, kAny).With("approximate", "tanh").Run()[0], {8},
               Map(kAny, [](double x) {
                 return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
               }));
  ExpectValues(OnnxNodeRun("Shrink").X({8}, kAny).WithFloat("bias", 0.5).Run()[0], {8},
               Map(kAny, [](double x) { return x < -0.5  ? x + 0.5
                                               : x > 0.5 ? x - 0.5
                                                         : 0; }));
  ExpectValues(OnnxNodeRun("PRelu").X({2, 2}, {-1, 2, -3, -4}).Floats({2}, {0.5, 0.25}).Run()[0],
               {2, 2}, {-0.5, 2, -1.5, -1});
}

TEST(OnnxElementwise, ClipInAllOpsets) {
  const std::vector<double> clipped = Map(kAny, [](double x) {
    return x < -1 ? -1 : x > 2 ? 2 : x;
  });
  ExpectValues(
      OnnxNodeRun("Clip", 9).X({8}, kAny).WithFloat("min", -1).WithFloat("max", 2).Run()[0], {8},
      clipped);
  ExpectValues(OnnxNodeRun("Clip").X({8}, kAny).Floats({}, {-1}).Floats({}, {2}).Run()[0], {8},
               clipped);
  ExpectValues(OnnxNodeRun("Clip").X({8}, kAny).Absent().Floats({}, {0}).Run()[0], {8},
               Map(kAny, [](double x) { return std::min(x, 0.0); }));
  // Where the bounds cross, the upper one counts.
  ExpectValues(OnnxNodeRun("Clip").X({8}, kAny).Floats({}, {2}).Floats({}, {-1}).Run()[0], {8},
               std::vector<double>(8, -1));
}

TEST(OnnxElementwise, RemaindersTakeTheSignOfOneSide) {
  const std::vector<double> a = {-4, 7, 5, 4, -7, 8}, b = {2, -3, 8, -2, 3, 5};
  auto mod = [&](int64_t fmod, onnx::TensorProto::DataType type) {
    return OnnxNodeRun("Mod").X({6}, a, type).X({6}, b, type).With("fmod", fmod).Run()[0];
  };
  ExpectValues(mod(1, onnx::TensorProto::FLOAT), {6}, {0, 1, 5, 0, -1, 3});
  ExpectValues(mod(0, onnx::TensorProto::FLOAT), {6}, {0, -2, 5, 0, 2, 3});
}

TEST(OnnxElementwise, PowersOfConstantsAreSimpler) {
  ExpectValues(OnnxNodeRun("Pow").X({3}, {1, 2, 3}).Floats({}, {3}).Run()[0], {3}, {1, 8, 27});
  EXPECT_EQ(OnnxNodeRun("Pow").X({3}, {1, 4, 9}).Floats({}, {0.5}).Run()[0].data[2], 3);
  ExpectValues(
      OnnxNodeRun("Pow").X({3}, {1, 2, 3}).X({3}, {3, 2, 1}, onnx::TensorProto::INT64).Run()[0],
      {3}, {1, 4, 3});
}

TEST(OnnxElementwise, ComparisonsAndLogic) {
  const std::vector<double> a = {1, 2, 3}, b = {2, 2, 2};
  const struct {
    const char* op;
    std::vector<double> expected;
  } comparisons[] = {{"Equal", {0, 1, 0}},
                     {"Less", {1, 0, 0}},
                     {"LessOrEqual", {1, 1, 0}},
                     {"Greater", {0, 0, 1}},
                     {"GreaterOrEqual", {0, 1, 1}}};
  for (const auto& c : comparisons) {
    ExpectValues(OnnxNodeRun(c.op).X({3}, a).X({3}, b).Run()[0], {3}, c.expected, c.op);
  }
  const struct {
    const char* op;
    std::vector<double> expected;
  } logic[] = {{"And", {0, 0, 0, 1}}, {"Or", {0, 1, 1, 1}}, {"Xor", {0, 1, 1, 0}}};
  for (const auto& c : logic) {
    const auto type = onnx::TensorProto::BOOL;
    OnnxNodeRun run(c.op);
    ExpectValues(run.X({4}, {0, 0, 1, 1}, type).X({4}, {0, 1, 0, 1}, type).Run()[0], {4},
                 c.expected, c.op);
  }
  EXPECT_THAT(std::string(OnnxNodeRun("And").X({3}, a).X({3}, b).Import().status().message()),
              HasSubstr("its inputs are not BOOL"));
}

TEST(OnnxElementwise, InfinitiesOfOneSign) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> x = {-kInfinity, 0, kInfinity};
  ExpectValues(OnnxNodeRun("IsInf").X({3}, x).Run()[0], {3}, {1, 0, 1});
  ExpectValues(OnnxNodeRun("IsInf").X({3}, x).With("detect_negative", 0).Run()[0], {3}, {0, 0, 1});
  ExpectValues(OnnxNodeRun("IsInf").X({3}, x).With("detect_positive", 0).Run()[0], {3}, {1, 0, 0});
}

TEST(OnnxElementwise, AnyNumberOfOperands) {
  auto run = [](const char* op) {
    return OnnxNodeRun(op).X({2}, {1, 5}).X({2}, {4, 2}).X({1}, {3}).Run()[0];
  };
  ExpectValues(run("Sum"), {2}, {8, 10});
  ExpectValues(run("Mean"), {2}, {8 / 3.0, 10 / 3.0});
  ExpectValues(run("Max"), {2}, {4, 5});
  ExpectValues(run("Min"), {2}, {1, 2});
}

TEST(OnnxElementwise, DropoutOfInferenceIsNothingAndOfTrainingKeepsItsMask) {
  ExpectValues(OnnxNodeRun("Dropout").X({3}, {1, 2, 3}).Run(2)[1], {3}, {1, 1, 1});
  OnnxNodeRun training("Dropout");
  // Values are exactly doubled where they are kept, and the mask says where that is.
  const std::vector<double> ones(64, 1);
  const absl::StatusOr<Model> model =
      training.X({64}, ones).Floats({}, {0.5}).Ints({}, {1}).Import(2);
  ASSERT_TRUE(model.ok()) << model.status();
  OnnxNodeRun again("Dropout");
  const auto outputs = again.X({64}, ones).Floats({}, {0.5}).Ints({}, {1}).Run(2);
  double kept = 0;
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(outputs[0].data[i], 2 * outputs[1].data[i]);
    kept += outputs[1].data[i];
  }
  EXPECT_GT(kept, 16);
  EXPECT_LT(kept, 48);
}

TEST(OnnxElementwise, CastsToBoolAskForZero) {
  ExpectValues(OnnxNodeRun("Cast").X({3}, {0, 0.25, -2}).With("to", 9).Run()[0], {3}, {0, 1, 1});
}

}  // namespace
}  // namespace isomer
