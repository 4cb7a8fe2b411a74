// What is exported and imported again computes the same.
#include "models/onnx/export/onnx_export.h"

#include <cmath>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/export/export_operators.h"
#include "models/onnx/export/opsets.h"
#include "models/onnx/import/onnx_import.h"
#include "pcg/ir/examples.h"
#include "tests/models/model_values.h"
#include "tests/models/onnx_file.h"
#include "tests/pcg/random_operands.h"

namespace isomer {

void PrintTo(const ExampleCall& call, std::ostream* out) { *out << call.op.ToString(); }

namespace {

using testing::HasSubstr;

using NamedArrays = std::map<std::string, Array<double>>;

// The outputs of a model, by name. Leaves without a value in the model take it from `inputs`.
absl::StatusOr<NamedArrays> Outputs(const Model& model, const NamedArrays& inputs) {
  auto values = EvaluateModel(
      model, [&](const Node& node, Array<double>* array) { *array = inputs.at(node.name); });
  if (!values.ok()) return values.status();
  NamedArrays outputs;
  for (const auto& [name, tensor] : model.graph.outputs()) {
    outputs[name] = (*values)[tensor.node.value][tensor.output].part(0, 0);
  }
  return outputs;
}

void ExpectEqual(const NamedArrays& expected, const NamedArrays& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (const auto& [name, array] : expected) {
    ASSERT_EQ(actual.count(name), 1u) << name;
    ASSERT_EQ(actual.at(name).shape, array.shape) << name;
    for (size_t i = 0; i < array.data.size(); ++i) {
      const double error = std::abs(actual.at(name).data[i] - array.data[i]);
      ASSERT_LE(error, 1e-5 * (1 + std::abs(array.data[i]))) << name << " " << i;
    }
  }
}

// Leaves but for inputs and weights without values keep their names and values.
void ExpectRoundTrip(const Model& model, const NamedArrays& inputs) {
  const auto expected = Outputs(model, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const StoredWeights weights : {StoredWeights::kAsTheyAre, StoredWeights::kPrepared}) {
    const absl::StatusOr<std::string> file = OnnxFileOf(model, model.graph, weights);
    ASSERT_TRUE(file.ok()) << file.status();
    const absl::StatusOr<Model> back = ParseOnnx(*file, "back.onnx");
    ASSERT_TRUE(back.ok()) << back.status();
    const auto actual = Outputs(*back, inputs);
    ASSERT_TRUE(actual.ok()) << actual.status();
    ExpectEqual(*expected, *actual);
  }
}

std::vector<ExampleCall> ExportableExamples() {
  std::vector<ExampleCall> examples;
  for (const ExampleCall& call : Examples()) {
    if (FindOnnxExporter(call.op.kind()) != nullptr) examples.push_back(call);
  }
  return examples;
}

Model ModelOf(const ExampleCall& call) {
  Model model;
  model.name = "example";
  std::vector<TensorRef> operands;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    operands.push_back(model.graph.AddInput("in" + std::to_string(i), call.operands[i]));
  }
  const NodeId id = model.graph.Add(call.op, operands, "call").value();
  for (size_t t = 0; t < model.graph.node(id).outputs.size(); ++t) {
    model.graph.AddOutput("out" + std::to_string(t), {id, static_cast<int32_t>(t)});
  }
  return model;
}

// Its statistics are float32, of halves, too. Of opset 13, where they are outputs 3 and 4, all that
// a node has is of one type.
TEST(OnnxBatchNorm, StatisticsOfHalvesKeepTheirTypes) {
  using onnx::TensorProto;
  OnnxFile file(/*opset=*/13);
  file.Input("x", {4, 2, 3}, TensorProto::FLOAT16);
  const std::vector<std::string> vectors = {"scale", "shift", "mean", "variance"};
  for (const std::string& name : vectors) file.Input(name, {2}, TensorProto::FLOAT16);
  file.Node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"},
            {"y", "next_mean", "next_variance", "saved_mean", "saved_variance"});
  for (const auto& [name, value] : {std::pair("momentum", 0.75f), std::pair("epsilon", 0.25f)}) {
    onnx::AttributeProto* const attribute = file.LastNode()->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::FLOAT);
    attribute->set_f(value);
  }
  file.Node("Mul", {"saved_mean", "scale"}, {"scaled"});
  file.Output("y", {4, 2, 3}, TensorProto::FLOAT16);
  for (const char* name : {"next_mean", "next_variance", "saved_variance", "scaled"}) {
    file.Output(name, {2}, TensorProto::FLOAT16);
  }
  const auto model = ParseOnnx(file.Bytes(), "net.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  NamedArrays inputs;
  inputs["x"] = Array<double>({4, 2, 3});
  for (int64_t i = 0; i < 24; ++i) inputs["x"].data[i] = 0.25 * static_cast<double>(i % 7);
  for (const std::string& name : vectors) inputs[name] = Array<double>({2}, 0.5);
  ExpectRoundTrip(*model, inputs);
  // An operand of halves, whose statistics are used as they are.
  ExampleCall call = {"", Operator(OpKind::kBatchNormTraining, {{"epsilon", 0.25}}), {}};
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{4, 2, 3}, {2}, {2}}) {
    call.operands.push_back(SequentialType(sizes, DataType::kFloat16));
  }
  NamedArrays operands = {{"in0", inputs["x"]}, {"in1", inputs["scale"]}, {"in2", inputs["shift"]}};
  ExpectRoundTrip(ModelOf(call), operands);
}

