// Inputs of 8 and 16 bits: INT32 stands for them where they are cast before anything computes.
#include "models/onnx/import/narrow_integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "models/onnx/import/onnx_import.h"
#include "models/onnx/tensor.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using onnx::TensorProto;
using testing::HasSubstr;

TEST(NarrowIntegersOfInputs, AreInt32WhereTheyAreCast) {
  for (const TensorProto::DataType type :
       {TensorProto::UINT8, TensorProto::INT8, TensorProto::UINT16, TensorProto::INT16}) {
    OnnxFile file;
    file.Input("x", {-1, 8, 8, 3}, type);
    file.Node("Transpose", {"x"}, {"t"}).With("perm", {0, 3, 1, 2});
    file.Node("Cast", {"t"}, {"f"}).With("to", TensorProto::FLOAT);
    file.Node("Relu", {"f"}, {"y"}).Output("y", {-1, 3, 8, 8});
    const auto model = ParseOnnx(file.Bytes(), "net.onnx", {.batch_size = 2});
    ASSERT_TRUE(model.ok()) << model.status();
    const Node& input = model->graph.node(NodeId{0});
    ASSERT_EQ(input.op.kind(), OpKind::kInput);
    EXPECT_EQ(input.outputs[0], SequentialType({2, 8, 8, 3}, DataType::kInt32));
  }
}

std::string ErrorOfUint8(OnnxFile file) {
  return std::string(ParseOnnx(file.Bytes(), "net.onnx").status().message());
}

// Sums of UINT8 are modulo 256.
TEST(NarrowIntegersOfInputs, AreRefusedWhereSomethingComputesWithThem) {
  const auto file = [] { return OnnxFile().Input("x", {4}, TensorProto::UINT8); };
  const std::string begin =
      "net.onnx: input 'x': element type UINT8 is read where it is cast before anything computes "
      "with it, but ";
  OnnxFile sum = file().Node("Identity", {"x"}, {"a"}).Node("Add", {"a", "x"}, {"b"}, "sum");
  sum.Node("Cast", {"b"}, {"y"}).With("to", TensorProto::FLOAT).Output("y", {4});
  EXPECT_EQ(ErrorOfUint8(sum), begin + "node 'sum' ('Add') reads it");
  OnnxFile index = file().Floats("w", {300, 2}, std::vector<float>(600, 1));
  index.Node("Gather", {"w", "x"}, {"y"}, "rows").Output("y", {4, 2});
  EXPECT_EQ(ErrorOfUint8(index), begin + "node 'rows' ('Gather') reads it");
  OnnxFile output = file().Node("Identity", {"x"}, {"y"}).Output("y", {4}, TensorProto::UINT8);
  EXPECT_EQ(ErrorOfUint8(output), begin + "it is output 'y'");
  OnnxFile custom = file().Opset("com.acme", 1).Node("Cast", {"x"}, {"y"}, "own");
  custom.LastNode()->set_domain("com.acme");
  EXPECT_THAT(ErrorOfUint8(custom.Output("y", {4})), HasSubstr("node 'own' ('Cast')"));
}

// A cast to such a type keeps low bits, and what is stored in one may be computed with.
TEST(NarrowIntegersOfInputs, NothingElseIsOfSuchAType) {
  OnnxFile to = OnnxFile().Input("x", {4});
  to.Node("Cast", {"x"}, {"y"}, "down").With("to", TensorProto::UINT8);
  EXPECT_THAT(ErrorOfUint8(to.Output("y", {4}, TensorProto::UINT8)),
              HasSubstr("node 'down' ('Cast'): element type UINT8"));
  onnx::TensorProto tensor;
  tensor.set_data_type(TensorProto::INT8);
  tensor.add_dims(2);
  tensor.set_raw_data(std::string("\xff\x05", 2));
  EXPECT_FALSE(ReadOnnxTensor(tensor).ok());
  const auto read = ReadOnnxTensor(tensor, nullptr, nullptr, NarrowIntegers::kAsInt32);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->dtype, DataType::kInt32);
  EXPECT_EQ(read->ints, (std::vector<int64_t>{-1, 5}));
  tensor.set_data_type(TensorProto::UINT16);
  EXPECT_EQ(ReadOnnxTensor(tensor, nullptr, nullptr, NarrowIntegers::kAsInt32).status().message(),
            "dims [2] have 2 elements, but the data has 1");
}

}  // namespace
}  // namespace isomer
