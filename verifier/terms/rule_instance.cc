#include "verifier/terms/rule_instance.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"
#include "rules/theorems/declaration_facts.h"
#include "verifier/terms/instance_symmetry.h"
#include "verifier/terms/size_unification.h"

namespace isomer {
namespace {

// Sets of operands are enumerated.
constexpr size_t kMaxOperands = 8;
// More would mean broadcastings without end. A case is a set of sizes of which the source is asked
// whether it has shapes: shipped rules have up to 100,666, and 7,713 instances; a case takes 20 us.
constexpr size_t kMaxInstances = 20000, kMaxCases = 200000;

class Builder {
 public:
  Builder(const Rule& rule, std::vector<int> ranks, std::map<std::string, int64_t> axes)
      : rule_(rule), ranks_(std::move(ranks)), axes_(std::move(axes)) {}

  // Appends the instances at these ranks and axes.
  // `cases` counts what was looked at for that.
  absl::Status Explore(std::vector<RuleInstance>* instances, size_t* cases) {
    cases_ = cases;
    return ExploreFrom({}, std::nullopt, instances);
  }

 private:
  absl::Status ExploreFrom(const Substitution& substitution,
                           const std::optional<SizeConflict>& just_broadcast,
                           std::vector<RuleInstance>* instances) {
    if (++*cases_ > kMaxCases || instances->size() > kMaxInstances) {
      return absl::UnimplementedError("too many combinations of ranks, axes and broadcastings");
    }
    RuleInstance instance = Start(substitution);
    std::optional<SizeConflict> conflict;
    if (!ConditionsHold(instance, &conflict)) return absl::OkStatus();
    if (!conflict) {
      const absl::Status status = AddCalls(rule_.source, &instance, &instance.source, &conflict);
      if (absl::IsUnimplemented(status)) return status;
      if (!status.ok() && !conflict) return absl::OkStatus();  // Never well typed.
    }
    if (!conflict) {
      if (!SplitDimsExist(instance)) return absl::OkStatus();
      FinishTarget(&instance);
      if (absl::IsUnimplemented(instance.target_status)) return instance.target_status;
      for (const std::vector<Call>* side : {&instance.source, &instance.target}) {
        for (const Call& call : *side) ISOMER_RETURN_IF_ERROR(ExpectNoBranch(call));
      }
      instances->push_back(std::move(instance));
      return absl::OkStatus();
    }
    // A size that was made 1 to be broadcast, and is not: the case of equal sizes covers it.
    if (just_broadcast &&
        (conflict->a == just_broadcast->a || conflict->a == just_broadcast->b ||
         conflict->b == just_broadcast->a || conflict->b == just_broadcast->b) &&
        (conflict->a == Extent(1) || conflict->b == Extent(1))) {
      return absl::OkStatus();
    }
    Substitution equal = substitution;
    switch (Unify(conflict->a, conflict->b, &equal)) {
      case Unification::kDone:
        ISOMER_RETURN_IF_ERROR(ExploreFrom(equal, std::nullopt, instances));
        break;
      case Unification::kImpossible:
        break;
      case Unification::kInexpressible:
        return absl::UnimplementedError(absl::StrCat("sizes ", conflict->a.ToString(),
                                                     " == ", conflict->b.ToString(), " of a case"));
    }
    for (const Extent* size : {&conflict->a, &conflict->b}) {
      if (!conflict->or_one || !IsBareSymbol(*size)) continue;
      Substitution one = substitution;
      one[size->terms()[0].first] = 1;
      ISOMER_RETURN_IF_ERROR(ExploreFrom(one, conflict, instances));
    }
    return absl::OkStatus();
  }

  RuleInstance Start(const Substitution& substitution) const {
    RuleInstance instance;
    instance.rule = &rule_;
    instance.axes = axes_;
    int symbol = 0;
    for (int rank : ranks_) {
      Shape shape;
      for (int i = 0; i < rank; ++i) {
        shape.push_back(Substituted(Extent::Symbol(symbol++), substitution));
      }
      instance.inputs.push_back(std::move(shape));
    }
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.kind != VariableKind::kSize) continue;
      instance.sizes[variable.name] = Substituted(Extent::Symbol(symbol++), substitution);
    }
    return instance;
  }

