// What exporters make of attention: masks that are computed, numbers as initializers, keys that are
// turned between two reshapes, guards against NaN.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "models/onnx/import/onnx_import.h"
#include "models/onnx/tensor.h"
#include "pcg/evaluation/evaluator.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kLowest = std::numeric_limits<float>::lowest();

// softmax(q k' + mask) v of one batch element and one head, as the dynamo exporter of PyTorch
// writes it.
struct ExportedAttention {
  int64_t queries = 3, keys = 3;
  float fill = kLowest;
  bool guard = true;
  int64_t ahead = 0;    // keys behind its own that a query sees
  bool capped = false;  // to 2, by tanh
  bool biased = false;  // by a table, before the mask
  std::string Bytes() const {
    std::vector<int64_t> rows, columns;
    for (int64_t s = 0; s < queries; ++s) rows.push_back(s + keys - queries + ahead);
    for (int64_t t = 0; t < keys; ++t) columns.push_back(t);
    OnnxFile file;
    file.Input("q", {2, 1, queries, 2}).Input("k", {2, 1, keys, 2}).Input("v", {2, 1, keys, 2});
    file.Ints("rows", {1, 1, queries, 1}, rows).Ints("columns", {1, 1, 1, keys}, columns);
    file.Floats("val_0", {}, {0.5f}).Floats("val_1", {}, {0.0f}).Floats("val_2", {}, {fill});
    file.Ints("flat", {3}, {-1, keys, 2}).Ints("apart", {4}, {2, 1, 2, keys});
    file.Ints("all", {4}, {2, 1, queries, keys});
    file.Node("LessOrEqual", {"columns", "rows"}, {"seen"});
    file.Node("Expand", {"seen", "all"}, {"seen_by_all"});
    file.Node("Where", {"seen_by_all", "val_1", "val_2"}, {"mask"});
    file.Node("Mul", {"q", "val_0"}, {"scaled_q"});
    file.Node("Reshape", {"k", "flat"}, {"k3"});
    file.Node("Transpose", {"k3"}, {"k3t"}).With("perm", std::vector<int64_t>{0, 2, 1});
    file.Node("Reshape", {"k3t", "apart"}, {"kt"});
    file.Node("Mul", {"kt", "val_0"}, {"scaled_kt"});
    file.Node("MatMul", {"scaled_q", "scaled_kt"}, {"scores"});
    std::string scores = "scores";
    if (capped) {
      file.Floats("val_3", {}, {0.5f}).Floats("val_4", {}, {2.0f});
      file.Node("Mul", {scores, "val_3"}, {"small"}).Node("Tanh", {"small"}, {"curved"});
      file.Node("Mul", {"curved", "val_4"}, {scores = "capped"});
    }
    if (biased) {
      file.Floats("bias", {1, 1, queries, keys}, std::vector<float>(queries * keys, 0.5f));
      file.Node("Add", {"bias", scores}, {"biased"});
      scores = "biased";
    }
    file.Node("Add", {scores, "mask"}, {"masked"});
    file.Node("Softmax", {"masked"}, {"p"}).With("axis", int64_t{-1});
    file.Node("IsNaN", {"p"}, {"nan"});
    file.Node("Where", {"nan", "val_1", "p"}, {"guarded"});
    file.Node("MatMul", {guard ? "guarded" : "p", "v"}, {"y"});
    file.Output("y", {2, 1, queries, 2});
    return file.Bytes();
  }
};

struct Imported {
  Model model;
  std::vector<std::string> calls, notes;
};

Imported Import(const std::string& bytes) {
  Imported result;
  const absl::StatusOr<Model> model = ParseOnnx(bytes, "net.onnx", {.notes = &result.notes});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return result;
  result.model = *model;
  for (int id = 0; id < model->graph.num_nodes(); ++id) {
    const Operator& op = model->graph.node(id).op;
    if (op.kind() != OpKind::kInput) result.calls.push_back(op.ToString());
  }
  return result;
}

TEST(OnnxAttentionReading, CausalMaskIsRead) {
  for (const ExportedAttention& exported :
       {ExportedAttention{}, ExportedAttention{.guard = false},
        ExportedAttention{.queries = 2, .keys = 5}, ExportedAttention{.fill = -1e4f},
        ExportedAttention{.fill = -1e9f},
        ExportedAttention{.fill = -std::numeric_limits<float>::infinity()},
        // 640,000 elements a batch element: known by what does not repeat.
        ExportedAttention{.queries = 800, .keys = 800}}) {
    const Imported imported = Import(exported.Bytes());
    EXPECT_THAT(imported.calls, ElementsAre("attention(causal=1,scale=0.25)"));
    // Over the reals only minus infinity excludes.
    const bool assumes = std::isfinite(exported.fill);
    EXPECT_THAT(imported.model.assumptions, testing::SizeIs(assumes ? 1 : 0));
    if (assumes) {
      EXPECT_THAT(imported.notes,
                  testing::Contains(HasSubstr("assumption: numbers of -10000 and less")));
    }
    EXPECT_TRUE(imported.model.weights.empty());
  }
}

