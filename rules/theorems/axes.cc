#include <algorithm>

#include "pcg/support/status_macros.h"
#include "rules/theorems/declaration_facts.h"
#include "rules/theorems/theorems.h"

namespace isomer::structure {
namespace {

// Output element p is a sum of operand 0's elements whose place differs from p along `axis` alone,
// times what does not depend on p along other axes: a convolution with a kernel of one element.
bool MixesAlong(const Declaration& d, int axis) {
  if (d.statements.size() != 1 || d.outputs.size() != 1) return false;
  const Statement& s = d.statements[0];
  const std::vector<Index>& place = s.indices;
  // As it is where dims of size 1 are left out.
  auto alone = [&](Index index) {
    std::erase_if(index.terms,
                  [&](const auto& term) { return d.dims[term.first].size == Extent(1); });
    return index;
  };
  auto mentions = [&](const Access& access, const Index& of) {
    return std::any_of(access.indices.begin(), access.indices.end(), [&](const Index& index) {
      return std::any_of(index.terms.begin(), index.terms.end(), [&](const auto& term) {
        return !of.terms.empty() && term.first == of.terms[0].first;
      });
    });
  };
  for (const Access& access : d.accesses) {
    if (access.outside != Outside::kNever) return false;
    for (size_t i = 0; i < place.size(); ++i) {
      if (static_cast<int>(i) == axis) continue;
      if (access.tensor == 0 ? access.indices.size() != place.size() ||
                                   !(alone(access.indices[i]) == alone(place[i]))
                             : mentions(access, place[i])) {
        return false;
      }
    }
  }
  std::vector<bool> first(d.operands.size(), false);
  first[0] = true;
  return d.IsLinearIn(first) && std::none_of(s.body.begin(), s.body.end(), [](const auto& i) {
           return i.op == ScalarOp::kIndex;
         });
}

// The same but for the sizes of operand 0 and of the output along axes other than `axis`.
bool SameButElsewhere(const Declaration& a, Declaration b, int axis) {
  if (a.dims.size() != b.dims.size() || a.statements.size() != b.statements.size()) return false;
  for (size_t i = 0; i < a.outputs[0].size(); ++i) {
    if (static_cast<int>(i) == axis) continue;
    const Index& index = b.statements[0].indices[i];
    if (index.terms.size() != 1) return false;
    const int v = index.terms[0].first;
    b.dims[v].size = a.dims[v].size;
    b.outputs[0][i] = a.outputs[0][i];
    b.operands[0][i] = a.operands[0][i];
  }
  return SameDeclaration(a, b);
}

// The slices of the operand along `axis` are dealt with one by one, all alike.
bool GoesAlikeBySlices(const Declaration& a, const Declaration& b, int axis) {
  if (a.num_operands() != 1 || a.outputs.size() != 1) return false;
  const int v = a.LeadOfOutputDim(0, axis);
  return v >= 0 && v == a.LeadOfOperandDim(0, axis) && IsUniformIn(a, v) &&
         SameButForSize(a, b, v) && a.IsLinearIn({true});
}

}  // namespace

absl::Status ActsAlongOtherAxes(const Side& one, int g, const Side& other,
                                const std::vector<int>& /*calls*/, std::set<std::string>* lemmas) {
  const ConcreteCall& outer = one.call(g);
  const ConcreteCall* f = outer.inputs.size() != 1 ? nullptr : one.Maker(outer.inputs[0]);
  if (one.num_calls() != 2 || other.num_calls() != 2 || f == nullptr ||
      one.side->outputs != std::vector<PatternRef>{PatternRef::Node(g)} ||
      !std::all_of(f->inputs.begin(), f->inputs.end(), IsInput)) {
    return No("no function of one call");
  }
  const std::vector<PatternRef>& outputs = other.side->outputs;
  const ConcreteCall* f_after = outputs.size() != 1 ? nullptr : other.Maker(outputs[0]);
  const ConcreteCall* inner = f_after == nullptr ? nullptr : other.Maker(f_after->inputs[0]);
  if (inner == nullptr || outputs[0].index != 0 || f_after->op != f->op || inner->op != outer.op ||
      inner->inputs[0] != f->inputs[0] || f_after->inputs.size() != f->inputs.size() ||
      !std::equal(f->inputs.begin() + 1, f->inputs.end(), f_after->inputs.begin() + 1)) {
    return No("the calls are not the same, the other way round");
  }
  const Declaration &before = one.DeclarationOf(*f), &after = other.DeclarationOf(*f_after);
  const Declaration &whole = one.declarations[g], &first = other.DeclarationOf(*inner);
  for (int axis = 0; axis < static_cast<int>(before.outputs[0].size()); ++axis) {
    if (!MixesAlong(before, axis) || !MixesAlong(after, axis) ||
        !SameButElsewhere(before, after, axis) || !GoesAlikeBySlices(whole, first, axis)) {
      continue;
    }
    std::vector<bool> operands(f->inputs.size(), false);
    operands[0] = true;
    lemmas->insert(LinearLemma(f->op.kind(), operands));
    lemmas->insert(LinearLemma(outer.op.kind(), {true}));
    return absl::OkStatus();
  }
  return No("the calls act along one axis");
}

}  // namespace isomer::structure
