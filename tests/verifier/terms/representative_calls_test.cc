#include "verifier/terms/representative_calls.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

// A call that stands twice would be counted twice among those that a lemma's premise holds at.
TEST(RepresentativeCalls, TypeCheckAndStandOnce) {
  for (OpKind kind : AllOpKinds()) {
    const std::vector<OperatorCall> calls = CallsToTry(kind);
    EXPECT_EQ(calls.empty(), IsLeaf(kind) || IsParallel(kind)) << OpName(kind);
    for (const OperatorCall& call : calls) {
      EXPECT_TRUE(InferTypes(call.op, call.operands).ok()) << call.op.ToString();
      EXPECT_EQ(std::count(calls.begin(), calls.end(), call), 1) << call.op.ToString();
    }
  }
}

}  // namespace
}  // namespace isomer
