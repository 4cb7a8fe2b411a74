// Compiled code against the reference evaluator, for every example call.
#include "pcg/evaluation/field_program.h"

#include <gtest/gtest.h>

#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/examples.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

struct Inputs {
  std::vector<Array<PrimeField>> arrays;
  std::vector<const Array<PrimeField>*> pointers;
  std::vector<const PrimeField*> elements;
};

Inputs Draw(const Declaration& declaration) {
  Inputs inputs;
  for (const Shape& shape : declaration.operands) {
    std::vector<int64_t> sizes;
    for (const Extent& size : shape) sizes.push_back(size.value());
    inputs.arrays.emplace_back(sizes);
    for (int64_t i = 0; i < inputs.arrays.back().size(); ++i) {
      const uint64_t drawn = HashCombine(inputs.arrays.size(), static_cast<uint64_t>(i));
      inputs.arrays.back().data[i] = PrimeField::FromRaw(drawn % PrimeField::kPrime);
    }
  }
  for (const Array<PrimeField>& array : inputs.arrays) {
    inputs.pointers.push_back(&array);
    inputs.elements.push_back(array.data.data());
  }
  return inputs;
}

std::vector<std::vector<PrimeField>> RunProgram(const FieldProgram& program, const Inputs& inputs) {
  std::vector<std::vector<PrimeField>> outputs;
  std::vector<PrimeField*> places;
  for (int64_t size : program.output_sizes()) outputs.emplace_back(size);
  for (std::vector<PrimeField>& output : outputs) places.push_back(output.data());
  std::vector<PrimeField> scratch;
  program.Run(inputs.elements, places, &scratch);
  return outputs;
}

TEST(FieldProgram, ComputesWhatTheReferenceEvaluatorDoesForEveryExample) {
  int compiled = 0;
  for (const ExampleCall& example : Examples()) {
    const absl::StatusOr<Declaration> declaration = DeclarationOf(example);
    ASSERT_TRUE(declaration.ok()) << example.name;
    const absl::StatusOr<FieldProgram> program = FieldProgram::Compile(*declaration);
    if (!program.ok()) {
      EXPECT_TRUE(absl::IsUnimplemented(program.status())) << example.name << program.status();
      continue;
    }
    ++compiled;
    const Inputs inputs = Draw(*declaration);
    const auto expected =
        Evaluate<PrimeField>(*declaration, FullBox(*declaration), inputs.pointers);
    ASSERT_TRUE(expected.ok()) << example.name;
    const auto outputs = RunProgram(*program, inputs);
    ASSERT_EQ(outputs.size(), expected->size()) << example.name;
    std::vector<std::vector<int64_t>> wanted;
    for (size_t t = 0; t < outputs.size(); ++t) {
      EXPECT_EQ(outputs[t], (*expected)[t].data) << example.name;
      wanted.push_back({(*expected)[t].size() - 1, 0});
    }
    const absl::StatusOr<FieldProgram> few = FieldProgram::Compile(*declaration, wanted);
    ASSERT_TRUE(few.ok());
    const auto sampled = RunProgram(*few, inputs);
    for (size_t t = 0; t < outputs.size(); ++t) {
      EXPECT_EQ(sampled[t], (std::vector<PrimeField>{outputs[t].back(), outputs[t].front()}));
    }
  }
  EXPECT_GT(compiled, 100);
}

TEST(FieldProgram, LongSumsOfTheLargestProductsDoNotOverflow) {
  for (const int64_t length : {1, 31, 32, 33, 64, 65, 200}) {
    const std::vector<Shape> shapes = {{2, length}, {length, 3}};
    const absl::StatusOr<Declaration> product = Declare(Operator(OpKind::kMatMul), shapes);
    ASSERT_TRUE(product.ok());
    const absl::StatusOr<FieldProgram> program = FieldProgram::Compile(*product);
    ASSERT_TRUE(program.ok());
    Inputs inputs = Draw(*product);
    for (Array<PrimeField>& array : inputs.arrays) {
      for (PrimeField& element : array.data) element = PrimeField::FromRaw(PrimeField::kPrime - 1);
    }
    // (-1) (-1), added up.
    const auto expected = PrimeField::FromRaw(static_cast<uint64_t>(length));
    EXPECT_EQ(RunProgram(*program, inputs)[0], std::vector<PrimeField>(6, expected)) << length;
  }
}

TEST(FieldProgram, RefusesWhatDependsOnValues) {
  const std::vector<Shape> shapes = {{4, 2}, {3}};
  const absl::StatusOr<Declaration> look_up = Declare(Operator(OpKind::kEmbedding), shapes);
  ASSERT_TRUE(look_up.ok());
  EXPECT_TRUE(absl::IsUnimplemented(FieldProgram::Compile(*look_up).status()));
}

}  // namespace
}  // namespace isomer
