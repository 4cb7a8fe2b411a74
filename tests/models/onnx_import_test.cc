#include "models/onnx/import/onnx_import.h"

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pcg/ir/type_inference.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kImportData = ISOMER_SOURCE_DIR "/models/data/";

std::map<OpKind, int> CountOperators(const Graph& graph) {
  std::map<OpKind, int> counts;
  for (int id = 0; id < graph.num_nodes(); ++id) ++counts[graph.node(id).op.kind()];
  return counts;
}

// Elements of all weights but the running statistics.
int64_t CountParameters(const Graph& graph) {
  int64_t parameters = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() == OpKind::kWeight && node.name.find("running_") == std::string::npos) {
      parameters += node.outputs[0].NumElements();
    }
  }
  return parameters;
}

// Multiplications of all convolutions and matrix products: the points of their iteration spaces.
double CountMultiplications(const Graph& graph) {
  double total = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() != OpKind::kConv2d && node.op.kind() != OpKind::kMatMul) continue;
    std::vector<Shape> shapes;
    for (TensorRef input : node.inputs) shapes.push_back(graph.type(input).GlobalShape());
    double points = 1;
    const Declaration declaration = Declare(node.op, shapes).value();
    for (const IterationDim& dim : declaration.dims) {
      points *= static_cast<double>(dim.size.value());
    }
    total += points;
  }
  return total;
}

std::vector<std::string> LeafNames(const Graph& graph, OpKind kind) {
  std::vector<std::string> names;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node(id).op.kind() == kind) names.push_back(graph.node(id).name);
  }
  return names;
}

absl::StatusOr<Model> Parse(const OnnxFile& file, int64_t batch_size = 0) {
  return ParseOnnx(file.Bytes(), "net.onnx", {.batch_size = batch_size});
}

TEST(OnnxImport, DigitsCnn) {
  const Model model = ImportOnnx(kImportData + "digits_cnn.onnx").value();
  EXPECT_EQ(model.name, "digits_cnn");
  const std::map<OpKind, int> counts = CountOperators(model.graph);
  const std::map<OpKind, int> expected = {
      {OpKind::kInput, 1},   {OpKind::kWeight, 8}, {OpKind::kConv2d, 2},
      {OpKind::kReshape, 3}, {OpKind::kAdd, 4},    {OpKind::kRelu, 3},
      {OpKind::kMaxPool, 1}, {OpKind::kMatMul, 2}, {OpKind::kTranspose, 2}};
  EXPECT_EQ(counts, expected);
  ASSERT_EQ(model.graph.outputs().size(), 1u);
  EXPECT_EQ(model.graph.outputs()[0].name, "logits");
  EXPECT_EQ(model.graph.type(model.graph.outputs()[0].tensor).ToString(), "f32[64,10]");
  EXPECT_EQ(model.weights.at("conv1.weight").size(), 16u * 9);
}

TEST(OnnxImport, BertTinyIsPutTogetherAgain) {
  std::vector<std::string> notes;
  const Model model = ImportOnnx(kImportData + "bert_tiny.onnx", {.notes = &notes}).value();
  const std::map<OpKind, int> expected = {
      {OpKind::kInput, 1},   {OpKind::kWeight, 36},   {OpKind::kEmbedding, 1}, {OpKind::kAdd, 17},
      {OpKind::kMatMul, 16}, {OpKind::kLayerNorm, 5}, {OpKind::kGelu, 2},      {OpKind::kScale, 2},
      {OpKind::kSoftmax, 2}, {OpKind::kReshape, 8},   {OpKind::kTranspose, 8}};
  EXPECT_EQ(CountOperators(model.graph), expected);
  EXPECT_EQ(model.weights.size(), 36u);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("its batch is 8, dim 0 of input 'input_ids', and stays "
                                           "so, as node '/layers.0/attention/Reshape'")));
}

