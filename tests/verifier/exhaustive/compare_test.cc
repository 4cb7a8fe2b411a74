#include "verifier/exhaustive/compare.h"

#include <gtest/gtest.h>

#include "verifier/exhaustive/call_space.h"
#include "verifier/exhaustive/check_operator.h"

namespace isomer {
namespace {

Operator Op(const std::string& text) { return *ParseOperator(text); }

std::vector<TensorType> Types(const std::vector<std::string>& texts) {
  std::vector<TensorType> types;
  for (const std::string& text : texts) types.push_back(*ParseTensorType(text));
  return types;
}

TEST(Pieces, OfCallsWithHalosAndPartialSums) {
  for (const auto& [op, types] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"matmul", {"f32[4:2,2]", "f32[2,3] c2"}},
           {"matmul", {"f32[4,4:2]", "f32[4:2,3]"}},
           {"conv1d(stride=[1],padding=[1,1],dilation=[1])", {"f32[1,2,4:2]", "f32[2,2,3] c2"}},
           {"embedding", {"f32[4:2,2]", "i64[3] c2"}}}) {
    const auto comparison = ComparePieces(Op(op), Types(types));
    ASSERT_TRUE(comparison.ok()) << op << ": " << comparison.status();
    EXPECT_EQ(comparison->agreement, Agreement::kSymbolic) << op << comparison->difference;
  }
}

// Inference does not partition what a task needs as a whole; here it is made to.
TEST(Pieces, OfADimThatTasksNeedAsAWholeAreRefused) {
  const std::vector<TensorType> whole = Types({"f32[2,4]"});
  for (const char* op : {"softmax", "log_softmax"}) {
    const Operator call = Op(op);
    Sharding sharding = *InferSharding(call, whole);
    for (size_t v = 0; v < sharding.declaration.dims.size(); ++v) {
      if (sharding.declaration.LeadOfOutputDim(0, 1) == static_cast<int>(v)) {
        sharding.degrees[v] = 2;
      }
    }
    sharding.outputs[0].dims[1].degree = 2;
    const auto comparison = ComparePieces(call, Types({"f32[2,4:2]"}), sharding, 1);
    ASSERT_TRUE(comparison.ok()) << op << ": " << comparison.status();
    EXPECT_EQ(comparison->agreement, Agreement::kNone) << op;
  }
}

TEST(Pieces, PartialSumsOfWhatIsNoSumAreRefused) {
  Sharding sharding = *InferSharding(Op("reduce_max(axes=[0],keepdims=0)"), Types({"f32[4]"}));
  sharding.declaration.dims[0].kind = DimKind::kSum;
  sharding.degrees[0] = 2;
  sharding.outputs[0].partials = 2;
  const auto comparison =
      ComparePieces(Op("reduce_max(axes=[0],keepdims=0)"), Types({"f32[4:2]"}), sharding, 1);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->agreement, Agreement::kNone);
}

TEST(Linear, IsToldFromWhatIsNot) {
  EXPECT_EQ(CompareLinear(Op("matmul"), Types({"f32[2,3]", "f32[3,2]"}), {true, false})->agreement,
            Agreement::kSymbolic);
  EXPECT_EQ(CompareLinear(Op("matmul"), Types({"f32[2,3]", "f32[3,2]"}), {true, true})->agreement,
            Agreement::kNone);
  EXPECT_EQ(CompareLinear(Op("relu"), Types({"f32[2]"}), {true})->agreement, Agreement::kNone);
}

TEST(Graphs, OfLookUpsTakeTheSameIndices) {
  auto graph = [](bool cut_first) {
    Graph g;
    const TensorRef table = g.AddInput("x0", SequentialType({4, 4}));
    const TensorRef indices = g.AddInput("x1", SequentialType({3}, DataType::kInt64));
    auto cut = [&](TensorRef x) {
      return *g.AddOp(*ParseOperator("slice(starts=[0,0],sizes=[" +
                                     std::to_string(cut_first ? 4 : 3) + ",2],steps=[1,1])"),
                      {x});
    };
    const TensorRef looked_up =
        *g.AddOp(Operator(OpKind::kEmbedding), {cut_first ? cut(table) : table, indices});
    g.AddOutput("y0", cut_first ? looked_up : cut(looked_up));
    return g;
  };
  const auto comparison = CompareGraphs(graph(true), graph(false));
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->agreement, Agreement::kSymbolic) << comparison->difference;
}

TEST(CallSpaces, HaveSmallCallsOfEveryDeclaredOperator) {
  for (OpKind kind : AllOpKinds()) {
    if (IsLeaf(kind) || IsParallel(kind)) continue;
    const CallSpace space(kind);
    int typed = 0;
    for (int64_t place = 0; place < std::min<int64_t>(space.size(), 60); ++place) {
      const std::optional<SmallCall> call = space.At(space.Spread(place));
      typed += call.has_value() ? 1 : 0;
    }
    EXPECT_GE(typed, 3) << OpName(kind);
  }
}

// A sample of what `isomer-verify lemmas --exhaustive` goes through.
TEST(CheckOperator, PiecesAndLinearityOfEveryOperator) {
  constexpr int64_t kPoints = 5000;
  int64_t instances = 0;
  for (OpKind kind : AllOpKinds()) {
    for (const auto& [id, tally] : CheckOperator(kind, kPoints)) {
      instances += tally.instances;
      for (const std::string& line : tally.disagreements) ADD_FAILURE() << id << ": " << line;
    }
  }
  EXPECT_GT(instances, 3000);
}

}  // namespace
}  // namespace isomer
