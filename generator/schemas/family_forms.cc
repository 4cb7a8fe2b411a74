#include "generator/schemas/family_forms.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

// The operator that makes a share of the whole, and the one that undoes it; nullopt if none does.
std::optional<OpKind> Making(const SpreadShare& share) {
  switch (share.kind) {
    case SpreadShare::Kind::kPieces:
      return OpKind::kPartition;
    case SpreadShare::Kind::kCopies:
      return OpKind::kReplicate;
    default:
      return std::nullopt;
  }
}
std::optional<OpKind> Undoing(const SpreadShare& share) {
  switch (share.kind) {
    case SpreadShare::Kind::kPieces:
      return OpKind::kCombine;
    case SpreadShare::Kind::kPartials:
      return OpKind::kReduce;
    default:
      return std::nullopt;
  }
}

// An operand's operator stands with the spread call if it makes the share, with the whole call if
// it undoes it; an output's the other way around. Unmoved, operands are made and outputs undone.
struct Placed {
  std::optional<OpKind> op;
  bool on_spread = false;
};
Placed OfOperand(const SpreadShare& share, bool moved) {
  if (share.kind == SpreadShare::Kind::kWhole) return {};
  if (!moved && Making(share)) return {Making(share), true};
  return {Undoing(share), false};
}
Placed OfOutput(const SpreadShare& share, bool moved) {
  if (share.kind == SpreadShare::Kind::kWhole) return {};
  if (!moved && Undoing(share)) return {Undoing(share), true};
  return {Making(share), false};
}
bool MayMove(const SpreadShare& share) { return Making(share) && Undoing(share); }

int SourceOperators(const CallSpread& spread, const SpreadForm& form) {
  int count = 1;
  for (size_t o = 0; o < spread.operands.size(); ++o) {
    const Placed placed = OfOperand(spread.operands[o], form.operand_moved[o]);
    count += placed.op && placed.on_spread == form.back;
  }
  for (size_t t = 0; t < form.outputs.size(); ++t) {
    const Placed placed = OfOutput(spread.outputs[form.outputs[t]], form.output_moved[t]);
    count += placed.op && placed.on_spread == form.back;
  }
  return count;
}

// Which outputs a rule has, and whether their operators are moved: all unmoved, all moved, or one
// of several moved.
std::vector<SpreadForm> OutputChoices(const CallSpread& spread) {
  const int count = static_cast<int>(spread.outputs.size());
  SpreadForm all;
  for (int t = 0; t < count; ++t) all.outputs.push_back(t);
  std::vector<SpreadForm> choices;
  const bool some_undone = std::any_of(spread.outputs.begin(), spread.outputs.end(),
                                       [](const SpreadShare& s) { return Undoing(s).has_value(); });
  const bool all_made = std::all_of(spread.outputs.begin(), spread.outputs.end(),
                                    [](const SpreadShare& s) { return Making(s).has_value(); });
  if (some_undone) {
    all.output_moved.assign(count, false);
    choices.push_back(all);
  }
  if (!all_made) return choices;
  if (count == 1 || some_undone) {
    all.output_moved.assign(count, true);
    choices.push_back(all);
  }
  for (int t = 0; count > 1 && t < count; ++t) {
    SpreadForm one;
    one.outputs = {t};
    one.output_moved = {true};
    choices.push_back(one);
  }
  return choices;
}

// One side in the making.
struct Side {
  Pattern* pattern;
  std::vector<PatternRef> operands;
  int call = -1;
};

void Put(OpKind kind, const IntExpr* axis, PatternRef* ref, Pattern* pattern) {
  PatternNode node{kind, {}, {*ref}};
  const bool has_axis = kind == OpKind::kPartition || kind == OpKind::kCombine;
  if (has_axis) node.attributes.push_back({"axis", *axis});
  node.attributes.push_back({"degree", IntExpr::Variable("d")});
  pattern->nodes.push_back(std::move(node));
  *ref = PatternRef::Node(static_cast<int>(pattern->nodes.size()) - 1);
}

std::string OriginOf(const CallSpread& spread, const SpreadForm& form) {
  const bool gathers = std::find(form.operand_moved.begin(), form.operand_moved.end(), true) !=
                       form.operand_moved.end();
  const bool scatters = std::find(form.output_moved.begin(), form.output_moved.end(), true) !=
                        form.output_moved.end();
  std::string name = "expansion";
  if (spread.Has(SpreadShare::Kind::kPartials)) {
    name = "reduced";
  } else if (!spread.Has(SpreadShare::Kind::kPieces)) {
    name = "carried";
  } else if (gathers || scatters) {
    name = !scatters ? "gathered" : !gathers ? "scattered" : "respread";
  }
  return absl::StrCat(name, form.back ? " back" : "", ", family");
}

}  // namespace

