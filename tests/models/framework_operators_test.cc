// The operators of the frameworks against the catalogue: each has a form for every example, whole
// and in the parts that its dims may be split into, or is refused by a line that says what is
// missing. scripts/check_pytorch_export.sh and check_jax_export.sh run the forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/frameworks/local_attributes.h"
#include "models/frameworks/operator_text.h"
#include "models/frameworks/placed_program.h"
#include "models/frameworks/python_files.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/operator_call.h"
#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

struct Table {
  const char* framework;
  const char* source;
  const char* types;
};
constexpr Table kTables[] = {{"pytorch", kTorchOperators, "torch."},
                             {"jax", kJaxOperators, "jnp."}};

std::string AnyPlace(const std::vector<int>& digits) {
  return absl::StrCat("at(", absl::StrJoin(digits, ", "), ")");
}

absl::StatusOr<std::string> TextOfCall(const Table& table, const ExampleCall& example,
                                       const LocalCall& local) {
  std::vector<std::string> operands;
  for (size_t o = 0; o < example.operands.size(); ++o) operands.push_back(absl::StrCat("x", o));
  OperatorText text(table.source);
  return text.Call(local.function, operands, local.attributes);
}

Node NodeOf(const ExampleCall& example) {
  Node node;
  node.op = example.op;
  return node;
}

// The call with one dim in two parts, on two devices.
absl::StatusOr<PlacedCall> SplitInTwo(const ExampleCall& example, int dim) {
  std::vector<int64_t> degrees(DeclarationOf(example)->dims.size(), 1);
  degrees[static_cast<size_t>(dim)] = 2;
  const auto operands = OperandTypesFor(example.op, example.operands, degrees);
  if (!operands.ok()) return operands.status();
  PlacedCall call;
  const auto sharding = InferSharding(example.op, *operands);
  if (!sharding.ok()) return sharding.status();
  call.sharding = *sharding;
  call.axes = {{.dim = dim, .devices = 2, .stride = 1}};
  for (size_t o = 0; o < operands->size(); ++o) {
    OperandNeed need;
    for (int i = 0; i < (*operands)[o].rank(); ++i) {
      const Declaration& declaration = call.sharding.declaration;
      if (declaration.LeadOfOperandDim(static_cast<int>(o), i) == dim &&
          declaration.HasHalo(static_cast<int>(o), i)) {
        need.halos.push_back({.dim = i, .iteration_dim = dim});
      }
    }
    call.operands.push_back(need);
  }
  return call;
}

TEST(FrameworkOperators, EveryOperatorOfTheCatalogueHasAForm) {
  for (const Table& table : kTables) {
    std::set<OpKind> seen;
    for (const ExampleCall& example : Examples()) {
      seen.insert(example.op.kind());
      const auto text = TextOfCall(table, example, WholeCall(NodeOf(example), table.types));
      EXPECT_TRUE(text.ok()) << table.framework << " " << example.name << ": " << text.status();
    }
    for (OpKind kind : AllOpKinds()) {
      EXPECT_EQ(seen.contains(kind), !IsLeaf(kind) && !IsParallel(kind)) << OpName(kind);
    }
  }
}

// What cannot be computed in parts is the same in both, and known.
TEST(FrameworkOperators, PartsHaveAFormOrAreRefused) {
  std::map<std::string, std::set<std::string>> refused;
  for (const ExampleCall& example : Examples()) {
    const auto declaration = DeclarationOf(example);
    ASSERT_TRUE(declaration.ok()) << example.name;
    for (int dim = 0; dim < static_cast<int>(declaration->dims.size()); ++dim) {
      const auto call = SplitInTwo(example, dim);
      if (!call.ok()) continue;  // it is no dim to split
      const std::string part = absl::StrCat(OpName(example.op.kind()), " along ",
                                            declaration->dims[static_cast<size_t>(dim)].name);
      for (const Table& table : kTables) {
        const auto local =
            LocalCallOf(NodeOf(example), *call, Mesh{{2}, {1}}, AnyPlace, table.types);
        const auto text = local.ok() ? TextOfCall(table, example, *local)
                                     : absl::StatusOr<std::string>(local.status());
        if (text.ok()) continue;
        EXPECT_TRUE(absl::IsUnimplemented(text.status())) << part << ": " << text.status();
        refused[table.framework].insert(absl::StrCat(part, ": ", text.status().message()));
      }
    }
  }
  for (const Table& table : kTables) {
    EXPECT_THAT(refused[table.framework],
                testing::ElementsAre(
                    "avg_pool along x: averages of split windows that leave out the padding",
                    "conv_transpose along x: windows of it beyond a part",
                    "conv_transpose along y: windows of it beyond a part",
                    "conv_transpose along z: windows of it beyond a part",
                    "scatter_elements along p0: its parts differ by their place along p0",
                    "scatter_elements along p1: its parts differ by their place along p1"))
        << table.framework;
  }
}

TEST(FrameworkOperators, WhatHasNoFormIsRefused) {
  OperatorText text("def relu(x):\n    return F.relu(x)\n");
  EXPECT_EQ(text.Call("relu", {"a"}, {}).value(), "F.relu(a)");
  EXPECT_EQ(text.Call("gelu", {"a"}, {}).status().message(), "there is no form for this operator");
  EXPECT_EQ(text.Call("relu", {"a"}, {{"slope", "2"}}).status().message(),
            "its form here has no attribute 'slope'");
}

}  // namespace
}  // namespace isomer
