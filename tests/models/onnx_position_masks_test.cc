// Masks that are computed from the positions of the tokens of each sample, as decoders of
// transformers are exported: causal within a sequence, of which a sample may hold several.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "models/onnx/import/onnx_import.h"
#include "tests/models/model_values.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::ElementsAre;

// softmax(q k' + mask) v. Keys are seen up to the position of the query, if both are of one
// sequence: a new one begins where positions do not go on.
struct PositionMask {
  int64_t samples = 400, tokens = 12;
  std::vector<int64_t> positions = {};  // 0, 1, .. if empty
  int64_t window = 0;                   // if not 0, so many keys are seen
  float excluded = -1e9f;

  std::vector<int64_t> Positions() const {
    std::vector<int64_t> all = positions;
    for (int64_t t = 0; t < tokens && positions.empty(); ++t) all.push_back(t);
    return all;
  }
  std::string Bytes() const;
  // Whether a query sees a key, by the definition.
  bool Sees(int64_t query, int64_t key) const {
    const std::vector<int64_t> at = Positions();
    int64_t begins = 0;
    for (int64_t t = std::min(query, key) + 1; t <= std::max(query, key); ++t) {
      begins += at[t] - at[t - 1] != 1;
    }
    return at[key] <= at[query] && begins == 0 && (window == 0 || at[key] > at[query] - window);
  }
};

// table[sample, at] for each of `samples` and `tokens`, as PyTorch's index is exported.
void AddIndexed(OnnxFile* file, const std::string& table, const std::string& at,
                const std::string& y) {
  file->Node("Max", {"sample", at}, {y + "_max"}).Node("Shape", {y + "_max"}, {y + "_shape"});
  file->Node("Expand", {"sample", y + "_shape"}, {y + "_samples"});
  file->Node("Expand", {at, y + "_shape"}, {y + "_tokens"});
  file->Node("Unsqueeze", {y + "_samples", "last"}, {y + "_0"});
  file->Node("Unsqueeze", {y + "_tokens", "last"}, {y + "_1"});
  file->Node("Concat", {y + "_0", y + "_1"}, {y + "_at"}).With("axis", int64_t{-1});
  file->Node("GatherND", {table, y + "_at"}, {y});
}

std::string PositionMask::Bytes() const {
  OnnxFile file(17);
  for (const char* name : {"q", "k", "v"}) file.Input(name, {samples, 1, tokens, 2});
  file.Ints("zero", {}, {0}).Ints("one", {}, {1}).Ints("samples", {}, {samples});
  file.Ints("tokens", {}, {tokens}).Ints("last", {1}, {-1}).Ints("first", {1}, {0});
  file.Ints("next", {1}, {1}).Ints("end", {1}, {int64_t{1} << 62}).Ints("along", {1}, {1});
  file.Ints("given", {1, tokens}, Positions()).Ints("all", {2}, {samples, tokens});
  file.Ints("as_sample", {4}, {samples, 1, 1, 1}).Ints("as_query", {4}, {1, 1, tokens, 1});
  file.Ints("as_key", {4}, {1, 1, 1, tokens}).Ints("window", {}, {window});
  file.Floats("val_0", {}, {0}).Floats("val_1", {}, {excluded});
  file.Node("Expand", {"given", "all"}, {"position"});
  file.Node("Slice", {"position", "first", "next", "along"}, {"front"});
  file.Node("Sub", {"front", "one"}, {"before"});
  file.Node("Concat", {"before", "position"}, {"longer"}).With("axis", int64_t{-1});
  file.Node("Slice", {"longer", "first", "last", "along"}, {"previous"});
  file.Node("Slice", {"longer", "next", "end", "along"}, {"current"});
  file.Node("Sub", {"current", "previous"}, {"step"}).Node("Equal", {"step", "one"}, {"goes_on"});
  file.Node("Not", {"goes_on"}, {"begins"});
  file.Node("Cast", {"begins"}, {"begin"}).With("to", int64_t{onnx::TensorProto::INT64});
  file.Node("CumSum", {"begin", "one"}, {"sequence"});
  file.Node("Range", {"zero", "samples", "one"}, {"sample_list"});
  file.Node("Range", {"zero", "tokens", "one"}, {"token_list"});
  file.Node("Reshape", {"sample_list", "as_sample"}, {"sample"});
  file.Node("Reshape", {"token_list", "as_query"}, {"query"});
  file.Node("Reshape", {"token_list", "as_key"}, {"key"});
  AddIndexed(&file, "position", "query", "query_position");
  AddIndexed(&file, "position", "key", "key_position");
  AddIndexed(&file, "sequence", "query", "query_sequence");
  AddIndexed(&file, "sequence", "key", "key_sequence");
  file.Node("LessOrEqual", {"key_position", "query_position"}, {"is_before"});
  file.Node("Equal", {"query_sequence", "key_sequence"}, {"is_same"});
  file.Node("And", {"is_before", "is_same"}, {"in_sequence"});
  std::string sees = "in_sequence";
  if (window != 0) {
    file.Node("Sub", {"query_position", "window"}, {"far"});
    file.Node("Greater", {"key_position", "far"}, {"is_near"});
    file.Node("And", {sees, "is_near"}, {"in_window"});
    sees = "in_window";
  }
  file.Node("Where", {sees, "val_0", "val_1"}, {"mask"});
  file.Node("Transpose", {"k"}, {"kt"}).With("perm", std::vector<int64_t>{0, 1, 3, 2});
  file.Node("MatMul", {"q", "kt"}, {"scores"}).Node("Add", {"scores", "mask"}, {"masked"});
  file.Node("Softmax", {"masked"}, {"p"}).With("axis", int64_t{-1});
  file.Node("MatMul", {"p", "v"}, {"y"}).Output("y", {samples, 1, tokens, 2});
  return file.Bytes();
}