TEST(OnnxImport, ResNeXt50IsGraphOnly) {
  std::vector<std::string> notes;
  const Model model = ImportOnnx(kImportData + "resnext50.onnx", {.notes = &notes}).value();
  std::map<OpKind, int> counts = CountOperators(model.graph);
  EXPECT_EQ(counts[OpKind::kConv2d], 53);
  EXPECT_EQ(counts[OpKind::kBatchNorm], 53);
  EXPECT_EQ(counts[OpKind::kRelu], 49);
  EXPECT_EQ(counts[OpKind::kWeight], 161);
  EXPECT_EQ(counts[OpKind::kConstant], 106);  // running statistics
  EXPECT_THAT(LeafNames(model.graph, OpKind::kInput), ElementsAre("image"));
  EXPECT_TRUE(model.weights.empty());
  // Xie et al. (2017), table 1: 25.0 million parameters, 4.2 billion multiply-adds.
  EXPECT_EQ(CountParameters(model.graph), 25'028'904);
  EXPECT_NEAR(CountMultiplications(model.graph) / 16, 4.23e9, 0.04e9);
  EXPECT_TRUE(notes.empty()) << notes[0];
}

TEST(OnnxImport, SymbolicBatchIsAskedFor) {
  EXPECT_EQ(ImportOnnx("models.onnx").status().code(), absl::StatusCode::kNotFound);
  const std::string path = kImportData + "digits_cnn_dynamic.onnx";
  EXPECT_EQ(ImportOnnx(path).status().message(),
            path + ": input 'image': dim 0 is symbolic ('batch'): give --batch_size=N");
  const Model model = ImportOnnx(path, {.batch_size = 32}).value();
  EXPECT_EQ(model.graph.type(model.graph.outputs()[0].tensor).ToString(), "f32[32,10]");
  EXPECT_THAT(LeafNames(model.graph, OpKind::kInput), ElementsAre("image"));
  EXPECT_EQ(LeafNames(model.graph, OpKind::kWeight).size(), 8u);
}

TEST(OnnxImport, ZeroBatchIsAskedFor) {
  const OnnxFile file =
      OnnxFile().Input("x", {0, 4}).Node("Relu", {"x"}, {"y"}).Output("y", {0, 4});
  EXPECT_EQ(Parse(file).status().message(), "net.onnx: input 'x': dim 0 is 0: give --batch_size=N");
  EXPECT_TRUE(Parse(file, 8).ok());
}

TEST(OnnxImport, OtherSymbolsAreNotGuessed) {
  OnnxFile file;
  file.Input("x", {-1, 4, 4}).Node("Relu", {"x"}, {"y"}).Output("y", {-1, 4, 4});
  file.model()
      .mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->set_dim_param("length");
  EXPECT_EQ(Parse(file, 8).status().message(),
            "net.onnx: input 'x': dim 1 is symbolic ('length'): give --dim length=N");
  // All that is open is said at once.
  EXPECT_EQ(Parse(file).status().message(),
            "net.onnx: input 'x': dim 0 is symbolic ('batch'): give --batch_size=N --dim length=N; "
            "'x' is [batch,length,4]");
  const auto bound = ParseOnnx(file.Bytes(), "net.onnx", {.dims = {{"batch", 8}, {"length", 4}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->graph.type(bound->graph.outputs()[0].tensor).ToString(), "f32[8,4,4]");
  EXPECT_EQ(ParseOnnx(file.Bytes(), "net.onnx", {.dims = {{"width", 4}}}).status().message(),
            "net.onnx: --dim width=4: no input has a dim of that name; there are 'batch', "
            "'length'");
}

TEST(OnnxImport, FixedBatchMayChangeWhereNoReshapeHasIt) {
  std::vector<std::string> notes;
  const auto digits =
      ImportOnnx(kImportData + "digits_cnn.onnx", {.batch_size = 16, .notes = &notes});
  ASSERT_TRUE(digits.ok()) << digits.status();
  EXPECT_EQ(digits->graph.type(digits->graph.outputs()[0].tensor).ToString(), "f32[16,10]");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("the batch is 16 instead of the 64 of the file")));

  const auto bert = ImportOnnx(kImportData + "bert_tiny.onnx", {.batch_size = 16});
  EXPECT_THAT(bert.status().ToString(), HasSubstr("fixes dim 0 at 8, so the batch 8 of the file "
                                                  "cannot become 16"));
}

