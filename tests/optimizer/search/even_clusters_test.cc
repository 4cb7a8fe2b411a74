#include "optimizer/search/even_clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/machine/machine.h"

namespace isomer {
namespace {

using testing::ElementsAre;

TEST(EvenClusters, ItsEvenClustersAreThoseOfTheParts) {
  const Machine machine = LoadMachine("dgx_h100:2+dgx_a100:2").value();
  const Machine of_a100 = LoadMachine("dgx_a100", 4).value();
  const Machine even = AllOfKind(machine, 1);
  EXPECT_EQ(even.num_devices(), 32);
  EXPECT_THAT(even.kinds_in_use(), ElementsAre(0));
  EXPECT_EQ(even.kind(0).name, of_a100.kind(0).name);
  for (size_t l = 0; l < even.levels.size(); ++l) {
    EXPECT_NEAR(even.levels[l].bytes_per_us, of_a100.levels[l].bytes_per_us, 1e-3);
    EXPECT_EQ(even.levels[l].reduces, of_a100.levels[l].reduces);
  }
  const auto part = NodesOfKind(machine, 1);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->first_device, 16);
  EXPECT_EQ(part->machine.num_devices(), 16);
  // Of one kind there is no part of it.
  EXPECT_FALSE(NodesOfKind(even, 0).has_value());
}

TEST(EvenClusters, KindsThatTakeTurnsAreNoPart) {
  Machine machine = LoadMachine("dgx_h100:2+dgx_a100:2").value();
  machine.unit_kinds = {0, 1, 0, 1};
  EXPECT_EQ(machine.devices_alike(), 8);
  EXPECT_FALSE(NodesOfKind(machine, 0).has_value());
  machine.unit_kinds = {0, 0, 0, 1};
  EXPECT_EQ(machine.devices_alike(), 8);
  EXPECT_EQ(NodesOfKind(machine, 1)->first_device, 24);
}

}  // namespace
}  // namespace isomer
