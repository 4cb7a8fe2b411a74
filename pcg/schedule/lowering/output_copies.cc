#include "pcg/schedule/lowering/output_copies.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "pcg/ir/states.h"

namespace isomer {

void AddOutputCopies(ScheduleBuilder* builder) {
  Schedule& schedule = builder->schedule();
  std::set<BufferId> trained;
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (parameter.trainable) trained.insert(parameter.stored.begin(), parameter.stored.end());
  }
  std::map<BufferId, BufferId> copies;  // of what several outputs are, one
  const size_t first = schedule.tasks.size();
  for (const Graph::NamedOutput& output : OutputsForHost(builder->graph(), /*training=*/true)) {
    if (schedule.output_copies.contains(output.tensor)) continue;
    std::vector<BufferId> ids = schedule.shards.at(output.tensor);
    bool copied = false;
    for (BufferId& id : ids) {
      if (!trained.contains(id)) continue;
      const auto [copy, is_new] = copies.try_emplace(id, kNoBuffer);
      if (is_new) {
        Buffer like = builder->buffer(id);
        like.role = BufferRole::kReceived;
        like.moment = kNoMoment;
        copy->second = builder->AddBuffer(std::move(like));
        builder->AddTransfers({{id, copy->second}}, Phase::kForward, output.tensor.node);
      }
      id = copy->second;
      copied = true;
    }
    if (copied) schedule.output_copies[output.tensor] = std::move(ids);
  }
  // As soon as the host has set all that it sets: what brings outputs to where they are wanted is
  // the last of the forward pass (late_outputs.h).
  const auto place =
      std::find_if(schedule.tasks.begin(), schedule.tasks.end(), [](const Task& task) {
        return task.kind != TaskKind::kLoad && task.kind != TaskKind::kFeed;
      });
  std::rotate(place, schedule.tasks.begin() + static_cast<int64_t>(first), schedule.tasks.end());
}

}  // namespace isomer
