// What exporters spell out is planned as the operator that it is, and the plan says why it may be.
#include "optimizer/canonical/canonical_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "optimizer/machine/machine.h"
#include "optimizer/search/optimizer.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/data_path.h"
#include "verifier/certificate/equal_sides.h"
#include "verifier/plans/plan_checker.h"

namespace isomer {
namespace {

using testing::HasSubstr;

bool ShownEqual(const ConcreteSide& source, const ConcreteSide& target,
                const InputNumbers& numbers) {
  std::set<std::string> lemmas;
  return EqualSides(source, target, &lemmas, numbers).ok();
}

bool KeepsNothing(const std::string&) { return false; }

std::map<std::string, int> CallsOf(const Graph& graph) {
  std::map<std::string, int> calls;
  for (NodeId id : graph.TopologicalOrder()) ++calls[std::string(graph.node(id).op.name())];
  return calls;
}

Model ModelOf(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  Model model{"net", *std::move(graph), {}, "loss"};
  model.weights["e"] = {0.5f};
  return model;
}

// A norm and a product, as Llama is exported. The weight is on the left.
constexpr char kNorm[] = R"(
%0 = input "x" : f32[8,64,32]
%1 = weight "g" : f32[32]
%2 = constant "e" : f32[]
%3 = weight "w" : f32[32,32]
%4 = input "target" : f32[8,64,32]
%5 = relu(%0) : f32[8,64,32]
%6 = mul(%5, %5) : f32[8,64,32]  # net/square
%7 = reduce_mean(%6) {axes=[2], keepdims=1} : f32[8,64,1]
%8 = add(%7, %2) : f32[8,64,1]
%9 = sqrt(%8) : f32[8,64,1]
%10 = reciprocal(%9) : f32[8,64,1]
%11 = mul(%5, %10) : f32[8,64,32]
%12 = mul(%1, %11) : f32[8,64,32]  # net/norm
%13 = matmul(%12, %3) : f32[8,64,32]
%14 = mse(%13, %4) : f32[]
output "loss" = %14
)";

TEST(CanonicalForm, CallsThatAreAnOperatorBecomeIt) {
  const Model model = ModelOf(kNorm);
  const CanonicalModel canonical = Canonicalize(model, ShownEqual, KeepsNothing);
  ASSERT_EQ(canonical.steps.size(), 1u);
  EXPECT_EQ(canonical.steps[0].nodes.size(), 7u);
  const std::map<std::string, int> calls = CallsOf(canonical.model.graph);
  EXPECT_EQ(calls.count("sqrt"), 0u);
  EXPECT_EQ(calls.at("rms_norm"), 1);
  for (int id = 0; id < canonical.model.graph.num_nodes(); ++id) {
    const Node& node = canonical.model.graph.node(id);
    if (node.op.kind() != OpKind::kRmsNorm) continue;
    EXPECT_EQ(node.name, "net/norm");
    EXPECT_EQ(node.op.Number("epsilon"), 0.5);
  }
}

TEST(CanonicalForm, OtherWaysToWriteItAreTheSame) {
  const std::string text = kNorm;
  for (const auto& [from, to] : std::map<std::string, std::string>{
           {"add(%7, %2)", "add(%2, %7)"}, {"mul(%1, %11)", "mul(%11, %1)"}}) {
    const Model model = ModelOf(absl::StrReplaceAll(text, {{from, to}}));
    EXPECT_EQ(Canonicalize(model, ShownEqual, KeepsNothing).steps.size(), 1u) << to;
  }
}

// The curve of which GELU has two forms, as GPT-2 and the dynamo exporter write it.
constexpr char kGeluTanh[] = R"(
%0 = input "x" : f32[8,64,32]
%1 = constant "e" : f32[]
%2 = input "target" : f32[8,64,32]
%3 = relu(%0) : f32[8,64,32]
%4 = mul(%3, %3) : f32[8,64,32]
%5 = mul(%4, %3) : f32[8,64,32]
%6 = scale(%5) {factor=0.044715} : f32[8,64,32]
%7 = add(%3, %6) : f32[8,64,32]
%8 = scale(%7) {factor=0.7978845608028654} : f32[8,64,32]
%9 = tanh(%8) : f32[8,64,32]
%10 = add(%9, %1) : f32[8,64,32]
%11 = scale(%3) {factor=0.5} : f32[8,64,32]
%12 = mul(%11, %10) : f32[8,64,32]
%13 = mse(%12, %2) : f32[]
output "loss" = %13
)";

