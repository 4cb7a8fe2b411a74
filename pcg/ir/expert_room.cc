#include "pcg/ir/expert_room.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace isomer {
namespace {

constexpr absl::string_view kBeforeNumber = "no expert gets more than ";
constexpr absl::string_view kBehindNumber = " times its even share of a group's tokens";

}  // namespace

bool SendsToExperts(OpKind kind) {
  return kind == OpKind::kTopKRouting || kind == OpKind::kTop2Gating;
}

bool HasExpertGroups(absl::Span<const int64_t> scores) {
  constexpr size_t kRankWithoutGroups = 3;
  return scores.size() > kRankWithoutGroups;
}

double ExpertRoom::even_load() const {
  return static_cast<double>(tokens * choices) / static_cast<double>(experts);
}

int64_t ExpertRoom::CapacityFor(double imbalance) const {
  // 1.1 times 10 is not 12 because it is 11.000000000000002.
  constexpr double kRounding = 1e-9;
  const double room = std::ceil(imbalance * even_load() * (1 - kRounding));
  if (!(room < static_cast<double>(tokens))) return tokens;
  return std::max<int64_t>(1, static_cast<int64_t>(room));
}

ExpertRoom ExpertRoomOf(const Operator& op, absl::Span<const int64_t> scores) {
  constexpr int64_t kChoicesOfTop2 = 2;
  const bool is_top2 = op.kind() == OpKind::kTop2Gating;
  return {.tokens = scores[scores.size() - 2],
          .experts = scores.back(),
          .choices = is_top2 ? kChoicesOfTop2 : op.Int("k"),
          .capacity = op.Int("capacity")};
}

std::string ImbalanceAssumption(double imbalance) {
  char digits[32];  // The fewest that read back to the same number.
  const auto end = std::to_chars(digits, digits + sizeof(digits), imbalance).ptr;
  return absl::StrCat(kBeforeNumber, absl::string_view(digits, end - digits), kBehindNumber);
}

double ParseImbalance(const std::string& assumption) {
  absl::string_view number = assumption;
  double imbalance = 0;
  const bool is_one = absl::ConsumePrefix(&number, kBeforeNumber) &&
                      absl::ConsumeSuffix(&number, kBehindNumber) &&
                      absl::SimpleAtod(number, &imbalance) && imbalance >= 1;
  return is_one ? imbalance : 0;
}

double AssumedImbalance(const Model& model) {
  for (const std::string& assumption : model.assumptions) {
    if (const double imbalance = ParseImbalance(assumption); imbalance > 0) return imbalance;
  }
  return 0;
}

}  // namespace isomer
