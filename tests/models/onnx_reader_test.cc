// What of a file is read before its operators: leaves and their types, external data, branches.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/load.h"
#include "models/onnx/data_in_file.h"
#include "models/onnx/import/onnx_import.h"
#include "models/onnx/tensor.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using onnx::TensorProto;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<Model> ParseNet(const OnnxFile& file) { return ParseOnnx(file.Bytes(), "net.onnx"); }

std::string ErrorOf(const OnnxFile& file) { return std::string(ParseNet(file).status().message()); }

std::vector<std::string> Constants(const Graph& graph) {
  std::vector<std::string> names;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node(id).op.kind() == OpKind::kConstant) names.push_back(graph.node(id).name);
  }
  return names;
}

struct ElementCase {
  TensorProto::DataType type;
  DataType dtype;
  std::string raw;
  std::vector<double> values;
};

TEST(OnnxTensors, ElementsOfEveryType) {
  const ElementCase cases[] = {
      {TensorProto::FLOAT, DataType::kFloat32, std::string("\0\0\x80\x3f", 4), {1}},
      {TensorProto::DOUBLE, DataType::kFloat32, std::string("\0\0\0\0\0\0\xf0\x3f", 8), {1}},
      {TensorProto::FLOAT16, DataType::kFloat16, std::string("\0\x3c\0\xc0", 4), {1, -2}},
      {TensorProto::BFLOAT16, DataType::kBFloat16, std::string("\x80\x3f", 2), {1}},
      {TensorProto::INT32, DataType::kInt32, std::string("\xff\xff\xff\xff", 4), {-1}},
      {TensorProto::INT64, DataType::kInt64, std::string("\x02\0\0\0\0\0\0\0", 8), {2}},
      {TensorProto::BOOL, DataType::kBool, std::string("\0\x01\x02", 3), {0, 1, 1}}};
  for (const ElementCase& c : cases) {
    TensorProto proto;
    proto.set_data_type(c.type);
    proto.add_dims(static_cast<int64_t>(c.values.size()));
    proto.set_raw_data(c.raw);
    const auto tensor = ReadOnnxTensor(proto);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype, c.dtype);
    for (size_t i = 0; i < c.values.size(); ++i) EXPECT_EQ(tensor->Number(i), c.values[i]);
  }
}

TEST(OnnxTensors, HalvesByTheirBits) {
  TensorProto proto;
  proto.set_data_type(TensorProto::FLOAT16);
  proto.add_dims(2);
  proto.add_int32_data(0x3c00);
  proto.add_int32_data(0xc000);
  EXPECT_THAT(ReadOnnxTensor(proto).value().floats, ElementsAre(1, -2));
}

TEST(OnnxTensors, DoubleThatNoFloatHolds) {
  TensorProto proto;
  proto.set_data_type(TensorProto::DOUBLE);
  proto.add_dims(1);
  proto.add_double_data(1e300);
  EXPECT_EQ(ReadOnnxTensor(proto).status().message(),
            "its DOUBLE 1e+300 is outside of the range of FLOAT");
}

class ExternalData : public testing::Test {
 protected:
  ExternalData() {
    // Of this test alone: others run beside it.
    folder_ = absl::StrCat(testing::TempDir(), "/isomer_external_", getpid());
    std::filesystem::create_directories(folder_ + "/model");
    std::ofstream(folder_ + "/model/w.bin", std::ios::binary)
        .write("1234\0\0\x80\x3f\0\0\0\x40", 12);
    std::ofstream(folder_ + "/outside.bin", std::ios::binary).write("\0\0\x80\x3f\0\0\0\x40", 8);
  }
  ~ExternalData() override { std::filesystem::remove_all(folder_); }

  // y = x + w, w of `elements` at the place.
  absl::StatusOr<Model> Read(const std::string& location, const std::string& offset = "0",
                             const std::string& length = "8", int64_t elements = 2) {
    OnnxFile file;
    file.Input("x", {elements}).Floats("w", {elements}, {});
    file.Node("Add", {"x", "w"}, {"y"}).Output("y", {elements});
    TensorProto* const w = file.model().mutable_graph()->mutable_initializer(0);
    w->set_data_location(TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", location},
                                     {"offset", offset},
                                     {"length", length}}) {
      onnx::StringStringEntryProto* const entry = w->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return ParseOnnx(file.Bytes(), folder_ + "/model/net.onnx");
  }

