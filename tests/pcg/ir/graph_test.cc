#include "pcg/ir/graph.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/ir/plan.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;

// y0, y1 = split(relu(x * w)), with a scale that nothing uses.
Graph SmallGraph() {
  Graph g;
  const TensorRef x = g.AddInput("x", SequentialType({4, 8}));
  const TensorRef w = g.AddWeight("w", SequentialType({8, 6}));
  const TensorRef xs = *g.AddOp(Partition(0, 2), {x}, "part \"quoted\"");
  const TensorRef ws = *g.AddOp(Replicate(2), {w});
  const TensorRef y = *g.AddOp(OpKind::kMatMul, {xs, ws}, "layer/product");
  (void)*g.AddOp(Operator(OpKind::kScale, {{"factor", 0.1}}), {y}, "dead");
  const NodeId split =
      *g.Add(Operator(OpKind::kSplit, {{"axis", int64_t{1}}, {"sizes", Ints{2, 4}}}), {y});
  g.AddOutput("a", {split, 0});
  g.AddOutput("b", {split, 1});
  return g;
}

TEST(Graph, TextFormRoundTrips) {
  const Graph g = SmallGraph();
  absl::StatusOr<Graph> parsed = ParseGraph(g.ToString());
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << g.ToString();
  EXPECT_EQ(parsed->ToString(), g.ToString());
  EXPECT_EQ(parsed->StructuralHash(), g.StructuralHash());
}

TEST(Graph, CanonicalDropsDeadAndMergesEqualNodes) {
  Graph g = SmallGraph();
  const TensorRef again = *g.AddOp(Partition(0, 2), {TensorRef{NodeId{0}, 0}});
  g.AddOutput("c", again);
  std::vector<NodeId> ids;
  const Graph canonical = g.Canonical(&ids);
  EXPECT_EQ(canonical.num_nodes(), 6) << canonical.ToString();
  EXPECT_EQ(ids[2], ids[again.node.value]);
  EXPECT_EQ(ids[5].value, -1);
  EXPECT_TRUE(canonical.Validate().ok()) << canonical.Validate();
  EXPECT_EQ(canonical.Canonical().ToString(), canonical.ToString());
}

TEST(Graph, HashIgnoresOrderOfCreationButNotStructure) {
  auto build = [](bool first, double factor) {
    Graph g;
    const TensorRef x = g.AddInput("x", SequentialType({4}));
    TensorRef a, b;
    if (first) a = *g.AddOp(OpKind::kRelu, {x});
    b = *g.AddOp(Operator(OpKind::kScale, {{"factor", factor}}), {x});
    if (!first) a = *g.AddOp(OpKind::kRelu, {x});
    g.AddOutput("y", *g.AddOp(OpKind::kAdd, {a, b}));
    return g.StructuralHash();
  };
  EXPECT_EQ(build(true, 0.5), build(false, 0.5));
  EXPECT_NE(build(true, 0.5), build(true, 0.25));
}

TEST(Graph, ReplaceUsesRedirectsNodesAndOutputs) {
  Graph g = SmallGraph();
  const TensorRef product{NodeId{4}, 0};
  const TensorRef relu = *g.AddOp(OpKind::kRelu, {TensorRef{NodeId{4}, 0}});
  g.AddOutput("p", product);
  // Redirecting uses of the product would also redirect relu's own: a cycle that Validate names.
  g.ReplaceUses(product, relu);
  const absl::Status status = g.Validate();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("cycle"), std::string::npos) << status;
}