TEST(OnnxImport, UnknownOperatorsAreNamedAllAtOnce) {
  OnnxFile file;
  file.Opset("com.acme", 3).Input("x", {2, 4});
  file.Node("Frobnicate", {"x"}, {"a"}, "first").Node("Frobnicate", {"a"}, {"b"}, "second");
  file.Node("NonMaxSuppression", {"b"}, {"c"}).Node("Fused", {"c"}, {"y"}, "third");
  file.LastNode()->set_domain("com.acme");
  file.Output("y", {2, 4});
  EXPECT_EQ(Parse(file).status().message(),
            "net.onnx: unknown operators, each at its first node: "
            "node 'first' ('Frobnicate') of 'ai.onnx', opset 13; node of 'c' "
            "('NonMaxSuppression') of 'ai.onnx', opset 13; node 'third' ('Fused') of 'com.acme', "
            "opset 3 (--list_unsupported lists all; --operators declares further ones)");
}

TEST(OnnxImport, GraphInputsInParameterPlacesAreWeights) {
  OnnxFile file;
  file.Input("x", {2, 4}).Input("mask", {2, 6}).Input("w", {6, 4}).Input("b", {6});
  file.Input("position", {1, 6});
  file.Node("Gemm", {"x", "w", "b"}, {"h"}).With("transB", 1);
  file.Node("Add", {"h", "position"}, {"p"}).Node("Mul", {"p", "mask"}, {"y"});
  file.Output("y", {2, 6});
  const auto model = Parse(file);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(LeafNames(model->graph, OpKind::kInput), ElementsAre("x", "mask"));
  EXPECT_THAT(LeafNames(model->graph, OpKind::kWeight), ElementsAre("w", "b", "position"));
}

TEST(OnnxImport, InputsOfFilesWithWeightsAreData) {
  const OnnxFile file = OnnxFile()
                            .Input("x", {2, 4})
                            .Input("y", {4, 4})
                            .Floats("b", {4}, {1, 2, 3, 4})
                            .Node("MatMul", {"x", "y"}, {"p"})
                            .Node("Add", {"p", "b"}, {"z"})
                            .Output("z", {2, 4});
  const auto model = Parse(file);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(LeafNames(model->graph, OpKind::kInput), ElementsAre("x", "y"));
  EXPECT_EQ(model->weights.at("b"), (std::vector<float>{1, 2, 3, 4}));
}

TEST(OnnxImport, ShapeArithmeticIsDoneAtImport) {
  // y = Reshape(x, Concat(Gather(Shape(x), [0]), [-1])), as traced flattening looks.
  OnnxFile file;
  file.Input("x", {-1, 3, 5}).Ints("zero", {}, {0}).Ints("axes", {1}, {0}).Ints("rest", {1}, {-1});
  file.Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "zero"}, {"n"}).With("axis", 0);
  file.Node("Unsqueeze", {"n", "axes"}, {"u"});
  file.Node("Concat", {"u", "rest"}, {"shape"}).With("axis", 0);
  file.Node("Reshape", {"x", "shape"}, {"y"}).Output("y", {-1, 15});
  const auto model = Parse(file, 7);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph.num_nodes(), 2);
  EXPECT_EQ(model->graph.type(model->graph.outputs()[0].tensor).ToString(), "f32[7,15]");
}

