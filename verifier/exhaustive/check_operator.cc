#include "verifier/exhaustive/check_operator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/type_inference.h"
#include "verifier/exhaustive/call_space.h"

namespace isomer {
namespace {

constexpr size_t kMostDisagreements = 3;
constexpr int64_t kDegrees[] = {2, 3, 4};
// Many small calls say more than few large ones.
constexpr int64_t kMostPointsOfCall = 2000;

std::string TypesText(const std::vector<TensorType>& types) {
  return absl::StrJoin(
      types, " ", [](std::string* out, const TensorType& type) { out->append(type.ToString()); });
}

// Returns how often the call was interpreted.
int CheckPieces(const SmallCall& call, Tallies* tallies) {
  const Declaration& d = call.declaration;
  const std::string name(call.op.name());
  int runs = 0;
  for (int v = 0; v < static_cast<int>(d.dims.size()); ++v) {
    if (!d.IsPartitionable(v)) continue;
    const bool sums = d.dims[v].kind == DimKind::kSum;
    const std::string id =
        absl::StrCat(sums ? "sum_of_pieces_of_" : "pieces_of_", name, "_", d.dims[v].name);
    for (int64_t degree : kDegrees) {
      if (d.dims[v].size.value() % degree != 0) continue;
      std::vector<int64_t> degrees(d.dims.size(), 1);
      degrees[v] = degree;
      const auto types = OperandTypesFor(call.op, call.operands, degrees);
      if (!types.ok()) continue;
      const absl::StatusOr<LemmaComparison> comparison = ComparePieces(call.op, *types);
      if (!comparison.ok()) continue;
      const std::string instance = absl::StrCat(call.op.ToString(), " ", TypesText(*types));
      (*tallies)[id].Add(*comparison, instance);
      (*tallies)[absl::StrCat("pieces_of_", name)].Add(*comparison, instance);
      runs += 2;
    }
  }
  return runs;
}

int CheckLinear(const SmallCall& call, Tallies* tallies) {
  const int n = call.declaration.num_operands();
  int runs = 0;
  for (int set = 1; set < 1 << n; ++set) {
    std::vector<bool> linear;
    std::vector<int> members;
    for (int o = 0; o < n; ++o) {
      linear.push_back(set >> o & 1);
      if (linear[o]) members.push_back(o);
    }
    const bool of_indices = std::any_of(members.begin(), members.end(),
                                        [&](int o) { return IsIndexOperand(call.op.kind(), o); });
    if (of_indices || !call.declaration.IsLinearIn(linear)) continue;
    const absl::StatusOr<LemmaComparison> comparison =
        CompareLinear(call.op, call.operands, linear);
    if (!comparison.ok()) continue;
    (*tallies)[absl::StrCat(call.op.name(), "_is_linear_in_", absl::StrJoin(members, "_"))].Add(
        *comparison, call.ToString());
    runs += 4;
  }
  return runs;
}

}  // namespace

void Tally::Add(const LemmaComparison& comparison, const std::string& instance) {
  ++instances;
  if (comparison.agreement == Agreement::kNumeric) ++by_numbers;
  if (comparison.agreement == Agreement::kNone && disagreements.size() < kMostDisagreements) {
    disagreements.push_back(absl::StrCat(instance, ": ", comparison.difference));
  }
}

void Tally::Add(const Tally& other) {
  instances += other.instances;
  by_numbers += other.by_numbers;
  for (const std::string& line : other.disagreements) {
    if (disagreements.size() < kMostDisagreements) disagreements.push_back(line);
  }
}

Tallies CheckOperator(OpKind kind, int64_t most_points) {
  Tallies tallies;
  const CallSpace space(kind);
  int64_t points = 0;
  for (int64_t place = 0; place < space.size() && points < most_points; ++place) {
    const std::optional<SmallCall> call = space.At(space.Spread(place));
    points += 1;
    if (!call) continue;
    const int64_t size = PointsOf(call->declaration);
    if (size > kMostPointsOfCall) continue;
    points += size * (CheckPieces(*call, &tallies) + CheckLinear(*call, &tallies));
  }
  return tallies;
}

}  // namespace isomer