CallPattern PatternOfCall(const OperatorCall& call, bool pinned) {
  std::set<std::string> constants;
  for (const Attribute& a : call.op.attributes()) {
    const bool is_scalar =
        std::holds_alternative<double>(a.value) || std::holds_alternative<int64_t>(a.value);
    if (pinned && is_scalar && a.name != "axis") constants.insert(a.name);
  }
  CallPattern pattern{*AttributesOfCall(call, {.part = "s"}, constants), call.op.kind()};
  pattern.binding.inputs = call.operands;
  return pattern;
}

std::vector<SpreadForm> FormsOf(const CallSpread& spread) {
  std::vector<size_t> movable;
  for (size_t o = 0; o < spread.operands.size(); ++o) {
    if (MayMove(spread.operands[o])) movable.push_back(o);
  }
  std::vector<SpreadForm> forms;
  for (const bool back : {false, true}) {
    for (SpreadForm form : OutputChoices(spread)) {
      form.back = back;
      const bool moves_output = MayMove(spread.outputs[form.outputs[0]]) && form.output_moved[0];
      for (size_t bits = 0; bits < (size_t{1} << movable.size()); ++bits) {
        form.operand_moved.assign(spread.operands.size(), false);
        for (size_t m = 0; m < movable.size(); ++m) form.operand_moved[movable[m]] = bits >> m & 1;
        const bool expansion = bits == 0 && !moves_output;
        if (expansion || SourceOperators(spread, form) <= kMostSourceOperators)
          forms.push_back(form);
      }
    }
  }
  return forms;
}

Rule RuleOfForm(const CallPattern& call, const CallSpread& spread, const SpreadForm& form) {
  Rule rule;
  rule.num_inputs = static_cast<int>(spread.operands.size());
  rule.origin = OriginOf(spread, form);
  rule.variables = call.variables;
  rule.variables.push_back({"d", VariableKind::kDegree});
  Side whole{form.back ? &rule.target : &rule.source, {}, -1};
  Side spread_side{form.back ? &rule.source : &rule.target, {}, -1};
  Condition condition{.kind = Condition::Kind::kSplitsDim,
                      .left = form.back ? IntExpr::Constant(1) : IntExpr::Variable("d")};
  auto axis_of = [&](const SpreadShare& share, const std::string& name) -> std::optional<IntExpr> {
    if (share.kind != SpreadShare::Kind::kPieces) return std::nullopt;
    rule.variables.push_back({name, VariableKind::kAxis});
    return IntExpr::Variable(name);
  };
  for (int o = 0; o < rule.num_inputs; ++o) {
    const std::optional<IntExpr> axis = axis_of(spread.operands[o], absl::StrCat("i", o));
    condition.operand_axes.push_back(axis);
    const Placed placed = OfOperand(spread.operands[o], form.operand_moved[o]);
    for (Side* side : {&whole, &spread_side}) {
      PatternRef ref = PatternRef::Input(o);
      if (placed.op && placed.on_spread == (side == &spread_side)) {
        Put(*placed.op, axis ? &*axis : nullptr, &ref, side->pattern);
      }
      side->operands.push_back(ref);
    }
  }
  for (Side* side : {&whole, &spread_side}) {
    side->call = static_cast<int>(side->pattern->nodes.size());
    side->pattern->nodes.push_back({call.kind, call.attributes, side->operands});
  }
  for (size_t t = 0; t < spread.outputs.size(); ++t) {
    condition.output_axes.push_back(axis_of(spread.outputs[t], absl::StrCat("j", t)));
  }
  for (size_t t = 0; t < form.outputs.size(); ++t) {
    const int output = form.outputs[t];
    const std::optional<IntExpr>& axis = condition.output_axes[output];
    const Placed placed = OfOutput(spread.outputs[output], form.output_moved[t]);
    for (Side* side : {&whole, &spread_side}) {
      PatternRef ref = PatternRef::Node(side->call, output);
      if (placed.op && placed.on_spread == (side == &spread_side)) {
        Put(*placed.op, axis ? &*axis : nullptr, &ref, side->pattern);
      }
      side->pattern->outputs.push_back(ref);
    }
  }
  condition.node = form.back ? spread_side.call : whole.call;
  if (spread.Has(SpreadShare::Kind::kPieces)) rule.conditions = {condition};
  return rule;
}

void BindForm(const CallSpread& spread, Binding* binding) {
  binding->variables["d"] = 2;
  for (size_t o = 0; o < spread.operands.size(); ++o) {
    if (spread.operands[o].kind != SpreadShare::Kind::kPieces) continue;
    binding->variables[absl::StrCat("i", o)] = spread.operands[o].axis;
  }
  for (size_t t = 0; t < spread.outputs.size(); ++t) {
    if (spread.outputs[t].kind != SpreadShare::Kind::kPieces) continue;
    binding->variables[absl::StrCat("j", t)] = spread.outputs[t].axis;
  }
}

}  // namespace isomer
