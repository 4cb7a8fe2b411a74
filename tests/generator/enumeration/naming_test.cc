#include "generator/enumeration/naming.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

TEST(Namings, AreCanonicalWhenInputsOfEachTypeComeInOrder) {
  Namings namings({0, 0, 2});  // x0 and x1 of one type, x2 of another
  EXPECT_TRUE(namings.IsCanonical(namings.Intern({0, 1})));
  EXPECT_TRUE(namings.IsCanonical(namings.Intern({2, 0})));
  EXPECT_TRUE(namings.IsCanonical(namings.Intern({2})));
  EXPECT_FALSE(namings.IsCanonical(namings.Intern({1})));
  EXPECT_FALSE(namings.IsCanonical(namings.Intern({1, 0})));
}

TEST(Namings, JoinKeepsTheFirstUse) {
  Namings namings({0, 0, 0});
  const NamingId joined = namings.Join(namings.Intern({2, 0}), namings.Intern({0, 1}));
  EXPECT_EQ(namings[joined], (std::vector<int>{2, 0, 1}));
}

TEST(Namings, RenamingsAreThoseThatKeepTypesCanonicalOnesFirst) {
  Namings namings({0, 0, 0, 3});
  const std::vector<NamingId> renamings = namings.Renamings(namings.Intern({2, 3, 0}));
  EXPECT_EQ(renamings.size(), 6u);  // 3 * 2 choices, x3 stays
  EXPECT_TRUE(namings.IsCanonical(renamings[0]));
  for (size_t i = 1; i < renamings.size(); ++i) EXPECT_FALSE(namings.IsCanonical(renamings[i]));
}

TEST(Namings, RenamedFollowsTheInputs) {
  Namings namings({0, 0, 0});
  const NamingId part = namings.Intern({1}), from = namings.Intern({0, 1}),
                 to = namings.Intern({2, 0});
  EXPECT_EQ(namings[namings.Renamed(part, from, to)], (std::vector<int>{0}));
}

}  // namespace
}  // namespace isomer