class ExportExample : public testing::TestWithParam<ExampleCall> {};

TEST_P(ExportExample, MeansTheSame) {
  const Model model = ModelOf(GetParam());
  std::mt19937_64 random(7);
  NamedArrays inputs;
  for (size_t i = 0; i < GetParam().operands.size(); ++i) {
    inputs["in" + std::to_string(i)] = RandomOperand<double>(GetParam(), i, random);
  }
  ExpectRoundTrip(model, inputs);
}

INSTANTIATE_TEST_SUITE_P(Table, ExportExample, testing::ValuesIn(ExportableExamples()),
                         [](const testing::TestParamInfo<ExampleCall>& info) {
                           return info.param.name;
                         });

// Every node is valid in the opset that its file states, and one of them needs it.
TEST_P(ExportExample, StatesTheLeastOpset) {
  ExampleCall call = GetParam();
  for (const bool bfloat16 : {false, true}) {
    for (TensorType& operand : call.operands) {
      if (bfloat16 && operand.dtype == DataType::kFloat32) operand.dtype = DataType::kBFloat16;
    }
    Graph graph;
    std::vector<TensorRef> operands;
    bool has_bfloat16 = false;
    for (const TensorType& type : call.operands) {
      has_bfloat16 |= type.dtype == DataType::kBFloat16;
      operands.push_back(graph.AddInput("", type));
    }
    if (!graph.Add(call.op, operands).ok()) continue;  // It wants float32.
    const absl::StatusOr<std::string> contents =
        OnnxFileOf(ModelOf(call), ModelOf(call).graph, StoredWeights::kAsTheyAre);
    ASSERT_TRUE(contents.ok()) << contents.status();
    onnx::ModelProto file;
    ASSERT_TRUE(file.ParseFromString(*contents));
    const int64_t opset = file.opset_import(0).version();
    int64_t needed = kLeastOpset;
    for (const onnx::NodeProto& node : file.graph().node()) {
      const auto first = FirstOpsetOf(node, has_bfloat16);
      ASSERT_TRUE(first.has_value()) << node.op_type();
      needed = std::max(needed, *first);
      const bool has_axes = std::any_of(node.attribute().begin(), node.attribute().end(),
                                        [](const auto& a) { return a.name() == "axes"; });
      EXPECT_FALSE(has_axes && opset >= kAxesAreOperands) << node.op_type();
    }
    EXPECT_EQ(opset, needed);
    EXPECT_EQ(file.ir_version(), IrVersionOf(opset));
  }
}

