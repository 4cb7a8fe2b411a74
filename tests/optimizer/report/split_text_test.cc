#include "optimizer/report/split_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/report/folded_name.h"
#include "tests/optimizer/report/report_scenario.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

class SplitTexts : public ReportScenario {
 protected:
  // By the operator and its folded name.
  std::map<std::string, std::string> Texts() const {
    const MappedGraph& mapped = result_.lowered.mapped;
    std::map<std::string, std::string> texts;
    for (int id = 0; id < mapped.graph.num_nodes(); ++id) {
      const Node& node = mapped.graph.node(id);
      if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind())) continue;
      const auto split = SplitOf(mapped, {id}, cost_->machine());
      EXPECT_TRUE(split.ok()) << split.status();
      texts[absl::StrCat(node.op.name(), " ", FoldedName(node.name))] = split->ToString();
    }
    return texts;
  }
};

// The first product of a block is split by columns, the second by rows, as in Megatron-LM.
TEST_F(SplitTexts, ProductsWithWeightsAreColumnOrRowParallel) {
  MakePipeline();
  int columns = 0, rows = 0;
  for (const auto& [what, text] : Texts()) {
    const bool is_product = what.rfind("matmul", 0) == 0 || what.rfind("linear", 0) == 0;
    columns += text.find("(column-parallel)") != std::string::npos ? 1 : 0;
    rows += text.find("(row-parallel)") != std::string::npos ? 1 : 0;
    if (!is_product) {
      EXPECT_THAT(text, Not(HasSubstr("-parallel"))) << what;
    }
  }
  EXPECT_GE(columns, 1);
  EXPECT_GE(rows, 1);
}

// Scores of attention, of two activations, are a product with no weight.
TEST(SplitText, AProductOfActivationsIsNeither) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({4, 6}));
  const TensorRef y = graph.AddInput("y", SequentialType({6, 8}));
  const TensorRef w = graph.AddWeight("w", SequentialType({6, 8}));
  const auto split_of = [&](TensorRef right, int64_t axis) {
    Graph split = graph;
    const Operator partition(OpKind::kPartition, {{"axis", axis}, {"degree", int64_t{2}}});
    const Operator replicate(OpKind::kReplicate, {{"degree", int64_t{2}}});
    const TensorRef part = *split.AddOp(partition, {right});
    const NodeId product = *split.Add(OpKind::kMatMul, {*split.AddOp(replicate, {x}), part});
    MappedGraph mapped{.graph = split, .views = {}};
    for (int id = 0; id < split.num_nodes(); ++id) {
      mapped.views.push_back(RowMajorView(split.node(id).outputs[0]));
    }
    return SplitOf(mapped, product, TestMachine(1, 2))->ToString();
  };
  EXPECT_THAT(split_of(w, 1), HasSubstr("columns over 2 devices of a node (column-parallel)"));
  EXPECT_THAT(split_of(y, 1), HasSubstr("columns over 2 devices of a node"));
  EXPECT_THAT(split_of(y, 1), Not(HasSubstr("parallel")));
}

TEST(SplitText, StripesOfASequence) {
  const auto text_of = [](int64_t causal) {
    Graph graph;
    std::vector<TensorRef> operands;
    for (const char* name : {"q", "k", "v"}) {
      operands.push_back(graph.AddInput(name, SequentialType({1, 2, 8, 4})));
    }
    const Operator partition(OpKind::kPartition, {{"axis", int64_t{2}}, {"degree", int64_t{2}}});
    const Operator replicate(OpKind::kReplicate, {{"degree", int64_t{2}}});
    for (size_t i = 0; i < operands.size(); ++i) {
      operands[i] = *graph.AddOp(i == 0 ? partition : replicate, {operands[i]});
    }
    const NodeId id =
        *graph.Add({OpKind::kAttention, {{"causal", causal}, {"scale", 0.5}}}, operands);
    MappedGraph mapped{.graph = graph, .views = {}};
    for (int n = 0; n < graph.num_nodes(); ++n) {
      mapped.views.push_back(RowMajorView(graph.node({n}).outputs[0]));
    }
    return SplitOf(mapped, id, TestMachine(1, 2))->ToString();
  };
  EXPECT_EQ(text_of(2), "dim 2 over 2 devices of a node (in stripes)");
  EXPECT_EQ(text_of(1), "dim 2 over 2 devices of a node");
}

}  // namespace
}  // namespace isomer
