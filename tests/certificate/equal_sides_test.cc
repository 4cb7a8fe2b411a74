// Definitions as exported networks write them, against the operators that they define.
#include "verifier/certificate/equal_sides.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/certificate/side_of_graph.h"

namespace isomer {
namespace {

ConcreteSide SideOf(const std::string& text) {
  const absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << text;
  return SideOfGraph(*graph);
}

absl::Status Equal(const std::string& source, const std::string& target,
                   const InputNumbers& numbers = {}) {
  std::set<std::string> lemmas;
  return EqualSides(SideOf(source), SideOf(target), &lemmas, numbers).status();
}

constexpr char kRmsNorm[] = R"(
%0 = input "x" : f32[2,8,16]
%1 = input "w" : f32[16]
%2 = input "e" : f32[]
%3 = rms_norm(%0, %1) {epsilon=0.5} : f32[2,8,16]
output "y" = %3
)";
constexpr char kRmsNormAsExported[] = R"(
%0 = input "x" : f32[2,8,16]
%1 = input "w" : f32[16]
%2 = input "e" : f32[]
%3 = mul(%0, %0) : f32[2,8,16]
%4 = reduce_mean(%3) {axes=[2], keepdims=1} : f32[2,8,1]
%5 = add(%4, %2) : f32[2,8,1]
%6 = sqrt(%5) : f32[2,8,1]
%7 = reciprocal(%6) : f32[2,8,1]
%8 = mul(%0, %7) : f32[2,8,16]
%9 = mul(%1, %8) : f32[2,8,16]
output "y" = %9
)";

TEST(EqualSides, RmsNorm) {
  EXPECT_EQ(Equal(kRmsNormAsExported, kRmsNorm, {{2, 0.5}}), absl::OkStatus());
  EXPECT_FALSE(Equal(kRmsNormAsExported, kRmsNorm, {{2, 0.25}}).ok());
  EXPECT_FALSE(Equal(kRmsNormAsExported, kRmsNorm).ok());
}

// `first` and `second` halves of the last dim change places, the first with `sign`.
std::string RotaryAsExported(const std::string& sign, const std::string& cos_halves,
                             const std::string& first, const std::string& second) {
  return R"(
%0 = input "x" : f32[2,4,8,16]
%1 = input "cos" : f32[8,8]
%2 = input "sin" : f32[8,8]
%3 = concat()" +
         cos_halves + R"() {axis=1} : f32[8,16]
%4 = concat(%2, %2) {axis=1} : f32[8,16]
%5 = mul(%0, %3) : f32[2,4,8,16]
%6 = split(%0) {axis=3, sizes=[8,8]} : f32[2,4,8,8], f32[2,4,8,8]
%7 = scale(%6.)" +
         first + ") {factor=" + sign + R"(} : f32[2,4,8,8]
%8 = concat(%7, %6.)" +
         second + R"() {axis=3} : f32[2,4,8,16]
%9 = mul(%8, %4) : f32[2,4,8,16]
%10 = add(%5, %9) : f32[2,4,8,16]
output "y" = %10
)";
}
constexpr char kRotary[] = R"(
%0 = input "x" : f32[2,4,8,16]
%1 = input "cos" : f32[8,8]
%2 = input "sin" : f32[8,8]
%3 = rotary(%0, %1, %2) {interleaved=0} : f32[2,4,8,16]
output "y" = %3
)";

TEST(EqualSides, Rotary) {
  EXPECT_EQ(Equal(RotaryAsExported("-1", "%1, %1", "1", "0"), kRotary), absl::OkStatus());
  EXPECT_FALSE(Equal(RotaryAsExported("1", "%1, %1", "1", "0"), kRotary).ok());
  EXPECT_FALSE(Equal(RotaryAsExported("-1", "%1, %1", "0", "1"), kRotary).ok());
  EXPECT_FALSE(Equal(RotaryAsExported("-1", "%1, %2", "1", "0"), kRotary).ok());
  std::string interleaved = kRotary;
  interleaved.replace(interleaved.find("=0}"), 3, "=1}");
  EXPECT_FALSE(Equal(RotaryAsExported("-1", "%1, %1", "1", "0"), interleaved).ok());
}

