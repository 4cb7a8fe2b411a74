#include "optimizer/mapping/move_pricer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "pcg/ir/tensor_type.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

Placement Place(const std::string& type, std::vector<int64_t> strides) {
  return {ParseTensorType(type).value(), {0, std::move(strides)}};
}

// One pricer for all, in both orders: what it has kept of one pair must be right for the next.
TEST(MovePricer, LinesServeTensorsOfOtherSizesRanksAndTypes) {
  const CostModel cost(TestMachine(3, 4));
  const std::vector<std::pair<Placement, Placement>> moves = {
      {Place("f32[24:12,8]", {1, 0, 0, 0}), Place("f32[24,8:4] c3", {0, 1, 4, 0})},
      {Place("f32[48:12,16]", {1, 0, 0, 0}), Place("f32[48,16:4] c3", {0, 1, 4, 0})},
      {Place("bf16[5,48:12,16]", {0, 1, 0, 0, 0}), Place("bf16[5,48,16:4] c3", {0, 0, 1, 4, 0})},
      {Place("f32[16,24:12]", {0, 1, 0, 0}), Place("f32[16:4,24] c3", {1, 0, 4, 0})},
      {Place("f32[24:3,16:4]", {4, 1, 0, 0}), Place("f32[24:4,16:2]", {2, 1, 0, 0})},
      {Place("f32[24:3,16:4]", {1, 3, 0, 0}), Place("f32[24:4,16:2]", {2, 1, 0, 0})},
      {Place("f32[24,16] p12", {0, 0, 0, 1}), Place("f32[24:12,16]", {1, 0, 0, 0})}};
  for (bool backwards : {false, true}) {
    MovePricer pricer(cost);
    for (size_t i = 0; i < moves.size(); ++i) {
      const auto& [from, to] = moves[backwards ? moves.size() - 1 - i : i];
      const double expected = ReshardUs(cost, from, to);
      EXPECT_NEAR(pricer.Us(pricer.Place(from), pricer.Place(to)), expected, 1e-9 * expected)
          << from.type.ToString() << " to " << to.type.ToString();
    }
  }
}

}  // namespace
}  // namespace isomer
