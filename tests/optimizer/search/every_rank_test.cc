// Which dims of calls the shipped rules split, at every rank from 1 to 6, against what declarations
// let be split.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "optimizer/report/split_text.h"
#include "optimizer/sharding/expansion.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/data_path.h"
#include "rules/calls/calls_of_ranks.h"
#include "rules/language/splittable_dims.h"

namespace isomer {
namespace {

const RuleIndex& ShippedRules() {
  static const RuleSet& rules = *[] {
    absl::StatusOr<RuleSet> loaded = LoadRules(DataPath("rules/default.rules"));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return new RuleSet(loaded.ok() ? *std::move(loaded) : RuleSet());
  }();
  static const RuleIndex& index = *new RuleIndex(rules);
  return index;
}

OperatorCall Parse(const std::string& text) {
  const absl::StatusOr<OperatorCall> call = ParseCall(text);
  EXPECT_TRUE(call.ok()) << call.status();
  return call.ok() ? *call : OperatorCall();
}

std::string TextOf(const OperatorCall& call) {
  return absl::StrCat(call.op.ToString(), " ",
                      absl::StrJoin(call.operands, " ", [](std::string* out, const auto& type) {
                        out->append(type.ToString());
                      }));
}

int HighestRank(const OperatorCall& call) {
  int rank = 0;
  for (const TensorType& type : call.operands) rank = std::max(rank, type.rank());
  return rank;
}

// The iteration dims of a call that rules split.
std::set<int> SplitByRules(const OperatorCall& call) {
  std::set<int> dims;
  for (const Expansion& split : FindExpansions(ShippedRules(), call.op, call.operands).splits) {
    dims.insert(split.dim);
  }
  return dims;
}

// Every operator, every rank, every way in which a dim leads operands and outputs.
TEST(EveryRank, WhatDeclarationsLetBeSplitARuleSplits) {
  std::map<std::string, std::map<int, std::pair<int, int>>> table;  // [operator][rank]: can, do
  for (OpKind kind : AllOpKinds()) {
    for (const OperatorCall& call : CallsOfRanks(WithExamples(kind))) {
      const std::set<int> by_rules = SplitByRules(call);
      auto& [can, done] = table[std::string(OpName(kind))][HighestRank(call)];
      for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
        if (dim.size == 1) continue;
        const bool split = by_rules.contains(dim.dim);
        ++can;
        done += split ? 1 : 0;
        EXPECT_TRUE(split) << TextOf(call) << ": dim " << dim.dim;
      }
    }
  }
  for (const auto& [name, ranks] : table) {
    std::string line;
    for (const auto& [rank, counts] : ranks) {
      absl::StrAppend(&line, "  ", rank, ": ", counts.second, "/", counts.first);
    }
    RecordProperty(name, line);
  }
}

// What iterates over a parallel, spatial or summed dim and yet cannot be split along it, whatever
// the rules: by operator, with the reason. Declaration::IsPartitionable decides it, and
// SplittableDims.
TEST(EveryRank, OtherDimsAreWholeForAReason) {
  const std::map<std::string, std::string> reasons = {
      {"expand", "operand types cannot tell the degree of a dim that no operand has"},
      {"one_hot", "operand types cannot tell the degree of a dim that no operand has"},
      {"adaptive_avg_pool", "windows differ in size, and begin at no multiple of their number"},
  };
  std::map<std::string, std::string> found;
  for (OpKind kind : AllOpKinds()) {
    for (const OperatorCall& call : CallsOfRanks(WithExamples(kind))) {
      const auto sharding = InferSharding(call.op, call.operands);
      ASSERT_TRUE(sharding.ok()) << TextOf(call) << ": " << sharding.status();
      std::set<int> split;
      for (const SplittableDim& dim : SplittableDims(*sharding, call.operands)) {
        split.insert(dim.dim);
      }
      const std::vector<IterationDim>& dims = sharding->declaration.dims;
      for (int v = 0; v < static_cast<int>(dims.size()); ++v) {
        if (dims[v].kind == DimKind::kWhole || dims[v].size == Extent(1)) continue;
        if (!split.contains(v)) found.emplace(OpName(kind), TextOf(call) + ": " + dims[v].name);
      }
    }
  }
  for (const auto& [name, call] : found) EXPECT_TRUE(reasons.contains(name)) << call;
  for (const auto& [name, reason] : reasons) EXPECT_TRUE(found.contains(name)) << name;
}

struct SplitCase {
  const char* call;
  std::vector<int> axes;  // of the output, along which rules split it
};

class SplitsOfCalls : public testing::TestWithParam<SplitCase> {};

TEST_P(SplitsOfCalls, AreAlongTheseAxes) {
  const OperatorCall call = Parse(GetParam().call);
  const auto sharding = InferSharding(call.op, call.operands);
  ASSERT_TRUE(sharding.ok()) << sharding.status();
  const Declaration& d = sharding->declaration;
  const std::set<int> by_rules = SplitByRules(call);
  std::vector<int> axes;
  for (int i = 0; i < static_cast<int>(d.outputs[0].size()); ++i) {
    if (by_rules.contains(d.LeadOfOutputDim(0, i))) axes.push_back(i);
  }
  EXPECT_EQ(axes, GetParam().axes) << GetParam().call;
}

// As exporters of PyTorch write attention, windows of images, and masks.
INSTANTIATE_TEST_SUITE_P(
    OfNetworks, SplitsOfCalls,
    testing::Values(
        // Queries, keys and values in one product: each side's first dim of a group.
        SplitCase{"reshape(shape=[2,8,3,4,6]) f32[2,8,72]", {0, 1, 2}},
        SplitCase{"reshape(shape=[2,8,72]) f32[2,8,3,4,6]", {0, 1, 2}},
        SplitCase{"reshape(shape=[8,2,3,1,24]) f32[8,2,72]", {0, 1, 2}},
        // Heads go to the samples and come back.
        SplitCase{"reshape(shape=[8,8,6]) f32[8,2,24]", {0, 1}},
        SplitCase{"reshape(shape=[2,4,8,6]) f32[8,8,6]", {0, 2, 3}},
        SplitCase{"reshape(shape=[16,24]) f32[8,2,4,6]", {0, 1}},
        // Dims of size 1 come and go anywhere.
        SplitCase{"reshape(shape=[2,1,4,1,6,1]) f32[2,4,6]", {0, 2, 4}},
        SplitCase{"reshape(shape=[2,4,6]) f32[1,2,1,4,6,1]", {0, 1, 2}},
        SplitCase{"reshape(shape=[4]) f32[1,1,1,1,1,4]", {0}},
        SplitCase{"reshape(shape=[1,4,2,3]) f32[24]", {1}},
        // Windows of images.
        SplitCase{"reshape(shape=[2,4,2,4,2,6]) f32[2,8,8,6]", {0, 1, 3, 5}},
        SplitCase{"reshape(shape=[32,4,6]) f32[2,4,4,2,2,6]", {0, 1, 2}},
        SplitCase{"transpose(perm=[0,1,3,2,4,5]) f32[2,4,2,4,2,6]", {0, 1, 2, 3, 4, 5}},
        SplitCase{"transpose(perm=[2,0,3,1,4]) f32[2,8,3,4,6]", {0, 1, 2, 3, 4}},
        // Relative positions: the last two dims have no dim in common, the others are as they were.
        SplitCase{"reshape(shape=[2,4,9,8]) f32[2,4,8,9]", {0, 1}},
        // Keys of a group of heads; what is repeated is not split.
        SplitCase{"expand(shape=[2,4,3,8,6]) f32[2,4,1,8,6]", {0, 1, 3, 4}},
        SplitCase{"expand(shape=[2,2,4,3,8,6]) f32[2,4,1,8,6]", {1, 2, 4, 5}},
        SplitCase{"expand(shape=[2,3,4]) f32[4]", {2}},
        // Masks.
        SplitCase{"where bool[2,1,8,8] f32[3,2,4,8,8] f32[]", {0, 1, 2, 3, 4}},
        SplitCase{"where bool[8,8] f32[2,3,2,4,8,8] f32[1]", {0, 1, 2, 3, 4, 5}},
        SplitCase{"add f32[2,3,4,8,8] f32[3,1,8,8]", {0, 1, 2, 3, 4}},
        SplitCase{"less i64[8,1] i64[2,2,1,1,8]", {0, 1, 3, 4}},
        SplitCase{"mul f32[2,3,2,4,8,8] f32[]", {0, 1, 2, 3, 4, 5}},
        SplitCase{"softmax(axis=-1) f32[2,3,2,4,8,8]", {0, 1, 2, 3, 4}},
        SplitCase{"softmax(axis=2) f32[2,3,2,4,8]", {0, 1, 3, 4}},
        SplitCase{"gather(axis=0) f32[3,8,2,4,6] i64[]", {0, 1, 2, 3}},
        SplitCase{"slice(starts=[0,0,1,0,0],sizes=[2,8,1,4,6],steps=[1,1,1,1,1]) f32[2,8,3,4,6]",
                  {0, 1, 3, 4}},
        SplitCase{"split(axis=2,sizes=[1,1,1]) f32[2,8,3,4,6]", {0, 1, 3, 4}},
        SplitCase{"concat(axis=-1) f32[2,3,2,4,8,4] f32[2,3,2,4,8,4]", {0, 1, 2, 3, 4}},
        SplitCase{"reduce_mean(axes=[-1]) f32[2,3,2,4,8]", {0, 1, 2, 3}},
        SplitCase{"reduce_max(axes=[1,-1],keepdims=0) f32[2,3,2,4,8,4]", {0, 1, 2, 3}},
        SplitCase{"matmul f32[2,3,2,4,6,8] f32[8,4]", {0, 1, 2, 3, 4, 5}},
        SplitCase{"matmul f32[2,3,2,6,8] f32[3,2,8,4]", {0, 1, 2, 3, 4}}));

TEST(WhyWhole, SaysWhatStandsInTheWay) {
  const auto why = [](const char* text, int64_t devices) {
    const OperatorCall call = Parse(text);
    const auto said = WhyWhole(call.op, call.operands, devices, ShippedRules());
    EXPECT_TRUE(said.ok()) << said.status();
    return said.value_or("");
  };
  EXPECT_EQ(why("cumsum(axis=0,exclusive=0,reverse=0) f32[8]", 8), "because no rule splits it");
  EXPECT_EQ(why("relu f32[3,5]", 8),
            "because none of its sizes has a divisor in common with 8 devices");
  EXPECT_EQ(why("relu f32[4,5]", 8), "though batch could be split");
  EXPECT_EQ(why("matmul f32[4,8] f32[8,16]", 2),
            "though rows or columns or contraction could be "
            "split");
}

}  // namespace
}  // namespace isomer
