// Traits against what declarations and example calls say of the same operator.
#include "pcg/ir/operator_traits.h"

#include <gtest/gtest.h>

#include <random>

#include "pcg/ir/examples.h"
#include "pcg/ir/type_inference.h"
#include "tests/pcg/random_operands.h"

namespace isomer {
namespace {

Declaration DeclarationOf(const ExampleCall& call) {
  std::vector<Shape> shapes;
  for (const TensorType& type : call.operands) shapes.push_back(type.GlobalShape());
  return *Declare(call.op, shapes);
}

TEST(OperatorTraits, ExamplesHaveOperandsOfTheirTypes) {
  for (const ExampleCall& call : Examples()) {
    const OperatorTraits& traits = TraitsOf(call.op.kind());
    ASSERT_LT(traits.index_operand, static_cast<int>(call.operands.size())) << call.name;
    EXPECT_TRUE(InferTypes(call.op, call.operands).ok()) << call.name;
    EXPECT_LE(static_cast<int>(DeclarationOf(call).outputs.size()), traits.most_outputs)
        << call.name;
    if (traits.salt == nullptr) continue;
    EXPECT_NE(call.op.Find(traits.salt), nullptr) << call.name;
  }
}

TEST(OperatorTraits, OperandsOfCommutativeOperatorsMayBeExchanged) {
  for (const ExampleCall& call : Examples()) {
    if (!IsCommutative(call.op.kind())) continue;
    std::mt19937_64 random(3);
    const std::vector<Array<double>> operands = RandomOperands<double>(call, random);
    ExampleCall exchanged = call;
    std::swap(exchanged.operands[0], exchanged.operands[1]);
    const Declaration a = DeclarationOf(call), b = DeclarationOf(exchanged);
    const auto straight = Evaluate<double>(a, FullBox(a), {&operands[0], &operands[1]});
    const auto swapped = Evaluate<double>(b, FullBox(b), {&operands[1], &operands[0]});
    ASSERT_TRUE(straight.ok() && swapped.ok()) << call.name;
    EXPECT_EQ(straight->front().data, swapped->front().data) << call.name;
  }
}

// A gradient that reads the result reads no operand: the operator has one, and is not linear.
TEST(OperatorTraits, GradientsThatReadTheResultAreOfOneOperand) {
  for (OpKind kind : AllOpKinds()) {
    if (!TraitsOf(kind).gradient_reads_result) continue;
    EXPECT_EQ(MaxOperands(kind), 1) << OpName(kind);
  }
}

}  // namespace
}  // namespace isomer