  std::string folder_;
};

TEST_F(ExternalData, IsReadFromItsPlace) {
  const auto model = Read("w.bin", "4");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->weights.at("w"), ElementsAre(1, 2));
}

// A plan of few weights goes where its file goes; many are not copied into it.
TEST_F(ExternalData, OfManyElementsIsLeftThere) {
  constexpr int64_t kElements = 1 << 16;
  std::vector<float> values(kElements + 1);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::ofstream(folder_ + "/model/large.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), 4 * (kElements + 1));
  const auto model = Read("large.bin", "4", absl::StrCat(4 * kElements), kElements);
  ASSERT_TRUE(model.ok()) << model.status();
  const StoredValues& w = model->weights.at("w");
  ASSERT_NE(w.file(), nullptr);
  EXPECT_EQ(w.file()->path, std::filesystem::canonical(folder_) / "model/large.bin");
  EXPECT_EQ(w, StoredValues(std::vector<float>(values.begin() + 1, values.end())));
  const auto few = Read("large.bin", "4", "8");
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_EQ(few->weights.at("w").file(), nullptr);
  EXPECT_THAT(
      std::string(
          Read("large.bin", "4", absl::StrCat(4 * kElements), kElements - 1).status().message()),
      HasSubstr("the data has 65536"));
}

// Of a large file the data of large weights stays in the file itself, through links, too.
TEST_F(ExternalData, OfLargeFilesIsLeftInThem) {
  constexpr int64_t kElements = 1 << 16;
  OnnxFile file;
  file.Input("x", {kElements}).Floats("few", {2}, {1, 2}).Floats("w", {kElements}, {});
  file.Node("Add", {"x", "w"}, {"y"}).Output("y", {kElements});
  std::vector<float> values(kElements);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  file.model().mutable_graph()->mutable_initializer(1)->set_raw_data(values.data(), 4 * kElements);
  const std::string path = folder_ + "/model/net.onnx", link = folder_ + "/link.onnx";
  std::ofstream(path, std::ios::binary) << file.Bytes();
  std::filesystem::create_symlink(path, link);
  const Model read = LoadAnyModel(path).value();
  EXPECT_EQ(read.weights.at("w").file(), nullptr);
  for (const std::string& name : {path, link}) {
    const auto model = LoadAnyModel(name, {.most_read_bytes = 4 * kElements});
    ASSERT_TRUE(model.ok()) << model.status();
    const StoredValues& w = model->weights.at("w");
    ASSERT_NE(w.file(), nullptr);
    EXPECT_EQ(w.file()->path, std::filesystem::canonical(path));
    EXPECT_EQ(model->weights, read.weights);
    EXPECT_EQ(model->graph.ToString(), read.graph.ToString());
  }
}

// By bytes, whatever the precision: what is left in the file stays there.
TEST_F(ExternalData, OfHalvesIsLeftInLargeFilesAsWell) {
  for (const bool many : {false, true}) {
    const int64_t elements = static_cast<int64_t>(kManyBytes) / 2 - (many ? 0 : 1);
    OnnxFile file;
    file.Input("x", {elements}, TensorProto::FLOAT16).Floats("w", {elements}, {});
    file.Node("Add", {"x", "w"}, {"y"}).Output("y", {elements}, TensorProto::FLOAT16);
    TensorProto* const w = file.model().mutable_graph()->mutable_initializer(0);
    w->set_data_type(TensorProto::FLOAT16);
    std::string raw(2 * elements, '\0');
    for (int64_t i = 1; i < 2 * elements; i += 2) raw[i] = '\x3c';  // 1
    w->set_raw_data(raw);
    const std::string path = folder_ + "/model/net.onnx";
    std::ofstream(path, std::ios::binary | std::ios::trunc) << file.Bytes();
    const auto model = LoadAnyModel(path, {.most_read_bytes = 1000});
    ASSERT_TRUE(model.ok()) << model.status();
    const StoredValues& values = model->weights.at("w");
    EXPECT_EQ(values.file() != nullptr, many);
    EXPECT_EQ(*values.begin(), 1);
  }
}

// What is cut short, or has a length behind its end, is said to be.
TEST_F(ExternalData, OfLargeFilesThatAreDamaged) {
  constexpr int64_t kElements = 1 << 16;
  OnnxFile file;
  file.Input("x", {kElements}).Floats("w", {kElements}, {});
  file.Node("Add", {"x", "w"}, {"y"}).Output("y", {kElements});
  const std::string raw(4 * kElements, '\1');
  file.model().mutable_graph()->mutable_initializer(0)->set_raw_data(raw);
  const std::string bytes = file.Bytes(), path = folder_ + "/model/net.onnx";
  for (size_t size : {bytes.size() - 1, bytes.size() / 2, size_t{20}}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, size);
    EXPECT_THAT(std::string(LoadAnyModel(path, {.most_read_bytes = 0}).status().message()),
                testing::StartsWith(path + ": no ONNX model"));
  }
}

