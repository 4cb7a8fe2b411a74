#include "models/load.h"

#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/loss.h"
#include "models/onnx/import/onnx_import.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

using testing::HasSubstr;

const std::string kExampleModels = ISOMER_SOURCE_DIR "/models/data/";
const std::string kMlp = "zoo:mlp?layers=3&inputs=64&hidden=256&classes=10";

std::string MessageOf(const std::string& spec, int64_t batch_size = 0) {
  return std::string(LoadAnyModel(spec, {.batch_size = batch_size}).status().message());
}

// Whether two graphs compute the same from leaves that correspond: equal operators, attributes and
// types wherever two walks from the outputs meet, whatever the names.
class Isomorphism {
 public:
  Isomorphism(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  bool Holds() {
    if (a_.outputs().size() != b_.outputs().size()) return false;
    for (size_t o = 0; o < a_.outputs().size(); ++o) {
      if (!Correspond(a_.outputs()[o].tensor, b_.outputs()[o].tensor)) return false;
    }
    return true;
  }
  int size() const { return static_cast<int>(map_.size()); }

 private:
  bool Correspond(TensorRef a, TensorRef b) {
    if (a.output != b.output) return false;
    const auto [at, is_new] = map_.insert({a.node, b.node});
    const bool is_injective = !is_new || images_.insert({b.node, a.node}).second;
    if (!is_new || !is_injective) return at->second == b.node && is_injective;
    const Node &x = a_.node(a.node), &y = b_.node(b.node);
    if (!(x.op == y.op) || x.outputs != y.outputs || x.inputs.size() != y.inputs.size()) {
      ADD_FAILURE() << a_.Label(a.node) << " is not " << b_.Label(b.node);
      return false;
    }
    for (size_t i = 0; i < x.inputs.size(); ++i) {
      if (!Correspond(x.inputs[i], y.inputs[i])) return false;
    }
    return true;
  }

  const Graph &a_, &b_;
  std::map<NodeId, NodeId> map_, images_;
};

TEST(Zoo, EncoderIsWhatBertTinyImportsTo) {
  const Model imported = ImportOnnx(kExampleModels + "bert_tiny.onnx").value();
  const Model built = LoadAnyModel("zoo:encoder").value();
  Isomorphism isomorphism(imported.graph, built.graph);
  EXPECT_TRUE(isomorphism.Holds());
  EXPECT_EQ(isomorphism.size(), imported.graph.num_nodes());
  EXPECT_EQ(built.graph.num_nodes(), imported.graph.num_nodes());
}

TEST(Zoo, DigitsCnnHasTheParametersOfTheExportedOne) {
  const Model built = LoadAnyModel("zoo:digits_cnn").value();
  int64_t parameters = 0, exported = 0;
  for (int id = 0; id < built.graph.num_nodes(); ++id) {
    const Node& node = built.graph.node(id);
    if (node.op.kind() == OpKind::kWeight) parameters += node.outputs[0].NumElements();
  }
  const Model imported = ImportOnnx(kExampleModels + "digits_cnn.onnx").value();
  for (const auto& [name, values] : imported.weights) {
    exported += static_cast<int64_t>(values.size());
  }
  EXPECT_EQ(parameters, exported);
}

TEST(LoadAnyModel, OwnFilesInEveryForm) {
  Model model = LoadAnyModel(kMlp + "&batch=8").value();
  ASSERT_TRUE(AttachLoss(&model, "auto").ok());
  model.weights["classifier.bias"] = std::vector<float>(10, 0.5f);
  const std::string base = testing::TempDir() + "/load_test";
  ASSERT_TRUE(SaveModel(base + ".pcg", model).ok());
  ASSERT_TRUE(SaveModel(base + ".txt", model).ok());
  ASSERT_TRUE(WriteFileAtomically(base + ".graph", model.graph.ToString()).ok());
  for (const char* ending : {".pcg", ".txt", ".graph"}) {
    const auto read = LoadAnyModel(base + ending, {.batch_size = 8});
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->graph.StructuralHash(), model.graph.StructuralHash()) << ending;
    const bool has_weights = std::string(ending) != ".graph";
    EXPECT_EQ(read->weights.size(), has_weights ? 1u : 0u) << ending;
    EXPECT_THAT(MessageOf(base + ending, 16), HasSubstr("cannot become 16"));
    std::remove((base + ending).c_str());
  }
}

