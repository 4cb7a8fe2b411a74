// Chains of layouts are one map, whatever they are, and the map is few calls, which are shown
// equal.
#include "optimizer/canonical/layout_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/canonical/canonical_form.h"
#include "optimizer/canonical/places.h"
#include "optimizer/machine/machine.h"
#include "optimizer/search/optimizer.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/nested_parts.h"
#include "pcg/support/data_path.h"
#include "verifier/certificate/equal_sides.h"
#include "verifier/plans/plan_checker.h"

namespace isomer {
namespace {

bool LayoutsShownEqual(const ConcreteSide& source, const ConcreteSide& target,
                       const InputNumbers& numbers) {
  std::set<std::string> lemmas;
  return EqualSides(source, target, &lemmas, numbers).ok();
}

bool LayoutKeepsNothing(const std::string&) { return false; }

std::map<std::string, int> CallsOfLayout(const Graph& graph) {
  std::map<std::string, int> calls;
  for (NodeId id : graph.TopologicalOrder()) ++calls[std::string(graph.node(id).op.name())];
  return calls;
}

Model LayoutModelOf(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return {"net", *std::move(graph), {}, "loss"};
}

// One random call of layout after `sizes`, most with sizes that have much in common.
LayoutCall RandomCall(const std::vector<int64_t>& sizes, std::mt19937* random) {
  const auto below = [&](int n) { return static_cast<int>((*random)() % n); };
  const int rank = static_cast<int>(sizes.size());
  switch (below(3)) {
    case 0: {
      std::vector<int64_t> perm(rank);
      std::iota(perm.begin(), perm.end(), 0);
      std::shuffle(perm.begin(), perm.end(), *random);
      return {{OpKind::kTranspose, {{"perm", perm}}}, 0};
    }
    case 1: {
      // Factors of the elements, in order, some of them joined, and a dim of 1 now and then.
      std::vector<int64_t> shape;
      for (int64_t size : sizes) {
        for (int64_t factor : {2, 3, 5, 7}) {
          for (; size % factor == 0; size /= factor) {
            if (!shape.empty() && below(2) == 0) {
              shape.back() *= factor;
            } else {
              shape.push_back(factor);
            }
          }
        }
      }
      if (shape.empty() || below(4) == 0) shape.insert(shape.begin() + below(shape.size() + 1), 1);
      return {{OpKind::kReshape, {{"shape", shape}}}, 0};
    }
    default: {
      const int axis = below(rank);
      const int64_t size = sizes[axis], pieces = size % 2 == 0 ? 2 : size % 3 == 0 ? 3 : 1;
      std::vector<Extent> parts(pieces, size / pieces);
      if (size > 2 && below(4) == 0) parts = {1, size - 1};
      return {{OpKind::kSplit, {{"axis", int64_t{axis}}, {"sizes", parts}}},
              below(static_cast<int>(parts.size()))};
    }
  }
}

struct Chain {
  Graph graph;
  ConcreteSide side;
};

Chain ChainOf(const std::vector<int64_t>& base, const std::vector<LayoutCall>& calls) {
  Chain chain;
  TensorRef tensor = chain.graph.AddInput("x", SequentialType(base, DataType::kFloat32));
  PatternRef ref = PatternRef::Input(0);
  for (const LayoutCall& call : calls) {
    Operator op = call.op;
    EXPECT_TRUE(NormalizeAttributes(&op).ok());
    chain.side.calls.push_back({op, {ref}, {chain.graph.type(tensor).GlobalShape()}});
    ref = PatternRef::Node(static_cast<int>(chain.side.calls.size()) - 1, call.output);
    tensor = chain.graph.AddOp(op, {tensor}).value();
    tensor.output = call.output;
  }
  chain.graph.AddOutput("y", tensor);
  chain.side.outputs = {ref};
  return chain;
}

std::string TextOf(const std::vector<int64_t>& base, const std::vector<LayoutCall>& calls) {
  std::string text = absl::StrCat("[", absl::StrJoin(base, ","), "]");
  for (const LayoutCall& call : calls) {
    absl::StrAppend(&text, " ", call.op.ToString(), ".", call.output);
  }
  return text;
}

// Of the graph's output, where those of its input are numbered.
std::vector<double> ElementsOf(const Graph& graph) {
  std::vector<int64_t> sizes;
  for (const Extent& size : graph.node(0).outputs[0].GlobalShape()) sizes.push_back(size.value());
  Array<double> x(sizes);
  std::iota(x.data.begin(), x.data.end(), 0.0);
  const auto values =
      EvaluateGraph<double>(graph, {{NodeId{0}, Value<double>{graph.node(0).outputs[0], {x}}}});
  EXPECT_TRUE(values.ok()) << values.status();
  const TensorRef out = graph.outputs()[0].tensor;
  return Meaning((*values)[out.node.value][out.output])[0].data;
}

TEST(Places, AnyChainIsFewCallsThatAreShownEqual) {
  std::mt19937 random(7);
  int mapped = 0, shorter = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<int64_t> base;
    for (int64_t size : {2, 6, 12, 4, 3}) {
      if (random() % 2 == 0) base.push_back(size);
    }
    if (base.empty()) base = {6};
    std::vector<LayoutCall> calls;
    std::optional<Places> places = Places::Of(base);
    while (places.has_value() && calls.size() < size_t(1 + round % 6)) {
      calls.push_back(RandomCall(places->Sizes(), &random));
      Operator& op = calls.back().op;
      ASSERT_TRUE(NormalizeAttributes(&op).ok());
      places = PlacesAfter(op, calls.back().output, *places);
    }
    if (!places.has_value()) continue;
    ++mapped;
    const std::vector<LayoutCall> few = CallsOf(*places);
    shorter += few.size() < calls.size();
    const std::string text = absl::StrCat(TextOf(base, calls), " = ", TextOf(base, few));
    const Chain source = ChainOf(base, calls), target = ChainOf(base, few);
    ASSERT_EQ(ElementsOf(source.graph), ElementsOf(target.graph)) << text;
    std::set<std::string> lemmas;
    if (few.empty()) continue;  // a side without a call has no output to speak of
    ASSERT_EQ(EqualSides(source.side, target.side, &lemmas).status(), absl::OkStatus()) << text;
    // Rows in their order, and what is left, are the same map.
    const RowsApart apart = WithRowsInOrder(*places);
    std::vector<LayoutCall> both = CallsOf(apart.rows);
    for (const LayoutCall& call : CallsOf(apart.rest)) both.push_back(call);
    ASSERT_EQ(ElementsOf(source.graph), ElementsOf(ChainOf(base, both).graph)) << text;
  }
  EXPECT_GT(mapped, 2000);
  EXPECT_GT(shorter, 1000);
}

// Rules split a Split of two to four parts.
TEST(Places, OneOfManyPartsIsReachedBySplitsOfFew) {
  for (const auto& [parts, levels] :
       std::map<int64_t, size_t>{{4, 1}, {5, 2}, {6, 2}, {16, 2}, {17, 3}, {40, 3}, {64, 3}}) {
    const std::vector<int64_t> base = {2, 3 * parts};
    for (int64_t part = 0; part < parts; ++part) {
      LayoutCall split{
          {OpKind::kSplit, {{"axis", int64_t{1}}, {"sizes", std::vector<Extent>(parts, 3)}}},
          static_cast<int>(part)};
      const auto places = PlacesAfter(split.op, split.output, Places::Of(base));
      ASSERT_TRUE(places.has_value());
      const std::vector<LayoutCall> calls = CallsOf(*places);
      EXPECT_LE(calls.size(), levels) << part << " of " << parts;
      for (const LayoutCall& call : calls) {
        EXPECT_LE(call.op.Extents("sizes").size(), kMostParts);
      }
      EXPECT_EQ(ElementsOf(ChainOf(base, calls).graph), ElementsOf(ChainOf(base, {split}).graph))
          << part << " of " << parts;
    }
  }
}

// In branches that are as long, where they can be.
TEST(NestedParts, GroupsAreOfAsManyParts) {
  for (const auto& [parts, groups] :
       std::map<size_t, std::vector<size_t>>{{3, {1, 1, 1}},
                                             {5, {4, 1}},
                                             {6, {3, 3}},
                                             {9, {3, 3, 3}},
                                             {32, {16, 16}},
                                             {40, {10, 10, 10, 10}}}) {
    std::vector<size_t> sizes;
    for (const auto& group : GroupsOfParts(std::vector<int64_t>(parts, 1))) {
      sizes.push_back(group.size());
    }
    EXPECT_EQ(sizes, groups) << parts;
  }
}

// Two random chains of one shape are shown equal only if they are.
TEST(Places, OtherChainsAreNotShownEqual) {
  std::mt19937 random(11);
  std::map<std::string, std::vector<std::pair<std::vector<LayoutCall>, std::vector<double>>>> seen;
  const std::vector<int64_t> base = {4, 6, 4};
  int equal = 0, other = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<LayoutCall> calls;
    std::optional<Places> places = Places::Of(base);
    while (places.has_value() && calls.size() < size_t(1 + round % 4)) {
      calls.push_back(RandomCall(places->Sizes(), &random));
      ASSERT_TRUE(NormalizeAttributes(&calls.back().op).ok());
      places = PlacesAfter(calls.back().op, calls.back().output, *places);
    }
    if (!places.has_value()) continue;
    const Chain chain = ChainOf(base, calls);
    const std::vector<double> elements = ElementsOf(chain.graph);
    auto& alike = seen[absl::StrJoin(places->Sizes(), ",")];
    for (const auto& [before, before_elements] : alike) {
      std::set<std::string> lemmas;
      const bool is_shown = EqualSides(chain.side, ChainOf(base, before).side, &lemmas).ok();
      EXPECT_EQ(is_shown, elements == before_elements)
          << TextOf(base, calls) << " and " << TextOf(base, before);
      ++(is_shown ? equal : other);
    }
    alike.push_back({calls, elements});
  }
  EXPECT_GT(equal, 50);
  EXPECT_GT(other, 50);
}