TEST_F(ExternalData, BehindTheEndOfTheFile) {
  EXPECT_THAT(std::string(Read("w.bin", "8").status().message()),
              HasSubstr("'w.bin', which has 12 bytes, not 8 from 8 on"));
  EXPECT_THAT(std::string(Read("w.bin", "9223372036854775807", "9").status().message()),
              HasSubstr("not 9 from 9223372036854775807 on"));
}

TEST_F(ExternalData, OutsideOfTheFolder) {
  std::filesystem::create_symlink(folder_ + "/outside.bin", folder_ + "/model/link.bin");
  for (const std::string& location :
       {std::string("../outside.bin"), folder_ + "/outside.bin", std::string("link.bin"),
        std::string("a/../../outside.bin")}) {
    EXPECT_THAT(std::string(Read(location).status().message()), HasSubstr("outside of the folder"))
        << location;
  }
}

TEST_F(ExternalData, BadPlaces) {
  EXPECT_THAT(std::string(Read("ghost.bin").status().message()), HasSubstr("which is no file"));
  EXPECT_THAT(std::string(Read("").status().message()), HasSubstr("lies in no named file"));
  EXPECT_THAT(std::string(Read("w.bin", "-4").status().message()),
              HasSubstr("the offset of its data is '-4', no size"));
}

TEST(OnnxReader, DefaultDomainHasTwoNames) {
  OnnxFile file;
  file.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y", {2});
  file.LastNode()->set_domain("ai.onnx");
  EXPECT_TRUE(ParseNet(file).ok());
  file.LastNode()->set_domain("ai.onnx.ml");
  EXPECT_THAT(ErrorOf(file), HasSubstr("('Relu') of 'ai.onnx.ml', opset that the file does not"));
}

TEST(OnnxReader, OldOpsetsWhereNothingChanged) {
  OnnxFile file(6);
  file.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y", {2});
  EXPECT_TRUE(ParseNet(file).ok());
  OnnxFile dropout(6);  // which then dropped unless is_test said otherwise
  dropout.Input("x", {2}).Node("Dropout", {"x"}, {"y"}).Output("y", {2});
  EXPECT_THAT(ErrorOf(dropout), HasSubstr("unknown operators"));
}

TEST(OnnxReader, ConstantsAreNotTrained) {
  OnnxFile file;
  file.Input("x", {2, 3, 4}).Floats("g", {3}, {1, 1, 1}).Floats("m", {3}, {0, 0, 0});
  file.Ints("n", {1}, {5}).Node("Cast", {"n"}, {"f"}).With("to", 1);
  file.Node("Mul", {"x", "f"}, {"s"});
  file.Node("BatchNormalization", {"s", "g", "m", "mean", "variance"}, {"y"});
  file.Floats("mean", {3}, {0, 0, 0}).Floats("variance", {3}, {1, 1, 1}).Output("y", {2, 3, 4});
  const auto model = ParseNet(file);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(Constants(model->graph), testing::IsSupersetOf({"mean", "variance"}));
  EXPECT_EQ(model->weights.count("g"), 1u);
}

