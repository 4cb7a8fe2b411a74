// The types half of a rule's theorem: whenever the source type-checks, so does the target, with the
// same output types.
//
// All that types require of sizes, degrees, copies and partials is multiplicative: one product
// divides, or equals, another. Such statements hold if they hold for the exponents of every prime,
// where products are sums and "divides" is "at most". Primes that divide no constant of the rule
// behave alike, so there is one linear statement for them all and one for each other prime.
//
// A call may take the partials of different sets of operands, if it is linear in them. The source
// is taken apart into one case for each choice; the target needs one choice that fits each case.
// Sums of sizes (Concat) are numbers of their own, of which a prime's exponent is at least the
// least exponent among the summands.
#ifndef ISOMER_VERIFIER_TYPES_TYPE_PROOF_H_
#define ISOMER_VERIFIER_TYPES_TYPE_PROOF_H_

#include <string>
#include <vector>

#include "verifier/terms/rule_instance.h"
#include "verifier/terms/smt.h"
#include "verifier/types/type_form.h"

namespace isomer {

struct TypeProof {
  SmtVerdict verdict = SmtVerdict::kUnknown;
  std::string why;  // if not valid
  // Bindings at which the target may fail, to be tried.
  std::vector<Binding> suspects;
};

TypeProof ProveTypes(const RuleInstance& instance);

// Bindings of an instance under which its source type-checks as far as exponents tell, smallest
// first, with the rule's degrees all > 1 if that can be. `seed` draws sizes and numbers.
std::vector<Binding> SmallBindings(const RuleInstance& instance, int count, uint64_t seed);

// The dtypes half of the types half: for all dtypes of the inputs, if the source accepts them, so
// does the target, with the same output dtypes. `why` says what differs.
bool DataTypesAgree(const Rule& rule, std::string* why);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_TYPES_TYPE_PROOF_H_
