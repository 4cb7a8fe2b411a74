// Types as exponents of one prime: what a call requires of its operands' degrees, copies and
// partials, read off its declaration.
#ifndef ISOMER_VERIFIER_TYPES_TYPE_FORM_H_
#define ISOMER_VERIFIER_TYPES_TYPE_FORM_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "verifier/terms/rule_instance.h"
#include "verifier/terms/smt.h"

namespace isomer {

// How a tensor is held: exponents of one prime, as linear forms over variables.
struct TypeForm {
  std::vector<Extent> degrees;
  Extent copies, partials;
};

// The sets of operands whose partials a call may take: one flag per operand. A call that is linear
// in no set takes none.
std::vector<std::vector<bool>> LinearSets(const Call& call);

// Data types of the inputs that the source takes: integers for those of which it makes indices, as
// they are or rearranged, booleans for those that conditions of choices are made of, else floats.
std::vector<DataType> DataTypesTaken(const Rule& rule);

// Builds the facts that make one side of a rule well typed, call by call. Copyable, so that cases
// can branch.
class TypeEncoder {
 public:
  // `prime` 0: any that divides no constant.
  TypeEncoder(const RuleInstance& instance, int64_t prime);

  // The facts and output types of `call`, whose operands are of `operands`; of declared calls with
  // the partials of `linear` operands taken.
  void AddCall(const Call& call, const std::vector<TypeForm>& operands,
               const std::vector<bool>& linear, std::vector<ExponentFact>* facts,
               std::vector<TypeForm>* outputs);
  // What the rule's conditions say. REQUIRES: the source's calls were added, `linear` as chosen.
  void AddConditions(const std::vector<std::vector<TypeForm>>& source,
                     std::vector<ExponentFact>* facts);

  const std::vector<TypeForm>& inputs() const { return inputs_; }
  // That degrees of the inputs divide their sizes; grows with sums of sizes that calls meet.
  const std::vector<ExponentFact>& base_facts() const { return base_facts_; }
  const std::map<std::string, int>& degree_variables() const { return degrees_; }

  // A binding with sizes, degrees, .. powers of the prime (of 2, for prime 0); `multipliers` of the
  // size symbols make sizes differ.
  Binding BindingOf(const std::map<int, int64_t>& model, uint64_t seed) const;

 private:
  Extent Fresh() { return Extent::Symbol(next_variable_++); }
  // The exponent in a known number.
  int64_t ExponentIn(int64_t number) const;
  Extent SizeExponent(const Extent& size);
  // The exponent of a degree expression.
  Extent DegreeExponent(const IntExpr& expr);
  void AddParallel(const Call& call, const std::vector<TypeForm>& operands,
                   std::vector<ExponentFact>* facts, std::vector<TypeForm>* outputs);
  void RequireDivisible(const TypeForm& type, const Shape& shape, std::vector<ExponentFact>* facts);

  const RuleInstance* instance_;
  int64_t prime_;
  int next_variable_ = 0;
  std::map<int, int> size_symbols_;     // size symbol -> variable
  std::map<Extent, int> sums_;          // sum of sizes -> variable
  std::map<std::string, int> degrees_;  // degree variable -> variable
  std::vector<TypeForm> inputs_;
  std::vector<ExponentFact> base_facts_;
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_TYPES_TYPE_FORM_H_