// `expanded`: the sizes that keys are repeated in, and `causal` of the target.
std::string SharedKeys(const std::string& reshaped, const std::string& expanded,
                       const std::string& causal) {
  return R"(
%0 = input "q" : f32[2,4,8,16]
%1 = input "k" : f32[2,2,8,16]
%2 = input "v" : f32[2,2,8,16]
%3 = reshape(%1) {shape=)" +
         reshaped + "} : f32" + reshaped + R"(
%4 = expand(%3) {shape=)" +
         expanded + "} : f32" + expanded + R"(
%5 = reshape(%4) {shape=[2,4,8,16]} : f32[2,4,8,16]
%6 = reshape(%2) {shape=)" +
         reshaped + "} : f32" + reshaped + R"(
%7 = expand(%6) {shape=)" +
         expanded + "} : f32" + expanded + R"(
%8 = reshape(%7) {shape=[2,4,8,16]} : f32[2,4,8,16]
%9 = attention(%0, %5, %8) {causal=)" +
         causal + R"(, scale=0.25} : f32[2,4,8,16]
output "y" = %9
)";
}

TEST(EqualSides, RepeatedKeyHeads) {
  constexpr char kShared[] = R"(
%0 = input "q" : f32[2,4,8,16]
%1 = input "k" : f32[2,2,8,16]
%2 = input "v" : f32[2,2,8,16]
%3 = attention(%0, %1, %2) {causal=1, scale=0.25} : f32[2,4,8,16]
output "y" = %3
)";
  const std::string apart = "[2,2,1,8,16]", repeated = "[2,2,2,8,16]";
  EXPECT_EQ(Equal(SharedKeys(apart, repeated, "1"), kShared), absl::OkStatus());
  EXPECT_FALSE(Equal(SharedKeys(apart, repeated, "0"), kShared).ok());
  // All heads, twice, instead of each of them.
  EXPECT_FALSE(Equal(SharedKeys("[2,1,2,8,16]", repeated, "1"), kShared).ok());
}

// What is known of coordinates: that they are numbers, where there is one.
TEST(EqualSides, CoordinatesOfOtherPlacesDiffer) {
  const auto last = [](const std::string& call) {
    return R"(
%0 = input "q" : f32[1,2,4,8]
%1 = input "k" : f32[1,2,4,8]
%2 = input "v" : f32[1,2,4,8]
%3 = slice(%2) {starts=[0,0,)" +
           call + R"(,0], sizes=[1,2,2,8], steps=[1,1,1,1]} : f32[1,2,2,8]
%4 = slice(%1) {starts=[0,0,)" +
           call + R"(,0], sizes=[1,2,2,8], steps=[1,1,1,1]} : f32[1,2,2,8]
%5 = slice(%0) {starts=[0,0,)" +
           call + R"(,0], sizes=[1,2,2,8], steps=[1,1,1,1]} : f32[1,2,2,8]
%6 = attention(%5, %4, %3) {causal=1, scale=1} : f32[1,2,2,8]
output "y" = %6
)";
  };
  EXPECT_FALSE(Equal(last("0"), last("1")).ok());
  EXPECT_EQ(Equal(last("1"), last("1")), absl::OkStatus());
}

// nn.MultiheadAttention: `part` of queries, keys and values, packed in the product's last dim, for
// 2 samples of 6 positions and 4 heads of 3 features.
std::string PackedAsExported(const std::string& part) {
  return R"(
%0 = input "x" : f32[2,6,12]
%1 = input "w" : f32[12,36]
%2 = input "b" : f32[36]
%3 = transpose(%0) {perm=[1,0,2]} : f32[6,2,12]
%4 = matmul(%3, %1) : f32[6,2,36]
%5 = add(%4, %2) : f32[6,2,36]
%6 = reshape(%5) {shape=[1,6,2,3,12]} : f32[1,6,2,3,12]
%7 = transpose(%6) {perm=[3,1,2,0,4]} : f32[3,6,2,1,12]
%8 = split(%7) {axis=0, sizes=[1,1,1]} : f32[1,6,2,1,12], f32[1,6,2,1,12], f32[1,6,2,1,12]
%9 = reshape(%8.)" +
         part + R"() {shape=[6,8,3]} : f32[6,8,3]
%10 = transpose(%9) {perm=[1,0,2]} : f32[8,6,3]
%11 = reshape(%10) {shape=[2,4,6,3]} : f32[2,4,6,3]
output "y" = %11
)";
}

std::string Packed(const std::string& part, const std::string& perm) {
  return R"(
%0 = input "x" : f32[2,6,12]
%1 = input "w" : f32[12,36]
%2 = input "b" : f32[36]
%3 = matmul(%0, %1) : f32[2,6,36]
%4 = add(%3, %2) : f32[2,6,36]
%5 = split(%4) {axis=2, sizes=[12,12,12]} : f32[2,6,12], f32[2,6,12], f32[2,6,12]
%6 = reshape(%5.)" +
         part + ") {shape=" +
         (perm == "[0,2,1,3]" ? "[2,6,4,3]} : f32[2,6,4,3]" : "[2,6,3,4]} : f32[2,6,3,4]") + R"(
%7 = transpose(%6) {perm=)" +
         perm + R"(} : f32[2,4,6,3]
output "y" = %7
)";
}