TEST(OnnxImport, GatherOfConstantIndicesIsAPartOfTheTensor) {
  OnnxFile file;
  file.Input("x", {2, 5, 4}).Ints("first", {}, {0}).Node("Gather", {"x", "first"}, {"y"});
  file.With("axis", 1).Output("y", {2, 4});
  const auto model = Parse(file);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CountOperators(model->graph)[OpKind::kSplit], 1);
  EXPECT_EQ(model->graph.type(model->graph.outputs()[0].tensor).ToString(), "f32[2,4]");
}

TEST(OnnxImport, SwishIsPutTogetherAgain) {
  OnnxFile file;
  file.Input("x", {2, 4}).Node("Sigmoid", {"x"}, {"s"}).Node("Mul", {"x", "s"}, {"y"});
  const auto model = Parse(file.Output("y", {2, 4}));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph.ToString().find("sigmoid"), std::string::npos);
  EXPECT_EQ(CountOperators(model->graph)[OpKind::kSwish], 1);
}

// position_ids[:, :length] into a table of positions, as traced transformers have it.
TEST(OnnxImport, SliceOfConstantPositionsSelectsRowsOfTheTable) {
  OnnxFile file;
  file.Input("x", {2, 3, 4}).Ints("ids", {1, 6}, {0, 1, 2, 3, 4, 5});
  file.Floats("table", {6, 4}, std::vector<float>(24, 1));
  file.Ints("starts", {1}, {0}).Ints("ends", {1}, {3}).Ints("axes", {1}, {1});
  file.Node("Slice", {"ids", "starts", "ends", "axes"}, {"positions"});
  file.Node("Gather", {"table", "positions"}, {"rows"}).Node("Add", {"x", "rows"}, {"y"});
  file.Output("y", {2, 3, 4});
  const auto model = Parse(file);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CountOperators(model->graph)[OpKind::kSplit], 1);
  EXPECT_THAT(LeafNames(model->graph, OpKind::kWeight), ElementsAre("table"));
}

TEST(OnnxImport, LiteralThatEntersTheGraphIsNotTrained) {
  const OnnxFile file = OnnxFile()
                            .Input("x", {2, 4})
                            .Literal("one", 1)
                            .Node("Add", {"x", "one"}, {"y"})
                            .Output("y", {2, 4});
  const auto model = Parse(file);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->weights.at("one"), std::vector<float>{1});
  EXPECT_THAT(LeafNames(model->graph, OpKind::kConstant), ElementsAre("one"));
}

// (x - mean) / deviation * w + b over dim 0, and over the last one: only this is LayerNorm.
TEST(OnnxImport, NormalizationOverAnotherDimIsNoLayerNorm) {
  for (int64_t axis : {0, 1}) {
    OnnxFile file;
    file.Input("x", {4, 4}).Floats("w", {4}, {1, 1, 1, 1}).Floats("b", {4}, {0, 0, 0, 0});
    file.Literal("two", 2).Literal("epsilon", 1e-5f);
    file.Node("ReduceMean", {"x"}, {"m"}).With("axes", std::vector<int64_t>{axis});
    file.Node("Sub", {"x", "m"}, {"c"}).Node("Pow", {"c", "two"}, {"s"});
    file.Node("ReduceMean", {"s"}, {"v"}).With("axes", std::vector<int64_t>{axis});
    file.Node("Add", {"v", "epsilon"}, {"e"}).Node("Sqrt", {"e"}, {"d"});
    file.Node("Div", {"c", "d"}, {"n"}).Node("Mul", {"n", "w"}, {"p"});
    file.Node("Add", {"p", "b"}, {"y"}).Output("y", {4, 4});
    const auto model = Parse(file);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(CountOperators(model->graph)[OpKind::kLayerNorm], axis == 1 ? 1 : 0);
    EXPECT_EQ(CountOperators(model->graph)[OpKind::kReduceMean], axis == 1 ? 0 : 2);
  }
}

