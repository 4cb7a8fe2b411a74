#include "optimizer/report/explanation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/cost/traffic.h"

namespace isomer {
namespace {

double DurationUs(const Simulation& simulation, int32_t task) {
  return MicrosecondsOf(simulation.tasks.duration(task));
}

// What computation may hide: communications, and copies to the host and from it.
bool RunsBeside(TaskKind kind) { return IsCommunication(kind) || IsHostCopy(kind); }

class Explainer {
 public:
  Explainer(const CostModel& cost, const Graph& graph, const Schedule& schedule,
            const Simulation& simulation)
      : cost_(cost),
        machine_(cost.machine()),
        graph_(graph),
        schedule_(schedule),
        simulation_(simulation) {
    const size_t devices = machine_.num_devices();
    explanation_.device_compute_us.assign(devices, 0);
    explanation_.device_communication_us.assign(devices, 0);
    explanation_.link_bytes.assign(machine_.num_links(), 0);
    explanation_.link_us.assign(machine_.num_links(), 0);
    explanation_.nodes.resize(graph_.num_nodes());
  }

  Explanation Run() {
    explanation_.devices = schedule_.represented;
    if (explanation_.devices.empty()) {
      explanation_.devices.resize(schedule_.options.num_devices);
      std::iota(explanation_.devices.begin(), explanation_.devices.end(), 0);
    }
    is_simulated_.assign(machine_.num_devices(), false);
    for (int32_t device : explanation_.devices) is_simulated_[device] = true;
    part_ = 1 / static_cast<double>(explanation_.devices.size());
    for (int32_t t = 0; t < simulation_.tasks.size(); ++t) CountTask(t);
    const std::set<LinkId> between = LinksBetween(schedule_.represented);
    for (const auto& [link, bytes] : traffic_) {
      if (!between.empty() && !between.contains(link)) continue;
      explanation_.link_bytes[link] = bytes;
      explanation_.link_us[link] = bytes / machine_.link(link).bytes_per_us;
    }
    explanation_.critical_path = CriticalPath(simulation_.tasks, simulation_.timeline);
    for (const CriticalTask& critical : explanation_.critical_path) CountCritical(critical);
    ShareOutStep();
    TakeOneStep();
    explanation_.bound = Bound();
    return std::move(explanation_);
  }

 private:
  void CountTask(int32_t t) {
    const Task& task = schedule_.tasks[t];
    const bool communicates = RunsBeside(task.kind);
    const double times = simulation_.Times(task.moment);
    NodeShare& share = explanation_.nodes[task.node.value];
    for (int32_t device : task.devices) {
      const double us = times * DurationUs(simulation_, t);
      (communicates ? explanation_.device_communication_us
                    : explanation_.device_compute_us)[device] += us;
      if (!communicates && is_simulated_[device]) share.compute_us += part_ * us;
    }
    double sent_bytes = 0;
    ForEachMessage(cost_, schedule_, task, [&](const Message& message) {
      AddMessage(machine_, message, times, &traffic_);
      if (!is_simulated_[message.from]) return;
      sent_bytes += part_ * times * message.bytes * static_cast<double>(message.count.sent);
    });
    if (sent_bytes > 0) share.sent_bytes[GroupOf(task)] += sent_bytes;
  }

  // By device: what it computes, in time, and when it communicates beside.
  void ShareOutStep() {
    struct Busy {
      std::vector<int32_t> computes, communicates;
    };
    std::map<int32_t, Busy> devices;
    for (int32_t device : explanation_.devices) devices[device];
    for (int32_t t = 0; t < simulation_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (simulation_.tasks.duration(t) == 0) continue;
      for (int32_t device : task.devices) {
        const auto busy = devices.find(device);
        if (busy == devices.end()) continue;
        (RunsBeside(task.kind) ? busy->second.communicates : busy->second.computes).push_back(t);
      }
    }
    StepShares& shares = explanation_.shares;
    for (auto& [device, busy] : devices) {
      shares.compute_us += part_ * explanation_.device_compute_us[device];
      const auto by_start = [&](int32_t a, int32_t b) {
        return simulation_.timeline.start[a] < simulation_.timeline.start[b];
      };
      std::stable_sort(busy.computes.begin(), busy.computes.end(), by_start);
      std::stable_sort(busy.communicates.begin(), busy.communicates.end(), by_start);
      AddExposed(busy.computes, busy.communicates);
    }
    shares.idle_us = std::max(
        0.0, simulation_.step_us * schedule_.num_steps() - shares.compute_us - shares.exposed_us());
  }

