#include "pcg/schedule/check/buffer_meaning.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace isomer {

BufferMeanings::BufferMeanings(const Graph& graph, const Schedule& schedule)
    : graph_(graph), schedule_(schedule) {}

// Relabelled copies and pieces of a tensor have its partials; Reduce sums neighbours;
// ConcatPartials has those of its operands, one by one.
const BufferMeanings::Atoms& BufferMeanings::OfPartial(TensorRef tensor, int64_t partial) {
  auto [at, is_new] = atoms_.try_emplace({tensor, partial});
  if (!is_new) return *at->second;
  auto atoms = std::make_unique<Atoms>();
  const Node& node = graph_.node(tensor.node);
  if (!IsParallel(node.op.kind())) {
    atoms->emplace_back(tensor, partial);
  } else if (node.op.kind() == OpKind::kConcatPartials) {
    const int64_t each = graph_.type(node.inputs[0]).partials;
    *atoms = OfPartial(node.inputs[partial / each], partial % each);
  } else {
    const int64_t summed = graph_.type(node.inputs[0]).partials / graph_.type(tensor).partials;
    for (int64_t p = partial * summed; p < (partial + 1) * summed; ++p) {
      const Atoms& more = OfPartial(node.inputs[0], p);
      atoms->insert(atoms->end(), more.begin(), more.end());
    }
    std::sort(atoms->begin(), atoms->end());
  }
  return *(atoms_[{tensor, partial}] = std::move(atoms));
}

const BufferMeanings::Atoms& BufferMeanings::Of(BufferId id) {
  const Buffer& b = schedule_.buffers[id];
  const int64_t first = b.shard % graph_.type(b.tensor).partials;  // They run fastest.
  if (b.partials == 1) return OfPartial(b.tensor, first);
  const auto [sum, is_new] =
      sums_.try_emplace({{b.tensor, first}, std::pair(b.partials, b.partial_step)});
  for (int64_t i = 0; is_new && i < b.partials; ++i) {
    const Atoms& more = OfPartial(b.tensor, first + i * b.partial_step);
    sum->second.insert(sum->second.end(), more.begin(), more.end());
  }
  return sum->second;
}

std::string BufferMeanings::WhyNotSum(BufferId to, const Atoms& meaning,
                                      const std::vector<BufferId>& sources) {
  const Box& whole = schedule_.buffers[to].box;
  std::map<Atom, std::vector<Box>> parts;
  for (BufferId from : sources) {
    const Box shared = Intersection(schedule_.buffers[from].box, whole);
    for (const Atom& atom : Of(from)) parts[atom].push_back(shared);
  }
  std::map<Atom, int64_t> needed;
  for (const Atom& atom : meaning) ++needed[atom];
  for (const auto& [atom, boxes] : parts) {
    const auto at = needed.find(atom);
    int64_t volume = 0;
    for (const Box& box : boxes) volume += box.Volume();
    if (at == needed.end() || volume != at->second * whole.Volume()) {
      return absl::StrCat("buffer ", to, " receives more or less than what it holds");
    }
    for (size_t i = 0; at->second == 1 && i < boxes.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (!Intersection(boxes[i], boxes[j]).empty()) {
          return absl::StrCat("buffer ", to, " receives a part twice");
        }
      }
    }
  }
  if (parts.size() == needed.size()) return "";
  return absl::StrCat("buffer ", to, " does not receive all partial sums");
}

}  // namespace isomer
