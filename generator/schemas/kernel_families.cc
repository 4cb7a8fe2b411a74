#include "generator/schemas/kernel_families.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "generator/assignments/sample_calls.h"
#include "generator/assignments/trial.h"
#include "generator/preconditions/settle.h"
#include "generator/schemas/algebra_search.h"
#include "generator/schemas/kernel_forms.h"
#include "pcg/ir/examples.h"

namespace isomer {
namespace {

// A rule must hold at two calls. Operators whose calls are all of other ranks or groups
// (ConvTranspose) have but one for most rules, and nine of theirs are proved: so a call that is a
// sample and an example counts as two.
std::vector<OperatorCall> CallsOf(OpKind kind) {
  std::vector<OperatorCall> calls = SampleCalls(kind);
  for (OperatorCall example : ExamplesOf(kind)) calls.push_back(std::move(example));
  return calls;
}

std::vector<std::string> ListsOf(const Operator& op) {
  std::vector<std::string> names;
  for (const Attribute& a : op.attributes()) {
    if (std::holds_alternative<std::vector<int64_t>>(a.value)) names.push_back(a.name);
  }
  return names;
}

// The ways to name some of the lists, fewest first.
std::vector<ListConstants> ListChoices(const std::vector<std::string>& lists) {
  std::vector<ListConstants> choices = {{}};
  for (const std::string& name : lists) {
    const size_t known = choices.size();
    for (size_t i = 0; i < known; ++i) {
      for (int64_t value : {0, 1}) {
        choices.push_back(choices[i]);
        choices.back()[name] = {value};
      }
    }
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return choices;
}

// Which of the last dims, up to so many of them: a 1 for each that is meant. Of as many dims, all
// come first.
std::vector<std::vector<int64_t>> SetsOfLastDims(int most) {
  std::vector<std::vector<int64_t>> sets;
  for (int dims = 1; dims <= most; ++dims) {
    for (int set = (1 << dims) - 1; set > 0; --set) {
      std::vector<int64_t>& one = sets.emplace_back();
      for (int i = dims; i-- > 0;) one.push_back(set >> i & 1);
    }
  }
  return sets;
}

constexpr int kMostAffineOperands = 8;

bool IsLinearUnary(const OperatorCall& call) {
  if (call.operands.size() != 1 || IsElementwise(call)) return false;
  const auto d = DeclarationOf(call);
  return d.ok() && d->outputs.size() == 1 && d->IsLinearIn({true});
}

// Calls of operators that are linear in operand 0 and others together.
const std::map<OpKind, std::vector<OperatorCall>>& AffineCalls() {
  static const auto* const known = [] {
    auto* calls = new std::map<OpKind, std::vector<OperatorCall>>;
    for (OpKind kind : AllOpKinds()) {
      if (IsLeaf(kind) || IsParallel(kind) || MaxOperands(kind) > kMostAffineOperands) continue;
      std::vector<OperatorCall> affine = SampleCalls(kind);
      std::erase_if(affine, [](const OperatorCall& f) { return AffineOperands(f).empty(); });
      if (!affine.empty()) calls->emplace(kind, std::move(affine));
    }
    return calls;
  }();
  return *known;
}

// A call op(x, w) that is linear in each operand, small enough to run often.
bool IsContraction(const OperatorCall& call) {
  constexpr int kMostDims = 4;
  if (call.operands.size() != 2 || IsPointwise(call)) return false;
  const bool is_small = std::all_of(
      call.operands.begin(), call.operands.end(),
      [](const TensorType& type) { return type.rank() <= kMostDims && IsFloat(type.dtype); });
  if (!is_small) return false;
  const auto d = DeclarationOf(call);
  return d.ok() && d->IsLinearIn({true, false}) && d->IsLinearIn({false, true});
}

class KernelFamilies {
 public:
  KernelFamilies(OpKind kind, TypeOracle* oracle, Random* random, Statistics* statistics)
      : kind_(kind),
        calls_(CallsOf(kind)),
        oracle_(oracle),
        random_(random),
        statistics_(statistics) {}

  std::vector<GeneralRule> Run() {
    for (const OperatorCall& call : calls_) {
      if (!IsContraction(call)) continue;
      Scale(call);
      Merge(call);
      if (ListsOf(call.op).empty()) continue;
      Grow(call);
      Pass(call);
    }
    return std::move(rules_);
  }

 private:
  using Maker =
      std::function<std::optional<KernelRule>(const OperatorCall&, const OperatorCall& f)>;

  // Adds the rule that `maker` makes of `call` and `f`, if it makes the same of other calls and
  // that holds at all of them. `fs`: calls of the operator of `f`. What was tried before is not
  // tried again.
  bool Try(const char* form, const OperatorCall& call, const Maker& maker,
           const OperatorCall& f = {}, const std::vector<OperatorCall>& fs = {{}}) {
    const std::optional<KernelRule> own = maker(call, f);
    if (!own.has_value()) return false;
    if (const auto [known, is_new] = tried_.emplace(own->rule.ToString(), false); !is_new) {
      return known->second;
    }
    std::vector<Binding> held;
    std::set<std::vector<int>> ranks;
    for (const OperatorCall& other : calls_) {
      for (const OperatorCall& other_f : fs) {
        const std::optional<KernelRule> draft = maker(other, other_f);
        if (!draft.has_value() || draft->rule.ToString() != own->rule.ToString()) continue;
        Rule rule = draft->rule;
        rule.ranks = {RanksOf(draft->binding.inputs)};
        if (!Applies(rule, draft->binding)) continue;
        if (!HoldsAt(rule, draft->binding)) return false;
        held.push_back(draft->binding);
        ranks.insert(rule.ranks[0]);
      }
    }
    if (held.size() < 2) return false;
    Rule rule = own->rule;
    rule.ranks.assign(ranks.begin(), ranks.end());
    rule.origin = absl::StrCat("kernel, family: ", form);
    ++statistics_->candidates;
    // Operands that broadcast may be spread otherwise; then the rule is one of other ranks.
    std::erase_if(held, [&](const Binding& binding) { return !HoldsInParallel(rule, {binding}); });
    std::erase_if(rule.ranks, [&](const std::vector<int>& of) {
      return std::none_of(held.begin(), held.end(),
                          [&](const Binding& binding) { return RanksOf(binding.inputs) == of; });
    });
    if (held.empty()) return false;
    // A dim that the source's call must have is no dim of the target's.
    rule.reversible = own->has_inverse && !HasCondition(rule, Condition::Kind::kSplitsDim);
    rule.reversible = rule.reversible && HoldsInParallel(Inverse(rule), held);
    SetId(&rule);
    rules_.push_back({std::move(rule), held[0], {}});
    return tried_[own->rule.ToString()] = true;
  }

  bool Applies(const Rule& rule, const Binding& binding) {
    return Admits(rule, binding) && InstantiatePattern(rule.source, binding).ok();
  }

  bool HoldsAt(const Rule& rule, const Binding& binding) {
    ++statistics_->graphs_enumerated;
    return TypesAndValuesAgree(rule, binding, oracle_, random_);
  }

  bool HoldsInParallel(Rule rule, const std::vector<Binding>& held) {
    constexpr int kTypes = 8, kValues = 2;
    for (const Binding& binding : held) {
      rule.ranks = {RanksOf(binding.inputs)};
      for (const bool small : {false, true}) {
        for (const Binding& drawn : DrawAdmitted(rule, binding, small ? kValues : kTypes,
                                                 {.small = small}, oracle_, random_)) {
          if (!TypesAgree(rule, drawn, oracle_)) return false;
          if (small && !HoldsAt(rule, drawn)) return false;
        }
      }
    }
    return true;
  }

  void Grow(const OperatorCall& call) {
    const std::vector<std::string> lists = ListsOf(call.op);
    for (const std::string& grown : lists) {
      for (int64_t number : {1, 2}) {
        for (const std::vector<int64_t>& grows : SetsOfLastDims(call.operands[1].rank() - 1)) {
          for (const ListConstants& constants : ListChoices(lists)) {
            if (constants.count(grown) > 0) continue;
            if (Try("grown", call, [&](const OperatorCall& c, const OperatorCall&) {
                  return GrownKernel(c, grown, grows, number, constants);
                })) {
              break;
            }
          }
        }
      }
    }
  }

  void Scale(const OperatorCall& call) {
    for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
      std::vector<size_t> led;
      for (size_t o = 0; o < dim.operand_axes.size(); ++o) {
        if (dim.operand_axes[o].has_value()) led.push_back(o);
      }
      if (led.size() != 1 || dim.output_axes.size() != 1 || !dim.output_axes[0]) continue;
      const int64_t axis = *dim.operand_axes[led[0]], output_axis = *dim.output_axes[0];
      Try("scaled", call, [&](const OperatorCall& c, const OperatorCall&) {
        return ScaledKernel(c, led[0], axis, output_axis);
      });
      for (const auto& [kind, fs] : AffineCalls()) {
        const auto folded = [&](const OperatorCall& c, const OperatorCall& f) {
          return FoldedKernel(c, f, led[0], axis, output_axis);
        };
        for (const OperatorCall& f : fs) {
          if (Try("folded", call, folded, f, fs)) break;
        }
      }
    }
  }

  void Merge(const OperatorCall& call) {
    for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
      const bool shared = std::any_of(dim.operand_axes.begin(), dim.operand_axes.end(),
                                      [](const auto& axis) { return !axis.has_value(); });
      if (!shared || dim.output_axes.size() != 1 || !dim.output_axes[0]) continue;
      constexpr int kParts = 3;  // Two are a form of algebra_families.h.
      for (const bool joined : {false, true}) {
        Try(joined ? "joined" : "merged", call, [&](const OperatorCall& c, const OperatorCall&) {
          return MergedKernels(c, dim, kParts, joined);
        });
      }
    }
  }

