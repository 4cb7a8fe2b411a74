// Causal attention of a model in pieces: what is cut, that it computes the same, and that a plan of
// it has a certificate.
#include "optimizer/proposal/causal_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "optimizer/machine/machine.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/grid_mapping.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/support/data_path.h"
#include "tests/models/text_model.h"
#include "verifier/certificate/equal_sides.h"
#include "verifier/plans/plan_checker.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

bool IsShownEqual(const ConcreteSide& source, const ConcreteSide& target,
                  const InputNumbers& numbers) {
  std::set<std::string> lemmas;
  return EqualSides(source, target, &lemmas, numbers).ok();
}

bool KeepsNone(const std::string&) { return false; }

CausalPieces Cut(const Model& model, int64_t num_pieces, int64_t degree) {
  return CutCausalAttention(model, num_pieces, degree, IsShownEqual, KeepsNone);
}

// Two layers, the second of which has a mask besides; 4 query heads share 2 key heads.
constexpr char kLayers[] = R"(
%0 = input "x" : f32[2,8,8]
%1 = weight "wq" : f32[8,8]
%2 = weight "wk" : f32[8,4]
%3 = weight "wv" : f32[8,4]
%4 = input "mask" : f32[8,8]
%5 = input "target" : f32[2,4,8,2]
%6 = matmul(%0, %1) : f32[2,8,8]
%7 = matmul(%0, %2) : f32[2,8,4]
%8 = matmul(%0, %3) : f32[2,8,4]
%9 = reshape(%6) {shape=[2,8,4,2]} : f32[2,8,4,2]
%10 = reshape(%7) {shape=[2,8,2,2]} : f32[2,8,2,2]
%11 = reshape(%8) {shape=[2,8,2,2]} : f32[2,8,2,2]
%12 = transpose(%9) {perm=[0,2,1,3]} : f32[2,4,8,2]
%13 = transpose(%10) {perm=[0,2,1,3]} : f32[2,2,8,2]
%14 = transpose(%11) {perm=[0,2,1,3]} : f32[2,2,8,2]
%15 = attention(%12, %13, %14) {causal=1, scale=0.5} : f32[2,4,8,2]  # layer0
%16 = attention(%15, %13, %14, %4) {causal=1, scale=0.5} : f32[2,4,8,2]  # layer1
%17 = mse(%16, %5) : f32[]
output "loss" = %17
output "y" = %16
)";

// The meanings of the outputs and of all gradients where the leaves hold what a seed draws.
std::vector<std::vector<double>> Results(const Graph& graph) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::map<NodeId, Value<double>> leaves;
  for (int n = 0; n < graph.num_nodes(); ++n) {
    if (!IsLeaf(graph.node(n).op.kind())) continue;
    Array<double> array(graph.node(n).outputs[0].Sizes());
    for (double& x : array.data) x = normal(random);
    leaves[NodeId{n}] = {graph.node(n).outputs[0], {std::move(array)}};
  }
  const Values<double> values = EvaluateGraph<double>(graph, leaves).value();
  std::vector<std::vector<double>> results;
  std::vector<std::vector<Array<double>>> seeds;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    const Value<double>& value = values[output.tensor.node.value][output.tensor.output];
    results.push_back(Meaning(value)[0].data);
    seeds.push_back({Array<double>(value.type.Sizes(), 1)});
  }
  const auto gradients = EvaluateGradients<double>(graph, values, seeds).value();
  for (const auto& [leaf, gradient] : gradients) results.push_back(gradient[0].data);
  return results;
}

void ExpectSameResults(const Graph& model, const CausalPieces& cut) {
  const auto expected = Results(model), found = Results(cut.graph);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t r = 0; r < expected.size(); ++r) {
    ASSERT_EQ(found[r].size(), expected[r].size());
    for (size_t i = 0; i < expected[r].size(); ++i) {
      EXPECT_NEAR(found[r][i], expected[r][i], 1e-9 * (1 + std::abs(expected[r][i]))) << r;
    }
  }
}

TEST(CausalPieces, OfAllLayersAreCut) {
  const Model model = TextModel(kLayers);
  for (const int64_t num_pieces : {2, 4, 8}) {
    const CausalPieces cut = Cut(model, num_pieces, 1);
    EXPECT_THAT(cut.pieces, ElementsAre(SizeIs(num_pieces), SizeIs(num_pieces)));
    EXPECT_THAT(cut.steps, SizeIs(2));
    ASSERT_TRUE(cut.graph.Validate().ok());
    for (const auto& pieces : cut.pieces) {
      for (size_t p = 0; p < pieces.size(); ++p) {
        const Node& piece = cut.graph.node(pieces[p]);
        const int64_t queries = 8 / num_pieces, keys = queries * static_cast<int64_t>(p + 1);
        EXPECT_EQ(cut.graph.type(piece.inputs[0]).Sizes()[2], queries);
        EXPECT_EQ(cut.graph.type(piece.inputs[1]).Sizes()[2], keys);
        EXPECT_EQ(cut.graph.type(piece.inputs[2]).Sizes()[2], keys);
      }
    }
    ExpectSameResults(model.graph, cut);
  }
}

TEST(CausalPieces, AreNamedAfterTheCall) {
  const CausalPieces cut = Cut(TextModel(kLayers), 2, 4);
  ASSERT_THAT(cut.pieces, SizeIs(2));
  EXPECT_EQ(cut.graph.node(cut.pieces[0][0]).name, "layer0/piece0");
  EXPECT_EQ(cut.graph.node(cut.pieces[1][1]).name, "layer1/piece1");
}

