// Files that are damaged or lie: one clear line, whatever they hold.
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/data_in_file.h"
#include "models/onnx/import/onnx_import.h"
#include "models/onnx/onnx.pb.h"
#include "pcg/support/file.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& bytes) {
  const auto model = ParseOnnx(bytes, "net.onnx");
  EXPECT_FALSE(model.ok());
  const std::string message(model.status().message());
  EXPECT_EQ(message.rfind("net.onnx: ", 0), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

std::string DigitsBytes() {
  return ReadFile(ISOMER_SOURCE_DIR "/models/data/digits_cnn.onnx").value();
}

TEST(MalformedOnnx, Empty) { EXPECT_EQ(ErrorOf(""), "net.onnx: is empty"); }

TEST(MalformedOnnx, CutAnywhere) {
  const std::string bytes = DigitsBytes();
  EXPECT_THAT(ErrorOf(bytes.substr(0, bytes.size() / 2)), HasSubstr("cut short"));
  for (size_t size = 0; size < bytes.size(); size += size < 4000 ? 7 : 4999) {
    ErrorOf(bytes.substr(0, size));
  }
}

TEST(MalformedOnnx, RandomBytes) {
  std::mt19937 generator(2022);
  for (int size : {1, 10, 100, 10000}) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(generator());
    ErrorOf(bytes);
  }
}

// Changed bytes give a model or an error; never a crash.
TEST(MalformedOnnx, ChangedBytes) {
  const unsigned seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937 generator(seed);
  for (const char* name : {"bert_tiny.onnx", "digits_cnn_dynamic.onnx"}) {
    const std::string bytes =
        ReadFile(std::string(ISOMER_SOURCE_DIR "/models/data/") + name).value();
    for (int trial = 0; trial < 150; ++trial) {
      std::string changed = bytes;
      // Mostly in the part that holds the nodes.
      const size_t span = std::min<size_t>(bytes.size(), trial % 3 == 0 ? bytes.size() : 12000);
      for (int i = 0; i < 3; ++i) changed[generator() % span] = static_cast<char>(generator());
      const auto model = ParseOnnx(changed, "net.onnx", {.batch_size = 8});
      EXPECT_EQ(model.status().ToString().find('\n'), std::string::npos) << model.status();
    }
  }
}

TEST(MalformedOnnx, TextFile) {
  EXPECT_THAT(ErrorOf("name: net\nlayers: 3\n"), HasSubstr("no ONNX model"));
}

TEST(MalformedOnnx, Cycle) {
  OnnxFile file;
  file.Input("x", {2, 2}).Node("Add", {"x", "b"}, {"a"}, "one").Node("Relu", {"a"}, {"b"}, "two");
  file.Output("b", {2, 2});
  EXPECT_EQ(ErrorOf(file.Bytes()), "net.onnx: node 'one' ('Add') lies on or behind a cycle");
}

TEST(MalformedOnnx, DanglingInput) {
  OnnxFile file;
  file.Input("x", {2, 2}).Node("Add", {"x", "ghost"}, {"y"}, "sum").Output("y", {2, 2});
  EXPECT_EQ(ErrorOf(file.Bytes()),
            "net.onnx: node 'sum' ('Add'): its input 1 'ghost' is the output of no node, no input "
            "and no initializer");
}

TEST(MalformedOnnx, DanglingOutput) {
  OnnxFile file;
  file.Input("x", {2, 2}).Node("Relu", {"x"}, {"y"}).Output("z", {2, 2});
  EXPECT_EQ(ErrorOf(file.Bytes()), "net.onnx: output 'z' is defined by no node");
}

TEST(MalformedOnnx, TensorDefinedTwice) {
  OnnxFile file;
  file.Input("x", {2, 2}).Node("Relu", {"x"}, {"y"}, "a").Node("Tanh", {"x"}, {"y"}, "b");
  file.Output("y", {2, 2});
  EXPECT_EQ(ErrorOf(file.Bytes()),
            "net.onnx: node 'b' ('Tanh'): the tensor 'y' is defined a second time");
}