TEST(OnnxAttentionReading, CapsAndBiasesArePartOfIt) {
  EXPECT_THAT(Import(ExportedAttention{.capped = true}.Bytes()).calls,
              ElementsAre("capped_attention(cap=2.0,causal=1,scale=0.125)"));
  EXPECT_THAT(Import(ExportedAttention{.biased = true}.Bytes()).calls,
              ElementsAre("weight", "attention(causal=1,scale=0.25)"));
  EXPECT_THAT(
      Import(ExportedAttention{.ahead = 1, .capped = true, .biased = true}.Bytes()).calls,
      ElementsAre("weight", "constant", "add", "capped_attention(cap=2.0,causal=0,scale=0.125)"));
}

// Against the definition, in loops.
TEST(OnnxAttentionReading, ComputesWhatTheFileSays) {
  const Imported imported = Import(ExportedAttention{}.Bytes());
  const Graph& graph = imported.model.graph;
  std::map<NodeId, Value<double>> leaves;
  std::map<std::string, std::vector<double>> inputs;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    Array<double> array(node.outputs[0].Sizes());
    for (int64_t i = 0; i < array.size(); ++i) {
      array.data[i] = std::sin(static_cast<double>(1 + i + 5 * id));
    }
    inputs[node.name] = array.data;
    leaves[NodeId{id}] = {node.outputs[0], {array}};
  }
  const auto values = EvaluateGraph(graph, leaves);
  ASSERT_TRUE(values.ok()) << values.status();
  const TensorRef y = graph.outputs()[0].tensor;
  const std::vector<double>& actual = (*values)[y.node.value][y.output].part(0, 0).data;
  const std::vector<double>&q = inputs["q"], &k = inputs["k"], &v = inputs["v"];
  for (int b = 0; b < 2; ++b) {
    for (int s = 0; s < 3; ++s) {
      double sum = 0, of[2] = {0, 0};
      for (int t = 0; t <= s; ++t) {
        const int at = (b * 3 + s) * 2, from = (b * 3 + t) * 2;
        const double power = std::exp(0.25 * (q[at] * k[from] + q[at + 1] * k[from + 1]));
        sum += power;
        for (int f = 0; f < 2; ++f) of[f] += power * v[from + f];
      }
      for (int f = 0; f < 2; ++f) EXPECT_NEAR(actual[(b * 3 + s) * 2 + f], of[f] / sum, 1e-9);
    }
  }
}

// What is no exclusion, or not the causal one, is added as the file says.
TEST(OnnxAttentionReading, OtherMasksAreAdded) {
  for (const ExportedAttention& exported :
       {ExportedAttention{.fill = -9999}, ExportedAttention{.ahead = 1}}) {
    const Imported imported = Import(exported.Bytes());
    EXPECT_THAT(imported.calls, ElementsAre("constant", "attention(causal=0,scale=0.25)"));
    EXPECT_TRUE(imported.model.assumptions.empty());
  }
  // A mask that leaves nothing out is none.
  const Imported open = Import(ExportedAttention{.ahead = 3}.Bytes());
  EXPECT_THAT(open.calls, ElementsAre("attention(causal=0,scale=0.25)"));
}

// Queries that see no key: the guard makes 0 of what would be NaN.
TEST(OnnxAttentionReading, GuardOfWhatMayBeNaNStays) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Imported none = Import(ExportedAttention{.fill = -kInfinity, .ahead = -1}.Bytes());
  EXPECT_THAT(none.calls, testing::Contains(HasSubstr("softmax")));
  EXPECT_THAT(none.calls, testing::Not(testing::Contains(HasSubstr("attention"))));
  const Imported lowest = Import(ExportedAttention{.ahead = -1}.Bytes());
  EXPECT_THAT(lowest.calls, ElementsAre("constant", "attention(causal=0,scale=0.25)"));
}

TEST(OnnxAttentionReading, NumbersOfFormulasAndAnglesAreNotTrained) {
  OnnxFile file;
  file.Input("x", {2, 3}).Floats("val_7", {}, {0.5f}).Floats("scale", {1}, {0.5f});
  file.Floats("angles", {1, 3}, {1, 2, 3}).Floats("net.weight", {3}, {1, 2, 3});
  file.Node("Cos", {"angles"}, {"cos"}).Node("Mul", {"x", "val_7"}, {"half"});
  file.Node("Mul", {"half", "cos"}, {"turned"}).Node("Mul", {"turned", "scale"}, {"scaled"});
  file.Node("Mul", {"scaled", "net.weight"}, {"y"}).Output("y", {2, 3});
  const Imported imported = Import(file.Bytes());
  std::vector<std::string> trained;
  for (int id = 0; id < imported.model.graph.num_nodes(); ++id) {
    const Node& node = imported.model.graph.node(id);
    if (node.op.kind() == OpKind::kWeight) trained.push_back(node.name);
  }
  EXPECT_THAT(trained, testing::UnorderedElementsAre("scale", "net.weight"));
}

