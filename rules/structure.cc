#include "rules/structure.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"
#include "rules/domains.h"
#include "rules/structure_theorems.h"

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

}  // namespace structure

namespace {

using structure::No;
using structure::Side;

absl::StatusOr<Side> Declared(const ConcreteSide& side) {
  Side result{&side, {}};
  for (const ConcreteCall& call : side.calls) {
    ISOMER_ASSIGN_OR_RETURN(Declaration d, Declare(call.op, call.operands));
    result.declarations.push_back(std::move(d));
  }
  return result;
}

}  // namespace

namespace {

std::vector<CallWithDomain> CallsOf(const Side& side) {
  std::vector<CallWithDomain> calls;
  for (int n = 0; n < side.num_calls(); ++n) {
    const ConcreteCall& call = side.call(n);
    calls.push_back({call.op.kind(), call.op.ToString(), call.inputs, &side.declarations[n]});
  }
  return calls;
}

// What theorems show of two sides: equal outputs wherever both are defined, or wherever one is,
// since both evaluate the same bodies at the same points.
enum class Shown { kWhereBothAreDefined, kAtTheSamePoints };

absl::StatusOr<Shown> EqualByATheorem(const Side& s, const Side& t, std::set<std::string>* lemmas) {
  std::string why = "no theorem speaks of it";
  for (const auto& [one, many] : {std::pair(&s, &t), std::pair(&t, &s)}) {
    for (int n = 0; n < one->num_calls(); ++n) {
      const std::vector<int> others = many->CallsOf(one->kind(n));
      if (others.empty()) continue;
      const int other = others[0];
      const auto shown = [&](const absl::Status& status) {
        if (status.ok()) return true;
        absl::StrAppend(&why, "; ", OpName(one->kind(n)), ": ", std::string(status.message()));
        return false;
      };
      if (others.size() >= 2 && shown(structure::AlikeOnPieces(*one, n, *many, others, lemmas))) {
        return Shown::kAtTheSamePoints;
      }
      if ((others.size() <= 2 && shown(structure::Commutes(*one, n, *many, others, lemmas))) ||
          (others.size() == 2 && shown(structure::FoldsAffine(*one, n, *many, lemmas))) ||
          (others.size() == 1 && (shown(structure::ActsAlongOtherAxes(*one, n, *many, lemmas)) ||
                                  shown(structure::ScalesSlices(*one, n, *many, other, lemmas)) ||
                                  shown(structure::TakesFactor(*one, n, *many, other, lemmas)) ||
                                  shown(structure::GrowsKernel(*one, n, *many, other, lemmas))))) {
        return Shown::kWhereBothAreDefined;
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
  ISOMER_ASSIGN_OR_RETURN(const Shown shown, EqualByATheorem(s, t, lemmas));
  if (shown == Shown::kAtTheSamePoints) return absl::OkStatus();
  return DefinedWhereSourceIs(CallsOf(s), CallsOf(t));
}

}  // namespace isomer