TEST(CausalPieces, OtherAttentionStays) {
  const Model model = TextModel(kLayers);
  // Parts of two queries are not cut into four; and what a user speaks of, or nobody shows, stays.
  EXPECT_THAT(Cut(model, 2, 8).pieces, IsEmpty());
  EXPECT_THAT(Cut(model, 3, 1).pieces, IsEmpty());
  EXPECT_THAT(CutCausalAttention(model, 2, 1, IsShownEqual,
                                 [](const std::string& name) { return name == "layer1"; })
                  .pieces,
              SizeIs(1));
  const auto nobody = [](const ConcreteSide&, const ConcreteSide&, const InputNumbers&) {
    return false;
  };
  const CausalPieces uncut = CutCausalAttention(model, 2, 1, nobody, KeepsNone);
  EXPECT_THAT(uncut.pieces, IsEmpty());
  EXPECT_EQ(uncut.graph.ToString(), model.graph.ToString());
  const std::string not_causal = absl::StrReplaceAll(kLayers, {{"causal=1", "causal=0"}});
  EXPECT_THAT(Cut(TextModel(not_causal), 2, 1).pieces, IsEmpty());
}

// 8 queries behind `past` keys.
std::string OneCall(const std::string& op, int64_t past, const std::string& attributes,
                    const std::string& fourth) {
  const std::string keys = absl::StrCat("[2,2,", 8 + past, ",2]");
  return absl::StrCat("%0 = input \"q\" : f32[2,4,8,2]\n%1 = input \"k\" : f32", keys,
                      "\n%2 = input \"v\" : f32", keys, "\n",
                      fourth.empty() ? "%3 = input \"unused\" : f32[]\n"
                                     : absl::StrCat("%3 = input \"fourth\" : f32", fourth, "\n"),
                      "%4 = ", op, "(%0, %1, %2", fourth.empty() ? "" : ", %3", ") {", attributes,
                      "} : f32[2,4,8,2]\noutput \"y\" = %4\n");
}

TEST(CausalPieces, OfEveryKind) {
  for (const int64_t past : {0, 3}) {
    for (const std::string& text :
         {OneCall("attention", past, "causal=1, scale=0.5", ""),
          OneCall("attention", past, "causal=1, scale=0.5", absl::StrCat("[2,1,1,", 8 + past, "]")),
          OneCall("capped_attention", past, "cap=2, causal=1, scale=0.5",
                  absl::StrCat("[8,", 8 + past, "]")),
          OneCall("sink_attention", past, "causal=1, scale=0.5, window=0", "[4]"),
          OneCall("sink_attention", past, "causal=1, scale=0.5, window=3", "[4]")}) {
      const Model model = TextModel(text);
      const CausalPieces cut = Cut(model, 2, 2);
      EXPECT_THAT(cut.pieces, SizeIs(1)) << text;
      ExpectSameResults(model.graph, cut);
    }
  }
}

// Late queries leave early keys alone that no window of theirs reaches.
TEST(CausalPieces, KeysBehindAWindowAreCutOff) {
  const CausalPieces cut =
      Cut(TextModel(OneCall("sink_attention", 0, "causal=1, scale=0.5, window=3", "[4]")), 2, 1);
  ASSERT_THAT(cut.pieces, ElementsAre(SizeIs(2)));
  const Node& late = cut.graph.node(cut.pieces[0][1]);
  EXPECT_EQ(cut.graph.type(late.inputs[1]).Sizes()[2], 6);  // Query 4 sees keys 2, 3 and 4.
}

TEST(CausalPieces, PlansOfThemAreCertified) {
  const RuleSet rules = LoadRules(DataPath("rules/default.rules")).value();
  const RuleIndex index(rules);
  const CostModel cost(LoadMachine("dgx_h100", 1, 2).value());
  Model model = TextModel(kLayers);
  model.loss = "loss";
  const CausalPieces cut = Cut(model, 2, 2);
  for (const GridDegrees& degrees : std::vector<GridDegrees>{{}, {.context = 2}}) {
    CostTables tables(index, cost, {.training = true});
    absl::StatusOr<MappedModel> mapped = MapGrid(cut.graph, degrees, &tables);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    mapped->steps.insert(mapped->steps.begin(), cut.steps.begin(), cut.steps.end());
    absl::StatusOr<Plan> plan = DerivePlan(model, *mapped, /*training=*/true, &tables);
    ASSERT_TRUE(plan.ok()) << plan.status();
    plan->seal = SealOf(*plan);
    EXPECT_EQ(CheckPlan(*plan, rules), absl::OkStatus());
    // Early queries on keys that begin one place later: all types are as they were.
    Plan changed = *plan;
    for (AddedCall& call : changed.steps[0].calls) {
      if (call.op.kind() != OpKind::kSlice || call.inputs[0].node.value < 13) continue;
      std::vector<int64_t> starts = call.op.Ints("starts");
      starts[2] = 1;
      call.op.Set("starts", starts);
    }
    changed.seal = SealOf(changed);
    EXPECT_THAT(std::string(CheckPlan(changed, rules).message()), HasSubstr("step 0 (no rule)"));
  }
}

}  // namespace
}  // namespace isomer