// One-node files: what they become, or why not.
struct NodeCase {
  const char* name;
  OnnxFile file;
  const char* message;  // "" when it is read
};

std::ostream& operator<<(std::ostream& out, const NodeCase& c) { return out << c.name; }

class OneNode : public testing::TestWithParam<NodeCase> {};

TEST_P(OneNode, IsReadOrRefused) {
  const auto model = Parse(GetParam().file);
  if (*GetParam().message == '\0') {
    EXPECT_TRUE(model.ok()) << model.status();
    return;
  }
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(GetParam().message));
  EXPECT_EQ(std::string(model.status().message()).find('\n'), std::string::npos);
}

OnnxFile File(int64_t opset = 13) { return OnnxFile(opset).Input("x", {2, 3, 8, 8}); }
OnnxFile Batchnorm() {
  OnnxFile file(15);
  file.Input("x", {2, 3, 8, 8}).Output("y", {2, 3, 8, 8});
  for (const char* name : {"g", "b", "m", "v"}) file.Floats(name, {3}, {1, 1, 1});
  return file.Node("BatchNormalization", {"x", "g", "b", "m", "v"}, {"y"});
}

INSTANTIATE_TEST_SUITE_P(
    Table, OneNode,
    testing::Values(
        NodeCase{"AveragePool",
                 File()
                     .Node("AveragePool", {"x"}, {"y"})
                     .With("kernel_shape", {2, 2})
                     .With("strides", {2, 2})
                     .Output("y", {2, 3, 4, 4}),
                 ""},
        NodeCase{"CeilModeWithWholeWindows",
                 File()
                     .Node("MaxPool", {"x"}, {"y"})
                     .With("kernel_shape", {2, 2})
                     .With("strides", {2, 2})
                     .With("ceil_mode", 1)
                     .Output("y", {2, 3, 4, 4}),
                 ""},
        NodeCase{"CeilModeWithPartsOfWindows",
                 File()
                     .Node("MaxPool", {"x"}, {"y"})
                     .With("kernel_shape", {3, 3})
                     .With("strides", {2, 2})
                     .With("ceil_mode", 1)
                     .Output("y", {2, 3, 4, 4}),
                 ""},
        NodeCase{"IndicesOfMaxPool",
                 File()
                     .Node("MaxPool", {"x"}, {"y", "i"})
                     .With("kernel_shape", {2, 2})
                     .Output("y", {2, 3, 7, 7}),
                 ""},
        NodeCase{"ConcatOfWhatIsEmptyBesides",
                 File()
                     .Floats("none", {2, 0, 8, 8}, {})
                     .Node("Concat", {"none", "x", "none", "x"}, {"y"})
                     .With("axis", 1)
                     .Output("y", {2, 6, 8, 8}),
                 ""},
        NodeCase{"SplitWithAnEmptyPart",
                 File()
                     .Ints("sizes", {2}, {0, 3})
                     .Node("Split", {"x", "sizes"}, {"y", "z"})
                     .With("axis", 1)
                     .Output("z", {2, 3, 8, 8}),
                 "output 0 has size 0; tensors without elements are not supported"},
        NodeCase{"SliceOfNothing",
                 File()
                     .Ints("from", {1}, {3})
                     .Node("Slice", {"x", "from", "from", "from"}, {"y"})
                     .Output("y", {2, 3, 8, 8}),
                 "nothing of dim 3 remains; tensors without elements are not supported"},
        NodeCase{"SumWithNothing",
                 File()
                     .Floats("none", {2, 0, 8, 8}, {})
                     .Node("Add", {"x", "none"}, {"y"})
                     .Output("y", {2, 3, 8, 8}),
                 "size 0 is not positive; tensors without elements are not supported"},
        NodeCase{"IndicesOfMaxPoolThatAreUsed",
                 File()
                     .Node("MaxPool", {"x"}, {"y", "i"})
                     .With("kernel_shape", {2, 2})
                     .Node("Identity", {"i"}, {"j"}, "read")
                     .Output("y", {2, 3, 7, 7})
                     .Output("j", {2, 3, 7, 7}, onnx::TensorProto::INT64),
                 "its output 1 'i', read by node 'read' ('Identity'), is not computed"},
        NodeCase{"IndicesOfMaxPoolAsAnOutput",
                 File()
                     .Node("MaxPool", {"x"}, {"y", "i"})
                     .With("kernel_shape", {2, 2})
                     .Output("i", {2, 3, 7, 7}, onnx::TensorProto::INT64),
                 "its output 1 'i', read as an output of the graph, is not computed"},
        NodeCase{"Identity", File().Node("Identity", {"x"}, {"y"}).Output("y", {2, 3, 8, 8}), ""},
        NodeCase{"Dropout", File().Node("Dropout", {"x"}, {"y"}).Output("y", {2, 3, 8, 8}), ""},
        NodeCase{"CastToInteger",
                 File()
                     .Node("Cast", {"x"}, {"y"})
                     .With("to", 7)
                     .Output("y", {2, 3, 8, 8}, onnx::TensorProto::INT64),
                 ""},
        NodeCase{"TransposeReverses",
                 File().Node("Transpose", {"x"}, {"y"}).Output("y", {8, 8, 3, 2}), ""},
        NodeCase{"FlattenOfNegativeAxis",
                 File().Node("Flatten", {"x"}, {"y"}).With("axis", -1).Output("y", {48, 8}), ""},
        NodeCase{"SplitInEqualParts",
                 File()
                     .Node("Split", {"x"}, {"y", "z"})
                     .With("axis", 2)
                     .Output("y", {2, 3, 4, 8})
                     .Output("z", {2, 3, 4, 8}),
                 ""},
        NodeCase{"SplitThatDoesNotDivide",
                 File().Node("Split", {"x"}, {"y", "z"}).With("axis", 1).Output("y", {2, 1, 8, 8}),
                 "dim 1 of size 3 does not divide into 2 equal parts"},
        NodeCase{"SoftmaxOfOldOpsetOverSeveralDims",
                 File(11).Node("Softmax", {"x"}, {"y"}).Output("y", {2, 3, 8, 8}), ""},
        NodeCase{"SoftmaxOfOldOpsetOverTheLastDim",
                 File(11).Node("Softmax", {"x"}, {"y"}).With("axis", 3).Output("y", {2, 3, 8, 8}),
                 ""},
        NodeCase{"ReduceMeanOverAll",
                 File().Node("ReduceMean", {"x"}, {"y"}).With("keepdims", 0).Output("y", {}), ""},
        NodeCase{"GlobalAveragePool",
                 File().Node("GlobalAveragePool", {"x"}, {"y"}).Output("y", {2, 3, 1, 1}), ""},
        NodeCase{"BatchNormalization", Batchnorm(), ""},
        NodeCase{"BatchNormalizationInTraining", Batchnorm().With("training_mode", 1), ""},
        NodeCase{"SqrtOutsideOfLayerNorm",
                 File().Node("Sqrt", {"x"}, {"y"}).Output("y", {2, 3, 8, 8}), ""},
        NodeCase{"UnknownAttribute",
                 File().Node("Relu", {"x"}, {"y"}).With("slope", 1).Output("y", {2, 3, 8, 8}),
                 "attribute 'slope' is not known here"},
        NodeCase{"AttributeOfWrongType",
                 File()
                     .Node("Flatten", {"x"}, {"y"})
                     .With("axis", std::vector<int64_t>{1})
                     .Output("y", {2, 192}),
                 "attribute 'axis' is not of type INT"},
        NodeCase{"TooManyInputs", File().Node("Relu", {"x", "x"}, {"y"}).Output("y", {2, 3, 8, 8}),
                 "it has 2 inputs, not 1 to 1"},
        NodeCase{"ConvOfWrongRank",
                 File()
                     .Floats("w", {3, 3, 1}, std::vector<float>(9))
                     .Node("Conv", {"x", "w"}, {"y"})
                     .Output("y", {2, 3, 8, 8}),
                 "input 1 has rank 3, not 4"},
        NodeCase{"ConvOfWrongChannels",
                 File()
                     .Floats("w", {5, 4, 1, 1}, std::vector<float>(20))
                     .Node("Conv", {"x", "w"}, {"y"})
                     .Output("y", {2, 5, 8, 8}),
                 "node of 'y' ('Conv'): conv2d: dim c"},
        NodeCase{"DeclaredOutputDiffers",
                 File().Node("Relu", {"x"}, {"y"}).Output("y", {2, 3, 8, 9}),
                 "output 'y': dim 3 must be 9, but its type is f32[2,3,8,8]"}),
    [](const testing::TestParamInfo<NodeCase>& info) { return info.param.name; });

