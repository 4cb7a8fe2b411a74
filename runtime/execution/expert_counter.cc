#include "runtime/execution/expert_counter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cpu/expert_choice.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

std::vector<float> InFloat32(const Buffer& buffer, const void* data) {
  std::vector<float> numbers(buffer.box.Volume());
  LoadElements(buffer.dtype, data, static_cast<int64_t>(numbers.size()), numbers.data());
  return numbers;
}

}  // namespace

void ExpertCounter::AddTask(int32_t task) {
  const Task& of = schedule_.tasks[task];
  const Node& node = graph_.node(of.node);
  if (of.kind != TaskKind::kCompute || !SendsToExperts(node.op.kind())) return;
  const Box& scores = schedule_.buffers[of.reads[0]].box;
  const std::vector<int64_t> sizes(scores.shape.begin(), scores.shape.end());
  if (HasExpertGroups(sizes)) return;
  tasks_[task] = {.part = {of.node.value, {scores.origin.begin(), scores.origin.end()}},
                  .room = ExpertRoomOf(node.op, sizes),
                  .groups = sizes[0]};
}

absl::Status ExpertCounter::Look(int32_t task, absl::Span<const void* const> reads, bool counts) {
  const Task& of = schedule_.tasks[task];
  const Call& call = tasks_.at(task);
  const ExpertRoom& room = call.room;
  const auto numbers = [&](size_t o) {
    return InFloat32(schedule_.buffers[of.reads[o]], reads[o]);
  };
  const std::vector<float> scores = numbers(0);
  const bool has_bias =
      graph_.node(of.node).op.kind() == OpKind::kTopKRouting && of.reads.size() > 1;
  const std::vector<float> bias = has_bias ? numbers(1) : std::vector<float>();
  ExpertChoice choice(room.experts, room.choices);
  Sums sums{.groups = call.groups, .tokens = std::vector<int64_t>(room.experts)};
  for (int64_t group = 0; group < call.groups; ++group) {
    std::vector<int64_t> of_group(room.experts);
    for (int64_t token = group * room.tokens; token < (group + 1) * room.tokens; ++token) {
      const float* of_token = scores.data() + token * room.experts;
      for (int64_t expert : choice.Of(of_token, has_bias ? bias.data() : nullptr)) {
        ++of_group[expert];
      }
    }
    const auto busiest = std::max_element(of_group.begin(), of_group.end());
    sums.most = std::max(sums.most, *busiest);
    for (int64_t e = 0; e < room.experts; ++e) sums.tokens[e] += of_group[e];
    if (imbalance_ == 0 || *busiest <= room.capacity) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("expert ", busiest - of_group.begin(), " gets ", *busiest, " of the ",
                     room.tokens * room.choices, " choices of a group and has room for ",
                     room.capacity, ": the plan is for --expert_imbalance=", imbalance_,
                     ", and this takes ", static_cast<double>(*busiest) / room.even_load()));
  }
  if (!counts) return absl::OkStatus();
  Sums& total = sums_[call.part];
  total.groups += sums.groups;
  total.most = std::max(total.most, sums.most);
  total.tokens.resize(room.experts);
  for (int64_t e = 0; e < room.experts; ++e) total.tokens[e] += sums.tokens[e];
  return absl::OkStatus();
}

std::vector<int64_t> ExpertCounter::Counted() const {
  std::vector<int64_t> numbers;
  const auto add = [&](const std::vector<int64_t>& list) {
    numbers.push_back(static_cast<int64_t>(list.size()));
    numbers.insert(numbers.end(), list.begin(), list.end());
  };
  for (const auto& [part, sums] : sums_) {
    numbers.insert(numbers.end(), {part.node, sums.groups, sums.most});
    add(part.begin);
    add(sums.tokens);
  }
  return numbers;
}

std::vector<ExpertLoad> MergeCounted(const Graph& graph,
                                     absl::Span<const std::vector<int64_t>> of_devices) {
  std::map<ExpertCounter::Part, ExpertCounter::Sums> parts;
  for (const std::vector<int64_t>& numbers : of_devices) {
    size_t place = 0;
    const auto list = [&] {
      const int64_t size = numbers[place++];
      const auto begin = numbers.begin() + static_cast<int64_t>(place);
      place += size;
      return std::vector<int64_t>(begin, begin + size);
    };
    while (place < numbers.size()) {
      ExpertCounter::Part part{.node = static_cast<int32_t>(numbers[place])};
      ExpertCounter::Sums sums{.groups = numbers[place + 1], .most = numbers[place + 2]};
      place += 3;
      part.begin = list();
      sums.tokens = list();
      parts.emplace(std::move(part), std::move(sums));
    }
  }
  std::vector<ExpertLoad> loads;
  std::map<std::string, size_t> places;
  for (const auto& [part, sums] : parts) {
    const Node& node = graph.node(part.node);
    const auto [at, is_new] = places.try_emplace(node.name, loads.size());
    if (is_new) {
      const ExpertRoom room = ExpertRoomOf(node.op, graph.type(node.inputs[0]).Sizes());
      loads.push_back({.node = node.name,
                       .even = room.even_load(),
                       .tokens = std::vector<int64_t>(room.experts)});
    }
    ExpertLoad& load = loads[at->second];
    load.groups += sums.groups;
    load.most = std::max(load.most, sums.most);
    for (size_t e = 0; e < sums.tokens.size(); ++e) load.tokens[e] += sums.tokens[e];
  }
  return loads;
}

}  // namespace isomer