TEST(CanonicalForm, GeluByTanhIsOneCall) {
  Model model = ModelOf(kGeluTanh);
  model.weights["e"] = {1};
  const CanonicalModel canonical = Canonicalize(model, ShownEqual, KeepsNothing);
  ASSERT_EQ(canonical.steps.size(), 1u);
  ASSERT_EQ(canonical.steps[0].calls.size(), 1u);
  const Operator& gelu = canonical.steps[0].calls[0].op;
  EXPECT_EQ(gelu.kind(), OpKind::kGeluTanh);
  EXPECT_EQ(gelu.Number("slope"), 0.7978845608028654);
  EXPECT_EQ(gelu.Number("cubic"), 0.044715);
  // With another number it is another function.
  model.weights["e"] = {0.5f};
  EXPECT_TRUE(Canonicalize(model, ShownEqual, KeepsNothing).steps.empty());
}

TEST(CanonicalForm, WhatIsNoDefinitionStays) {
  const std::string text = kNorm;
  for (const auto& [from, to] :
       std::map<std::string, std::string>{{"reduce_mean(%6) {axes=[2], keepdims=1} : f32[8,64,1]",
                                           "reduce_mean(%6) {axes=[1], keepdims=1} : f32[8,1,32]"},
                                          {"mul(%5, %5)", "mul(%5, %0)"},
                                          {"constant \"e\"", "input \"e\""}}) {
    std::string changed = absl::StrReplaceAll(text, {{from, to}});
    if (to.find("axes=[1]") != std::string::npos) {
      changed = absl::StrReplaceAll(changed, {{"f32[8,64,1]", "f32[8,1,32]"}});
    }
    const Model model = ModelOf(changed);
    EXPECT_TRUE(Canonicalize(model, ShownEqual, KeepsNothing).steps.empty()) << to;
  }
  // Of an epsilon that the model does not have, nothing is known.
  Model model = ModelOf(text);
  model.weights.clear();
  EXPECT_TRUE(Canonicalize(model, ShownEqual, KeepsNothing).steps.empty());
}

TEST(CanonicalForm, WhatOthersUseStays) {
  const Model model = ModelOf(
      absl::StrReplaceAll(kNorm, {{"output \"loss\"", "output \"scale\" = %10\noutput \"loss\""}}));
  EXPECT_TRUE(Canonicalize(model, ShownEqual, KeepsNothing).steps.empty());
}

TEST(CanonicalForm, NamesThatAUserGivesStay) {
  const Model model = ModelOf(kNorm);
  const auto keep = [](const std::string& kept) {
    return [kept](const std::string& name) { return name == kept; };
  };
  EXPECT_TRUE(Canonicalize(model, ShownEqual, keep("net/square")).steps.empty());
  EXPECT_EQ(Canonicalize(model, ShownEqual, keep("net/norm")).steps.size(), 1u);
}

TEST(CanonicalForm, NothingIsStatedThatIsNotShown) {
  const Model model = ModelOf(kNorm);
  const auto never = [](const ConcreteSide&, const ConcreteSide&, const InputNumbers&) {
    return false;
  };
  EXPECT_TRUE(Canonicalize(model, never, KeepsNothing).steps.empty());
  EXPECT_TRUE(Canonicalize(model, nullptr, KeepsNothing).steps.empty());
}

