#include "generator/assignments/sampler.h"

#include <algorithm>
#include <set>

#include "generator/assignments/call_types.h"

namespace isomer {
namespace {

constexpr size_t kLargestMove = 4;

// Few enough elements and shards to evaluate.
bool IsCheap(const Binding& binding) {
  constexpr int64_t kMostElements = 20000, kMostShards = 256;
  for (const TensorType& type : binding.inputs) {
    if (!ValidateTensorType(type).ok()) return false;
    if (type.NumElements() * type.partials > kMostElements || type.NumShards() > kMostShards) {
      return false;
    }
  }
  return true;
}

bool HasAttributeVariables(const Rule& rule) {
  return std::any_of(rule.variables.begin(), rule.variables.end(),
                     [](const RuleVariable& v) { return v.kind == VariableKind::kAttribute; });
}

}  // namespace

bool DrawInputTypes(const Pattern& pattern, const std::vector<int64_t>& degrees, TypeOracle* oracle,
                    Random* random, Binding* binding) {
  std::vector<bool> known(binding->inputs.size(), false);
  TypedPattern typed;
  for (const PatternNode& node : pattern.nodes) {
    std::vector<TensorType> operands;
    std::vector<bool> operand_known;
    for (PatternRef ref : node.inputs) {
      if (ref.node >= 0 && ref.index >= static_cast<int>(typed.outputs[ref.node].size())) {
        return false;
      }
      operands.push_back(typed.TypeOf(*binding, ref));
      operand_known.push_back(ref.node >= 0 || known[ref.index]);
    }
    const absl::StatusOr<Operator> op = InstantiateOperator(node, *binding, operands[0].rank());
    if (!op.ok()) return false;
    const bool all =
        std::find(operand_known.begin(), operand_known.end(), false) == operand_known.end();
    if (!all && !DrawOperandTypes(*op, operand_known, degrees, random, &operands)) return false;
    for (size_t o = 0; o < operands.size(); ++o) {
      const PatternRef ref = node.inputs[o];
      if (ref.node >= 0 || known[ref.index]) continue;
      binding->inputs[ref.index] = operands[o];
      known[ref.index] = true;
    }
    // An input that occurs twice has one type.
    for (size_t o = 0; o < operands.size(); ++o) {
      if (node.inputs[o].node < 0) operands[o] = binding->inputs[node.inputs[o].index];
    }
    const std::vector<TensorType>* types = oracle->Infer(*op, operands);
    if (types == nullptr) return false;
    typed.ops.push_back(*op);
    typed.outputs.push_back(*types);
  }
  // An identity's input is in no node.
  for (size_t i = 0; i < known.size(); ++i) {
    std::vector<TensorType> one = {binding->inputs[i]};
    if (known[i]) continue;
    const Operator any(OpKind::kReplicate, {{"degree", int64_t{1}}});
    if (!DrawOperandTypes(any, {false}, degrees, random, &one)) return false;
    binding->inputs[i] = one[0];
  }
  return true;
}

Sampler::Sampler(const Rule& rule, const Binding& base, TypeOracle* oracle)
    : rule_(rule), base_(base), oracle_(oracle), fixed_shapes_(HasAttributeVariables(rule)) {
  usable_ = SourceChecks(base_);
  if (usable_ && !fixed_shapes_) FindMoves();
}

bool Sampler::SourceChecks(const Binding& binding) const {
  for (const TensorType& type : binding.inputs) {
    if (!ValidateTensorType(type).ok()) return false;
  }
  for (const RuleVariable& variable : rule_.variables) {
    if (variable.kind != VariableKind::kSize) continue;
    const auto size = binding.variables.find(variable.name);
    if (size == binding.variables.end() || size->second < 1) return false;
  }
  return InferPattern(rule_.source, binding, oracle_).has_value();
}

void Sampler::Grow(const Slot& slot, int64_t by, Binding* binding) {
  if (slot.input < 0) {
    binding->variables[slot.variable] += by;
  } else {
    binding->inputs[slot.input].dims[slot.dim].size += by;
  }
}

void Sampler::Apply(const Move& move, int64_t by, const std::vector<Slot>& slots,
                    Binding* binding) {
  for (size_t s = 0; s < move.slots.size(); ++s) {
    Grow(slots[move.slots[s]], move.opposite && s == 1 ? -by : by, binding);
  }
}

bool Sampler::TryMove(const std::vector<int>& slots, bool opposite) {
  const Move move{slots, opposite};
  Binding moved = base_;
  Apply(move, 1, slots_, &moved);
  if (!SourceChecks(moved)) return false;
  // By another amount too, so that a size that happens to become equal does not mislead.
  if (!opposite) {
    Apply(move, 2, slots_, &moved);
    if (!SourceChecks(moved)) return false;
  }
  moves_.push_back(move);
  return true;
}

// Extends `chosen` by `count` slots from `from` on until a move is found.
bool Sampler::SearchMove(std::vector<int>* chosen, size_t from, size_t count) {
  if (count == 0) return TryMove(*chosen);
  for (size_t s = from; s < slots_.size(); ++s) {
    if (static_cast<int>(s) == chosen->front()) continue;
    chosen->push_back(static_cast<int>(s));
    if (SearchMove(chosen, s + 1, count - 1)) return true;
    chosen->pop_back();
  }
  return false;
}

void Sampler::FindMoves() {
  // Size 1 broadcasts, so the base avoids it; constants of the pattern may still hold dims fast.
  int max_rank = 0;
  for (size_t i = 0; i < base_.inputs.size(); ++i) {
    max_rank = std::max(max_rank, base_.inputs[i].rank());
    for (int d = 0; d < base_.inputs[i].rank(); ++d) {
      slots_.push_back({static_cast<int>(i), d, ""});
    }
  }
  for (const RuleVariable& variable : rule_.variables) {
    if (variable.kind == VariableKind::kSize) slots_.push_back({-1, -1, variable.name});
  }
  // Sizes of parts may trade with each other.
  for (size_t a = 0; a < slots_.size(); ++a) {
    for (size_t b = a + 1; b < slots_.size(); ++b) {
      if (slots_[a].input < 0 && slots_[b].input < 0) {
        TryMove({static_cast<int>(a), static_cast<int>(b)}, true);
      }
    }
  }
  std::set<int> covered;
  // Dims at one place of all inputs usually go together.
  for (int from_end = 1; from_end <= max_rank; ++from_end) {
    std::vector<int> set;
    bool alone = false;
    for (size_t s = 0; s < slots_.size(); ++s) {
      if (slots_[s].input < 0 || slots_[s].dim != base_.inputs[slots_[s].input].rank() - from_end) {
        continue;
      }
      set.push_back(static_cast<int>(s));
    }
    for (int s : set) {
      if (covered.count(s) == 0 && TryMove({s})) covered.insert(s), alone = true;
    }
    if (alone || set.size() < 2) continue;
    if (TryMove(set)) covered.insert(set.begin(), set.end());
  }
  for (size_t s = 0; s < slots_.size(); ++s) {
    for (size_t size = 1; size <= kLargestMove && covered.count(static_cast<int>(s)) == 0; ++size) {
      std::vector<int> chosen = {static_cast<int>(s)};
      if (SearchMove(&chosen, 0, size - 1)) covered.insert(chosen.begin(), chosen.end());
    }
  }
}

Binding Sampler::DrawShapes(const SampleOptions& options, Random* random) const {
  Binding binding = base_;
  if (fixed_shapes_) return binding;
  if (options.unit > 0) {
    for (const Move& move : moves_) {
      if (!move.opposite && Chance(random, 20)) Apply(move, options.unit, slots_, &binding);
    }
  } else if (!options.small) {
    // A scaled solution is a solution of equal dims and of sums; one that fails is drawn again.
    static constexpr int64_t kFactors[] = {1, 3, 6, 12, 12, 12};
    const int64_t factor = kFactors[Below(random, 6)];
    for (const Slot& slot : slots_) {
      int64_t& size = slot.input < 0 ? binding.variables[slot.variable]
                                     : binding.inputs[slot.input].dims[slot.dim].size;
      size *= factor;
    }
    for (const Move& move : moves_) {
      const int64_t by = Below(random, 3) * factor * (Chance(random, 20) ? 1 : 2);
      Apply(move, move.opposite ? by / 4 : by, slots_, &binding);
    }
  } else {
    for (const Move& move : moves_) {
      const int64_t by = 2 * Below(random, 3) - (Chance(random, 20) ? 1 : 0);
      Apply(move, move.opposite ? Below(random, 2) : by, slots_, &binding);
    }
  }
  // Now and then a dim of size 1, which elementwise operators and batches broadcast.
  if (Chance(random, 15) && !slots_.empty()) {
    const Slot& slot = slots_[Below(random, static_cast<int64_t>(slots_.size()))];
    if (slot.input >= 0) {
      Binding narrow = binding;
      narrow.inputs[slot.input].dims[slot.dim].size = 1;
      if (SourceChecks(narrow)) return narrow;
    }
  }
  return binding;
}

void Sampler::DrawVariables(const SampleOptions& options, Binding* binding, Random* random) const {
  int rank = 1;
  for (const TensorType& type : binding->inputs) rank = std::max(rank, type.rank());
  for (const RuleVariable& variable : rule_.variables) {
    switch (variable.kind) {
      case VariableKind::kDegree:
        binding->variables[variable.name] = Chance(random, 10) ? 1
                                            : options.unit > 0 ? options.unit
                                                               : 2 + Below(random, 2);
        break;
      case VariableKind::kNumber:
        binding->numbers[variable.name] = static_cast<double>(Below(random, 9) + 2) / 4;
        break;
      case VariableKind::kAxis:
        // Axes of the base are part of the shapes' solution: they vary from base to base.
        if (base_.variables.count(variable.name) == 0) {
          binding->variables[variable.name] = -1 - Below(random, rank);
        }
        break;
      case VariableKind::kSize:
      case VariableKind::kAttribute:
        break;
    }
  }
}

// Axes of a kSplitsDim condition are those of one iteration dim of the call.
bool Sampler::DrawSplit(Binding* binding, Random* random) const {
  for (const Condition& condition : rule_.conditions) {
    if (condition.kind != Condition::Kind::kSplitsDim) continue;
    const std::optional<TypedPattern> typed = InferPattern(rule_.source, *binding, oracle_);
    if (!typed.has_value()) return false;
    std::vector<TensorType> operands;
    for (PatternRef ref : rule_.source.nodes[condition.node].inputs) {
      operands.push_back(typed->TypeOf(*binding, ref));
    }
    const std::vector<SplittableDim> dims = SplittableDims(typed->ops[condition.node], operands);
    if (dims.empty()) return false;
    const SplittableDim& dim = dims[Below(random, static_cast<int64_t>(dims.size()))];
    auto bind = [&](const auto& expressions, const auto& axes) {
      if (expressions.size() != axes.size()) return false;
      for (size_t i = 0; i < axes.size(); ++i) {
        if (expressions[i].has_value() != axes[i].has_value()) return false;
        if (!axes[i].has_value()) continue;
        const IntExpr& axis = *expressions[i];
        if (axis.kind == IntExpr::Kind::kConstant && axis.constant != *axes[i]) return false;
        if (axis.kind == IntExpr::Kind::kVariable) binding->variables[axis.variable] = *axes[i];
      }
      return true;
    };
    if (!bind(condition.operand_axes, dim.operand_axes)) return false;
    if (!bind(condition.output_axes, dim.output_axes)) return false;
  }
  return true;
}

std::optional<Binding> Sampler::Draw(const SampleOptions& options, int attempts, Random* random) {
  if (!usable_) return std::nullopt;
  const std::vector<int64_t> degrees =
      options.unit > 0 ? std::vector<int64_t>{1, 1, options.unit} : UsualDegrees();
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Binding binding = DrawShapes(options, random);
    DrawVariables(options, &binding, random);
    // One draw in five is not parallel: conditions on sizes alone show there.
    if (Chance(random, 80) && !DrawInputTypes(rule_.source, degrees, oracle_, random, &binding))
      continue;
    if (options.small && !IsCheap(binding)) continue;
    if (SourceChecks(binding) && DrawSplit(&binding, random)) return binding;
  }
  return std::nullopt;
}

}  // namespace isomer