// A layer as nn.TransformerEncoderLayer is exported: 8 samples of 16 positions, 4 heads of 8.
constexpr char kPacked[] = R"(
%0 = input "x" : f32[8,16,32]
%1 = weight "in" : f32[32,96]
%2 = weight "b" : f32[96]
%3 = weight "out" : f32[32,32]
%4 = input "target" : f32[8,16,32]
%5 = transpose(%0) {perm=[1,0,2]} : f32[16,8,32]
%6 = matmul(%5, %1) : f32[16,8,96]
%7 = add(%6, %2) : f32[16,8,96]  # packed
%8 = reshape(%7) {shape=[1,16,8,3,32]} : f32[1,16,8,3,32]
%9 = transpose(%8) {perm=[3,1,2,0,4]} : f32[3,16,8,1,32]
%10 = reshape(%9) {shape=[3,16,8,32]} : f32[3,16,8,32]
%11 = split(%10) {axis=0, sizes=[1,2]} : f32[1,16,8,32], f32[2,16,8,32]
%12 = reshape(%11) {shape=[16,32,8]} : f32[16,32,8]
%13 = transpose(%12) {perm=[1,0,2]} : f32[32,16,8]
%14 = reshape(%13) {shape=[8,4,16,8]} : f32[8,4,16,8]
%15 = split(%10) {axis=0, sizes=[1,1,1]} : f32[1,16,8,32], f32[1,16,8,32], f32[1,16,8,32]
%16 = reshape(%15.1) {shape=[16,32,8]} : f32[16,32,8]
%17 = transpose(%16) {perm=[1,0,2]} : f32[32,16,8]
%18 = reshape(%17) {shape=[8,4,16,8]} : f32[8,4,16,8]
%19 = reshape(%15.2) {shape=[16,32,8]} : f32[16,32,8]
%20 = transpose(%19) {perm=[1,0,2]} : f32[32,16,8]
%21 = reshape(%20) {shape=[8,4,16,8]} : f32[8,4,16,8]
%22 = attention(%14, %18, %21) {causal=0, scale=0.5} : f32[8,4,16,8]
%23 = transpose(%22) {perm=[2,0,1,3]} : f32[16,8,4,8]
%24 = reshape(%23) {shape=[128,32]} : f32[128,32]  # flat
%25 = matmul(%24, %3) : f32[128,32]
%26 = reshape(%25) {shape=[16,8,32]} : f32[16,8,32]
%27 = transpose(%26) {perm=[1,0,2]} : f32[8,16,32]
%28 = add(%0, %27) : f32[8,16,32]
%29 = mse(%28, %4) : f32[]
output "loss" = %29
)";