// Attention from its products; keys are turned as exporters turn them. %9 is the scores.
constexpr char kAttentionProducts[] = R"(
%0 = input "q" : f32[8,4,16,8]
%1 = input "k" : f32[8,4,32,8]
%2 = input "v" : f32[8,4,32,8]
%3 = input "mask" : f32[8,1,16,32]
%4 = input "target" : f32[8,4,16,8]
%5 = transpose(%1) {perm=[0,1,3,2]} : f32[8,4,8,32]
%6 = matmul(%0, %5) : f32[8,4,16,32]
%7 = scale(%6) {factor=0.25} : f32[8,4,16,32]
%8 = tanh(%7) : f32[8,4,16,32]
%9 = scale(%8) {factor=4} : f32[8,4,16,32]
%10 = add(%9, %3) : f32[8,4,16,32]
%11 = softmax(%10) {axis=3} : f32[8,4,16,32]
%12 = matmul(%11, %2) : f32[8,4,16,8]
%13 = mse(%12, %4) : f32[]
output "loss" = %13
)";

const Node* AttentionOf(const Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (IsAttention(graph.node(id).op.kind())) return &graph.node(id);
  }
  return nullptr;
}

TEST(CanonicalForm, AttentionFromItsProductsIsOneCall) {
  struct Form {
    const char *add, *softmax;
    OpKind kind;
    double scale;
    size_t inputs;
  };
  for (const Form& form : {Form{"add(%9, %3)", "softmax(%10)", OpKind::kCappedAttention, 0.25, 4},
                           Form{"add(%3, %9)", "softmax(%10)", OpKind::kCappedAttention, 0.25, 4},
                           Form{"add(%9, %3)", "softmax(%9)", OpKind::kCappedAttention, 0.25, 3},
                           Form{"add(%7, %3)", "softmax(%10)", OpKind::kAttention, 0.25, 4},
                           Form{"add(%6, %3)", "softmax(%10)", OpKind::kAttention, 1, 4},
                           Form{"add(%9, %3)", "softmax(%6)", OpKind::kAttention, 1, 3}}) {
    SCOPED_TRACE(absl::StrCat(form.add, " ", form.softmax));
    const Model model = ModelOf(absl::StrReplaceAll(
        kAttentionProducts, {{"add(%9, %3)", form.add}, {"softmax(%10)", form.softmax}}));
    const CanonicalModel canonical = Canonicalize(model, ShownEqual, KeepsNothing);
    // Keys that were turned and are turned back are those that there were.
    EXPECT_EQ(canonical.steps.size(), 2u);
    const Node* const call = AttentionOf(canonical.model.graph);
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->op.kind(), form.kind);
    EXPECT_EQ(call->op.Number("scale"), form.scale);
    EXPECT_EQ(call->op.Int("causal"), 0);
    EXPECT_EQ(call->inputs.size(), form.inputs);
    EXPECT_EQ(canonical.model.graph.node(call->inputs[1].node).op.kind(), OpKind::kInput);
    if (form.kind == OpKind::kCappedAttention) {
      EXPECT_EQ(call->op.Number("cap"), 4);
    }
  }
}

TEST(CanonicalForm, AttentionOfScaledQueriesAndKeysScalesItself) {
  const CanonicalModel canonical = Canonicalize(ModelOf(R"(
%0 = input "q" : f32[8,4,16,8]
%1 = input "k" : f32[8,4,8,32]
%2 = input "v" : f32[8,4,32,8]
%3 = input "target" : f32[8,4,16,8]
%4 = scale(%0) {factor=0.5} : f32[8,4,16,8]
%5 = scale(%1) {factor=0.125} : f32[8,4,8,32]
%6 = matmul(%4, %5) : f32[8,4,16,32]
%7 = softmax(%6) {axis=-1} : f32[8,4,16,32]
%8 = matmul(%7, %2) : f32[8,4,16,8]
%9 = mse(%8, %3) : f32[]
output "loss" = %9
)"),
                                                ShownEqual, KeepsNothing);
  ASSERT_EQ(canonical.steps.size(), 1u);
  const Node* const call = AttentionOf(canonical.model.graph);
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->op.Number("scale"), 0.0625);
}

