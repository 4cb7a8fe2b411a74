// What ended the checker, or was proved, and is mended. What needs no more than a line is a line of
// plans/*.txt.
#include <gtest/gtest.h>

#include "tests/unsound/plan_claims.h"
#include "tests/verifier/rule_from_text.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

// Of a pad of two dims that is no pad by a constant, an access of what it made of the first dim may
// be outside of that, which was looked up among the operands, beyond their end.
TEST(MendedHole, PadOfTwoDims) {
  Binding binding;
  binding.inputs = {SequentialType({4, 4})};
  const PlanClaim claim =
      ClaimOfRule(RuleFromText("pad(x0; padding=[1,1,1,1], mode=1, value=0.0) -> "
                               "pad(x0; padding=[1,1,1,1], mode=2, value=0.0)",
                               {{2}}),
                  binding)
          .value();
  EXPECT_FALSE(Judge(claim).ok());
}

// Both sides have the same casts, and normal forms took each for an identity: what is rounded off
// was zero.
TEST(MendedHole, RulesOfWhatIsRoundedOff) {
  Prover prover;
  for (const char* text :
       {"sub(x0, cast(cast(x0; to=2); to=0)) -> scale(cast(cast(x0; to=2); to=0); factor=0.0)",
        "mul(x0, cast(cast(x0; to=2); to=0)) -> "
        "mul(cast(cast(x0; to=2); to=0), cast(cast(x0; to=2); to=0))"}) {
    const Rule rule = RuleFromText(text, {{2}}, {NoPartials(0)});
    EXPECT_NE(prover.Prove(rule).verdict, ProofRecord::Verdict::kProved) << text;
  }
}

}  // namespace
}  // namespace isomer