TEST(ParseGraph, NamesTheLineOfAnError) {
  const struct {
    const char* text;
    const char* reason;
  } kCases[] = {
      {"", "not a graph"},
      {"%0 = input \"x\" : f32[4]\n%1 = frobnicate(%0) : f32[4]\n",
       "line 2: unknown operator 'frobnicate'"},
      {"%0 = input \"x\" : f32[4]\n%2 = relu(%0) : f32[4]\n",
       "line 2: nodes are numbered in order"},
      {"%0 = input \"x : f32[4]\n", "line 1: the quoted name does not end"},
      {"%0 = input \"x\" : f32[4:3]\n", "line 1: dim 0"},
      {"%0 = input \"x\" : f32[4]\n%1 = relu(%7) : f32[4]\noutput \"y\" = %1\n",
       "%7.0, which does not exist"},
      {"%0 = input \"x\" : f32[4]\n%1 = relu(%0) : f32[5]\noutput \"y\" = %1\n",
       "%1 relu: its type is stated as f32[5] but must be f32[4]"},
      {"%0 = input \"x\" : f32[4]\n%1 = relu(%2) : f32[4]\n%2 = relu(%1) : f32[4]\noutput \"y\" = "
       "%1\n",
       "cycle"},
      {"%0 = input \"x\" : f32[4]\n%1 = input \"x\" : f32[4]\n", "be unique"},
      {"%0 = input \"x\" : f32[4]\n%1 = scale(%0) : f32[4]\noutput \"y\" = %1\n",
       "needs the attribute 'factor'"},
      {"%0 = input \"x\" : f32[4]\n%1 = add(%0) : f32[4]\noutput \"y\" = %1\n",
       "takes 2 operands, not 1"},
      {"%0 = input \"x\" : f32[4]\n%1 = relu(%0) {depth=2} : f32[4]\noutput \"y\" = %1\n",
       "no attribute 'depth'"},
      {"%0 = input \"x\" : f32[1000000000,1000000000]\n", "larger than 2^48"},
      {"output \"y\" = 3\n", "line 1: a tensor like %3"},
  };
  for (const auto& c : kCases) {
    absl::StatusOr<Graph> graph = ParseGraph(c.text);
    ASSERT_FALSE(graph.ok()) << c.text;
    EXPECT_NE(graph.status().message().find(c.reason), std::string::npos) << graph.status();
    EXPECT_EQ(graph.status().message().find('\n'), std::string::npos) << "more than one line";
  }
}

// What the sizes add up or multiply to has no 64-bit number, or wraps to one that would fit.
TEST(ParseGraph, RefusesSizesThatOverflow) {
  const struct {
    const char* operand;
    const char* call;
  } kCases[] = {
      {"f32[4]", "reshape(%0) {shape=[281474976710656,281474976710656]} : f32[4]"},
      {"f32[4]", "reshape(%0) {shape=[281474976710656,65536,4]} : f32[4]"},
      {"f32[4]",
       "split(%0) {axis=0, sizes=[9223372036854775807,9223372036854775807,6]} : f32[4], f32[4], "
       "f32[4]"},
      {"f32[1,1,281474976710656]",
       "conv_transpose(%0, %1) {stride=[1073741824], padding=[0,0], dilation=[1], "
       "output_padding=[0], groups=1} : f32[1,1,4]"},
      {"f32[4]",
       "pad(%0) {padding=[-9223372036854775808,9223372036854775807], mode=0, value=0} : f32[4]"},
      {"f32[4]",
       "slice(%0) {starts=[9223372036854775807], sizes=[9223372036854775807], "
       "steps=[-9223372036854775808]} : f32[4]"},
      {"f32[4]", "expand(%0) {shape=[9223372036854775807,4]} : f32[4]"},
      {"f32[4]", "one_hot(%0) {depth=9223372036854775807, axis=0} : f32[4]"},
      {"f32[4]", "gather(%0, %1) {axis=-9223372036854775808} : f32[4]"},
  };
  for (const auto& c : kCases) {
    const std::string text =
        absl::StrCat("%0 = input \"x\" : ", c.operand,
                     "\n%1 = weight \"w\" : f32[1,1,1]\n%2 = ", c.call, "\noutput \"y\" = %2\n");
    const absl::StatusOr<Graph> graph = ParseGraph(text);
    ASSERT_FALSE(graph.ok()) << text;
    EXPECT_EQ(graph.status().message().find("type is stated"), std::string::npos) << graph.status();
    EXPECT_EQ(graph.status().message().find('\n'), std::string::npos) << "more than one line";
  }
}