TEST(OnnxReader, OutputsKeepTheirNames) {
  OnnxFile file;
  file.Input("x", {2}).Node("Relu", {"x"}, {"r"}).Node("Identity", {"r"}, {"y"});
  file.Node("Identity", {"x"}, {"z"}).Output("y", {2}).Output("z", {2}).Output("x", {2});
  const auto model = ParseNet(file);
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<std::string> names;
  for (const auto& output : model->graph.outputs()) names.push_back(output.name);
  EXPECT_THAT(names, ElementsAre("y", "z", "x"));
}

TEST(OnnxReader, DeclaredElementTypeOfAnOutputCounts) {
  OnnxFile file;
  file.Input("x", {2}, TensorProto::INT64).Node("Add", {"x", "x"}, {"y"}).Output("y", {2});
  EXPECT_THAT(ErrorOf(file), HasSubstr("output 'y': the file declares f32, but its type is i64"));
}

// If(condition) with a branch that negates x and one that does nothing to it; both call their
// tensor "t", as does the graph around them.
OnnxFile FileWithIf(bool condition_is_input) {
  OnnxFile file;
  file.Input("x", {2}).Node("Relu", {"x"}, {"t"}).Node("If", {"c"}, {"y"}, "choice");
  if (condition_is_input) file.Input("c", {}, TensorProto::BOOL);
  if (!condition_is_input) file.Ints("c", {}, {1});
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto* const branch = file.LastNode()->add_attribute();
    branch->set_name(name);
    branch->set_type(onnx::AttributeProto::GRAPH);
    onnx::NodeProto* const node = branch->mutable_g()->add_node();
    node->set_op_type(std::string(name) == "then_branch" ? "Tanh" : "Frobnicate");
    node->add_input("x");
    node->add_output("t");
    branch->mutable_g()->add_output()->set_name("t");
  }
  file.Node("Add", {"y", "t"}, {"sum"}).Output("sum", {2});
  return file;
}

TEST(OnnxIf, TakesTheBranchOfItsCondition) {
  const auto model = ParseNet(FileWithIf(false));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->graph.ToString(), HasSubstr("tanh"));
  EXPECT_EQ(model->graph.num_nodes(), 4);  // x, relu, tanh, add
}

TEST(OnnxIf, OfDataIsRefused) {
  EXPECT_EQ(ErrorOf(FileWithIf(true)),
            "net.onnx: node 'choice' ('If'): its condition is computed from data; If is read where "
            "it is known at import");
}

TEST(ListUnsupported, NamesEverythingAtOnce) {
  OnnxFile file;
  file.Opset("com.acme", 3).Input("x", {-1, 4});
  file.Node("Frobnicate", {"x"}, {"a"}, "first").Node("Frobnicate", {"a"}, {"b"}, "second");
  file.Node("Fused", {"b"}, {"c"}, "third");
  file.LastNode()->set_domain("com.acme");
  file.Node("Relu", {"x"}, {"r"}, "fourth").With("slope", 1);
  file.Node("Add", {"c", "r"}, {"y"}).Output("y", {-1, 4});
  std::vector<std::string> notes;
  const auto lines = ListUnsupported(file.Bytes(), "net.onnx", {.notes = &notes});
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(
      *lines,
      ElementsAre("Frobnicate (domain ai.onnx, opset 13): 2 nodes, first node 'first' "
                  "('Frobnicate'): unknown operator",
                  "Fused (domain com.acme, opset 3): 1 node, node 'third' ('Fused'): unknown "
                  "operator",
                  "Relu (domain ai.onnx, opset 13): 1 node, node 'fourth' ('Relu'): attribute "
                  "'slope' is not known here"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("dim 0 is not known, and taken to be 2")));
}

TEST(ListUnsupported, NothingWhereAllIsRead) {
  const auto lines = ListUnsupported(FileWithIf(false).Bytes(), "net.onnx");
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_TRUE(lines->empty()) << (*lines)[0];
}

}  // namespace
}  // namespace isomer
