// Small files that ask for much: numbers that overflow, tables without end, work without bound.
// Each is refused with one line (or read without it), soon and without much memory; what would
// be undefined is found by a build with sanitizers.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/import/onnx_import.h"
#include "tests/models/onnx_node.h"

namespace isomer {
namespace {

using testing::HasSubstr;

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kHuge = int64_t{1} << 40;

std::string ErrorOf(OnnxNodeRun node) {
  const auto model = node.Import();
  EXPECT_FALSE(model.ok());
  return std::string(model.status().message());
}

// An input of `dims` whose values do not matter.
OnnxNodeRun Of(const std::string& op, const std::vector<int64_t>& dims, int64_t opset = 17,
               onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT) {
  OnnxNodeRun node(op, opset);
  return node.Open(dims, type);
}

TEST(OnnxExcess, TablesOfTheSizeOfAnImage) {
  const auto is_refused = HasSubstr("too large to be computed");
  EXPECT_THAT(ErrorOf(Of("Resize", {kHuge, 1}).Absent().Absent().Ints({2}, {1000, 1})), is_refused);
  EXPECT_THAT(ErrorOf(Of("Resize", {1}).Absent().Absent().Ints({1}, {1 << 22})), is_refused);
  EXPECT_THAT(ErrorOf(Of("EyeLike", {1 << 20, 1 << 20})), is_refused);
  EXPECT_THAT(ErrorOf(Of("LRN", {1, 1 << 20, 1, 1}).With("size", 3)), is_refused);
  EXPECT_THAT(ErrorOf(Of("ReverseSequence", {kHuge, 2}).Ints({2}, {1, 2})), is_refused);
  EXPECT_THAT(ErrorOf(Of("SoftmaxCrossEntropyLoss", {1, kHuge, 2})
                          .Open({1, 2}, onnx::TensorProto::INT64)
                          .With("ignore_index", 1)),
              is_refused);
  EXPECT_THAT(ErrorOf(Of("AveragePool", {1, 1, kHuge})
                          .With("kernel_shape", std::vector<int64_t>{2})
                          .With("dilations", std::vector<int64_t>{2})),
              is_refused);
}

// Batches of rows are looked up as they are.
TEST(OnnxExcess, ManyBatchesOfRows) {
  const auto model = Of("GatherND", {kHuge, 2})
                         .Open({kHuge, 1}, onnx::TensorProto::INT64)
                         .With("batch_dims", 1)
                         .Import();
  EXPECT_TRUE(model.ok()) << model.status();
}

// A window's elements inside of the image are counted, not visited.
TEST(OnnxExcess, ManyWindowsOfDilatedPool) {
  const auto model = Of("AveragePool", {1, 1, 1 << 22}, 19)
                         .With("kernel_shape", std::vector<int64_t>{500})
                         .With("dilations", std::vector<int64_t>{2})
                         .With("pads", std::vector<int64_t>{499, 499})
                         .Import();
  ASSERT_TRUE(model.ok()) << model.status();
}

TEST(OnnxExcess, NumbersThatOverflow) {
  EXPECT_THAT(ErrorOf(Of("Tile", {kHuge, 2}).Ints({2}, {1 << 20, 1})), HasSubstr("2^48"));
  EXPECT_THAT(ErrorOf(Of("Tile", {kHuge, 2}).Ints({2}, {kLargest, 1})), HasSubstr("is repeated"));
  EXPECT_THAT(ErrorOf(Of("Pad", {4}).Ints({2}, {kLeast, kLeast})), HasSubstr("pads"));
  EXPECT_THAT(ErrorOf(Of("Pad", {4}).Ints({2}, {kLargest, kLargest})), HasSubstr("pads"));
  EXPECT_THAT(ErrorOf(Of("ConvTranspose", {1, 1, kHuge})
                          .Floats({1, 1, 1}, {1})
                          .With("strides", std::vector<int64_t>{1 << 24})),
              HasSubstr("impossible size"));
  EXPECT_THAT(ErrorOf(Of("ConvTranspose", {1, 2, 4})
                          .Floats({2, 4, 1}, std::vector<float>(8, 1))
                          .Floats({4}, {1, 1, 1, 1})
                          .With("group", int64_t{1} << 62)),
              HasSubstr("groups"));
  EXPECT_THAT(ErrorOf(Of("RotaryEmbedding", {1, 1, 2, 4}, 21)
                          .Floats({1, 2, 1}, {1, 1})
                          .Floats({1, 2, 1}, {1, 1})
                          .With("rotary_embedding_dim", kLeast)),
              HasSubstr("rotary_embedding_dim"));
  // No diagonal is inside of the matrix.
  EXPECT_TRUE(Of("EyeLike", {2, 2}).With("k", kLargest).Import().ok());
  EXPECT_TRUE(Of("EyeLike", {2, 2}).With("k", kLeast).Import().ok());
}

TEST(OnnxExcess, OutputDeclaredWithManyBatches) {
  OnnxFile file;
  file.Input("x", {1, 2}).Node("Relu", {"x"}, {"y"}).Output("y", {kLargest, 2});
  EXPECT_THAT(
      std::string(ParseOnnx(file.Bytes(), "net.onnx", {.batch_size = 4}).status().message()),
      HasSubstr("times the batch"));
}

TEST(OnnxExcess, NumbersThatTheTypeLacks) {
  const auto is_refused = HasSubstr("as i64");
  EXPECT_THAT(ErrorOf(Of("ThresholdedRelu", {2}, 17, onnx::TensorProto::INT64)
                          .WithFloat("alpha", std::nanf(""))),
              is_refused);
  EXPECT_THAT(ErrorOf(Of("Shrink", {2}, 17, onnx::TensorProto::INT64).WithFloat("lambd", 1e30f)),
              is_refused);
  EXPECT_THAT(ErrorOf(Of("IsInf", {2}, 17, onnx::TensorProto::INT64).With("detect_negative", 0)),
              is_refused);
  for (float depth : {std::nanf(""), -1.0f, 1e30f}) {
    EXPECT_THAT(ErrorOf(Of("OneHot", {2}, 17, onnx::TensorProto::INT64)
                            .Floats({}, {depth})
                            .Floats({2}, {0, 1})),
                HasSubstr("depth"));
  }
}

TEST(OnnxExcess, PositionsFarFromTheImage) {
  const std::vector<float> far = {-1e38f, 1e38f};
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    const auto model = Of("Resize", {4})
                           .Floats({2}, far)
                           .Absent()
                           .Ints({1}, {3})
                           .With("mode", mode)
                           .With("coordinate_transformation_mode", "tf_crop_and_resize")
                           .Import();
    EXPECT_TRUE(model.ok()) << mode << ": " << model.status();
  }
  EXPECT_THAT(ErrorOf(Of("Resize", {4})
                          .Floats({2}, {0, std::nanf("")})
                          .Absent()
                          .Ints({1}, {3})
                          .With("coordinate_transformation_mode", "tf_crop_and_resize")),
              HasSubstr("not finite"));
  EXPECT_THAT(ErrorOf(Of("Resize", {kHuge, 1}, 18)
                          .Absent()
                          .Absent()
                          .Ints({2}, {1, 1 << 20})
                          .With("keep_aspect_ratio_policy", "not_smaller")),
              HasSubstr("becomes"));
  EXPECT_TRUE(Of("Resize", {}, 18)
                  .Absent()
                  .Absent()
                  .Ints({0}, {})
                  .With("keep_aspect_ratio_policy", "not_smaller")
                  .Import()
                  .ok());
}

TEST(OnnxExcess, OperandsOfRankZero) {
  EXPECT_THAT(ErrorOf(Of("RNN", {2, 3, 4})
                          .Floats({1, 5, 4}, std::vector<float>(20, 1))
                          .Floats({1, 5, 5}, std::vector<float>(25, 1))
                          .Floats({}, {1})),
              HasSubstr("input 3 has not 1 directions"));
}

TEST(OnnxExcess, IndicesThatAreFloats) {
  EXPECT_THAT(ErrorOf(Of("GatherND", {2, 2}).Floats({1, 2}, {0, 1})), HasSubstr("not integers"));
}

// Ranges of constants, and constants of no elements but large dims.
TEST(OnnxExcess, Constants) {
  const std::vector<std::vector<float>> endless = {
      {0, -5, 0}, {0, 5, 0}, {0, 1e38f, 1e-38f}, {0, -1e38f, 1e-38f}, {0, std::nanf(""), 1}};
  for (const std::vector<float>& range : endless) {
    OnnxFile file;
    file.Literal("start", range[0]).Literal("limit", range[1]).Literal("delta", range[2]);
    file.Node("Range", {"start", "limit", "delta"}, {"y"}).Output("y", {1});
    EXPECT_FALSE(ParseOnnx(file.Bytes(), "net.onnx").ok()) << range[1] << " by " << range[2];
  }
  OnnxFile ends;
  ends.Ints("start", {}, {kLargest}).Ints("limit", {}, {0});
  ends.Ints("delta", {}, {-(int64_t{1} << 62)});
  ends.Node("Range", {"start", "limit", "delta"}, {"y"}).Output("y", {1});
  EXPECT_FALSE(ParseOnnx(ends.Bytes(), "net.onnx").ok());

  OnnxFile empty;
  empty.Input("x", {1}).Ints("none", {kHuge, 0, kHuge}, {});
  EXPECT_FALSE(ParseOnnx(empty.Bytes(), "net.onnx").ok());
  OnnxFile slice;
  slice.Input("x", {1}).Ints("none", {kHuge, 0}, {}).Ints("from", {1}, {0}).Ints("to", {1}, {1});
  slice.Ints("axis", {1}, {1}).Node("Slice", {"none", "from", "to", "axis"}, {"part"});
  slice.Node("Add", {"part", "part"}, {"y"}).Output("y", {1}, onnx::TensorProto::INT64);
  EXPECT_FALSE(ParseOnnx(slice.Bytes(), "net.onnx").ok());
}

// Each node doubles what the one before it made.
TEST(OnnxExcess, DoublingNodes) {
  constexpr int kNodes = 60;
  for (const char* op : {"Concat", "Gather"}) {
    OnnxFile file;
    const bool is_concat = std::string(op) == "Concat";
    if (is_concat) {
      file.Ints("t0", {2}, {0, 0});
    } else {
      file.Input("t0", {1, 1}, onnx::TensorProto::INT64);
    }
    for (int i = 0; i < kNodes; ++i) {
      const std::string last = "t" + std::to_string(i);
      file.Node(op, {last, last}, {"t" + std::to_string(i + 1)}).With("axis", 0);
    }
    file.Output("t" + std::to_string(kNodes), {2}, onnx::TensorProto::INT64);
    const auto model = ParseOnnx(file.Bytes(), "net.onnx");
    ASSERT_FALSE(model.ok());
    EXPECT_THAT(std::string(model.status().message()),
                HasSubstr(is_concat ? "2^48" : "at most 64"));
  }
}

// The work that folding does is bounded for all nodes together.
TEST(OnnxExcess, ManyLargeConstants) {
  OnnxFile file;
  file.Ints("zero", {}, {0}).Ints("one", {}, {1}).Ints("many", {}, {1 << 24});
  for (int i = 0; i < 100; ++i) {
    file.Node("Range", {"zero", "many", "one"}, {"t" + std::to_string(i)});
    file.Output("t" + std::to_string(i), {1 << 24});
  }
  const auto model = ParseOnnx(file.Bytes(), "net.onnx");
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("known at import"));
}

