#include "pcg/ir/weight_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace isomer {
namespace {

TEST(UpdateMethods, HaveARowEach) {
  std::set<std::string> names;
  for (const UpdateMethodTraits& traits : AllUpdateMethods()) {
    EXPECT_EQ(&TraitsOf(traits.method), &traits);
    EXPECT_TRUE(names.insert(traits.name).second);
    EXPECT_EQ(ParseUpdateMethod(traits.name).value(), traits.method);
    // What is split has to be gathered, and a part of a weight is trained where it lies.
    EXPECT_LE(traits.splits_weight, traits.splits_gradient);
    EXPECT_LE(traits.splits_gradient, traits.splits_trained);
    if (traits.splits_trained) {
      EXPECT_EQ(traits.sum, UpdateMethodTraits::Sum::kReduceScatter);
      EXPECT_EQ(traits.spread, UpdateMethodTraits::Spread::kAllGather);
    }
    EXPECT_EQ(traits.zero_stage,
              traits.splits_trained + traits.splits_gradient + traits.splits_weight);
  }
  EXPECT_EQ(ParseUpdateMethod("zero").status().message(),
            "update 'zero': there are all_reduce, sharded, sharded_gradients, sharded_weights and "
            "owner");
}

TEST(UpdateMethods, OfZeroAreInOrderOfStages) {
  EXPECT_THAT(ZeroMethods(1),
              testing::ElementsAre(UpdateMethod::kSharded, UpdateMethod::kShardedWeights));
  EXPECT_THAT(ZeroMethods(4),
              testing::ElementsAre(UpdateMethod::kSharded, UpdateMethod::kShardedGradients,
                                   UpdateMethod::kShardedWeights));
}

TEST(UpdateMethods, CountWhatTheySend) {
  using Times = UpdateMethodTraits::Times;
  EXPECT_EQ(UpdateMethodTraits::Count(Times::kStep, 8), 1);
  EXPECT_EQ(UpdateMethodTraits::Count(Times::kMicroBatch, 8), 8);
  EXPECT_EQ(UpdateMethodTraits::Count(Times::kPass, 8), 16);
}

}  // namespace
}  // namespace isomer