// A file of a few bytes may repeat a constant without end; it is not written out.
TEST(OnnxAttentionReading, RepetitionsWithoutEndAreNotWrittenOut) {
  OnnxFile file;
  file.Input("x", {1}).Ints("ones", {int64_t{2}, 1}, {1, 2});
  file.Ints("shape", {2}, {2, int64_t{1} << 47}).Ints("axis", {}, {1});
  file.Node("Expand", {"ones", "shape"}, {"wide"}).Node("CumSum", {"wide", "axis"}, {"sums"});
  file.Node("Cast", {"sums"}, {"floats"}).With("to", int64_t{onnx::TensorProto::FLOAT});
  file.Node("Add", {"x", "floats"}, {"y"}).Output("y", {2, int64_t{1} << 47});
  const absl::StatusOr<Model> model = ParseOnnx(file.Bytes(), "net.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  for (const auto& [name, values] : model->weights) EXPECT_LE(values.size(), 2u) << name;
}

// T5 puts distances into buckets by their logarithms, also of a distance of 0, which it does not
// use.
TEST(OnnxAttentionReading, BucketsByLogarithmsAreFolded) {
  OnnxFile file;
  constexpr int64_t kMany = 1 << 16;
  file.Input("x", {kMany, 3}).Ints("few", {1, 3}, {0, 1, 3}).Ints("all", {2}, {kMany, 3});
  file.Ints("one", {}, {1});
  file.Node("Expand", {"few", "all"}, {"near"});
  file.Node("Cast", {"near"}, {"floats"}).With("to", int64_t{onnx::TensorProto::FLOAT});
  file.Node("Log", {"floats"}, {"logs"});
  file.Node("Cast", {"logs"}, {"far"}).With("to", int64_t{onnx::TensorProto::INT64});
  file.Node("Less", {"near", "one"}, {"is_near"});
  file.Node("Where", {"is_near", "near", "far"}, {"buckets"});
  file.Node("Cast", {"buckets"}, {"sum"}).With("to", int64_t{onnx::TensorProto::FLOAT});
  file.Node("Add", {"x", "sum"}, {"y"}).Output("y", {kMany, 3});
  const Imported imported = Import(file.Bytes());
  EXPECT_THAT(imported.calls, ElementsAre("constant", "add"));
  ASSERT_EQ(imported.model.weights.size(), 1u);
  EXPECT_THAT(imported.model.weights.begin()->second.ToVector(),
              testing::Each(testing::AnyOf(0, 1)));
  EXPECT_EQ(imported.model.weights.begin()->second.size(), 3u);  // once, as each row is the same
  EXPECT_EQ(imported.model.weights.begin()->second[2], 1);
}

// The mask of a long sequence, written out, would have 2^40 numbers.
TEST(OnnxAttentionReading, CausalMasksOfAMillionTokensAreRead) {
  constexpr int64_t kTokens = 1 << 20;
  const Imported imported = Import(ExportedAttention{.queries = kTokens, .keys = kTokens}.Bytes());
  EXPECT_THAT(imported.calls, ElementsAre("attention(causal=1,scale=0.25)"));
  EXPECT_TRUE(imported.model.weights.empty());
}

// One that is not causal stays what the file computes.
TEST(OnnxAttentionReading, OtherMasksOfLongSequencesStayComputed) {
  const Imported imported =
      Import(ExportedAttention{.queries = 1 << 14, .keys = 1 << 14, .ahead = 5}.Bytes());
  EXPECT_THAT(imported.calls, testing::Contains("less_equal"));
  EXPECT_THAT(imported.calls, testing::Contains("attention(causal=0,scale=0.25)"));
  for (const auto& [name, values] : imported.model.weights) EXPECT_LE(values.size(), 1u << 14);
  // Of fewer tokens it is numbers, but for what repeats.
  const Imported shorter =
      Import(ExportedAttention{.queries = 2048, .keys = 2049, .ahead = 5}.Bytes());
  EXPECT_THAT(shorter.calls, ElementsAre("constant", "attention(causal=0,scale=0.25)"));
  ASSERT_EQ(shorter.model.weights.size(), 1u);
  EXPECT_EQ(shorter.model.weights.begin()->second.size(), 2048u * 2049u);
}

}  // namespace
}  // namespace isomer