  void Pass(const OperatorCall& call) {
    for (OpKind kind : AllOpKinds()) {
      if (IsLeaf(kind) || IsParallel(kind)) continue;
      std::vector<OperatorCall> fs = SampleCalls(kind);
      std::erase_if(fs, [&](const OperatorCall& f) {
        const std::vector<std::string> lists = ListsOf(call.op);
        const bool slides = std::any_of(lists.begin(), lists.end(), [&](const std::string& name) {
          return f.op.Find(name) != nullptr;
        });
        return !slides || !IsLinearUnary(f) || f.operands[0].rank() != call.operands[0].rank();
      });
      if (!fs.empty()) PassOver(call, fs);
    }
  }

  bool PassOver(const OperatorCall& call, const std::vector<OperatorCall>& fs) {
    for (int ones = 0; ones < call.operands[1].rank(); ++ones) {
      for (const ListConstants& constants : ListChoices(ListsOf(call.op))) {
        const auto passed = [&](const OperatorCall& c, const OperatorCall& f) {
          return PassedKernel(c, f, ones, constants);
        };
        if (Try("passed", call, passed, fs[0], fs)) return true;
      }
    }
    return false;
  }

  const OpKind kind_;
  const std::vector<OperatorCall> calls_;
  TypeOracle* const oracle_;
  Random* const random_;
  Statistics* const statistics_;
  std::map<std::string, bool> tried_;  // by what it says: whether it is a rule
  std::vector<GeneralRule> rules_;
};

}  // namespace

std::vector<GeneralRule> FindKernelFamilies(OpKind kind, TypeOracle* oracle, Random* random,
                                            Statistics* statistics) {
  if (IsLeaf(kind) || IsParallel(kind)) return {};
  return KernelFamilies(kind, oracle, random, statistics).Run();
}

std::set<OpKind> OperatorsOfKernelFamilies() {
  std::set<OpKind> kinds = {OpKind::kPad,   OpKind::kMul, OpKind::kTranspose, OpKind::kConcat,
                            OpKind::kSplit, OpKind::kAdd, OpKind::kScale,     OpKind::kReduceSum};
  for (OpKind kind : AllOpKinds()) {
    if (IsLeaf(kind) || IsParallel(kind)) continue;
    const std::vector<OperatorCall> calls = SampleCalls(kind);
    if (std::any_of(calls.begin(), calls.end(), IsLinearUnary)) kinds.insert(kind);
    if (AffineCalls().count(kind) > 0) kinds.insert(kind);
  }
  return kinds;
}

}  // namespace isomer