  // Both lists by start; tasks that compute do not overlap.
  void AddExposed(const std::vector<int32_t>& computes, const std::vector<int32_t>& communicates) {
    const Timeline& timeline = simulation_.timeline;
    size_t next = 0;
    Picoseconds counted = 0;  // until here
    for (int32_t t : communicates) {
      Picoseconds at = std::max(counted, timeline.start[t]), exposed = 0;
      const Picoseconds end = timeline.end[t];
      while (next < computes.size() && timeline.end[computes[next]] <= at) ++next;
      for (size_t c = next; at < end; ++c) {
        const bool is_last = c == computes.size();
        const Picoseconds begin = is_last ? end : std::min(end, timeline.start[computes[c]]);
        exposed += std::max<Picoseconds>(0, begin - at);
        at = is_last ? end : std::max(at, timeline.end[computes[c]]);
      }
      counted = std::max(counted, end);
      if (exposed == 0) continue;
      const Task& task = schedule_.tasks[t];
      const std::string kind = GroupOf(task);
      const double us = part_ * simulation_.Times(task.moment) * MicrosecondsOf(exposed);
      explanation_.shares.exposed_communication_us[kind] += us;
      explanation_.nodes[task.node.value].exposed_us[kind] += us;
    }
  }

  void TakeOneStep() {
    const double part = 1.0 / schedule_.num_steps();
    Explanation& e = explanation_;
    for (NodeShare& node : e.nodes) {
      node.compute_us *= part;
      for (auto& [kind, us] : node.exposed_us) us *= part;
      for (auto& [kind, bytes] : node.sent_bytes) bytes *= part;
    }
    for (auto& [what, us] : e.shares.exposed_communication_us) us *= part;
    e.shares.compute_us *= part;
    e.shares.idle_us *= part;
    for (double* us : {&e.compute_us, &e.communication_us, &e.queued_us}) *us *= part;
    for (auto* all :
         {&e.device_compute_us, &e.device_communication_us, &e.link_bytes, &e.link_us}) {
      for (double& value : *all) value *= part;
    }
    for (auto& [group, us] : groups_) us *= part;
  }

  std::set<LinkId> LinksBetween(const std::vector<int32_t>& devices) const {
    std::set<LinkId> links;
    for (int32_t from : devices) {
      for (int32_t to : devices) {
        for (LinkId link : machine_.Path(from, to)) links.insert(link);
      }
    }
    return links;
  }

  void CountCritical(const CriticalTask& critical) {
    const Task& task = schedule_.tasks[critical.task];
    const double us = MicrosecondsOf(critical.time);
    const bool communicates = RunsBeside(task.kind);
    (communicates ? explanation_.communication_us : explanation_.compute_us) += us;
    if (critical.wait.queue >= 0) explanation_.queued_us += us;
    groups_[{communicates, GroupOf(task)}] += us;
  }

  // The name of a task's group in the sentence: without node names, so that all layers are one.
  std::string GroupOf(const Task& task) const {
    const absl::string_view op = graph_.node(task.node).op.name();
    if (task.kind == TaskKind::kCompute) {
      return absl::StrCat(task.phase == Phase::kBackward ? "repeated " : "forward ", op);
    }
    if (task.kind == TaskKind::kComputeGradient) return absl::StrCat("backward ", op);
    if (!IsCommunication(task.kind)) return TaskKindName(task.kind);
    const Buffer& moved = schedule_.buffers[task.reads[0]];
    const bool gradients =
        moved.role == BufferRole::kGradient || moved.role == BufferRole::kGradientShard;
    const bool stored = parameters_.contains(moved.tensor);
    const char* what = gradients ? (stored ? "gradients of weights" : "gradients")
                                 : (stored ? "weights" : "activations");
    return absl::StrCat(TaskKindName(task.kind), " of ", what);
  }

  std::string Bound() const {
    const double total = explanation_.compute_us + explanation_.communication_us;
    if (total == 0) return "Nothing takes any time.";
    const bool communication = explanation_.communication_us > explanation_.compute_us;
    const double us = communication ? explanation_.communication_us : explanation_.compute_us;
    std::string most;
    double most_us = 0;
    for (const auto& [group, group_us] : groups_) {
      if (group.first != communication || group_us <= most_us) continue;
      most = group.second;
      most_us = group_us;
    }
    std::string text =
        absl::StrFormat("%s bounds the step: it is %.0f %% of the critical path, %s alone %.0f %%",
                        communication ? "Communication" : "Computation", 100 * us / total, most,
                        100 * most_us / total);
    if (communication) {
      const auto busiest =
          std::max_element(explanation_.link_us.begin(), explanation_.link_us.end());
      if (busiest != explanation_.link_us.end() && *busiest > 0) {
        absl::StrAppendFormat(
            &text, "; link %s is busy %.0f %% of the step",
            machine_.LinkName(static_cast<LinkId>(busiest - explanation_.link_us.begin())),
            100 * *busiest / simulation_.step_us);
      }
    }
    return text + ".";
  }

