#include "optimizer/proposal/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace isomer {
namespace {

std::set<std::string> NamesOf(RecomputeMode mode, const std::string& text) {
  const absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  std::set<std::string> names;
  if (!graph.ok()) return names;
  for (NodeId id : RecomputedNodes(mode, *graph)) names.insert(graph->Label(id));
  return names;
}

constexpr char kAttention[] = R"(
%0 = input "q" : f32[2,4,8,16]
%1 = input "k" : f32[2,4,16,8]
%2 = input "v" : f32[2,4,8,16]
%3 = weight "w" : f32[16,16]
%4 = matmul(%0, %1) : f32[2,4,8,8]  # scores
%5 = scale(%4) {factor=0.5} : f32[2,4,8,8]  # scaled
%6 = softmax(%5) {axis=-1} : f32[2,4,8,8]  # shares
%7 = matmul(%6, %2) : f32[2,4,8,16]  # context
%8 = matmul(%7, %3) : f32[2,4,8,16]  # output
output "y" = %8
)";

TEST(Recompute, SelectiveIsAttentionsInside) {
  const std::set<std::string> names = NamesOf(RecomputeMode::kSelective, kAttention);
  EXPECT_EQ(names.size(), 3u);
  for (const std::string name : {"scores", "scaled", "shares"}) {
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const std::string& label) {
      return label.find(name) != std::string::npos;
    })) << name;
  }
}

// A softmax that no product of activations leads to is none of attention.
TEST(Recompute, OtherSoftmaxesAreKept) {
  EXPECT_TRUE(NamesOf(RecomputeMode::kSelective, R"(
%0 = input "x" : f32[4,8]
%1 = weight "w" : f32[8,8]
%2 = matmul(%0, %1) : f32[4,8]  # product
%3 = softmax(%2) {axis=-1} : f32[4,8]  # gates
output "y" = %3
)")
                  .empty());
}

// Of x -> product -> gelu -> product, gelu reads what its gradient needs anyway; the first product
// is not cheap, and what nobody's gradient needs is not kept anyhow.
TEST(Recompute, SelectiveHasActivationFunctionsWhoseOperandIsKept) {
  const std::set<std::string> names = NamesOf(RecomputeMode::kSelective, R"(
%0 = input "x" : f32[4,8]
%1 = weight "w1" : f32[8,8]
%2 = weight "w2" : f32[8,8]
%3 = matmul(%0, %1) : f32[4,8]  # up
%4 = gelu(%3) : f32[4,8]  # gelu
%5 = matmul(%4, %2) : f32[4,8]  # down
%6 = add(%5, %0) : f32[4,8]  # residual
output "y" = %6
)");
  ASSERT_EQ(names.size(), 1u);
  EXPECT_THAT(*names.begin(), testing::HasSubstr("gelu"));
}

TEST(Recompute, NoneIsNothingAndNamesAreKnown) {
  EXPECT_TRUE(NamesOf(RecomputeMode::kNone, kAttention).empty());
  for (RecomputeMode mode :
       {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
    EXPECT_EQ(ParseRecomputeMode(RecomputeModeName(mode)).value(), mode);
  }
  EXPECT_FALSE(ParseRecomputeMode("some").ok());
}

}  // namespace
}  // namespace isomer