Model Read(const PositionMask& mask) {
  const absl::StatusOr<Model> model = ParseOnnx(mask.Bytes(), "net.onnx");
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : Model();
}

std::vector<std::string> CallsOf(const Model& model) {
  std::vector<std::string> calls;
  for (NodeId id : model.graph.TopologicalOrder()) {
    const Operator& op = model.graph.node(id).op;
    if (op.kind() != OpKind::kInput) calls.push_back(op.ToString());
  }
  return calls;
}

int64_t NumbersHeld(const Model& model) {
  int64_t held = 0;
  for (const auto& [name, values] : model.weights) held += static_cast<int64_t>(values.size());
  return held;
}

TEST(OnnxPositionMasks, CausalOnesAreKnownWithoutWritingThemOut) {
  // A million tokens of 64 samples: 2^46 pairs.
  for (const PositionMask& mask : {PositionMask{}, PositionMask{.excluded = -INFINITY},
                                   PositionMask{.samples = 1024, .tokens = 8192},
                                   PositionMask{.samples = 64, .tokens = int64_t{1} << 20}}) {
    const Model model = Read(mask);
    EXPECT_THAT(CallsOf(model), ElementsAre("attention(causal=1,scale=1.0)"));
    EXPECT_EQ(NumbersHeld(model), 0);
  }
}

// What is causal but for one position, one token or the width of a window, in the midst of many.
TEST(OnnxPositionMasks, OthersAreNot) {
  constexpr int64_t kTokens = 3000;
  std::vector<int64_t> positions;
  for (int64_t t = 0; t < kTokens; ++t) positions.push_back(t);
  for (int64_t changed : {int64_t{1}, int64_t{1777}, kTokens - 1}) {
    for (int64_t by : {-1, 1, 2}) {
      std::vector<int64_t> wrong = positions;
      wrong[changed] += by;
      const Model model = Read({.samples = 64, .tokens = kTokens, .positions = wrong});
      EXPECT_THAT(CallsOf(model), testing::Contains("attention(causal=0,scale=1.0)"))
          << changed << " by " << by;
    }
  }
  for (int64_t window : {int64_t{1}, int64_t{512}, kTokens - 1}) {
    const Model model = Read({.samples = 64, .tokens = kTokens, .window = window});
    EXPECT_THAT(CallsOf(model), testing::Contains("attention(causal=0,scale=1.0)")) << window;
  }
  // A window of all tokens leaves nothing out.
  const Model all = Read({.samples = 64, .tokens = kTokens, .window = kTokens});
  EXPECT_THAT(CallsOf(all), ElementsAre("attention(causal=1,scale=1.0)"));
  // Numbers that do not exclude.
  const Model weak = Read({.samples = 64, .tokens = kTokens, .excluded = -9});
  EXPECT_THAT(CallsOf(weak), testing::Contains("attention(causal=0,scale=1.0)"));
}

// Against the definition, in loops.
TEST(OnnxPositionMasks, ComputeWhatTheFileSays) {
  for (const PositionMask& mask :
       {PositionMask{}, PositionMask{.window = 3},
        PositionMask{.positions = {0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 4}},
        PositionMask{.positions = {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12}},
        PositionMask{.positions = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}}}) {
    const Model model = Read(mask);
    std::map<std::string, std::vector<double>> inputs;
    const auto values = EvaluateModel(model, [&](const Node& node, Array<double>* array) {
      for (int64_t i = 0; i < array->size(); ++i) {
        array->data[i] = std::sin(static_cast<double>(1 + i + 7 * node.name[0]));
      }
      inputs[node.name] = array->data;
    });
    ASSERT_TRUE(values.ok()) << values.status();
    const TensorRef y = model.graph.outputs()[0].tensor;
    const std::vector<double>& actual = (*values)[y.node.value][y.output].part(0, 0).data;
    for (int64_t b : {int64_t{0}, mask.samples - 1}) {
      for (int64_t s = 0; s < mask.tokens; ++s) {
        double sum = 0, of = 0;
        for (int64_t t = 0; t < mask.tokens; ++t) {
          if (!mask.Sees(s, t)) continue;
          const int64_t at = (b * mask.tokens + s) * 2, from = (b * mask.tokens + t) * 2;
          const double power = std::exp(inputs["q"][at] * inputs["k"][from] +
                                        inputs["q"][at + 1] * inputs["k"][from + 1]);
          sum += power;
          of += power * inputs["v"][from];
        }
        EXPECT_NEAR(actual[(b * mask.tokens + s) * 2], of / sum, 1e-9) << b << " " << s;
      }
    }
  }
}

}  // namespace
}  // namespace isomer