// A reduction beside what needs a later opset has that opset's form.
TEST(OnnxExport, AllNodesAreOfTheOpsetThatOneNeeds) {
  for (const auto& [reduction, opset] : {std::pair(2, 17), std::pair(3, 18), std::pair(4, 18)}) {
    Model model;
    const TensorRef x = model.graph.AddInput("x", SequentialType({3, 4}));
    const TensorRef i = model.graph.AddInput("i", SequentialType({3, 2}, DataType::kInt64));
    const TensorRef v = model.graph.AddInput("v", SequentialType({3, 2}));
    const TensorRef scattered =
        *model.graph.AddOp(Operator(OpKind::kScatterElements,
                                    {{"axis", int64_t{1}}, {"reduction", int64_t{reduction}}}),
                           {x, i, v}, "s");
    const Operator largest(OpKind::kReduceMax,
                           {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
    model.graph.AddOutput("y", *model.graph.AddOp(largest, {scattered}, "y"));
    onnx::ModelProto file;
    ASSERT_TRUE(file.ParseFromString(OnnxFileOf(model, model.graph).value()));
    EXPECT_EQ(file.opset_import(0).version(), opset);
    Array<double> values({3, 4}), indices({3, 2}), updates({3, 2});
    values.data = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    indices.data = {0, 1, 3, 3, 2, 0};
    updates.data = {20, -1, 30, 2, -5, 6};
    ExpectRoundTrip(model, {{"x", values}, {"i", indices}, {"v", updates}});
  }
}

TEST(OnnxExport, CommittedModelMeansTheSame) {
  const Model model =
      ImportOnnx(ISOMER_SOURCE_DIR "/models/data/digits_cnn.onnx", {.batch_size = 2}).value();
  std::mt19937_64 random(7);
  Array<double> image({2, 64});
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (node.op.kind() == OpKind::kInput) image = Array<double>(node.outputs[0].Sizes());
  }
  for (double& value : image.data) value = static_cast<double>(random() % 17);
  ExpectRoundTrip(model, {{"image", image}});
}

TEST(OnnxExport, NamesStay) {
  const Model model = ImportOnnx(ISOMER_SOURCE_DIR "/models/data/bert_tiny.onnx").value();
  const Model back = ParseOnnx(OnnxFileOf(model, model.graph).value(), "back.onnx").value();
  for (const auto& [name, values] : model.weights) {
    ASSERT_EQ(back.weights.count(name), 1u) << name;
    EXPECT_EQ(back.weights.at(name), values) << name;
  }
  EXPECT_EQ(back.graph.Canonical().StructuralHash(), model.graph.Canonical().StructuralHash());
  ASSERT_EQ(back.graph.outputs().size(), model.graph.outputs().size());
  EXPECT_EQ(back.graph.outputs()[0].name, model.graph.outputs()[0].name);
}

// A weight of these sizes, 0, 1, 2, ..
TensorRef AddCounted(const std::string& name, std::vector<int64_t> sizes, Model* model) {
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  std::vector<float> values(elements);
  for (int64_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i);
  model->weights[name] = StoredValues(std::move(values));
  return model->graph.AddWeight(name, SequentialType(sizes));
}

Operator ConcatOf(int64_t axis) { return Operator(OpKind::kConcat, {{"axis", axis}}); }

Model PreparedBack(const Model& model) {
  return ParseOnnx(OnnxFileOf(model, model.graph, StoredWeights::kPrepared).value(), "back.onnx")
      .value();
}

TEST(PreparedWeights, AreWrittenInPlaceOfWhatMakesThem) {
  Model model;
  const TensorRef x = model.graph.AddInput("x", SequentialType({2, 3}));
  const TensorRef q = AddCounted("q", {3, 4}, &model), k = AddCounted("k", {3, 4}, &model);
  const TensorRef joined = model.graph.AddOp(ConcatOf(1), {q, k}, "qk").value();
  const TensorRef y = model.graph.AddOp(OpKind::kMatMul, {x, joined}, "y").value();
  // One that is read as it is, too, stays.
  model.graph.AddOutput("y", y);
  model.graph.AddOutput("z", model.graph.AddOp(OpKind::kMatMul, {x, q}, "z").value());
  const Model back = PreparedBack(model);
  EXPECT_THAT(back.weights, testing::UnorderedElementsAre(testing::Key("q"), testing::Key("qk")));
  EXPECT_EQ(back.weights.at("qk").ToVector(),
            (std::vector<float>{0, 1, 2, 3, 0, 1, 2,  3,  4, 5, 6,  7,
                                4, 5, 6, 7, 8, 9, 10, 11, 8, 9, 10, 11}));
  for (int id = 0; id < back.graph.num_nodes(); ++id) {
    EXPECT_NE(back.graph.node(id).op.kind(), OpKind::kConcat);
  }
  NamedArrays inputs;
  inputs["x"] = Array<double>({2, 3}, 0.5);
  ExpectRoundTrip(model, inputs);
}

// A leaf without a value is fed, and what is made of it is made in each run.
TEST(PreparedWeights, NothingIsPreparedOfWhatIsNotKnown) {
  Model model;
  const TensorRef known = AddCounted("known", {3, 4}, &model);
  const TensorRef fed = model.graph.AddWeight("fed", SequentialType({3, 4}));
  const TensorRef joined = model.graph.AddOp(ConcatOf(1), {known, fed}, "joined").value();
  model.graph.AddOutput("y", joined);
  const Model back = PreparedBack(model);
  EXPECT_THAT(back.weights, testing::UnorderedElementsAre(testing::Key("known")));
  NamedArrays inputs;
  inputs["fed"] = Array<double>({3, 4}, 0.5);
  ExpectRoundTrip(model, inputs);
}

// What repeats a tensor stays an operator, and what it repeats is prepared.
TEST(PreparedWeights, WhatGrowsStays) {
  Model model;
  TensorRef wide = AddCounted("w", {4, 4}, &model);
  wide = model.graph
             .AddOp(Operator(OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}}), {wide},
                    "turned")
             .value();
  for (int64_t times = 1; times <= 64; times *= 2) {
    wide = model.graph.AddOp(ConcatOf(0), {wide, wide}, absl::StrCat("times", 2 * times)).value();
  }
  model.graph.AddOutput("y", wide);
  const Model back = PreparedBack(model);
  EXPECT_THAT(back.weights, testing::UnorderedElementsAre(testing::Key("times64")));
  EXPECT_EQ(back.weights.at("times64").ToVector()[1], 4);
  ExpectRoundTrip(model, {});
}

