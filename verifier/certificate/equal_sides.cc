#include "verifier/certificate/equal_sides.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/status_macros.h"
#include "rules/theorems/domains.h"
#include "rules/theorems/structure.h"
#include "verifier/elements/normal_form.h"
#include "verifier/elements/term.h"

namespace isomer {
namespace {

// Partition and its kin hold a tensor otherwise and do not change what it means. Pipeline and Batch
// make sequences of it, of which nothing here speaks.
bool IsIdentity(OpKind kind) {
  return kind == OpKind::kPartition || kind == OpKind::kCombine || kind == OpKind::kReplicate ||
         kind == OpKind::kReduce;
}

// Calls, each once, without parallel operators. Both sides are added to one table, so that equal
// terms are equal references.
class TermTable {
 public:
  // The outputs of `side`, over this table's calls.
  std::vector<PatternRef> Add(const ConcreteSide& side) {
    std::vector<PatternRef> made;  // by call of the side: its output 0 here, or what it passes on
    std::vector<bool> passes;
    auto at = [&](PatternRef ref) {
      if (ref.node < 0) return ref;
      const PatternRef here = made[ref.node];
      return passes[ref.node] ? here : PatternRef::Node(here.node, ref.index);
    };
    for (const ConcreteCall& call : side.calls) {
      std::vector<PatternRef> inputs;
      for (PatternRef ref : call.inputs) inputs.push_back(at(ref));
      const bool sums = call.op.kind() == OpKind::kConcatPartials;
      passes.push_back(sums || IsIdentity(call.op.kind()));
      made.push_back(sums            ? SumOf(inputs, call.operands[0])
                     : passes.back() ? inputs[0]
                                     : Intern({call.op, std::move(inputs), call.operands}));
    }
    std::vector<PatternRef> outputs;
    for (PatternRef ref : side.outputs) outputs.push_back(at(ref));
    return outputs;
  }

  // The calls that lead to `outputs`, as a side of their own.
  ConcreteSide SideOf(const std::vector<PatternRef>& outputs) const {
    std::vector<bool> needed(calls_.size(), false);
    for (PatternRef ref : outputs) {
      if (ref.node >= 0) needed[ref.node] = true;
    }
    for (size_t n = calls_.size(); n-- > 0;) {
      if (!needed[n]) continue;
      for (PatternRef ref : calls_[n].inputs) {
        if (ref.node >= 0) needed[ref.node] = true;
      }
    }
    ConcreteSide side;
    std::vector<int> place(calls_.size(), -1);
    auto moved = [&](PatternRef ref) {
      return ref.node < 0 ? ref : PatternRef::Node(place[ref.node], ref.index);
    };
    for (size_t n = 0; n < calls_.size(); ++n) {
      if (!needed[n]) continue;
      place[n] = static_cast<int>(side.calls.size());
      side.calls.push_back(calls_[n]);
      for (PatternRef& ref : side.calls.back().inputs) ref = moved(ref);
    }
    for (PatternRef ref : outputs) side.outputs.push_back(moved(ref));
    return side;
  }

 private:
  PatternRef SumOf(const std::vector<PatternRef>& parts, const Shape& shape) {
    PatternRef sum = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) {
      sum = Intern({Operator(OpKind::kAdd), {sum, parts[i]}, {shape, shape}});
    }
    return sum;
  }

  // Operands of sums and the like may be exchanged.
  PatternRef Intern(ConcreteCall call) {
    auto same = std::find(calls_.begin(), calls_.end(), call);
    if (same == calls_.end() && IsCommutative(call.op.kind())) {
      ConcreteCall other = call;
      std::swap(other.inputs[0], other.inputs[1]);
      std::swap(other.operands[0], other.operands[1]);
      same = std::find(calls_.begin(), calls_.end(), other);
    }
    const int id = static_cast<int>(same - calls_.begin());
    if (same == calls_.end()) calls_.push_back(std::move(call));
    return PatternRef::Node(id);
  }

  std::vector<ConcreteCall> calls_;
};

// Of a constant that is so small, terms do not tell whether it stands for a variable
// (EncodedConstant).
constexpr double kSmallestNumber = 1e-250;

absl::StatusOr<Symbol> SymbolOf(const Operator& op, int rank) {
  Symbol symbol;
  symbol.kind = op.kind();
  for (const Attribute& attribute : op.attributes()) {
    const double* number = std::get_if<double>(&attribute.value);
    if (number != nullptr && *number != 0 && !(std::abs(*number) >= kSmallestNumber)) {
      return absl::UnimplementedError(absl::StrCat(attribute.name, " is too small"));
    }
  }
  switch (op.kind()) {
    case OpKind::kConcat:
    case OpKind::kSplit: {
      ISOMER_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), rank));
      symbol.axes = {axis - rank};
      if (op.kind() == OpKind::kSplit) symbol.sizes = op.Extents("sizes");
      break;
    }
    case OpKind::kScale:
      symbol.factor = {op.Number("factor"), {}};
      break;
    default:
      symbol.rest = op.attributes();
      break;
  }
  return symbol;
}

