#include "optimizer/mapping/step_experience.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

TEST(StepExperience, WhatAStepLedToItLeadsToElsewhere) {
  StepExperience experience;
  experience.set_scale_us(400);
  const int merge = experience.KindOf(17), other = experience.KindOf(4);
  EXPECT_EQ(experience.KindOf(17), merge);
  EXPECT_NE(merge, other);
  EXPECT_FLOAT_EQ(experience.PromiseUs(merge, 0.3F), 0.3F);
  // It cost 0.3 us, and a match appeared that gains 2.5.
  experience.Took(merge, 0.3F, -2.5F);
  EXPECT_FLOAT_EQ(experience.PromiseUs(merge, 0.3F), -2.2F);
  EXPECT_FLOAT_EQ(experience.PromiseUs(other, 0.3F), 0.3F);
}

TEST(StepExperience, UndoingAStepIsNoGain) {
  StepExperience experience;
  experience.set_scale_us(400);
  const int there = experience.KindOf(1);
  experience.Took(there, 0.5F, -0.5F);
  EXPECT_GT(experience.PromiseUs(there, 0.5F), 0.5F);
}

TEST(StepExperience, StepsInVainGiveWayToThoseThatCostALittle) {
  StepExperience experience;
  experience.set_scale_us(400);
  const int idle = experience.KindOf(1), untried = experience.KindOf(2);
  EXPECT_LT(experience.PromiseUs(idle, 0), experience.PromiseUs(untried, 0.3F));
  experience.Took(idle, 0, 0);
  EXPECT_GT(experience.PromiseUs(idle, 0), experience.PromiseUs(untried, 0.3F));
  // The more of them, the less; but what they led to once makes up for it.
  const float once = experience.PromiseUs(idle, 0);
  experience.Took(idle, 0, 0);
  EXPECT_GT(experience.PromiseUs(idle, 0), once);
  experience.Took(idle, 0, -1);
  EXPECT_FLOAT_EQ(experience.PromiseUs(idle, 0), -1);
}

}  // namespace
}  // namespace isomer