TEST(LayoutForm, PackedQueriesKeysAndValuesAreOneSplit) {
  const CanonicalModel canonical =
      Canonicalize(LayoutModelOf(kPacked), LayoutsShownEqual, LayoutKeepsNothing);
  const std::map<std::string, int> calls = CallsOfLayout(canonical.model.graph);
  EXPECT_EQ(calls.at("split"), 1);
  EXPECT_EQ(calls.at("reshape"), 4);    // of queries, keys, values, and heads put together
  EXPECT_EQ(calls.at("transpose"), 4);  // likewise
  for (int id = 0; id < canonical.model.graph.num_nodes(); ++id) {
    const Node& node = canonical.model.graph.node(id);
    if (node.op.kind() != OpKind::kMatMul) continue;
    EXPECT_EQ(node.outputs[0].GlobalShape()[0], Extent(8)) << "samples first";
  }
}

TEST(LayoutForm, NamesThatAUserGivesStay) {
  for (const std::string kept : {"packed", "flat"}) {
    const CanonicalModel canonical =
        Canonicalize(LayoutModelOf(kPacked), LayoutsShownEqual,
                     [&](const std::string& name) { return name == kept; });
    int found = 0;
    for (int id = 0; id < canonical.model.graph.num_nodes(); ++id) {
      const Node& node = canonical.model.graph.node(id);
      if (node.name != kept) continue;
      ++found;
      EXPECT_EQ(node.outputs[0].GlobalShape()[0], Extent(kept == "flat" ? 128 : 16));
    }
    EXPECT_EQ(found, 1) << kept;
  }
}

