#include "verifier/refutation/shrink.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace isomer {
namespace {

// A number of a binding that can be lessened.
struct Slot {
  enum class Role { kSize, kDegree, kAttribute };
  Role role;
  int64_t value;
};

bool IsSizeOrDegree(const Rule& rule, const std::string& name, Slot::Role* role) {
  for (const RuleVariable& variable : rule.variables) {
    if (variable.name != name) continue;
    *role = variable.kind == VariableKind::kSize ? Slot::Role::kSize : Slot::Role::kDegree;
    return variable.kind == VariableKind::kSize || variable.kind == VariableKind::kDegree;
  }
  return false;
}

// Calls visit(role, reading, writing) for every slot, always in the same order.
template <typename Visit>
void VisitSlots(const Rule& rule, Binding* binding, Visit visit) {
  for (TensorType& type : binding->inputs) {
    for (Dim& dim : type.dims) {
      visit(Slot::Role::kSize, &dim.size);
      visit(Slot::Role::kDegree, &dim.degree);
    }
    visit(Slot::Role::kDegree, &type.copies);
    visit(Slot::Role::kDegree, &type.partials);
    visit(Slot::Role::kDegree, &type.micro_batches);
  }
  for (auto& [name, value] : binding->variables) {
    Slot::Role role;
    if (IsSizeOrDegree(rule, name, &role)) visit(role, &value);
  }
  for (auto& [name, value] : binding->attributes) {
    if (auto* integer = std::get_if<int64_t>(&value)) visit(Slot::Role::kAttribute, integer);
    if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      for (int64_t& item : *list) visit(Slot::Role::kAttribute, &item);
    }
    if (auto* sizes = std::get_if<std::vector<Extent>>(&value)) {
      for (Extent& size : *sizes) {
        if (!size.known()) continue;
        int64_t known = size.value();
        visit(Slot::Role::kSize, &known);
        size = Extent(known);
      }
    }
  }
}

std::vector<Slot> SlotsOf(const Rule& rule, const Binding& binding) {
  std::vector<Slot> slots;
  Binding copy = binding;
  VisitSlots(rule, &copy, [&](Slot::Role role, int64_t* value) {
    slots.push_back({role, *value});
  });
  return slots;
}

Binding With(const Rule& rule, const Binding& binding, const std::vector<Slot>& slots) {
  Binding result = binding;
  size_t next = 0;
  VisitSlots(rule, &result, [&](Slot::Role, int64_t* value) { *value = slots[next++].value; });
  return result;
}

enum class Step { kToLeast, kHalve, kThird, kLessen };
constexpr Step kSteps[] = {Step::kToLeast, Step::kHalve, Step::kThird, Step::kLessen};

// False: the step does not lessen the slot.
bool Take(Step step, Slot* slot) {
  const int64_t least = slot->role == Slot::Role::kAttribute ? 0 : 1;
  if (slot->value <= least) return false;
  switch (step) {
    case Step::kToLeast:
      slot->value = least;
      return true;
    case Step::kHalve:
    case Step::kThird: {
      const int64_t divisor = step == Step::kHalve ? 2 : 3;
      if (slot->value % divisor != 0) return false;
      slot->value /= divisor;
      return true;
    }
    case Step::kLessen:
      slot->value -= 1;
      return true;
  }
  return false;
}

class Shrinker {
 public:
  Shrinker(const Rule& rule, const Counterexample& counterexample)
      : rule_(rule), best_(counterexample) {}

  Counterexample Run() {
    // Small as it is found, and lost where values are drawn anew.
    if (best_.kind == Counterexample::Kind::kUndefined) return std::move(best_);
    while (DropDims() || LessenSome()) {
    }
    if (best_.kind == Counterexample::Kind::kValues) SimplifyValues();
    return std::move(best_);
  }

 private:
  // Of evaluations, and of elements among which values are made simple.
  static constexpr int kMostTries = 6000;
  static constexpr size_t kMostElements = 256;

  bool Try(const Binding& binding) {
    if (tries_ >= kMostTries || Magnitude(rule_, binding) >= Magnitude(rule_, best_.binding)) {
      return false;
    }
    for (uint64_t seed : {1, 2, 3}) {
      ++tries_;
      absl::StatusOr<std::optional<Counterexample>> found = TryBinding(rule_, binding, seed);
      if (!found.ok()) return false;
      if (!found->has_value() || (*found)->kind != best_.kind) continue;
      best_ = **std::move(found);
      return true;
    }
    return false;
  }

  // The inputs have the ranks of another rank vector if the dims next to the last `kept` are
  // dropped.
  bool DropDims() {
    for (const std::vector<int>& ranks : rule_.ranks) {
      for (int kept = 8; kept >= 0; --kept) {
        const std::optional<Binding> smaller = Dropped(ranks, kept);
        if (smaller.has_value() && Try(*smaller)) return true;
      }
    }
    return false;
  }

