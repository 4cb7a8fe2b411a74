#include "optimizer/cost/collective_traits.h"

namespace isomer {
namespace {

constexpr CollectiveTraits kCollectives[] = {
    {Collective::kAllReduce, "all-reduce", TaskKind::kAllReduce, 2, false, true},
    {Collective::kReduceScatter, "reduce-scatter", TaskKind::kReduceScatter, 1, false, true},
    {Collective::kAllGather, "all-gather", TaskKind::kAllGather, 1, false, false},
    {Collective::kAllToAll, "all-to-all", TaskKind::kAllToAll, 1, false, false},
    {Collective::kBroadcast, "broadcast", TaskKind::kBroadcast, 1, true, false},
    {Collective::kReduce, "reduce", TaskKind::kReduce, 1, true, true},
};

constexpr bool AreInOrder() {
  for (int8_t i = 0; i < static_cast<int8_t>(std::size(kCollectives)); ++i) {
    if (kCollectives[i].kind != static_cast<Collective>(i)) return false;
  }
  return true;
}
static_assert(AreInOrder());

}  // namespace

absl::Span<const CollectiveTraits> AllCollectives() { return kCollectives; }

const CollectiveTraits& TraitsOf(Collective kind) { return kCollectives[static_cast<int>(kind)]; }

std::optional<Collective> CollectiveOf(TaskKind kind) {
  for (const CollectiveTraits& traits : kCollectives) {
    if (traits.task == kind) return traits.kind;
  }
  return std::nullopt;
}

}  // namespace isomer