TEST(LoadAnyModel, ErrorsNameTheFile) {
  EXPECT_THAT(MessageOf("nowhere.onnx"), HasSubstr("nowhere.onnx: "));
  EXPECT_THAT(MessageOf(kExampleModels), HasSubstr("directory"));
  EXPECT_THAT(MessageOf(kExampleModels + "digits.csv"), HasSubstr("digits.csv: no ONNX model"));
  const std::string path = testing::TempDir() + "/load_test_bad";
  ASSERT_TRUE(WriteFileAtomically(path, "%0 = input \"x\" : f32[2,\n").ok());
  EXPECT_THAT(MessageOf(path), HasSubstr(path + ": "));
  ASSERT_TRUE(WriteFileAtomically(path, "# isomer plan v1\n# end\n").ok());
  EXPECT_THAT(MessageOf(path), HasSubstr(path + ": "));
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_EQ(MessageOf(path), path + ": is empty");
  std::remove(path.c_str());
}

TEST(AttachLoss, AutoTellsLogitsFromTheRest) {
  Model classifier = LoadAnyModel(kMlp).value();
  ASSERT_TRUE(AttachLoss(&classifier, "auto").ok());
  EXPECT_THAT(classifier.graph.ToString(), HasSubstr("input \"labels\" : i64[1024]"));
  EXPECT_EQ(classifier.loss, "loss");
  ASSERT_EQ(classifier.graph.outputs().size(), 2u);
  EXPECT_EQ(classifier.graph.outputs()[0].name, "logits");
  EXPECT_EQ(classifier.graph.outputs()[1].name, "loss");
  EXPECT_EQ(classifier.graph.type(classifier.graph.outputs()[1].tensor).ToString(), "f32[]");

  Model encoder = LoadAnyModel("zoo:encoder").value();
  ASSERT_TRUE(AttachLoss(&encoder, "auto").ok());
  EXPECT_THAT(encoder.graph.ToString(), HasSubstr("input \"target\" : f32[8,16,64]"));
}

TEST(AttachLoss, RefusesWhatDoesNotFit) {
  Model model = LoadAnyModel(kMlp).value();
  EXPECT_EQ(
      AttachLoss(&model, "hinge").message(),
      "model 'mlp': cannot add the loss hinge: the losses are cross_entropy, mse, none and auto");
  ASSERT_TRUE(AttachLoss(&model, "mse").ok());
  EXPECT_TRUE(AttachLoss(&model, "auto").ok());
  EXPECT_EQ(AttachLoss(&model, "mse").message(),
            "model 'mlp': cannot add the loss mse: it has the loss 'loss'");
}

// Logits of each token, which auto would compare with a target, and a scalar.
Model TwoOutputs() {
  Model model;
  model.name = "two";
  Graph& graph = model.graph;
  const TensorRef x = graph.AddInput("x", SequentialType({2, 3, 4}));
  graph.AddOutput("hidden", graph.AddOp(OpKind::kExp, {x}).value());
  graph.AddOutput("scores", graph.AddOp(OpKind::kRelu, {x}).value());
  const TensorRef z = graph.AddInput("z", SequentialType({}));
  graph.AddOutput("own", graph.AddOp(OpKind::kExp, {z}).value());
  return model;
}

TEST(AttachLoss, OfTheOutputThatIsNamed) {
  Model model = TwoOutputs();
  ASSERT_TRUE(AttachLoss(&model, "cross_entropy", "scores").ok());
  EXPECT_THAT(model.graph.ToString(), HasSubstr("input \"labels\" : i64[2,3]"));
  EXPECT_EQ(LossText(model), "cross_entropy of 'scores' f32[2,3,4] and 'labels'");
  EXPECT_EQ(KindOfLoss(model), "cross_entropy");

  Model guessed = TwoOutputs();
  ASSERT_TRUE(AttachLoss(&guessed, "auto").ok());
  EXPECT_EQ(LossText(guessed), "mse of 'hidden' f32[2,3,4] and 'target'");
  EXPECT_EQ(KindOfLoss(guessed), "mse");

  Model own = TwoOutputs();
  ASSERT_TRUE(AttachLoss(&own, "none", "own").ok());
  EXPECT_EQ(own.loss, "own");
  EXPECT_EQ(own.graph.outputs().size(), 3u);
  EXPECT_EQ(LossText(own), "its output 'own'");
  EXPECT_EQ(KindOfLoss(own), "none");

  Model refused = TwoOutputs();
  EXPECT_EQ(AttachLoss(&refused, "none", "scores").message(),
            "model 'two': cannot add the loss none: its output 'scores' is f32[2,3,4], not a "
            "single number; cross_entropy and mse make one");
  EXPECT_EQ(AttachLoss(&refused, "mse", "score").message(),
            "model 'two': cannot add the loss mse: it has no output 'score'; there are 'hidden', "
            "'scores', 'own'");
  EXPECT_TRUE(refused.loss.empty());
}

}  // namespace
}  // namespace isomer