  // False: the conditions exclude these axes. `conflict`: they need two sizes to be equal.
  bool ConditionsHold(const RuleInstance& instance, std::optional<SizeConflict>* conflict) const {
    for (const Condition& condition : rule_.conditions) {
      switch (condition.kind) {
        case Condition::Kind::kEqual:
        case Condition::Kind::kNotEqual:
        case Condition::Kind::kAtMost: {
          if (!ComparisonHolds(condition, instance, conflict)) return false;
          break;
        }
        case Condition::Kind::kDivides:
        case Condition::Kind::kUnpartitioned: {
          const std::optional<int64_t> axis = AxisAt(condition.right, instance);
          const int rank = ranks_[condition.input];
          if (!axis || !NormalizeAxis(*axis, rank).ok()) return false;
          break;
        }
        case Condition::Kind::kSameType: {
          const Shape &a = instance.inputs[condition.input],
                      &b = instance.inputs[condition.input_b];
          if (a.size() != b.size()) return false;
          for (size_t i = 0; i < a.size() && !*conflict; ++i) {
            if (a[i] != b[i]) *conflict = SizeConflict{a[i], b[i], false};
          }
          break;
        }
        case Condition::Kind::kNoPartials:
        case Condition::Kind::kSplitsDim:
        case Condition::Kind::kByStructure:  // What it excludes, the proof covers, too.
          break;
      }
    }
    return true;
  }

  // Comparisons of axes are decided here; equal sizes are made equal; what else is said of sizes
  // and degrees only weakens the theorem to be proved, and is left to the type proof.
  bool ComparisonHolds(const Condition& condition, const RuleInstance& instance,
                       std::optional<SizeConflict>* conflict) const {
    const bool of_axes =
        IsOf(condition.left, VariableKind::kAxis) || IsOf(condition.right, VariableKind::kAxis);
    if (of_axes) {
      const std::optional<int64_t> a = AxisAt(condition.left, instance);
      const std::optional<int64_t> b = AxisAt(condition.right, instance);
      if (!a || !b) return false;
      return condition.kind == Condition::Kind::kEqual      ? *a == *b
             : condition.kind == Condition::Kind::kNotEqual ? *a != *b
                                                            : *a <= *b;
    }
    const std::optional<Extent> a = SizeAt(condition.left, instance);
    const std::optional<Extent> b = SizeAt(condition.right, instance);
    const bool names_absent_dim = (condition.left.kind == IntExpr::Kind::kSizeOf && !a) ||
                                  (condition.right.kind == IntExpr::Kind::kSizeOf && !b);
    if (names_absent_dim) return false;
    if (a && b && condition.kind == Condition::Kind::kEqual && *a != *b && !*conflict) {
      *conflict = SizeConflict{*a, *b, false};
    }
    return true;
  }

  bool IsOf(const IntExpr& expr, VariableKind kind) const {
    return expr.kind == IntExpr::Kind::kVariable && KindOf(rule_, expr.variable) == kind;
  }