// Terms of the side's outputs, over inputs of the shapes at which the calls take them.
absl::StatusOr<std::vector<TermId>> TermsOf(const ConcreteSide& side, TermPool* pool,
                                            std::map<int, TermId>* inputs) {
  std::vector<std::vector<TermId>> terms;
  for (const ConcreteCall& call : side.calls) {
    std::vector<TermId> arguments;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const PatternRef ref = call.inputs[i];
      if (ref.node >= 0) {
        arguments.push_back(terms[ref.node][ref.index]);
        continue;
      }
      const auto [at, is_new] = inputs->try_emplace(ref.index, kNoTerm);
      if (is_new) at->second = pool->Variable(ref.index, call.operands[i]);
      arguments.push_back(at->second);
    }
    ISOMER_ASSIGN_OR_RETURN(
        Symbol symbol,
        SymbolOf(call.op, call.operands.empty() ? 0 : static_cast<int>(call.operands[0].size())));
    ISOMER_ASSIGN_OR_RETURN(const Declaration d, Declare(call.op, call.operands));
    terms.emplace_back();
    for (int output = 0; output < static_cast<int>(d.outputs.size()); ++output) {
      symbol.index = output;
      ISOMER_ASSIGN_OR_RETURN(const TermId term, pool->Apply(symbol, arguments));
      terms.back().push_back(term);
    }
  }
  std::vector<TermId> outputs;
  for (PatternRef ref : side.outputs) {
    if (ref.node >= 0) {
      outputs.push_back(terms[ref.node][ref.index]);
    } else if (const auto at = inputs->find(ref.index); at != inputs->end()) {
      outputs.push_back(at->second);
    } else {
      return absl::FailedPreconditionError("an output is an input that no call takes");
    }
  }
  return outputs;
}

// Equal elements are equal over the reals: the target must be defined where the source is, and
// round where it does.
absl::Status CanReplace(const ConcreteSide& source, const ConcreteSide& target) {
  std::vector<Declaration> declarations;
  for (const ConcreteSide* side : {&source, &target}) {
    for (const ConcreteCall& call : side->calls) {
      ISOMER_ASSIGN_OR_RETURN(Declaration d, Declare(call.op, call.operands));
      declarations.push_back(std::move(d));
    }
  }
  SideWithDomains sides[2] = {{{}, source.outputs}, {{}, target.outputs}};
  size_t n = 0;
  for (const bool of_target : {false, true}) {
    for (const ConcreteCall& call : (of_target ? target : source).calls) {
      sides[of_target ? 1 : 0].calls.push_back(
          {call.op.kind(), call.op.ToString(), call.inputs, &declarations[n++]});
    }
  }
  ISOMER_RETURN_IF_ERROR(CastsAreTheSame(sides[0].calls, sides[1].calls));
  return DefinedWhereSourceIs(sides[0], sides[1]);
}

// The law of exp takes away the shift that keeps softmax from overflow: it is not for targets that
// call exp themselves.
Exp LawOfExp(const ConcreteSide& target) {
  const bool calls_exp =
      std::any_of(target.calls.begin(), target.calls.end(),
                  [](const ConcreteCall& call) { return call.op.kind() == OpKind::kExp; });
  return calls_exp ? Exp::kAnyFunction : Exp::kOfSums;
}

absl::Status EqualByNormalForm(const ConcreteSide& source, const ConcreteSide& target,
                               const InputNumbers& numbers) {
  TermPool pool;
  std::map<int, TermId> inputs;
  // The side with calls first: the other may be an input.
  const bool swapped = source.calls.empty();
  ISOMER_ASSIGN_OR_RETURN(const std::vector<TermId> left,
                          TermsOf(swapped ? target : source, &pool, &inputs));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<TermId> right,
                          TermsOf(swapped ? source : target, &pool, &inputs));
  for (size_t o = 0; o < left.size(); ++o) {
    if (left[o] == right[o]) continue;
    ISOMER_ASSIGN_OR_RETURN(
        const bool equal,
        ProvablyEqual(pool, left[o], right[o], Divisors::kNotZero, numbers, LawOfExp(target)));
    if (!equal) {
      return absl::FailedPreconditionError(absl::StrCat(
          "no common normal form: ", pool.ToString(left[o]), " and ", pool.ToString(right[o])));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const char* EqualByName(EqualBy by) {
  switch (by) {
    case EqualBy::kSameTerm:
      return "same term";
    case EqualBy::kTheorem:
      return "theorem";
    case EqualBy::kNormalForm:
      return "normal form";
  }
  return "";
}

ErasedSides WithoutParallel(const ConcreteSide& source, const ConcreteSide& target) {
  TermTable table;
  const std::vector<PatternRef> of_source = table.Add(source), of_target = table.Add(target);
  return {table.SideOf(of_source), table.SideOf(of_target), of_source == of_target};
}

absl::StatusOr<EqualBy> EqualSides(const ConcreteSide& source, const ConcreteSide& target,
                                   std::set<std::string>* lemmas, const InputNumbers& numbers) {
  const auto& [s, t, same] = WithoutParallel(source, target);
  if (same) return EqualBy::kSameTerm;
  const absl::Status by_theorem = EqualByStructure(s, t, lemmas);
  if (by_theorem.ok()) return EqualBy::kTheorem;
  const absl::Status by_normal_form = EqualByNormalForm(s, t, numbers);
  if (!by_normal_form.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(by_theorem.message(), "; ", by_normal_form.message()));
  }
  ISOMER_RETURN_IF_ERROR(CanReplace(s, t));
  return EqualBy::kNormalForm;
}

}  // namespace isomer
