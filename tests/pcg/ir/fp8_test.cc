#include "pcg/ir/fp8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pcg/ir/pcg.pb.h"
#include "pcg/ir/precision.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "tests/pcg/ir/fp8_plan.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The scalings of all products, in order.
std::vector<Fp8Scaling> ScalingsOf(const Graph& graph) {
  std::vector<Fp8Scaling> scalings;
  for (NodeId id : graph.TopologicalOrder()) {
    const Operator& op = graph.node(id).op;
    if (op.kind() == OpKind::kMatMul) scalings.push_back(Fp8ScalingOf(op));
  }
  return scalings;
}

TEST(Fp8, ProductsWithWeightsAreKnownByTheirWeights) {
  const Graph graph = ChainOfProducts();
  EXPECT_THAT(WeightsOfProducts(graph), ElementsAre("a", "b", "c"));
  EXPECT_THAT(WeightsOfFirstAndLastProducts(graph), ElementsAre("a", "c"));
}

TEST(Fp8, AreTheProductsWithWeightsThatAreNotKept) {
  constexpr Fp8Scaling kNone = Fp8Scaling::kNone, kRow = Fp8Scaling::kRow;
  const auto all = LowerPlan(PlanInFp8({}));
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(ScalingsOf(all->mapped.graph), ElementsAre(kRow, kRow, kNone, kRow));
  const auto some = LowerPlan(PlanInFp8({"a", "c"}));
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_THAT(ScalingsOf(some->mapped.graph), ElementsAre(kNone, kRow, kNone, kNone));
  Plan low = PlanInFp8({});
  low.fp8 = {};
  const auto none = LowerPlan(low);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(ScalingsOf(none->mapped.graph), ElementsAre(kNone, kNone, kNone, kNone));
}

TEST(Fp8, IsOfBFloat16Alone) {
  Plan plan = PlanInFp8({});
  for (DataType dtype : {DataType::kFloat32, DataType::kFloat16}) {
    plan.precision = dtype;
    EXPECT_THAT(std::string(LowerPlan(plan).status().message()), HasSubstr("in bfloat16"));
  }
}

TEST(Fp8, SchedulesOfParallelPlansAreRight) {
  for (const ParallelCase& c : ParallelCases()) {
    SCOPED_TRACE(c.name);
    Plan plan;
    plan.model.graph = Parsed(c.sequential);
    plan.graph = Parsed(c.parallel);
    plan.views = ViewsOf(plan.graph, c.strides);
    plan.num_devices = c.num_devices;
    plan.model.loss = "loss";
    plan.precision = DataType::kBFloat16;
    plan.fp8.scaling = Fp8Scaling::kBlock;
    const auto lowered = LowerPlan(plan);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(CheckLowered(plan, *lowered), absl::OkStatus());
    EXPECT_EQ(WeightsOfProducts(plan.graph), WeightsOfProducts(plan.model.graph));
  }
}

TEST(Fp8, PlansSayWhichProductsAndModelsCannot) {
  const Plan plan = PlanInFp8({"a", "c"});
  proto::PlanProto message;
  ToProto(plan, &message);
  const auto read = FromProto(message);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->fp8, plan.fp8);
  EXPECT_EQ(PrecisionName(*read), "fp8");
  EXPECT_THAT(DeviationsOf(*read),
              ElementsAre("it computes in bfloat16, and multiplies by 1 of 3 weights in 8 bits "
                          "(fp8, a scale per row)"));

  proto::PlanProto out_of_order = message;
  out_of_order.mutable_fp8()->add_kept("b");
  EXPECT_THAT(std::string(FromProto(out_of_order).status().message()), HasSubstr("out of order"));
  proto::PlanProto of_float32 = message;
  of_float32.clear_precision();
  EXPECT_THAT(std::string(FromProto(of_float32).status().message()), HasSubstr("in bfloat16"));
  proto::PlanProto scaled = message;
  scaled.mutable_fp8()->set_scaling("column");
  EXPECT_THAT(std::string(FromProto(scaled).status().message()), HasSubstr("'column'"));
  proto::PlanProto limited = message;
  limited.mutable_fp8()->set_error_budget(-1);
  EXPECT_THAT(std::string(FromProto(limited).status().message()), HasSubstr("budget of -1"));

  // An attribute in the graph itself would be a second statement of it.
  proto::PlanProto marked = message;
  for (proto::NodeProto& node : *marked.mutable_graph()->mutable_nodes()) {
    if (node.op() != "matmul") continue;
    proto::AttributeProto* attribute = node.add_attributes();
    attribute->set_name(kFp8Attribute);
    attribute->set_integer(1);
    break;
  }
  EXPECT_THAT(std::string(FromProto(marked).status().message()), HasSubstr("no attribute 'fp8'"));
}

TEST(Fp8, OtherOperatorsAndScalingsHaveNoSuchAttribute) {
  Operator relu(OpKind::kRelu, {{kFp8Attribute, int64_t{1}}});
  EXPECT_THAT(std::string(NormalizeAttributes(&relu).message()), HasSubstr("no attribute 'fp8'"));
  for (int64_t scaling : {0, 4, -1}) {
    Operator product(OpKind::kMatMul, {{kFp8Attribute, scaling}});
    EXPECT_THAT(std::string(NormalizeAttributes(&product).message()), HasSubstr("no scaling"));
  }
  const Operator product = WithFp8(OpKind::kMatMul, Fp8Scaling::kBlock);
  EXPECT_EQ(Fp8ScalingOf(product), Fp8Scaling::kBlock);
  EXPECT_EQ(WithFp8(product, Fp8Scaling::kNone), Operator(OpKind::kMatMul));
}

}  // namespace
}  // namespace isomer