  std::set<TensorRef> ParametersOf(const Schedule& schedule) const {
    std::set<TensorRef> tensors;
    for (const Schedule::HostTensor& parameter : schedule.parameters) {
      tensors.insert(parameter.tensor);
    }
    return tensors;
  }

  const CostModel& cost_;
  const Machine& machine_;
  const Graph& graph_;
  const Schedule& schedule_;
  const Simulation& simulation_;
  Traffic traffic_;
  std::vector<bool> is_simulated_;  // per device
  double part_ = 1;                 // of a simulated device in the average
  const std::set<TensorRef> parameters_ = ParametersOf(schedule_);
  Explanation explanation_;
  std::map<std::pair<bool, std::string>, double> groups_;  // (communicates, group)
};

// Links with traffic, by busy time, longest first.
std::vector<LinkId> BusyLinks(const Explanation& explanation) {
  std::vector<LinkId> links(explanation.link_us.size());
  std::iota(links.begin(), links.end(), 0);
  std::erase_if(links, [&](LinkId id) { return explanation.link_us[id] == 0; });
  std::stable_sort(links.begin(), links.end(), [&](LinkId a, LinkId b) {
    return explanation.link_us[a] > explanation.link_us[b];
  });
  return links;
}

}  // namespace

double StepShares::exposed_us() const {
  double us = 0;
  for (const auto& [what, of_kind] : exposed_communication_us) us += of_kind;
  return us;
}

Explanation Explain(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const Simulation& simulation) {
  return Explainer(cost, graph, schedule, simulation).Run();
}

std::string TaskLabel(const Graph& graph, const Task& task) {
  const Node& node = graph.node(task.node);
  std::string name =
      node.name.empty() ? absl::StrCat("%", task.node.value) : std::string(node.name);
  if (task.moment != kNoMoment) absl::StrAppend(&name, ", micro-batch ", task.moment);
  const bool gradients = task.phase == Phase::kBackward && !IsHostCopy(task.kind);
  switch (task.kind) {
    case TaskKind::kCompute:
      return absl::StrCat(node.op.name(), " ", name);
    case TaskKind::kComputeGradient:
      return absl::StrCat("backward of ", node.op.name(), " ", name);
    default:
      return absl::StrCat(TaskKindName(task.kind), gradients ? " of gradients of " : " of ", name);
  }
}

Json ExplanationJson(const Explanation& explanation, const Machine& machine, double step_us) {
  Json json;
  json["bound"] = explanation.bound;
  Json& path = json["critical_path"];
  path["tasks"] = explanation.critical_path.size();
  path["compute_us"] = explanation.compute_us;
  path["communication_us"] = explanation.communication_us;
  path["waited_for_queue_us"] = explanation.queued_us;
  json["devices"] = Json::EmptyArray();
  for (int32_t d : explanation.devices) {
    Json device;
    device["device"] = d;
    device["compute_us"] = explanation.device_compute_us[d];
    device["communication_us"] = explanation.device_communication_us[d];
    device["idle_us"] = std::max(0.0, step_us - explanation.device_compute_us[d]);  // rounding
    json["devices"].Append(std::move(device));
  }
  json["links"] = Json::EmptyArray();
  for (LinkId id : BusyLinks(explanation)) {
    Json link;
    link["name"] = machine.LinkName(id);
    link["bytes"] = explanation.link_bytes[id];
    link["busy_us"] = explanation.link_us[id];
    json["links"].Append(std::move(link));
  }
  return json;
}

std::string ExplanationText(const Explanation& explanation, const Machine& machine,
                            double step_us) {
  std::string text;
  const auto& compute = explanation.device_compute_us;
  if (explanation.devices.empty() || step_us == 0) return text;
  const auto [idlest, busiest] =
      std::minmax_element(explanation.devices.begin(), explanation.devices.end(),
                          [&](int32_t a, int32_t b) { return compute[a] < compute[b]; });
  absl::StrAppendFormat(&text, "  devices compute %.0f to %.0f %% of the step (device %d, %d)\n",
                        100 * compute[*idlest] / step_us, 100 * compute[*busiest] / step_us,
                        *idlest, *busiest);
  std::vector<LinkId> links = BusyLinks(explanation);
  if (links.size() > 3) links.resize(3);
  for (LinkId id : links) {
    absl::StrAppendFormat(&text, "  link %s: %.1f MB, %.0f %% of the step\n", machine.LinkName(id),
                          explanation.link_bytes[id] / 1e6,
                          100 * explanation.link_us[id] / step_us);
  }
  return text;
}

}  // namespace isomer
