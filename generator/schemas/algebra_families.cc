#include "generator/schemas/algebra_families.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "generator/schemas/algebra_forms.h"
#include "generator/schemas/algebra_search.h"
#include "pcg/ir/examples.h"

namespace isomer {
namespace {

// Operators of more operands are called with fewer; those that make more outputs, with fewer too.
constexpr size_t kMostOperands = 5, kMostOutputs = 2;

// An elementwise call of operands of several ranks above 1: others are enough, and each rank is a
// proof of its own.
bool MixesRanks(const OperatorCall& call) {
  std::set<int> ranks;
  for (const TensorType& type : call.operands) ranks.insert(std::max(1, type.rank()));
  ranks.erase(1);
  return ranks.size() > 1 && IsPointwise(call);
}

std::vector<OperatorCall> CallsOf(OpKind kind, TypeOracle* oracle) {
  std::vector<OperatorCall> calls = WithExamples(kind, SampleCalls(kind));
  const size_t most = MaxOperands(kind) > static_cast<int>(kMostOperands)
                          ? static_cast<size_t>(MinOperands(kind))
                          : kMostOperands;
  std::erase_if(calls, [&](const OperatorCall& call) {
    if (MixesRanks(call) || call.operands.empty() || call.operands.size() > most) return true;
    const std::vector<TensorType>* outputs = oracle->Infer(call.op, call.operands);
    return outputs == nullptr || outputs->size() > kMostOutputs;
  });
  return calls;
}

class FamilyFinder {
 public:
  FamilyFinder(OpKind kind, TypeOracle* oracle, Random* random, Statistics* statistics)
      : kind_(kind),
        calls_(CallsOf(kind, oracle)),
        oracle_(oracle),
        search_(calls_, oracle, random, statistics) {}

  std::vector<GeneralRule> Run() {
    for (const OperatorCall& call : calls_) CutOperands(call);
    for (const OperatorCall& call : calls_) ChooseLinear(call);
    const bool moves_parts = kind_ == OpKind::kConcat || kind_ == OpKind::kSplit;
    if (!moves_parts) {  // Those are parts of the forms already.
      for (const OperatorCall& call : calls_) CommuteElementwise(call);
    }
    return search_.Rules();
  }

 private:
  // Calls `visit` with every choice of an axis, or none, for each operand; not none for all.
  static void ForEachCut(const std::vector<TensorType>& types,
                         const std::function<void(const ShapeCut&)>& visit) {
    ShapeCut cut;
    cut.operand_axes.resize(types.size());
    std::function<void(size_t)> choose = [&](size_t o) {
      if (o == types.size()) {
        const bool some = std::any_of(cut.operand_axes.begin(), cut.operand_axes.end(),
                                      [](const auto& axis) { return axis.has_value(); });
        if (some) visit(cut);
        return;
      }
      cut.operand_axes[o].reset();
      choose(o + 1);
      for (int64_t axis = -1; axis >= -types[o].rank(); --axis) {
        cut.operand_axes[o] = axis;
        choose(o + 1);
      }
      cut.operand_axes[o].reset();
    };
    choose(0);
  }

  // The call on pieces along `cut` gives pieces of its outputs, or parts of a sum.
  void CutOperands(const OperatorCall& call) {
    ForEachCut(call.operands, [&](ShapeCut cut) {
      std::vector<TensorType> second = call.operands, whole = call.operands;
      for (size_t o = 0; o < call.operands.size(); ++o) {
        if (!cut.operand_axes[o].has_value()) continue;
        const size_t i = call.operands[o].dims.size() + *cut.operand_axes[o];
        int64_t& size = second[o].dims[i].size;
        if (size > 1) size /= 2;
        whole[o].dims[i].size += size;
      }
      const auto outputs = Infer(call, call.operands), b = Infer(call, second),
                 c = Infer(call, whole);
      if (!outputs || !b || !c) return;
      cut.output_axes.assign(outputs->size(), std::nullopt);
      if (*outputs == *c && *b == *c) {
        if (search_.AddFact(AlgebraForm::kSum, call, cut)) {
          search_.AddFact(AlgebraForm::kSumBack, call, cut);
          SplitOthers(call, cut);
        }
      }
      ChooseOutputAxes(call, *outputs, *b, *c, 0, &cut);
    });
  }

  void SplitOthers(const OperatorCall& call, const ShapeCut& cut) {
    const auto led = std::count_if(cut.operand_axes.begin(), cut.operand_axes.end(),
                                   [](const auto& axis) { return axis.has_value(); });
    if (led < 2) return;
    search_.AddFact(AlgebraForm::kSumSplitRest, call, cut);
    search_.AddFact(AlgebraForm::kSumSplitFirst, call, cut);
  }