TEST(MalformedOnnx, ImpossiblyLargeDims) {
  const int64_t large = 1'000'000'000;
  OnnxFile input;
  input.Input("x", {large, large}).Node("Relu", {"x"}, {"y"}).Output("y", {large, large});
  EXPECT_THAT(ErrorOf(input.Bytes()), HasSubstr("net.onnx: input 'x': "));

  OnnxFile product;
  product.Input("a", {large, 1}).Input("x", {1, large}).Node("MatMul", {"a", "x"}, {"y"}, "outer");
  product.Output("y", {large, large});
  EXPECT_THAT(ErrorOf(product.Bytes()), HasSubstr("node 'outer' ('MatMul')"));

  OnnxFile weight;
  weight.Input("x", {2}).Floats("w", {large, large, large}, {1, 2}).Node("Add", {"x", "w"}, {"y"});
  weight.Output("y", {2});
  EXPECT_EQ(ErrorOf(weight.Bytes()),
            "net.onnx: initializer 'w': dims [1000000000,1000000000,1000000000] have impossibly "
            "many elements, but the data has 2");
}

TEST(MalformedOnnx, ManyDims) {
  const std::vector<int64_t> sizes(100000, 1);
  OnnxFile file;
  file.Input("x", sizes).Node("Relu", {"x"}, {"y"}).Output("y", sizes);
  EXPECT_EQ(ErrorOf(file.Bytes()), "net.onnx: input 'x': it has 100000 dims; at most 16 are read");
}

TEST(MalformedOnnx, InitializerWithTooLittleData) {
  OnnxFile file;
  file.Input("x", {2, 2}).Floats("w", {2, 2}, {1, 2, 3}).Node("Add", {"x", "w"}, {"y"});
  file.Output("y", {2, 2});
  EXPECT_EQ(ErrorOf(file.Bytes()),
            "net.onnx: initializer 'w': dims [2,2] have 4 elements, but the data has 3");
}

TEST(MalformedOnnx, DataInAnotherFile) {
  OnnxFile file;
  file.Input("x", {2, 2}).Floats("w", {2, 2}, {}).Node("Add", {"x", "w"}, {"y"});
  onnx::TensorProto* const w = file.model().mutable_graph()->mutable_initializer(0);
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* const entry = w->add_external_data();
  entry->set_key("location");
  entry->set_value("weights.bin");
  file.Output("y", {2, 2});
  EXPECT_THAT(ErrorOf(file.Bytes()), HasSubstr("initializer 'w': its data lies in 'weights.bin', "
                                               "which is no file"));
}

TEST(MalformedOnnx, OpsetOutOfRange) {
  for (int64_t opset : {0, 27}) {
    OnnxFile file(opset);
    file.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y", {2});
    EXPECT_EQ(ErrorOf(file.Bytes()),
              "net.onnx: opset " + std::to_string(opset) + "; 1 to 26 are read");
  }
}

TEST(MalformedOnnx, TypesWithoutPlace) {
  OnnxFile file;
  file.Input("x", {2}, onnx::TensorProto::UINT32).Node("Relu", {"x"}, {"y"}).Output("y", {2});
  EXPECT_EQ(
      ErrorOf(file.Bytes()),
      "net.onnx: input 'x': element type UINT32; FLOAT, FLOAT16, BFLOAT16, DOUBLE (as FLOAT), "
      "INT64, INT32 and BOOL are read");
}

// The graph's size, in more bytes than one has: a parser that cuts numbers to 32 bits reads 0, or
// the graph.
TEST(MalformedOnnx, SizeInTenBytes) {
  OnnxFile file;
  file.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y", {2});
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(file.Bytes()));
  const std::string graph = model.graph().SerializeAsString();
  model.clear_graph();
  ASSERT_LT(graph.size(), 128);
  constexpr char kGraph = 7 << 3 | 2, kMore = '\x80';
  for (const bool is_none : {true, false}) {
    std::string bytes = model.SerializeAsString() + kGraph;
    bytes += is_none ? kMore : static_cast<char>(static_cast<char>(graph.size()) | kMore);
    bytes += std::string(8, kMore) + (is_none ? '\1' : '\0') + graph;
    EXPECT_EQ(LeaveDataInFile(bytes, "net.onnx", 8).model, bytes);
    EXPECT_EQ(ErrorOf(bytes), "net.onnx: no ONNX model, or damaged or cut short");
  }
}

TEST(MalformedOnnx, NamesWithLineBreaks) {
  OnnxFile file;
  file.Input("x\ny", {0}).Node("Relu", {"x\ny"}, {"z"}).Output("z", {0});
  EXPECT_EQ(ErrorOf(file.Bytes()), "net.onnx: input 'x\\ny': dim 0 is 0: give --batch_size=N");
}

}  // namespace
}  // namespace isomer
