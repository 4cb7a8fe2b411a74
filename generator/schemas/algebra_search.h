// From facts about sample calls to rules (algebra_families.h).
#ifndef ISOMER_GENERATOR_SCHEMAS_ALGEBRA_SEARCH_H_
#define ISOMER_GENERATOR_SCHEMAS_ALGEBRA_SEARCH_H_

#include <map>
#include <string>
#include <vector>

#include "generator/assignments/statistics.h"
#include "generator/preconditions/generalize.h"
#include "generator/preconditions/prune.h"
#include "generator/schemas/algebra_forms.h"

namespace isomer {

// Calls of every operator with `operands` operands of one shape, all of whose outputs' elements are
// a function of the operands' elements at the same place: in every form of attributes and data
// types that sample calls show.
const std::vector<OperatorCall>& ElementwiseCalls(int operands);
bool IsElementwise(const OperatorCall& call);
// The same, but operands may be broadcast.
bool IsPointwise(const OperatorCall& call);
// Each element of the output is an element of an operand, whatever the elements are.
bool Relabels(const OperatorCall& call);
// Some output, or what it is made of, is a sum over a dim.
bool AddsUp(const OperatorCall& call);

class AlgebraSearch {
 public:
  // `calls`: of one operator; a rule must hold at all of them that it admits.
  AlgebraSearch(const std::vector<OperatorCall>& calls, TypeOracle* oracle, Random* random,
                Statistics* statistics)
      : calls_(calls), oracle_(oracle), random_(random), statistics_(statistics) {}

  // Tries an equation at a call; if it holds, makes a rule of it, unless one is known that says it.
  // Returns whether it holds.
  bool AddFact(AlgebraForm form, const OperatorCall& call, const ShapeCut& cut,
               const OperatorCall* f = nullptr);

  std::vector<GeneralRule> Rules() { return std::move(rules_); }

 private:
  enum class Outcome { kHolds, kFails, kNotAdmitted };
  struct Fact {
    AlgebraForm form;
    const OperatorCall& call;
    const ShapeCut& cut;
    const OperatorCall* f;
  };
  // A rule as general as `generality` says, with the assignments at which it was seen to hold.
  struct Trial {
    Rule rule;
    std::vector<Binding> held;
  };

  std::optional<FormRule> Make(const Fact& fact, const Generality& generality, const At& at = {});
  Outcome TryAt(const FormRule& made);
  bool IsKnown(const FormRule& made) const;
  bool Generalise(const Fact& fact);
  std::optional<Trial> TryEverywhere(const Fact& fact, const Generality& generality);
  bool TryAround(const Trial& trial);
  bool HoldsNearby(const Rule& rule, const Binding& binding, bool two);
  bool HoldsForOthers(const Fact& fact, const Generality& generality);
  bool HoldsInParallel(Rule rule, const Binding& binding);
  std::vector<ShapeCut> CutsAlike(const Fact& fact, const OperatorCall& call,
                                  bool axis_variables) const;

  const std::vector<OperatorCall>& calls_;
  TypeOracle* const oracle_;
  Random* const random_;
  Statistics* const statistics_;
  RuleBook book_;
  std::vector<GeneralRule> rules_;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_ALGEBRA_SEARCH_H_
