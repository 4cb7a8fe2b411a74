// What the buffers of a schedule hold, by the graph alone. Internal to the checks of pcg/schedule.
#ifndef ISOMER_PCG_SCHEDULE_CHECK_BUFFER_MEANING_H_
#define ISOMER_PCG_SCHEDULE_CHECK_BUFFER_MEANING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

class BufferMeanings {
 public:
  // A partial of a tensor that is no other's relabelling: of a call, or a leaf. What a buffer means
  // is the sum of some of them, over its box.
  using Atom = std::pair<TensorRef, int64_t>;
  using Atoms = std::vector<Atom>;  // sorted

  // Both must outlive this.
  BufferMeanings(const Graph& graph, const Schedule& schedule);

  // What partial `partial` of `tensor` is the sum of.
  const Atoms& OfPartial(TensorRef tensor, int64_t partial);
  const Atoms& Of(BufferId id);
  // Empty if the parts that `sources` share with `to` add up to what `to` means; else why not.
  std::string WhyNotSum(BufferId to, const std::vector<BufferId>& sources) {
    return WhyNotSum(to, Of(to), sources);
  }
  // To what `to` is to mean.
  std::string WhyNotSum(BufferId to, const Atoms& meaning, const std::vector<BufferId>& sources);

 private:
  const Graph& graph_;
  const Schedule& schedule_;
  absl::flat_hash_map<Atom, std::unique_ptr<Atoms>> atoms_;
  // Of so many partials, every so-manieth.
  std::map<std::pair<Atom, std::pair<int32_t, int32_t>>, Atoms> sums_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_CHECK_BUFFER_MEANING_H_