// As nn.MultiheadAttention is exported that could give its weights, too: batches of samples and
// heads, [position, sample, head, feature] at first. Queries and keys may be of unlike widths.
TEST(CanonicalForm, HeadsThatShareADimWithSamplesGetOneOfTheirOwn) {
  constexpr char kText[] = R"(
%0 = input "q" : f32[16,8,32]
%1 = input "k" : f32[16,8,32]
%2 = input "v" : f32[16,8,32]
%3 = input "target" : f32[16,8,32]
%4 = input "mask" : f32[MASK]
%5 = reshape(%0) {shape=[16,FOLDED]} : f32[16,FOLDED]
%6 = transpose(%5) {perm=[1,0,2]} : f32[BATCH,16,WIDTH]
%7 = scale(%6) {factor=0.5} : f32[BATCH,16,WIDTH]
%8 = reshape(%1) {shape=[16,FOLDED]} : f32[16,FOLDED]
%9 = transpose(%8) {perm=[1,2,0]} : f32[BATCH,WIDTH,16]
%10 = matmul(%7, %9) : f32[BATCH,16,16]
%11 = add(%10, %4) : f32[BATCH,16,16]
%12 = softmax(%11) {axis=-1} : f32[BATCH,16,16]
%13 = reshape(%2) {shape=[16,FOLDED]} : f32[16,FOLDED]
%14 = transpose(%13) {perm=[1,0,2]} : f32[BATCH,16,WIDTH]
%15 = matmul(%12, %14) : f32[BATCH,16,WIDTH]
%16 = transpose(%15) {perm=[1,0,2]} : f32[16,FOLDED]
%17 = reshape(%16) {shape=[16,8,32]} : f32[16,8,32]
%18 = mse(%17, %3) : f32[]
output "loss" = %18
)";
  const auto canonical = [&](const char* mask, const char* folded, const char* batch,
                             const char* width) {
    return Canonicalize(
        ModelOf(absl::StrReplaceAll(
            kText, {{"MASK", mask}, {"FOLDED", folded}, {"BATCH", batch}, {"WIDTH", width}})),
        ShownEqual, KeepsNothing);
  };
  for (const char* mask : {"16,16", "1,16,16", "32,16,16", "32,1,16"}) {
    const CanonicalModel found = canonical(mask, "32,8", "32", "8");
    const Node* const call = AttentionOf(found.model.graph);
    ASSERT_NE(call, nullptr) << mask;
    EXPECT_EQ(call->op.Number("scale"), 0.5);
    EXPECT_EQ(call->outputs[0], SequentialType({8, 4, 16, 8})) << mask;
    EXPECT_EQ(CallsOf(found.model.graph).count("softmax"), 0u) << mask;
  }
  // One head: no reshape says what is batch and what are heads.
  EXPECT_EQ(AttentionOf(canonical("16,16", "8,32", "8", "32").model.graph), nullptr);
}

TEST(CanonicalForm, WhatIsNoAttentionStays) {
  const std::string text = kAttentionProducts;
  for (const auto& [from, to] : std::map<std::string, std::string>{
           {"{axis=3}", "{axis=2}"}, {"output \"loss\"", "output \"p\" = %11\noutput \"loss\""}}) {
    const Model model = ModelOf(absl::StrReplaceAll(text, {{from, to}}));
    EXPECT_TRUE(Canonicalize(model, ShownEqual, KeepsNothing).steps.empty()) << to;
  }
}

