#include "verifier/lemmas/small_assignments.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"
#include "verifier/values/representative_bindings.h"

namespace isomer {
namespace {

constexpr int64_t kMostElements = 256;
constexpr int kMaxRank = 4;

bool IsSmall(const Binding& binding) {
  return std::all_of(binding.inputs.begin(), binding.inputs.end(),
                     [](const TensorType& type) { return type.NumElements() <= kMostElements; });
}

// Numbers from a seed, one after the other.
class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>((HashCombine(seed_, ++count_) >> 9) % static_cast<uint64_t>(bound));
  }

 private:
  const uint64_t seed_;
  uint64_t count_ = 0;
};

// Which of the rule's inputs hold indices or truth values.
std::vector<DataType> DataTypesOf(const Rule& rule) {
  std::vector<DataType> types(rule.num_inputs, DataType::kFloat32);
  for (const Pattern* side : {&rule.source, &rule.target}) {
    for (const PatternNode& node : side->nodes) {
      for (size_t o = 0; o < node.inputs.size(); ++o) {
        if (node.inputs[o].node >= 0) continue;
        DataType& type = types[node.inputs[o].index];
        if (IsIndexOperand(node.kind, static_cast<int>(o))) type = DataType::kInt64;
        if (node.kind == OpKind::kNot || IsConditionOperand(node.kind, static_cast<int>(o))) {
          type = DataType::kBool;
        }
      }
    }
  }
  return types;
}

// Two sizes make most dims: dims that must be equal often are.
std::optional<Binding> Draw(const Rule& rule, const std::vector<DataType>& types, uint64_t seed) {
  Draws draws(seed);
  const std::vector<int>& ranks =
      rule.ranks[static_cast<size_t>(draws.Below(static_cast<int64_t>(rule.ranks.size())))];
  if (*std::max_element(ranks.begin(), ranks.end()) > kMaxRank) return std::nullopt;
  const int64_t pool[] = {draws.Below(4) + 1, draws.Below(4) + 1, 1};
  Binding binding;
  for (int x = 0; x < rule.num_inputs; ++x) {
    std::vector<int64_t> sizes;
    for (int i = 0; i < ranks[x]; ++i) {
      const int64_t which = draws.Below(7);
      sizes.push_back(which < 3   ? pool[0]
                      : which < 5 ? pool[1]
                      : which < 6 ? draws.Below(4) + 1
                                  : 1);
    }
    binding.inputs.push_back(SequentialType(sizes, types[x]));
  }
  const int longest = std::max(1, *std::max_element(ranks.begin(), ranks.end()));
  for (const RuleVariable& variable : rule.variables) {
    switch (variable.kind) {
      case VariableKind::kAxis:
        binding.variables[variable.name] = -1 - draws.Below(longest);
        break;
      case VariableKind::kDegree:
        binding.variables[variable.name] = 1;
        break;
      case VariableKind::kSize:
        binding.variables[variable.name] = draws.Below(3) + 1;
        break;
      case VariableKind::kNumber:
        binding.numbers[variable.name] = static_cast<double>(draws.Below(9) - 4) / 4 + 0.125;
        break;
      case VariableKind::kAttribute:
        return std::nullopt;
    }
  }
  return binding;
}

std::string AssignmentText(const Binding& binding) {
  std::string text;
  for (const TensorType& type : binding.inputs) absl::StrAppend(&text, type.ToString(), " ");
  for (const auto& [name, value] : binding.variables) absl::StrAppend(&text, name, "=", value);
  return text;
}

}  // namespace

std::vector<Binding> SmallAssignments(const Rule& rule, int most) {
  std::vector<Binding> all = RepresentativeBindings(rule);
  std::erase_if(all, [](const Binding& binding) { return !IsSmall(binding); });
  if (!all.empty()) {
    for (Binding& near : BindingsNear(rule, Binding(all[0]))) {
      if (IsSmall(near)) all.push_back(std::move(near));
    }
    // Some of all, the first always.
    std::vector<Binding> some;
    const size_t count = std::min<size_t>(all.size(), static_cast<size_t>(most));
    for (size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
    return some;
  }
  std::vector<Binding> drawn;
  if (rule.ranks.empty()) return drawn;
  const std::vector<DataType> types = DataTypesOf(rule);
  std::set<std::string> known;
  for (int trial = 0; trial < 400 * most && static_cast<int>(drawn.size()) < most; ++trial) {
    std::optional<Binding> binding = Draw(rule, types, static_cast<uint64_t>(trial));
    if (!binding || !IsSmall(*binding) || !Admits(rule, *binding)) continue;
    if (!InstantiatePattern(rule.source, *binding).ok()) continue;
    if (known.insert(AssignmentText(*binding)).second) drawn.push_back(*std::move(binding));
  }
  return drawn;
}

}  // namespace isomer