TEST(ParseGraph, SurvivesEveryTruncation) {
  const std::string text = SmallGraph().ToString();
  for (size_t n = 0; n < text.size(); ++n) {
    absl::StatusOr<Graph> graph = ParseGraph(text.substr(0, n));  // An error or a smaller graph.
    if (graph.ok()) {
      EXPECT_TRUE(graph->Validate().ok());
    }
  }
}

TEST(ModelFile, RoundTripsInBothForms) {
  Model model{.name = "small",
              .graph = SmallGraph(),
              .weights = {{"w", std::vector<float>(48, 0.5f)}},
              .loss = ""};
  for (const char* extension : {".model", ".txt"}) {
    const std::string path = testing::TempDir() + "/round_trip" + extension;
    ASSERT_TRUE(SaveModel(path, model).ok());
    absl::StatusOr<Model> read = LoadModel(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->graph.ToString(), model.graph.ToString());
    EXPECT_EQ(read->weights, model.weights);
    std::remove(path.c_str());
  }
}

TEST(ModelFile, RefusesWeightsThatDoNotFit) {
  Model model{.name = "small",
              .graph = SmallGraph(),
              .weights = {{"w", std::vector<float>(47)}},
              .loss = ""};
  const std::string path = testing::TempDir() + "/short_weight.model";
  ASSERT_TRUE(SaveModel(path, model).ok());
  const absl::Status status = LoadModel(path).status();
  EXPECT_NE(status.message().find("weight 'w' has 47 values, not 48"), std::string::npos) << status;
  std::remove(path.c_str());
}

TEST(PlanFile, RoundTripsWithDerivationAndViews) {
  Plan plan;
  plan.model = {.name = "small", .graph = SmallGraph(), .weights = {}, .loss = ""};
  plan.mode = "inference";
  plan.num_devices = 2;
  plan.precision = DataType::kBFloat16;
  plan.steps.push_back({.rule = "r1",
                        .nodes = {{3}},
                        .inputs = {{{1}, 0}},
                        .variables = {{"d", 2}},
                        .numbers = {{"f", 0.1}},
                        .attributes = {{"shape", Ints{2, 3}}}});
  DerivationStep stated;
  stated.nodes = {{2}, {3}};
  stated.calls = {{Operator(OpKind::kScale, {{"factor", 0.1}}), {{{1}, 0}}},
                  {Operator(OpKind::kTranspose, {{"perm", Ints{1, 0}}}), {{{5}, 0}}}};
  stated.replaced = {{{{3}, 0}, {{6}, 0}}};
  plan.steps.push_back(stated);
  plan.graph = SmallGraph().Canonical();
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const TensorType& type = plan.graph.node(id).outputs[0];
    plan.views.push_back({0, Ints(type.rank() + 2, 1)});
  }
  const std::string path = testing::TempDir() + "/round_trip.plan";
  ASSERT_TRUE(SavePlan(path, plan).ok());
  absl::StatusOr<Plan> read = LoadPlan(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->precision, plan.precision);
  EXPECT_EQ(read->steps, plan.steps);
  EXPECT_EQ(read->views, plan.views);
  EXPECT_EQ(read->graph.ToString(), plan.graph.ToString());
  // Cut anywhere, or with any byte changed, it is refused.
  const std::string bytes = *ReadFile(path);
  for (size_t n = 0; n < bytes.size(); n += 7) {
    ASSERT_TRUE(WriteFileAtomically(path, bytes.substr(0, n)).ok());
    EXPECT_FALSE(LoadPlan(path).ok()) << "cut at " << n;
    std::string damaged = bytes;
    damaged[n] = static_cast<char>(damaged[n] ^ 0x20);
    ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
    EXPECT_FALSE(LoadPlan(path).ok()) << "byte " << n << " changed";
  }
  std::remove(path.c_str());
}

TEST(Dot, EscapesNames) {
  EXPECT_NE(SmallGraph().ToDot().find("part \\\"quoted\\\""), std::string::npos);
}

}  // namespace
}  // namespace isomer