// Rotated queries and keys, of which two queries share one; both by one table of angles.
constexpr char kAttention[] = R"(
%0 = input "q" : f32[8,4,16,8]
%1 = input "k" : f32[8,2,16,8]
%2 = input "v" : f32[8,2,16,8]
%3 = constant "cos" : f32[16,4]
%4 = constant "sin" : f32[16,4]
%5 = weight "w" : f32[8,8]
%6 = input "target" : f32[8,4,16,8]
%7 = concat(%3, %3) {axis=1} : f32[16,8]
%8 = concat(%4, %4) {axis=1} : f32[16,8]
%9 = mul(%0, %7) : f32[8,4,16,8]
%10 = split(%0) {axis=3, sizes=[4,4]} : f32[8,4,16,4], f32[8,4,16,4]
%11 = scale(%10.1) {factor=-1} : f32[8,4,16,4]
%12 = concat(%11, %10.0) {axis=3} : f32[8,4,16,8]
%13 = mul(%12, %8) : f32[8,4,16,8]
%14 = add(%9, %13) : f32[8,4,16,8]
%15 = mul(%1, %7) : f32[8,2,16,8]
%16 = split(%1) {axis=3, sizes=[4,4]} : f32[8,2,16,4], f32[8,2,16,4]
%17 = scale(%16.1) {factor=-1} : f32[8,2,16,4]
%18 = concat(%17, %16.0) {axis=3} : f32[8,2,16,8]
%19 = mul(%18, %8) : f32[8,2,16,8]
%20 = add(%15, %19) : f32[8,2,16,8]
%21 = reshape(%20) {shape=[8,2,1,16,8]} : f32[8,2,1,16,8]
%22 = expand(%21) {shape=[8,2,2,16,8]} : f32[8,2,2,16,8]
%23 = reshape(%22) {shape=[8,4,16,8]} : f32[8,4,16,8]
%24 = reshape(%2) {shape=[8,2,1,16,8]} : f32[8,2,1,16,8]
%25 = expand(%24) {shape=[8,2,2,16,8]} : f32[8,2,2,16,8]
%26 = reshape(%25) {shape=[8,4,16,8]} : f32[8,4,16,8]
%27 = attention(%14, %23, %26) {causal=1, scale=0.5} : f32[8,4,16,8]
%28 = matmul(%27, %5) : f32[8,4,16,8]
%29 = mse(%28, %6) : f32[]
output "loss" = %29
)";

TEST(CanonicalForm, RotatedKeysThatQueriesShare) {
  const CanonicalModel canonical = Canonicalize(ModelOf(kAttention), ShownEqual, KeepsNothing);
  EXPECT_EQ(canonical.steps.size(), 3u);
  const std::map<std::string, int> calls = CallsOf(canonical.model.graph);
  EXPECT_EQ(calls.at("rotary"), 2);
  EXPECT_EQ(calls.at("attention"), 1);
  for (const char* gone : {"expand", "reshape", "concat", "mul"}) EXPECT_EQ(calls.count(gone), 0u);
}

// Rows of tokens, each by the matrix of the expert that it is for: as transformers exports a
// mixture.
constexpr char kExperts[] = R"(
%0 = input "x" : f32[16,8]
%1 = input "experts" : i64[16]
%2 = weight "up" : f32[4,32,8]
%3 = weight "down" : f32[4,32,8]
%4 = input "target" : f32[16,8]
%5 = gather(%2, %1) {axis=0} : f32[16,32,8]
%6 = reshape(%0) {shape=[16,8,1]} : f32[16,8,1]
%7 = matmul(%5, %6) : f32[16,32,1]
%8 = reshape(%7) {shape=[16,32]} : f32[16,32]
%9 = swish(%8) : f32[16,32]
%10 = gather(%3, %1) {axis=0} : f32[16,32,8]
%11 = reshape(%9) {shape=[16,1,32]} : f32[16,1,32]
%12 = matmul(%11, %10) : f32[16,1,8]
%13 = reshape(%12) {shape=[16,8]} : f32[16,8]
%14 = mse(%13, %4) : f32[]
output "loss" = %14
)";

TEST(CanonicalForm, RowsByTheMatricesThatTheyLookUp) {
  const CanonicalModel canonical = Canonicalize(ModelOf(kExperts), ShownEqual, KeepsNothing);
  const std::map<std::string, int> calls = CallsOf(canonical.model.graph);
  EXPECT_EQ(calls.at("gather_matmul"), 2);
  EXPECT_EQ(calls.at("transpose"), 1);  // of the first weight
  for (const char* gone : {"gather", "matmul", "reshape"}) EXPECT_EQ(calls.count(gone), 0u) << gone;
}

// Pairs of features, x[:, i, j] as both exporters write it: the dims that are looked up in front.
constexpr char kPairs[] = R"(
%0 = input "x" : f32[16,4,4]
%1 = constant "pairs" : i64[6]
%2 = weight "w" : f32[6,8]
%3 = input "target" : f32[16,8]
%4 = relu(%0) : f32[16,4,4]
%5 = transpose(%4) {perm=[1,2,0]} : f32[4,4,16]
%6 = reshape(%5) {shape=[16,16]} : f32[16,16]
%7 = gather(%6, %1) {axis=0} : f32[6,16]
%8 = transpose(%7) {perm=[1,0]} : f32[16,6]
%9 = matmul(%8, %2) : f32[16,8]
%10 = mse(%9, %3) : f32[]
output "loss" = %10
)";

