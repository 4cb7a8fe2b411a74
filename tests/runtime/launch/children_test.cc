#include "runtime/launch/children.h"

#include <chrono>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isomer {
namespace {

using testing::HasSubstr;

ChildrenEnd EndOf(const std::string& script, int32_t ranks) {
  const auto end = RunChildren({.command = {"/bin/sh", "-c", script},
                                .count = ranks,
                                .are_ranks = true,
                                .patience = std::chrono::milliseconds(200)});
  EXPECT_TRUE(end.ok()) << end.status();
  return end.value_or(ChildrenEnd());
}

TEST(Children, TellTheirRanksAndCodes) {
  EXPECT_EQ(EndOf("exit 0", 3).code, 0);
  EXPECT_EQ(EndOf("exit $RANK", 2).code, 1);
  EXPECT_EQ(
      EndOf("[ $WORLD_SIZE = 3 ] && [ $MASTER_PORT -gt 0 ] && [ -n \"$MASTER_ADDR\" ]", 3).code, 0);
  EXPECT_EQ(EndOf("exit 0", 1).killed, "");
}

TEST(Children, NameWhoWasKilled) {
  // The one that waits for it is ended, too, and is not to blame.
  const ChildrenEnd end = EndOf("[ $RANK = 1 ] && kill -KILL $$; exec sleep 60", 3);
  EXPECT_EQ(end.killed, "rank 1 was killed by SIGKILL");
  EXPECT_EQ(end.code, -1);
  const ChildrenEnd segv = EndOf("[ $RANK = 0 ] && kill -SEGV $$; exit 3", 2);
  EXPECT_THAT(segv.killed, HasSubstr("rank 0 was killed by SIGSEGV"));
  EXPECT_EQ(segv.code, 3);
}

TEST(Children, WhoStandsStillIsEndedWithTheOthers) {
  const ChildrenEnd end = EndOf("[ $RANK = 1 ] && kill -STOP $$; exit 3", 2);
  EXPECT_EQ(end.killed, "rank 1 did not end, and was killed");
  EXPECT_EQ(end.code, 3);
}

TEST(Children, AProgramThatIsNotThereIsSaid) {
  const auto end = RunChildren({.command = {"/no/such/program"}});
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->code, 127);
}

}  // namespace
}  // namespace isomer