  // Which axes the pieces of the outputs have, if `whole` is made of them.
  void ChooseOutputAxes(const OperatorCall& call, const std::vector<TensorType>& first,
                        const std::vector<TensorType>& second, const std::vector<TensorType>& whole,
                        size_t t, ShapeCut* cut) {
    if (t == first.size()) {
      if (!search_.AddFact(AlgebraForm::kConcat, call, *cut)) return;
      search_.AddFact(AlgebraForm::kConcatBack, call, *cut);
      search_.AddFact(AlgebraForm::kSplit, call, *cut);
      search_.AddFact(AlgebraForm::kSplitBack, call, *cut);
      // Nothing is gained where the two calls share no operand.
      if (std::any_of(cut->operand_axes.begin(), cut->operand_axes.end(),
                      [](const auto& axis) { return !axis.has_value(); })) {
        search_.AddFact(AlgebraForm::kMerge, call, *cut);
      }
      return;
    }
    const int rank = first[t].rank();
    for (int64_t axis = -1; axis >= -rank; --axis) {
      TensorType joined = first[t];
      if (second[t].rank() != rank) return;
      joined.dims[rank + axis].size += second[t].dims[rank + axis].size;
      if (joined != whole[t]) continue;
      cut->output_axes[t] = axis;
      ChooseOutputAxes(call, first, second, whole, t + 1, cut);
    }
  }

  // Sets of operands in which the call is linear, smallest first; larger ones are theirs.
  void ChooseLinear(const OperatorCall& call) {
    if (kind_ == OpKind::kCast) return;  // Its declaration leaves out how it rounds.
    std::vector<unsigned> found;
    const unsigned all = (1u << call.operands.size()) - 1;
    for (int size = 1; size <= static_cast<int>(call.operands.size()); ++size) {
      for (unsigned set = 1; set <= all; ++set) {
        if (__builtin_popcount(set) != size) continue;
        if (std::any_of(found.begin(), found.end(), [&](unsigned f) { return (f & set) == f; })) {
          continue;
        }
        ShapeCut cut;
        for (size_t o = 0; o < call.operands.size(); ++o) {
          cut.operand_axes.push_back((set >> o & 1) != 0 ? std::optional<int64_t>(0)
                                                         : std::nullopt);
        }
        bool linear = false;
        for (AlgebraForm form : {AlgebraForm::kAdd, AlgebraForm::kSub, AlgebraForm::kScale}) {
          if (form == AlgebraForm::kScale && kind_ == OpKind::kScale) continue;
          linear |= search_.AddFact(form, call, cut);
        }
        if (linear) found.push_back(set);
      }
    }
  }

  // Elementwise operators that may be applied before the call or after it.
  void CommuteElementwise(const OperatorCall& call) {
    if (kind_ == OpKind::kCast) return;  // What it rounds, functions take elsewhere.
    // Two elementwise operators are few enough to be enumerated like any others.
    if (IsPointwise(call) && !Relabels(call) && call.operands.size() <= 2) return;
    // No sum is of function values what it is of the values, but a scaling's or a sum's.
    if (AddsUp(call)) return;
    for (const bool two : {false, true}) {
      for (const OperatorCall& f : ElementwiseCalls(two ? 2 : 1)) {
        if (f.op.kind() == OpKind::kScale) continue;  // kScale
        if (f.op.kind() == OpKind::kCast && !Relabels(call)) continue;
        const bool additive = f.op.kind() == OpKind::kAdd || f.op.kind() == OpKind::kSub;
        if (additive) continue;  // kAdd, kSub
        const OperatorCall typed = WithValuesOf(call, f.operands[0].dtype);
        for (const bool all : {true, false}) {
          ShapeCut cut;
          for (size_t o = 0; o < call.operands.size(); ++o) {
            const bool value = IsFloat(call.operands[o].dtype) && (all || o == 0);
            cut.operand_axes.push_back(value ? std::optional<int64_t>(0) : std::nullopt);
          }
          const bool some = std::any_of(cut.operand_axes.begin(), cut.operand_axes.end(),
                                        [](const auto& part) { return part.has_value(); });
          if (!some) continue;
          const AlgebraForm form = two ? AlgebraForm::kPointwise2 : AlgebraForm::kPointwise;
          if (search_.AddFact(form, typed, cut, &f)) break;
        }
      }
    }
  }

  static OperatorCall WithValuesOf(OperatorCall call, DataType type) {
    for (TensorType& operand : call.operands) {
      if (IsFloat(operand.dtype)) operand.dtype = type;
    }
    return call;
  }

  std::optional<std::vector<TensorType>> Infer(const OperatorCall& call,
                                               const std::vector<TensorType>& types) {
    const std::vector<TensorType>* outputs = oracle_->Infer(call.op, types);
    return outputs == nullptr ? std::nullopt : std::optional(*outputs);
  }

  const OpKind kind_;
  const std::vector<OperatorCall> calls_;
  TypeOracle* const oracle_;
  AlgebraSearch search_;
};

}  // namespace

std::vector<GeneralRule> FindAlgebraFamilies(OpKind kind, TypeOracle* oracle, Random* random,
                                             Statistics* statistics) {
  if (IsLeaf(kind) || IsParallel(kind)) return {};
  return FamilyFinder(kind, oracle, random, statistics).Run();
}

std::set<OpKind> OperatorsOfAlgebraFamilies() {
  std::set<OpKind> kinds = {OpKind::kConcat, OpKind::kSplit, OpKind::kAdd, OpKind::kSub,
                            OpKind::kScale};
  for (int operands : {1, 2}) {
    for (const OperatorCall& call : ElementwiseCalls(operands)) kinds.insert(call.op.kind());
  }
  return kinds;
}

}  // namespace isomer