TEST(CanonicalForm, LookUpsAlongDimsWhereTheyAre) {
  const CanonicalModel canonical = Canonicalize(ModelOf(kPairs), ShownEqual, KeepsNothing);
  const std::map<std::string, int> calls = CallsOf(canonical.model.graph);
  EXPECT_EQ(calls.count("transpose"), 0u);
  EXPECT_EQ(calls.at("gather"), 1);
  EXPECT_EQ(calls.at("reshape"), 1);
}

// The gates of a recurrent layer, put in the exporter's order and back; and the rows of one of two
// tensors that were put together.
constexpr char kParts[] = R"(
%0 = input "x" : f32[16,8]
%1 = weight "gates" : f32[32,8]
%2 = input "target" : f32[4,16,8]
%3 = split(%1) {axis=0, sizes=[8,8,8,8]} : f32[8,8], f32[8,8], f32[8,8], f32[8,8]
%4 = concat(%3, %3.3, %3.1, %3.2) {axis=0} : f32[32,8]
%5 = reshape(%4) {shape=[4,8,8]} : f32[4,8,8]
%6 = split(%5) {axis=0, sizes=[1,1,1,1]} : f32[1,8,8], f32[1,8,8], f32[1,8,8], f32[1,8,8]
%7 = concat(%6, %6.2, %6.3, %6.1) {axis=0} : f32[4,8,8]
%8 = relu(%0) : f32[16,8]
%9 = concat(%8, %0) {axis=0} : f32[32,8]
%10 = split(%9) {axis=0, sizes=[16,16]} : f32[16,8], f32[16,8]
%11 = matmul(%10, %7) : f32[4,16,8]
%12 = mse(%11, %2) : f32[]
output "loss" = %12
)";

TEST(CanonicalForm, PartsThatAreTakenApartAndPutTogether) {
  const CanonicalModel canonical = Canonicalize(ModelOf(kParts), ShownEqual, KeepsNothing);
  const std::map<std::string, int> calls = CallsOf(canonical.model.graph);
  for (const char* gone : {"split", "concat"}) EXPECT_EQ(calls.count(gone), 0u) << gone;
  EXPECT_EQ(calls.at("reshape"), 1);  // of the gates
}

// The steps of a search, which knows the canonical model alone, lead from the original.
TEST(CanonicalForm, PlansAreOfTheOriginalModel) {
  const RuleSet rules = LoadRules(DataPath("rules/default.rules")).value();
  const RuleIndex index(rules);
  const CostModel cost(LoadMachine("dgx_h100", 1, 2).value());
  for (const char* text : {kNorm, kAttention}) {
    const Model model = ModelOf(text);
    OptimizeOptions options;
    options.equal = ShownEqual;
    options.search.budget = 20;
    options.search.cache = false;
    auto result = Optimize(model, index, cost, options);
    ASSERT_TRUE(result.ok()) << result.status();
    Plan& plan = result->plan;
    EXPECT_EQ(plan.model.graph.ToString(), model.graph.ToString());
    EXPECT_EQ(plan.model.weights, model.weights);
    EXPECT_TRUE(plan.steps[0].rule.empty());
    plan.seal = SealOf(plan);
    EXPECT_EQ(CheckPlan(plan, rules), absl::OkStatus());
    const std::map<std::string, int> calls = CallsOf(plan.graph);
    EXPECT_EQ(calls.count("rms_norm") + calls.count("rotary"), 1u);
    // And a plan that says otherwise is not accepted.
    plan.steps[0].calls[0].op = Operator(OpKind::kRelu);
    plan.steps[0].calls[0].inputs.resize(1);
    plan.seal = SealOf(plan);
    EXPECT_THAT(std::string(CheckPlan(plan, rules).message()), HasSubstr("step 0 (no rule)"));
  }
}

}  // namespace
}  // namespace isomer