TEST(PreparedWeights, AnOutputAndAllOfASplitMayBePrepared) {
  Model model;
  const TensorRef w = AddCounted("w", {4, 2}, &model);
  const NodeId split = model.graph
                           .Add(Operator(OpKind::kSplit, {{"axis", int64_t{0}},
                                                          {"sizes", std::vector<int64_t>{1, 3}}}),
                                {w}, "parts")
                           .value();
  model.graph.AddOutput("first", {split, 0});
  model.graph.AddOutput("rest", {split, 1});
  model.graph.AddOutput("w_too", w);
  ExpectRoundTrip(model, {});
  EXPECT_THAT(PreparedBack(model).weights, testing::Contains(testing::Key("w")));
}

// As those of labels that are to be ignored; ONNX's OneHot counts them from the end.
TEST(OnnxExport, IndicesBelowZeroAreNowhereHot) {
  Model model;
  model.name = "hot";
  const TensorRef x = model.graph.AddInput("x", SequentialType({5}, DataType::kInt64));
  for (int64_t axis : {0, 1, -1}) {
    const Operator hot = {OpKind::kOneHot, {{"depth", int64_t{4}}, {"axis", axis}}};
    const std::string name = absl::StrCat("hot", axis);
    model.graph.AddOutput(name, *model.graph.AddOp(hot, {x}, name));
  }
  Array<double> labels({5});
  labels.data = {-1, -100, 3, 0, -4};
  ExpectRoundTrip(model, {{"x", labels}});
}

TEST(OnnxExport, OutputsThatAreOneTensorOrAnInput) {
  Model model;
  const TensorRef x = model.graph.AddInput("x", SequentialType({2}));
  const TensorRef y = model.graph.AddOp(OpKind::kRelu, {x}, "y").value();
  model.graph.AddOutput("a", y);
  model.graph.AddOutput("b", y);
  model.graph.AddOutput("c", x);
  Array<double> value({2});
  value.data = {-1, 3};
  ExpectRoundTrip(model, {{"x", value}});
}

TEST(OnnxExport, WhatOnnxLacksIsRefusedByName) {
  Model random;
  const TensorRef x = random.graph.AddInput("x", SequentialType({2}));
  const TensorRef seed = random.graph.AddInput("seed", SequentialType({}, DataType::kInt64));
  Operator dropout(OpKind::kDropout, {{"rate", 0.5}});
  random.graph.AddOutput("y", random.graph.AddOp(dropout, {x, seed}, "drop").value());
  EXPECT_THAT(std::string(OnnxFileOf(random, random.graph).status().message()),
              HasSubstr("dropout 'drop': it has no form in ONNX"));

  Model parallel;
  const TensorRef whole = parallel.graph.AddInput("x", SequentialType({2}));
  Operator partition(OpKind::kPartition, {{"axis", int64_t{0}}, {"degree", int64_t{2}}});
  parallel.graph.AddOutput("y", parallel.graph.AddOp(partition, {whole}, "cut").value());
  EXPECT_THAT(std::string(OnnxFileOf(parallel, parallel.graph).status().message()),
              HasSubstr("partition 'cut': it is parallel"));
}

}  // namespace
}  // namespace isomer