  absl::Status AddCalls(const Pattern& pattern, RuleInstance* instance, std::vector<Call>* calls,
                        std::optional<SizeConflict>* conflict) const {
    for (const PatternNode& node : pattern.nodes) {
      absl::StatusOr<Call> call = MakeCall(node, *instance, *calls);
      if (!call.ok()) {
        *conflict = ConflictOf(call.status());
        return call.status();
      }
      calls->push_back(*std::move(call));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Call> MakeCall(const PatternNode& node, const RuleInstance& instance,
                                const std::vector<Call>& calls) const {
    Call call;
    call.node = &node;
    std::vector<Shape> operands;
    for (const PatternRef& input : node.inputs) operands.push_back(instance.ShapeOf(calls, input));
    if (node.kind == OpKind::kPipeline || node.kind == OpKind::kBatch) {
      return absl::UnimplementedError("rules of micro-batches are not proved yet");
    }
    if (operands.size() > kMaxOperands) {
      return absl::UnimplementedError("calls of that many operands are not proved");
    }
    const int rank = static_cast<int>(operands[0].size());
    call.symbol.kind = node.kind;
    for (const AttributePattern& attribute : node.attributes) {
      ISOMER_RETURN_IF_ERROR(AddAttribute(attribute, instance, rank, &call));
    }
    if (IsParallel(node.kind)) {
      if (node.kind == OpKind::kConcatPartials) {
        for (const Shape& operand : operands) {
          if (operand.size() != operands[0].size()) {
            return absl::InvalidArgumentError("concat_partials: operands of two ranks");
          }
          for (int i = 0; i < rank; ++i) {
            if (operand[i] == operands[0][i]) continue;
            return WithSizes(absl::InvalidArgumentError("concat_partials: sizes differ"),
                             operands[0][i], operand[i]);
          }
        }
      }
      call.outputs = {operands[0]};
      return call;
    }
    ISOMER_ASSIGN_OR_RETURN(const Operator op, OperatorOf(call.symbol, operands));
    absl::StatusOr<Declaration> declaration = Declare(op, operands);
    if (!declaration.ok()) {
      if (!ConflictOf(declaration.status())) ISOMER_RETURN_IF_ERROR(ExpectRefused(op, operands));
      return declaration.status();
    }
    call.declaration = *std::move(declaration);
    call.passes_partials = PassesPartials(op);
    call.outputs = call.declaration->outputs;
    return call;
  }

  // A number that is a variable is declared as a mark (EncodedConstant). What C++ makes of the mark
  // it must make of every number, or the proof is of the marked case alone.
  static absl::Status ExpectNoBranch(const Call& call) {
    if (!call.declaration) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(const Operator op, OperatorOf(call.symbol, call.declaration->operands));
    return ForEachProbe(op, call.declaration->operands, [&](const Declaration& d) {
      return SameButForConstants(*call.declaration, d);
    });
  }

  // Nor may it refuse the mark and take a number: the case would count as never well typed.
  static absl::Status ExpectRefused(const Operator& op, const std::vector<Shape>& operands) {
    return ForEachProbe(op, operands, [](const Declaration&) { return false; });
  }

  // An error if some number in a variable's place has a declaration that is not `as_marked`.
  static absl::Status ForEachProbe(const Operator& op, const std::vector<Shape>& operands,
                                   const std::function<bool(const Declaration&)>& as_marked) {
    for (const Attribute& attribute : op.attributes()) {
      const double* number = std::get_if<double>(&attribute.value);
      if (number == nullptr || NumberOf(*number).variables.empty()) continue;
      for (double probe : {0.0, 1.0, -1.0, 0.5, 1e30, -1e30}) {
        Operator other = op;
        other.Set(attribute.name, probe);
        const absl::StatusOr<Declaration> d = Declare(other, operands);
        if (d.ok() && !as_marked(*d)) {
          return absl::UnimplementedError(absl::StrCat(op.name(), ": its declaration depends on ",
                                                       attribute.name, ", which is a variable"));
        }
      }
    }
    return absl::OkStatus();
  }

  // A list of constants that exchanges two axes.
  static absl::Status AddPermutation(const std::vector<int64_t>& perm, int rank, Symbol* symbol) {
    if (static_cast<int>(perm.size()) != rank) {
      return absl::InvalidArgumentError("the perm is of another rank");
    }
    std::vector<int64_t> moved;
    for (int i = 0; i < rank; ++i) {
      if (perm[i] != i) moved.push_back(i);
    }
    if (moved.size() != 2 || perm[moved[0]] != moved[1] || perm[moved[1]] != moved[0]) {
      return absl::UnimplementedError("a perm of constants that does not exchange two axes");
    }
    symbol->axes = {moved[0] - rank, moved[1] - rank};
    return absl::OkStatus();
  }

  absl::Status AddAttribute(const AttributePattern& attribute, const RuleInstance& instance,
                            int rank, Call* call) const {
    Symbol* symbol = &call->symbol;
    if (auto* swap = std::get_if<SwapAxes>(&attribute.value)) {
      symbol->axes = {std::min(swap->a, swap->b), std::max(swap->a, swap->b)};
      if (symbol->axes[0] == symbol->axes[1]) return absl::UnimplementedError("no exchange");
    } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      // Smaller constants are marks of variables.
      constexpr double kSmallest = 1e-250;
      if (number->constant != 0 && std::abs(number->constant) < kSmallest) {
        return absl::UnimplementedError(
            absl::StrCat(attribute.name, ": no constant is as small as ", number->constant));
      }
      if (call->node->kind == OpKind::kScale) {
        symbol->factor = *number;
      } else {
        symbol->rest.push_back({attribute.name, EncodedConstant(*number)});
      }
    } else if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value);
               list != nullptr && attribute.name != "sizes") {
      std::vector<int64_t> values;
      for (const IntExpr& expr : *list) {
        values.push_back(attribute.name == "axes" ? AxisAt(expr, instance).value_or(rank)
                                                  : expr.constant);
      }
      if (call->node->kind == OpKind::kTranspose) return AddPermutation(values, rank, symbol);
      symbol->rest.push_back({attribute.name, values});
    } else if (auto* sizes = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
      for (const IntExpr& expr : *sizes) {
        const std::optional<Extent> size = SizeAt(expr, instance);
        if (!size) return absl::InvalidArgumentError("a part's size is that of an absent dim");
        symbol->sizes.push_back(*size);
      }
    } else if (std::holds_alternative<AttributeVariable>(attribute.value)) {
      return absl::UnimplementedError(
          absl::StrCat(OpName(call->node->kind), ": attribute ", attribute.name, " is a variable"));
    } else if (attribute.name == "axis") {
      const std::optional<int64_t> axis = AxisAt(std::get<IntExpr>(attribute.value), instance);
      if (!axis) return absl::InternalError("an axis is not bound");
      ISOMER_ASSIGN_OR_RETURN(call->axis, NormalizeAxis(*axis, rank));
      if (call->node->kind == OpKind::kConcat || call->node->kind == OpKind::kSplit) {
        symbol->axes = {call->axis - rank};
      } else if (!IsParallel(call->node->kind)) {
        symbol->rest.push_back({attribute.name, int64_t{call->axis - rank}});
      }
    } else if (attribute.name != "degree") {
      const IntExpr& expr = std::get<IntExpr>(attribute.value);
      if (expr.kind != IntExpr::Kind::kConstant) {
        return absl::UnimplementedError(absl::StrCat("attribute ", attribute.name, " varies"));
      }
      symbol->rest.push_back({attribute.name, expr.constant});
    }
    return absl::OkStatus();
  }

  // kSplitsDim of an operator that is declared here: the dim must be there.
  bool SplitDimsExist(const RuleInstance& instance) const {
    for (const Condition& condition : rule_.conditions) {
      if (condition.kind == Condition::Kind::kSplitsDim && SplitDimAt(condition, instance) < 0) {
        return false;
      }
    }
    return true;
  }

 public:
  static int SplitDimAt(const Condition& condition, const RuleInstance& instance) {
    const Declaration& d = *instance.source[condition.node].declaration;
    for (int v = 0; v < static_cast<int>(d.dims.size()); ++v) {
      if (d.IsPartitionable(v) && LeadsExactly(condition, instance, d, v)) return v;
    }
    return -1;
  }

 private:
  static bool LeadsExactly(const Condition& condition, const RuleInstance& instance,
                           const Declaration& d, int v) {
    auto fits = [&](const std::vector<std::optional<IntExpr>>& axes, int t, int rank,
                    const std::function<int(int)>& lead) {
      int64_t axis = 0;  // none
      if (t < static_cast<int>(axes.size()) && axes[t].has_value()) {
        axis = AxisAt(*axes[t], instance).value_or(0);
      }
      for (int i = 0; i < rank; ++i) {
        if ((lead(i) == v) != (axis == i - rank)) return false;
      }
      return axis <= 0 && axis >= -rank;
    };
    for (int o = 0; o < d.num_operands(); ++o) {
      if (!fits(condition.operand_axes, o, static_cast<int>(d.operands[o].size()),
                [&](int i) { return d.LeadOfOperandDim(o, i); })) {
        return false;
      }
    }
    for (int t = 0; t < static_cast<int>(d.outputs.size()); ++t) {
      if (!fits(condition.output_axes, t, static_cast<int>(d.outputs[t].size()),
                [&](int i) { return d.LeadOfOutputDim(t, i); })) {
        return false;
      }
    }
    return true;
  }

  void FinishTarget(RuleInstance* instance) const {
    std::optional<SizeConflict> conflict;
    instance->target_status = AddCalls(rule_.target, instance, &instance->target, &conflict);
    if (!instance->target_status.ok()) return;
    for (size_t o = 0; o < rule_.source.outputs.size(); ++o) {
      const Shape& source = instance->ShapeOf(instance->source, rule_.source.outputs[o]);
      const Shape& target = instance->ShapeOf(instance->target, rule_.target.outputs[o]);
      if (source == target) continue;
      instance->target_status = absl::InvalidArgumentError(
          absl::StrCat("output ", o, " has another shape in the target"));
    }
  }

  const Rule& rule_;
  const std::vector<int> ranks_;
  const std::map<std::string, int64_t> axes_;
  size_t* cases_ = nullptr;
};

}  // namespace

int SplitDimAt(const Condition& condition, const RuleInstance& instance) {
  return Builder::SplitDimAt(condition, instance);
}

absl::StatusOr<std::vector<RuleInstance>> InstancesOf(const Rule& rule) {
  std::vector<RuleInstance> instances;
  size_t cases = 0;
  std::vector<std::string> axis_variables;
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kAxis) axis_variables.push_back(variable.name);
  }
  for (const std::vector<int>& ranks : rule.ranks) {
    const int most = ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end());
    std::map<std::string, int64_t> axes;
    std::function<absl::Status(size_t)> each = [&](size_t v) -> absl::Status {
      if (v == axis_variables.size()) return Builder(rule, ranks, axes).Explore(&instances, &cases);
      for (int64_t axis = -most; axis < 0; ++axis) {
        axes[axis_variables[v]] = axis;
        ISOMER_RETURN_IF_ERROR(each(v + 1));
      }
      return absl::OkStatus();
    };
    ISOMER_RETURN_IF_ERROR(each(0));
  }
  DropSymmetric(rule, &instances);
  return instances;
}

}  // namespace isomer
