#include "generator/schemas/family_trial.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "generator/assignments/trial.h"

namespace isomer {
namespace {

constexpr int kEvaluated = 3;
constexpr int kWidely = 6;
constexpr size_t kCombinations = 1000;
constexpr int64_t kDegree = 2;

class Trial {
 public:
  Trial(const Rule& rule, TypeOracle* oracle, Random* random)
      : rule_(rule), oracle_(oracle), random_(random) {}

  bool Holds(const std::vector<FamilyCall>& calls) {
    int evaluated = 0;
    // Calls differ in ranks first; values are tried at some from all over the list.
    const size_t step = calls.size() / kEvaluated + 1, wide_step = calls.size() / kWidely + 1;
    for (size_t i = 0; i < calls.size(); ++i) {
      evaluate_ = i % step == 0 || i + 1 == calls.size();
      evaluated_here_ = 0;
      if (!HoldsAt(calls[i], i % wide_step == 0 || i + 1 == calls.size())) return false;
      evaluated += evaluated_here_;
    }
    return evaluated > 0;
  }

 private:
  // Tries all combinations of inputs held in one or two ways at once: along dims that are not the
  // family's, too, because what their tasks share, its operators may not touch. With many operands,
  // and at all calls but a few, along the family's alone.
  bool HoldsAt(const FamilyCall& call, bool widely) {
    std::vector<std::vector<TensorType>> held;
    for (const Range range : {Range::kTwoShares, Range::kOneShare, Range::kOwnShare}) {
      if (!widely && range != Range::kOwnShare) continue;
      held.clear();
      size_t combinations = 1;
      for (size_t o = 0; o < call.binding.inputs.size(); ++o) {
        held.push_back(Holdings(call.binding.inputs[o], call.spread.operands[o], range));
        combinations *= held.back().size();
      }
      if (combinations <= kCombinations) break;
    }
    Binding binding = call.binding;
    const std::function<bool(size_t)> choose = [&](size_t o) {
      if (o == held.size()) return HoldsAtTypes(binding);
      for (const TensorType& type : held[o]) {
        binding.inputs[o] = type;
        if (!choose(o + 1)) return false;
      }
      return true;
    };
    return choose(0);
  }

  // How an input is held: as it is, as its own share in the spread, once or twice, as copies or
  // partial sums; or as pieces along any axis; or as any two of these at once.
  enum class Range { kOwnShare, kOneShare, kTwoShares };
  static std::vector<TensorType> Holdings(const TensorType& type, const SpreadShare& own,
                                          Range range) {
    std::vector<SpreadShare> shares = {
        own, {SpreadShare::Kind::kCopies}, {SpreadShare::Kind::kPartials}};
    for (int64_t axis = -1; range != Range::kOwnShare && axis >= -type.rank(); --axis) {
      shares.push_back({SpreadShare::Kind::kPieces, axis});
    }
    std::vector<TensorType> held = {type};
    auto add = [&](const TensorType& one) {
      const bool divides = std::all_of(one.dims.begin(), one.dims.end(),
                                       [](const Dim& d) { return d.size % d.degree == 0; });
      if (divides && std::find(held.begin(), held.end(), one) == held.end()) held.push_back(one);
    };
    for (const SpreadShare& share : shares) add(Shared(type, share, kDegree));
    add(Shared(type, own, kDegree * kDegree));
    // Of bilinear calls, the partial sums of one operand meet copies of another.
    add(Shared(Shared(type, {SpreadShare::Kind::kCopies}, kDegree), {SpreadShare::Kind::kPartials},
               kDegree));
    for (const SpreadShare& share : shares) {
      if (range != Range::kTwoShares) break;
      for (const SpreadShare& other : shares)
        add(Shared(Shared(type, share, kDegree), other, kDegree));
    }
    return held;
  }

  bool HoldsAtTypes(const Binding& binding) {
    const auto source = OutputTypes(rule_.source, binding, oracle_);
    if (!source.has_value()) return true;
    if (source != OutputTypes(rule_.target, binding, oracle_)) return !Admits(rule_, binding);
    if (!evaluate_ || evaluated_here_ == 2 || !Admits(rule_, binding)) return true;
    const absl::StatusOr<bool> agree = ValuesAgree(rule_, binding, random_);
    ++evaluated_here_;
    return agree.ok() && *agree;
  }

  const Rule& rule_;
  TypeOracle* const oracle_;
  Random* const random_;
  bool evaluate_ = false;
  int evaluated_here_ = 0;
};

}  // namespace

bool HoldsAtCalls(const Rule& rule, const std::vector<FamilyCall>& calls, TypeOracle* oracle,
                  Random* random) {
  return Trial(rule, oracle, random).Holds(calls);
}

}  // namespace isomer