TEST(LayoutForm, ShortChainsStay) {
  const Model model = LayoutModelOf(R"(
%0 = input "x" : f32[8,16,32]
%1 = weight "w" : f32[16,4]
%2 = input "target" : f32[8,32,4]
%3 = transpose(%0) {perm=[0,2,1]} : f32[8,32,16]
%4 = matmul(%3, %1) : f32[8,32,4]
%5 = mse(%4, %2) : f32[]
output "loss" = %5
)");
  EXPECT_TRUE(Canonicalize(model, LayoutsShownEqual, LayoutKeepsNothing).steps.empty());
}

TEST(LayoutForm, PlansSaySoAndAreAccepted) {
  const RuleSet rules = LoadRules(DataPath("rules/default.rules")).value();
  const RuleIndex index(rules);
  const CostModel cost(LoadMachine("dgx_h100", 1, 2).value());
  const Model model = LayoutModelOf(kPacked);
  OptimizeOptions options;
  options.equal = LayoutsShownEqual;
  options.search.budget = 20;
  options.search.cache = false;
  auto result = Optimize(model, index, cost, options);
  ASSERT_TRUE(result.ok()) << result.status();
  Plan& plan = result->plan;
  EXPECT_GT(plan.steps[0].calls.size(), 1u);
  plan.seal = SealOf(plan);
  EXPECT_EQ(CheckPlan(plan, rules), absl::OkStatus());
  // A transposition that is another one.
  for (AddedCall& call : plan.steps[0].calls) {
    if (call.op.kind() != OpKind::kTranspose) continue;
    std::vector<int64_t> perm = call.op.Ints("perm");
    std::swap(perm[0], perm[1]);
    call.op.Set("perm", perm);
  }
  plan.seal = SealOf(plan);
  EXPECT_FALSE(CheckPlan(plan, rules).ok());
}

}  // namespace
}  // namespace isomer
