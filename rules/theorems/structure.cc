#include "rules/theorems/structure.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"
#include "rules/theorems/domains.h"
#include "rules/theorems/theorems.h"

namespace isomer {
namespace structure {

absl::Status No(const std::string& why) { return absl::FailedPreconditionError(why); }

std::string LinearLemma(OpKind kind, const std::vector<bool>& operands) {
  std::vector<int> members;
  for (size_t o = 0; o < operands.size(); ++o) {
    if (operands[o]) members.push_back(static_cast<int>(o));
  }
  return absl::StrCat(std::string(OpName(kind)), "_is_linear_in_", absl::StrJoin(members, "_"));
}

absl::Span<const Theorem> Theorems() {
  constexpr size_t kAny = std::numeric_limits<size_t>::max();
  static constexpr Theorem kTheorems[] = {
      {"alike on pieces", "op(concat(x, y)) = concat(op(x), op(y)); over a sum dim, op(x) + op(y)",
       true, true, 2, kAny, AlikeOnPieces},
      {"linear, moves", "op(f(x), w) = f(op(x, w))", false, true, 1, 2, Commutes},
      {"affine", "f(op(x, w), p) = op(x, f(w, p0)) + f(0, p)", false, false, 2, 2, FoldsAffine},
      {"axes", "g(f(x, w)) = f(g(x), w)", false, false, 1, 1, ActsAlongOtherAxes},
      {"slices", "op(mul(x, s), w) = mul(op(x, w), s)", false, false, 1, 1, ScalesSlices},
      {"factor", "op(scale(x; f), w; c) = op(x, w; c f)", false, false, 1, 1, TakesFactor},
      {"zeros", "op(x, w) = op(x, pad(w))", false, false, 1, 1, GrowsKernel},
  };
  return kTheorems;
}

}  // namespace structure

namespace {

using structure::No;
using structure::Side;
using structure::Theorem;

absl::StatusOr<Side> Declared(const ConcreteSide& side) {
  Side result{&side, {}};
  for (const ConcreteCall& call : side.calls) {
    ISOMER_ASSIGN_OR_RETURN(Declaration d, Declare(call.op, call.operands));
    result.declarations.push_back(std::move(d));
  }
  return result;
}

std::vector<CallWithDomain> CallsOf(const Side& side) {
  std::vector<CallWithDomain> calls;
  for (int n = 0; n < side.num_calls(); ++n) {
    const ConcreteCall& call = side.call(n);
    calls.push_back({call.op.kind(), call.op.ToString(), call.inputs, &side.declarations[n]});
  }
  return calls;
}

absl::StatusOr<const Theorem*> TheoremOf(const Side& s, const Side& t,
                                         std::set<std::string>* lemmas) {
  std::string why = "no theorem speaks of it";
  for (const auto& [one, many] : {std::pair(&s, &t), std::pair(&t, &s)}) {
    for (int n = 0; n < one->num_calls(); ++n) {
      const std::vector<int> others = many->CallsOf(one->kind(n));
      for (const Theorem& theorem : structure::Theorems()) {
        if (others.size() < theorem.fewest || others.size() > theorem.most) continue;
        std::set<std::string> premises;
        absl::Status shown = theorem.decide(*one, n, *many, others, &premises);
        if (shown.ok() && !theorem.knows_casts) shown = CastsAreTheSame(CallsOf(s), CallsOf(t));
        if (shown.ok()) {
          lemmas->merge(premises);
          return &theorem;
        }
        absl::StrAppend(&why, "; ", OpName(one->kind(n)), ": ", std::string(shown.message()));
      }
    }
  }
  return No(why);
}

}  // namespace

absl::StatusOr<ConcreteSide> SideAt(const Pattern& pattern, Binding binding) {
  for (TensorType& type : binding.inputs) type = SequentialType(type.Sizes(), type.dtype);
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, InstantiatePattern(pattern, binding));
  ConcreteSide side;
  const int inputs = static_cast<int>(binding.inputs.size());
  for (size_t n = 0; n < pattern.nodes.size(); ++n) {
    const Node& node = graph.node(inputs + static_cast<int>(n));
    ConcreteCall call{node.op, pattern.nodes[n].inputs, {}};
    for (TensorRef input : node.inputs) call.operands.push_back(graph.type(input).GlobalShape());
    side.calls.push_back(std::move(call));
  }
  side.outputs = pattern.outputs;
  return side;
}

absl::Status EqualByStructure(const ConcreteSide& source, const ConcreteSide& target,
                              std::set<std::string>* lemmas) {
  ISOMER_ASSIGN_OR_RETURN(const Side s, Declared(source));
  ISOMER_ASSIGN_OR_RETURN(const Side t, Declared(target));
  if (source.outputs.size() != target.outputs.size()) return No("other numbers of outputs");
  ISOMER_ASSIGN_OR_RETURN(const Theorem* theorem, TheoremOf(s, t, lemmas));
  if (theorem->at_the_same_points) return absl::OkStatus();
  return DefinedWhereSourceIs({CallsOf(s), source.outputs}, {CallsOf(t), target.outputs});
}

}  // namespace isomer