// As PyTorch's exporter writes x.split(2, dim=1) when it does not optimise: of size 5, by 2, 2, 1.
TEST(OnnxSequence, PartsOfASplitByTheirPositions) {
  OnnxFile file;
  file.Input("x", {2, 5}).Ints("two", {}, {2}).Ints("first", {}, {0}).Ints("last", {}, {-1});
  file.Node("SplitToSequence", {"x", "two"}, {"parts"}).With("axis", 1);
  file.Node("SequenceAt", {"parts", "first"}, {"a"}).Node("SequenceAt", {"parts", "last"}, {"b"});
  file.Output("a", {2, 2}).Output("b", {2, 1});
  const auto model = ParseOnnx(file.Bytes(), "net.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  const Graph& graph = model->graph;
  EXPECT_EQ(graph.type(graph.outputs()[0].tensor).ToString(), "f32[2,2]");
  EXPECT_EQ(graph.type(graph.outputs()[1].tensor).ToString(), "f32[2,1]");
  EXPECT_EQ(graph.outputs()[1].tensor.output, 2);
}

TEST(OnnxSequence, SlicesWithoutTheirDim) {
  OnnxFile file;
  file.Input("x", {3, 4}).Ints("second", {}, {1});
  file.Node("SplitToSequence", {"x"}, {"rows"}).With("keepdims", 0);
  file.Node("SequenceAt", {"rows", "second"}, {"y"}).Output("y", {4});
  const auto model = ParseOnnx(file.Bytes(), "net.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph.type(model->graph.outputs()[0].tensor).ToString(), "f32[4]");
}

TEST(OnnxSequence, WhatIsNotThereIsSaid) {
  const auto error_of = [](int64_t each, int64_t position) {
    OnnxFile file;
    file.Input("x", {2, 5}).Ints("each", {}, {each}).Ints("at", {}, {position});
    file.Node("SplitToSequence", {"x", "each"}, {"parts"}).With("axis", 1);
    file.Node("SequenceAt", {"parts", "at"}, {"y"}).Output("y", {2, 2});
    return std::string(ParseOnnx(file.Bytes(), "net.onnx").status().message());
  };
  EXPECT_THAT(error_of(2, 3), testing::HasSubstr("its position 3 is none in a sequence of 3"));
  EXPECT_THAT(error_of(2, -4), testing::HasSubstr("its position -4 is none in a sequence of 3"));
  EXPECT_THAT(error_of(0, 0), testing::HasSubstr("parts of size 0 of dim 1 of size 5"));
  OnnxFile file;
  file.Input("x", {2, 2}).Ints("at", {}, {0});
  file.Node("SequenceAt", {"x", "at"}, {"y"}).Output("y", {2, 2});
  EXPECT_THAT(std::string(ParseOnnx(file.Bytes(), "net.onnx").status().message()),
              testing::HasSubstr("the sequence 'x' is not one that the file makes"));
}

}  // namespace
}  // namespace isomer
