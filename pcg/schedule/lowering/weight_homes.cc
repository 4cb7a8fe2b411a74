#include "pcg/schedule/lowering/weight_homes.h"

#include <algorithm>

#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {

HeldBoxes HeldBoxesOf(const TensorType& type, absl::Span<const int64_t> devices) {
  HeldBoxes held;
  for (size_t s = 0; s < devices.size(); ++s) {
    Box box = ShardBox(type, CoordinatesOfShard(type, static_cast<int64_t>(s)).dims);
    std::vector<Box>& boxes = held[devices[s]];
    if (std::find(boxes.begin(), boxes.end(), box) == boxes.end()) boxes.push_back(std::move(box));
  }
  return held;
}

size_t BestHome(absl::Span<const HeldBoxes> wanted) {
  const auto elements_to_move = [&](const HeldBoxes& home) {
    int64_t elements = 0;
    for (const HeldBoxes& other : wanted) {
      for (const auto& [device, boxes] : other) {
        const auto there = home.find(device);
        for (const Box& box : boxes) {
          const bool held = there != home.end() &&
                            std::any_of(there->second.begin(), there->second.end(),
                                        [&](const Box& whole) { return Covers(whole, box); });
          if (!held) elements += box.Volume();
        }
      }
    }
    return elements;
  };
  size_t best = 0;
  int64_t least = elements_to_move(wanted[0]);
  for (size_t i = 1; i < wanted.size(); ++i) {
    const int64_t elements = elements_to_move(wanted[i]);
    if (elements >= least) continue;
    least = elements;
    best = i;
  }
  return best;
}

absl::Status WeightHomes::FindHomeOf(TensorRef weight, absl::Span<const Graph::Use> readers) {
  const Graph& graph = builder_.graph();
  std::vector<std::vector<NodeId>> ways;  // by reader: the operators that place it
  std::vector<HeldBoxes> wanted;
  for (const Graph::Use& use : readers) {
    std::vector<NodeId> way;
    for (NodeId at = use.user; IsPlacement(graph.node(at).op.kind());) {
      way.push_back(at);
      const auto& next = users_[at.value];
      if (next.size() != 1) break;
      at = next[0].user;
    }
    if (way.empty()) return absl::OkStatus();  // A call reads it where it is.
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> devices, builder_.Devices(way.back()));
    wanted.push_back(HeldBoxesOf(graph.type({way.back(), 0}), devices));
    ways.push_back(std::move(way));
  }
  const std::vector<NodeId>& way = ways[BestHome(wanted)];
  const TensorRef home{way.back(), 0};
  homes_[weight] = home;
  ends_.insert(home);
  on_the_way_.insert(way.begin(), way.end());
  return absl::OkStatus();
}

OpKind WeightHomes::LeafOf(NodeId id) const {
  const Graph& graph = builder_.graph();
  while (IsFloatCast(graph.node(id).op)) {
    id = graph.node(id).inputs[0].node;
    if (users_[id.value].size() > 1) break;
  }
  return graph.node(id).op.kind();
}

absl::Status WeightHomes::Find() {
  const Graph& graph = builder_.graph();
  if (!builder_.options().training) return absl::OkStatus();
  users_ = graph.Users();
  for (NodeId id : order_) {
    const TensorRef weight{id, 0};
    if (!IsStored(LeafOf(id)) || users_[id.value].size() < 2) continue;
    const bool is_output =
        std::any_of(graph.outputs().begin(), graph.outputs().end(),
                    [&](const Graph::NamedOutput& output) { return output.tensor == weight; });
    if (!is_output) ISOMER_RETURN_IF_ERROR(FindHomeOf(weight, users_[id.value]));
  }
  return absl::OkStatus();
}

}  // namespace isomer