TEST(EqualSides, PackedQueriesKeysAndValues) {
  for (const std::string part : {"0", "1", "2"}) {
    EXPECT_EQ(Equal(PackedAsExported(part), Packed(part, "[0,2,1,3]")), absl::OkStatus()) << part;
    EXPECT_FALSE(Equal(PackedAsExported(part), Packed(part, "[0,3,1,2]")).ok()) << part;
  }
  EXPECT_FALSE(Equal(PackedAsExported("1"), Packed("2", "[0,2,1,3]")).ok());
}

// What attention gives, [samples, heads, positions, features], to a product over (head, feature)
// for each (position, sample), or (sample, position).
std::string ProductOfHeads(const std::string& perm, const std::string& merged,
                           const std::string& rows, const std::string& after) {
  return R"(
%0 = input "a" : f32[2,4,6,3]
%1 = input "w" : f32[12,5]
%2 = transpose(%0) {perm=)" +
         perm + "} : f32[" + merged + R"(]
%3 = reshape(%2) {shape=[)" +
         rows + R"(,12]} : f32[)" + rows + R"(,12]
%4 = matmul(%3, %1) : f32[)" +
         rows + ",5]\n" + after;
}

TEST(EqualSides, ProductOfMergedHeads) {
  const std::string exported = ProductOfHeads("[2,0,1,3]", "6,2,4,3", "12",
                                              R"(%5 = reshape(%4) {shape=[6,2,5]} : f32[6,2,5]
%6 = transpose(%5) {perm=[1,0,2]} : f32[2,6,5]
output "y" = %6
)");
  const std::string straight = ProductOfHeads("[0,2,1,3]", "2,6,4,3", "2,6", "output \"y\" = %4\n");
  EXPECT_EQ(Equal(exported, straight), absl::OkStatus());
  EXPECT_EQ(Equal(straight, exported), absl::OkStatus());
  // Rows that are not put back, and features before heads.
  EXPECT_FALSE(Equal(ProductOfHeads("[2,0,1,3]", "6,2,4,3", "12",
                                    "%5 = reshape(%4) {shape=[2,6,5]} : f32[2,6,5]\n"
                                    "output \"y\" = %5\n"),
                     straight)
                   .ok());
  EXPECT_FALSE(
      Equal(exported, ProductOfHeads("[0,2,3,1]", "2,6,3,4", "2,6", "output \"y\" = %4\n")).ok());
}

constexpr char kSoftmax[] = R"(
%0 = input "x" : f32[4,8]
%1 = input "c" : f32[4,1]
%2 = softmax(%0) {axis=1} : f32[4,8]
output "y" = %2
)";
std::string Shifted(const std::string& size) {
  return R"(
%0 = input "x" : f32[4,8]
%1 = input "c" : f32[)" +
         size + R"(]
%2 = add(%0, %1) : f32[4,8]
%3 = softmax(%2) {axis=1} : f32[4,8]
output "y" = %3
)";
}
constexpr char kSoftmaxWithoutShift[] = R"(
%0 = input "x" : f32[4,8]
%1 = input "c" : f32[4,1]
%2 = exp(%0) : f32[4,8]
%3 = reduce_sum(%2) {axes=[1], keepdims=1} : f32[4,1]
%4 = div(%2, %3) : f32[4,8]
output "y" = %4
)";

TEST(EqualSides, SoftmaxTakesNoNoticeOfAShift) {
  EXPECT_EQ(Equal(kSoftmax, Shifted("4,1")), absl::OkStatus());
  EXPECT_EQ(Equal(Shifted("4,1"), kSoftmax), absl::OkStatus());
  // Each column by another number, or each element.
  EXPECT_FALSE(Equal(kSoftmax, Shifted("1,8")).ok());
  EXPECT_FALSE(Equal(kSoftmax, Shifted("4,8")).ok());
}

TEST(EqualSides, ASoftmaxMayNotLoseItsShift) {
  EXPECT_EQ(Equal(kSoftmaxWithoutShift, kSoftmax), absl::OkStatus());
  EXPECT_FALSE(Equal(kSoftmax, kSoftmaxWithoutShift).ok());
}

}  // namespace
}  // namespace isomer