  std::optional<Binding> Dropped(const std::vector<int>& ranks, int kept) const {
    Binding binding = best_.binding;
    int dropped = 0;
    for (size_t x = 0; x < binding.inputs.size(); ++x) {
      std::vector<Dim>& dims = binding.inputs[x].dims;
      const int excess = static_cast<int>(dims.size()) - ranks[x];
      if (excess < 0) return std::nullopt;
      if (excess == 0) continue;
      // Inputs of fewer dims lose their leading ones.
      const int last = std::min(kept, ranks[x]);
      dims.erase(dims.end() - last - excess, dims.end() - last);
      dropped = std::max(dropped, excess);
    }
    if (dropped == 0) return std::nullopt;
    // Axes are counted from the end: those before the gap move up.
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.kind != VariableKind::kAxis) continue;
      int64_t& axis = binding.variables[variable.name];
      if (axis < -kept) axis = std::min<int64_t>(axis + dropped, -1);
    }
    return binding;
  }

  // Steps of all slots of one role, of those of equal value, of one, two and three slots.
  bool LessenSome() {
    const std::vector<Slot> slots = SlotsOf(rule_, best_.binding);
    std::vector<size_t> large;
    for (size_t s = 0; s < slots.size(); ++s) {
      if (slots[s].value > (slots[s].role == Slot::Role::kAttribute ? 0 : 1)) large.push_back(s);
    }
    return LessenAlike(slots, large) || LessenUpToThree(slots, large);
  }

  bool LessenAlike(const std::vector<Slot>& slots, const std::vector<size_t>& large) {
    std::set<std::pair<Slot::Role, int64_t>> seen;
    for (const size_t s : large) {
      for (const int64_t value : {int64_t{0}, slots[s].value}) {  // 0: whatever it is
        if (!seen.insert({slots[s].role, value}).second) continue;
        std::vector<size_t> alike;
        for (const size_t other : large) {
          if (slots[other].role == slots[s].role && (value == 0 || slots[other].value == value)) {
            alike.push_back(other);
          }
        }
        if (alike.size() > 1 && LessenThese(slots, alike)) return true;
      }
    }
    return false;
  }

  bool LessenUpToThree(const std::vector<Slot>& slots, const std::vector<size_t>& large) {
    for (const size_t a : large) {
      if (LessenThese(slots, {a})) return true;
    }
    for (size_t i = 0; i < large.size(); ++i) {
      for (size_t j = i + 1; j < large.size(); ++j) {
        if (LessenThese(slots, {large[i], large[j]})) return true;
      }
    }
    for (size_t i = 0; i < large.size(); ++i) {
      for (size_t j = i + 1; j < large.size(); ++j) {
        for (size_t k = j + 1; k < large.size(); ++k) {
          if (LessenThese(slots, {large[i], large[j], large[k]})) return true;
        }
      }
    }
    return false;
  }

  bool LessenThese(const std::vector<Slot>& slots, const std::vector<size_t>& which) {
    for (const Step step : kSteps) {
      std::vector<Slot> fewer = slots;
      const bool all =
          std::all_of(which.begin(), which.end(), [&](size_t s) { return Take(step, &fewer[s]); });
      if (all && Try(With(rule_, best_.binding, fewer))) return true;
    }
    return false;
  }

  bool TryValues(const std::vector<std::vector<std::vector<double>>>& inputs) {
    const absl::StatusOr<std::optional<Counterexample>> found =
        TryInputs(rule_, best_.binding, inputs);
    if (!found.ok() || !found->has_value() || (*found)->kind != best_.kind) return false;
    best_ = **found;
    return true;
  }

  void SimplifyValues() {
    size_t elements = 0;
    for (const auto& input : best_.inputs) {
      for (const std::vector<double>& part : input) elements += part.size();
    }
    if (elements > kMostElements) return;
    for (size_t x = 0; x < best_.inputs.size(); ++x) {
      for (size_t p = 0; p < best_.inputs[x].size(); ++p) {
        for (size_t i = 0; i < best_.inputs[x][p].size(); ++i) {
          for (const double value : {0.0, 1.0, 2.0}) {
            if (std::fabs(best_.inputs[x][p][i]) <= value) break;
            auto inputs = best_.inputs;
            inputs[x][p][i] = value;
            if (TryValues(inputs)) break;
          }
        }
      }
    }
  }

  const Rule& rule_;
  Counterexample best_;
  int tries_ = 0;
};

}  // namespace

int64_t Magnitude(const Rule& rule, const Binding& binding) {
  int64_t sum = 0;
  for (const TensorType& type : binding.inputs) sum += type.rank();
  for (const Slot& slot : SlotsOf(rule, binding)) sum += std::llabs(slot.value);
  return sum;
}

Counterexample Shrink(const Rule& rule, const Counterexample& counterexample) {
  return Shrinker(rule, counterexample).Run();
}

}  // namespace isomer