// What is the same everywhere is one number, however large.
TEST(OnnxExcess, ManyLargeConstantsOfOneNumber) {
  OnnxFile file;
  file.Ints("shape", {2}, {1 << 20, 1 << 20});
  for (int i = 0; i < 100; ++i) {
    file.Node("ConstantOfShape", {"shape"}, {"t" + std::to_string(i)});
    file.Output("t" + std::to_string(i), {1 << 20, 1 << 20});
  }
  const auto model = ParseOnnx(file.Bytes(), "net.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  for (const auto& [name, values] : model->weights) EXPECT_EQ(values.size(), 1u) << name;
}

TEST(OnnxExcess, ManyStepsOfManyLayers) {
  OnnxFile file;
  file.Input("x", {4096, 1, 1}).Floats("w", {1, 1, 1}, {1}).Floats("r", {1, 1, 1}, {1});
  for (int i = 0; i < 100; ++i) {
    const std::string y = "y" + std::to_string(i);
    file.Node("RNN", {"x", "w", "r"}, {y}).With("hidden_size", 1).Output(y, {4096, 1, 1, 1});
  }
  const auto model = ParseOnnx(file.Bytes(), "net.onnx");
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("operators with it"));
}

TEST(OnnxExcess, EinsumOfManyOperands) {
  OnnxFile file;
  file.Input("x", {2});
  const std::vector<std::string> operands(5000, "x");
  std::string equation = "a";
  for (size_t i = 1; i < operands.size(); ++i) equation += ",a";
  file.Node("Einsum", operands, {"y"}).Output("y", {});
  onnx::AttributeProto* const attribute = file.LastNode()->add_attribute();
  attribute->set_name("equation");
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(equation);
  EXPECT_THAT(std::string(ParseOnnx(file.Bytes(), "net.onnx").status().message()),
              HasSubstr("5000 operands"));
}

}  // namespace
}  // namespace isomer
