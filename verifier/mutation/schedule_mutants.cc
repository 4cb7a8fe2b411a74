#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/example_graphs.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/additions.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "verifier/mutation/mutants.h"
#include "verifier/mutation/pipeline_example.h"
#include "verifier/mutation/schedule_run.h"
#include "verifier/mutation/state_examples.h"

namespace isomer {
namespace {

using ScheduleChange = std::function<void(Schedule*)>;

constexpr absl::string_view kPrecision = "precision: ";
constexpr absl::string_view kLayout = "layout: ";

void Erase(Schedule* schedule, int32_t device, int32_t t) {
  std::erase(schedule->programs[device], t);
}

// Adds a copy of a task, after it in every program it is in.
void Double(Schedule* schedule, int32_t t) {
  const Task again = schedule->tasks[t];
  const int32_t copy = static_cast<int32_t>(schedule->tasks.size());
  for (int32_t device : again.devices) {
    std::vector<int32_t>& program = schedule->programs[device];
    const auto at = std::find(program.begin(), program.end(), t);
    program.insert(at == program.end() ? at : at + 1, copy);
  }
  schedule->tasks.push_back(again);
}

// Takes member `m` out of a communication.
void DropMember(Schedule* schedule, int32_t t, size_t m) {
  Task& task = schedule->tasks[t];
  Erase(schedule, task.devices[m], t);
  task.devices.erase(task.devices.begin() + static_cast<int64_t>(m));
  if (m < task.reads.size()) task.reads.erase(task.reads.begin() + static_cast<int64_t>(m));
  if (m < task.writes.size()) task.writes.erase(task.writes.begin() + static_cast<int64_t>(m));
}

class ScheduleChanges {
 public:
  ScheduleChanges(const Graph& graph, const Schedule& schedule)
      : graph_(graph), schedule_(schedule) {}

  std::vector<std::pair<std::string, ScheduleChange>> Run() {
    for (size_t d = 0; d < schedule_.programs.size(); ++d) ChangeOrder(d);
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) ChangeTask(static_cast<int32_t>(t));
    for (size_t p = 0; p < schedule_.parameters.size(); ++p) ChangeParameter(p);
    for (const auto& [tensor, copies] : schedule_.output_copies) ChangeOutput(tensor, copies);
    for (size_t id = 0; id < schedule_.buffers.size(); ++id) {
      ChangePrecision(static_cast<BufferId>(id));
      ChangeLayout(static_cast<BufferId>(id));
    }
    return std::move(found_);
  }

 private:
  void Keep(const std::string& what, ScheduleChange change) {
    found_.emplace_back(what, std::move(change));
  }

  std::string Label(int32_t t) const {
    const Task& task = schedule_.tasks[t];
    return absl::StrCat("task ", t, " (", TaskKindName(task.kind), " of ", graph_.Label(task.node),
                        ")");
  }

  void ChangeOrder(size_t d) {
    const std::vector<int32_t>& program = schedule_.programs[d];
    for (size_t i = 0; i + 1 < program.size(); ++i) {
      Keep(absl::StrCat("order on device ", d, ": ", Label(program[i]), " after ",
                        Label(program[i + 1])),
           [d, i](Schedule* s) { std::swap(s->programs[d][i], s->programs[d][i + 1]); });
    }
  }

  // A buffer of the same device and box as `id`, but another; `id` if there is none.
  BufferId Alike(BufferId id) const {
    const Buffer& buffer = schedule_.buffers[id];
    for (size_t other = 0; other < schedule_.buffers.size(); ++other) {
      const Buffer& candidate = schedule_.buffers[other];
      if (static_cast<BufferId>(other) != id && candidate.device == buffer.device &&
          candidate.box.shape == buffer.box.shape && candidate.dtype == buffer.dtype) {
        return static_cast<BufferId>(other);
      }
    }
    return id;
  }

  void ChangeTask(int32_t t) {
    const Task& task = schedule_.tasks[t];
    const std::string where = Label(t) + ": ";
    Keep(where + "left out", [t](Schedule* s) {
      for (int32_t device : s->tasks[t].devices) Erase(s, device, t);
    });
    Keep(where + "done twice", [t](Schedule* s) { Double(s, t); });
    if (task.devices.size() > 1) {
      Keep(where + "left out on one device",
           [t](Schedule* s) { Erase(s, s->tasks[t].devices[0], t); });
      ChangeCollective(t, where);
    }
    for (bool reads : {true, false}) {
      const BufferList& list = reads ? task.reads : task.writes;
      const char* verb = reads ? "reads " : "writes ";
      auto at = [reads, t](Schedule* s) -> BufferList& {
        return reads ? s->tasks[t].reads : s->tasks[t].writes;
      };
      for (size_t i = 0; i < list.size(); ++i) {
        if (list[i] == kNoBuffer) continue;
        if (const BufferId other = Alike(list[i]); other != list[i]) {
          Keep(absl::StrCat(where, verb, "buffer ", other, " for ", list[i]),
               [at, i, other](Schedule* s) { at(s)[i] = other; });
        }
        if (i + 1 < list.size() && list[i + 1] != kNoBuffer) {
          Keep(absl::StrCat(where, verb, list[i + 1], " and ", list[i], " exchanged"),
               [at, i](Schedule* s) { std::swap(at(s)[i], at(s)[i + 1]); });
        }
      }
    }
    for (size_t i = 0; i < task.deps.size(); ++i) {
      Keep(absl::StrCat(where, "wait for task ", task.deps[i], " dropped"), [t, i](Schedule* s) {
        s->tasks[t].deps.erase(s->tasks[t].deps.begin() + static_cast<int64_t>(i));
      });
    }
    if (task.kind == TaskKind::kFill) {
      Keep(where + "doubled", [t](Schedule* s) {
        s->tasks[t].value = s->tasks[t].value == 0 ? 1 : s->tasks[t].value * 2;
      });
      Keep(where + "averaged over the devices once more",
           [t](Schedule* s) { s->tasks[t].value /= static_cast<double>(s->options.num_devices); });
    }
    const bool is_call = IsOfKernel(task.kind);
    if (is_call) Keep(where + "of another shard", [t](Schedule* s) { s->tasks[t].shard ^= 1; });
    if (is_call || IsOfSum(task.kind) || IsCarry(schedule_, task)) {
      Keep(where + (task.is_view ? "as no view" : "as a view"),
           [t](Schedule* s) { s->tasks[t].is_view ^= true; });
    }
    for (size_t w = 0; task.kind == TaskKind::kComputeGradient && w < task.writes.size(); ++w) {
      if (task.writes[w] == kNoBuffer) continue;
      Keep(absl::StrCat(where, Adds(task, w) ? "writes over " : "adds to ", task.writes[w]),
           [t, w](Schedule* s) { s->tasks[t].adds ^= uint32_t{1} << w; });
    }
    for (size_t i = 0; i < task.transfers.size(); ++i) {
      Keep(absl::StrCat(where, "transfer ", i, " dropped"), [t, i](Schedule* s) {
        auto& transfers = s->tasks[t].transfers;
        transfers.erase(transfers.begin() + static_cast<int64_t>(i));
      });
      Keep(absl::StrCat(where, "transfer ", i, " twice"), [t, i](Schedule* s) {
        auto& transfers = s->tasks[t].transfers;
        transfers.push_back(std::pair(transfers[i]));
      });
    }
  }

  void ChangeCollective(int32_t t, const std::string& where) {
    const Task& task = schedule_.tasks[t];
    for (TaskKind kind : {TaskKind::kAllReduce, TaskKind::kReduceScatter, TaskKind::kAllGather,
                          TaskKind::kAllToAll}) {
      if (kind == task.kind) continue;
      Keep(absl::StrCat(where, "as ", TaskKindName(kind)),
           [t, kind](Schedule* s) { s->tasks[t].kind = kind; });
    }
    for (size_t m = 0; m < task.devices.size(); ++m) {
      Keep(absl::StrCat(where, "without device ", task.devices[m]),
           [t, m](Schedule* s) { DropMember(s, t, m); });
    }
    // The other members of each two groups exchanged: an all-reduce over the wrong group.
    for (size_t other = static_cast<size_t>(t) + 1; other < schedule_.tasks.size(); ++other) {
      const Task& partner = schedule_.tasks[other];
      if (partner.kind != task.kind || partner.node != task.node || partner.phase != task.phase ||
          partner.devices.size() != task.devices.size()) {
        continue;
      }
      Keep(absl::StrCat(where, "over the wrong group, of task ", other), [t, other](Schedule* s) {
        Task &a = s->tasks[t], &b = s->tasks[other];
        const size_t last = a.devices.size() - 1;
        for (auto [task, mine, now] :
             {std::tuple(t, a.devices[last], b.devices[last]),
              std::tuple(static_cast<int32_t>(other), b.devices[last], a.devices[last])}) {
          std::vector<int32_t>&from = s->programs[mine], &to = s->programs[now];
          std::replace(from.begin(), from.end(), task, int32_t{-1});
          const int32_t partner = task == t ? static_cast<int32_t>(other) : t;
          std::replace(to.begin(), to.end(), partner, task);
        }
        for (std::vector<int32_t>& program : s->programs) std::erase(program, -1);
        std::swap(a.devices[last], b.devices[last]);
        if (last < a.reads.size() && last < b.reads.size()) std::swap(a.reads[last], b.reads[last]);
        if (last < a.writes.size() && last < b.writes.size()) {
          std::swap(a.writes[last], b.writes[last]);
        }
      });
    }
  }

  void ChangeParameter(size_t p) {
    const Schedule::HostTensor& parameter = schedule_.parameters[p];
    const std::string where = absl::StrCat("parameter ", graph_.Label(parameter.tensor.node), ": ");
    for (const bool gradients : {true, false}) {
      auto list = gradients ? &Schedule::HostTensor::gradients : &Schedule::HostTensor::trained;
      for (size_t i = 0; i < (parameter.*list).size(); ++i) {
        const BufferId id = (parameter.*list)[i];
        if (id == kNoBuffer) continue;
        const BufferId other = Alike(id);
        if (other == id) continue;
        Keep(absl::StrCat(where, gradients ? "gradient" : "what is trained", " of shard ", i,
                          " is buffer ", other),
             [p, i, list, other](Schedule* s) { (s->parameters[p].*list)[i] = other; });
      }
    }
  }

  // What is unloaded of an output that is a weight: the weight itself, updated by then.
  void ChangeOutput(TensorRef tensor, const std::vector<BufferId>& copies) {
    const std::vector<BufferId>& shards = schedule_.shards.at(tensor);
    Keep(absl::StrCat("output ", graph_.Label(tensor.node), ": read after its update"),
         [tensor, copies, shards](Schedule* s) {
           s->output_copies.erase(tensor);
           std::vector<int32_t> writer(s->buffers.size(), -1);
           for (size_t t = 0; t < s->tasks.size(); ++t) {
             Task& task = s->tasks[t];
             for (BufferId id : task.writes) {
               if (id != kNoBuffer) writer[id] = static_cast<int32_t>(t);
             }
             if (task.kind != TaskKind::kUnload) continue;
             const auto at = std::find(copies.begin(), copies.end(), task.reads[0]);
             if (at == copies.end()) continue;
             task.reads[0] = shards[at - copies.begin()];
             task.deps = {writer[task.reads[0]]};
           }
         });
  }

  void ChangePrecision(BufferId id) {
    const DataType dtype = schedule_.buffers[id].dtype;
    if (!IsFloat(dtype)) return;
    const DataType other = dtype == DataType::kFloat32 ? DataType::kBFloat16 : DataType::kFloat32;
    Keep(absl::StrCat(kPrecision, "buffer ", id, " in ", DataTypeName(other)),
         [id, other](Schedule* s) { s->buffers[id].dtype = other; });
  }

  void ChangeLayout(BufferId id) {
    const Buffer& buffer = schedule_.buffers[id];
    if (!HasLayouts(buffer.box.shape)) return;
    const Layout other =
        buffer.layout == Layout::kRowMajor ? Layout::kChannelsLast : Layout::kRowMajor;
    Keep(absl::StrCat(kLayout, "buffer ", id,
                      other == Layout::kRowMajor ? " row-major" : " with channels innermost"),
         [id, other](Schedule* s) { s->buffers[id].layout = other; });
  }

  const Graph& graph_;
  const Schedule& schedule_;
  std::vector<std::pair<std::string, ScheduleChange>> found_;
};

struct Base {
  MappedGraph mapped;
  Schedule schedule;
};

// What the checker's error says, without the task's number and name: after the last ": ".
std::string ReasonOf(const std::string& message) {
  std::string reason =
      message.substr(message.rfind(": ") == message.npos ? 0 : message.rfind(": ") + 2);
  for (char& c : reason) {
    if (c >= '0' && c <= '9') c = '#';
  }
  return reason;
}

MutantVerdict JudgeSchedule(const Base& base, const std::string& what,
                            const ScheduleChange& change) {
  Schedule mutant = base.schedule;
  change(&mutant);
  if (const absl::Status verdict = CheckSchedule(base.mapped.graph, mutant); !verdict.ok()) {
    return Caught("CheckSchedule", ReasonOf(std::string(verdict.message())));
  }
  // A run in order cannot tell: on two streams, the task may come too early.
  if (absl::StrContains(what, ": wait for")) return Missed("accepted without a wait");
  // Nor can one in a field, in which nothing is rounded.
  if (absl::StartsWith(what, kPrecision)) return Missed("accepted in another precision");
  for (uint64_t seed : {1, 2}) {
    const auto expected = RunSchedule(base.mapped.graph, base.schedule, seed);
    const auto found = RunSchedule(base.mapped.graph, mutant, seed);
    if (!expected.ok()) {
      return Missed("the schedule itself cannot be run", std::string(expected.status().message()));
    }
    if (!found.ok()) {
      return Missed("accepted, but cannot be run", std::string(found.status().message()));
    }
    for (const auto& [id, values] : *expected) {
      const auto at = found->find(id);
      if (at == found->end() || at->second != values) {
        return Missed("accepted, but computes another result", absl::StrCat("buffer ", id));
      }
    }
  }
  if (absl::StartsWith(what, kLayout)) {
    return Equal("every call that uses the buffer takes either layout",
                 "every buffer that is unloaded is equal, at two draws in the prime field");
  }
  return Equal("the buffers exchanged are shares of one sum, or receive the same",
               "every buffer that is unloaded is equal, at two draws in the prime field");
}

// So many of the mutants of a schedule.
absl::Status AddMutants(const std::string& name, std::shared_ptr<Base> base, uint64_t seed,
                        std::vector<Mutant>* mutants) {
  constexpr size_t kMutantsOfASchedule = 110;
  ISOMER_RETURN_IF_ERROR(CheckSchedule(base->mapped.graph, base->schedule));
  auto changes = ScheduleChanges(base->mapped.graph, base->schedule).Run();
  std::sort(changes.begin(), changes.end(), [&](const auto& a, const auto& b) {
    return HashBytes(a.first, seed) < HashBytes(b.first, seed);
  });
  if (changes.size() > kMutantsOfASchedule) changes.resize(kMutantsOfASchedule);
  for (auto& [what, change] : changes) {
    mutants->push_back({MutantKind::kSchedule, name, what,
                        [base, what = what, change = std::move(change)](Prover*) {
                          return JudgeSchedule(*base, what, change);
                        }});
  }
  return absl::OkStatus();
}

// A pipeline in the order of 1F1B, and with backward passes in two halves.
absl::Status AddPipelines(uint64_t seed, std::vector<Mutant>* mutants) {
  for (int32_t in_flight : {0, 2, 3}) {
    const auto base = std::make_shared<Base>();
    ISOMER_ASSIGN_OR_RETURN(base->mapped, PipelineExample());
    ScheduleOptions options;
    options.num_devices = 2;
    options.loss = "loss";
    options.keep_gradients = true;
    options.zero_bubble.most_in_flight = in_flight;
    ISOMER_ASSIGN_OR_RETURN(base->schedule,
                            LowerGraph(base->mapped.graph, base->mapped.views, options));
    const std::string name =
        in_flight == 0 ? "Pipeline" : absl::StrCat("Pipeline in halves, ", in_flight, " in flight");
    ISOMER_RETURN_IF_ERROR(AddMutants(name, base, seed, mutants));
  }
  return absl::OkStatus();
}

// Inference, whose states are carried from one step to the next.
absl::Status AddStates(uint64_t seed, std::vector<Mutant>* mutants) {
  for (const ExampleGraph& example : StateExamples()) {
    const auto base = std::make_shared<Base>();
    ISOMER_ASSIGN_OR_RETURN(base->mapped.graph, ParseGraph(example.parallel));
    base->mapped.views = ViewsOf(base->mapped.graph, example.strides);
    ISOMER_ASSIGN_OR_RETURN(
        base->schedule, LowerGraph(base->mapped.graph, base->mapped.views, StateOptions(example)));
    ISOMER_RETURN_IF_ERROR(AddMutants(example.name, base, seed, mutants));
  }
  return absl::OkStatus();
}

// Layers that are deep enough for some of their results to lie in the host's memory.
absl::Status AddOffloading(uint64_t seed, std::vector<Mutant>* mutants) {
  constexpr int kLayers = 7;
  std::string text = "%0 = input \"x\" : f32[4,3]\n%1 = input \"t\" : f32[4,3]\n";
  int id = 2, last = 0;
  for (int layer = 0; layer < kLayers; ++layer, id += 3) {
    absl::StrAppend(&text, "%", id, " = weight \"w", layer, "\" : f32[3,3]\n", "%", id + 1,
                    " = matmul(%", last, ", %", id, ") : f32[4,3]\n", "%", id + 2, " = relu(%",
                    id + 1, ") : f32[4,3]\n");
    last = id + 2;
  }
  absl::StrAppend(&text, "%", id, " = mse(%", last, ", %1) : f32[]\noutput \"loss\" = %", id, "\n");
  const auto base = std::make_shared<Base>();
  ISOMER_ASSIGN_OR_RETURN(base->mapped.graph, ParseGraph(text));
  base->mapped.views = SequentialViews(base->mapped.graph);
  ScheduleOptions options;
  options.loss = "loss";
  options.keep_gradients = true;
  for (int node = 0; node < base->mapped.graph.num_nodes(); ++node) {
    if (!IsLeaf(base->mapped.graph.node({node}).op.kind())) options.offloaded.push_back({node});
  }
  ISOMER_ASSIGN_OR_RETURN(base->schedule,
                          LowerGraph(base->mapped.graph, base->mapped.views, options));
  return AddMutants("Layers with results on the host", base, seed, mutants);
}

}  // namespace

absl::StatusOr<std::vector<Mutant>> ScheduleMutants(uint64_t seed) {
  // Each example as it is, and those with copies of weights with other ways to update them.
  struct Lowering {
    const ExampleGraph* example;
    std::string name;
    UpdateOptions update = {.bucket_bytes = 0};
    bool low = false;  // in bfloat16, whose weights have masters
  };
  std::vector<Lowering> bases;
  for (const ExampleGraph& example : ExampleGraphs()) bases.push_back({&example, example.name});
  for (const ExampleGraph& example : ExampleGraphs()) {
    if (example.name != "DataParallelMlp" && example.name != "HybridMlp") continue;
    bases.push_back({&example,
                     example.name + ", momentum in buckets",
                     {.optimizer = OptimizerKind::kMomentum}});
    bases.push_back({&example,
                     example.name + ", sharded Adam in buckets",
                     {.optimizer = OptimizerKind::kAdam, .method = UpdateMethod::kSharded}});
    bases.push_back({&example,
                     example.name + ", momentum by owners in buckets",
                     {.optimizer = OptimizerKind::kMomentum, .method = UpdateMethod::kOwner}});
    bases.push_back(
        {&example,
         example.name + ", momentum, summed in bfloat16",
         {.optimizer = OptimizerKind::kMomentum, .gradient_sums = DataType::kBFloat16}});
    bases.push_back(
        {&example,
         example.name + ", sharded weights, summed in bfloat16",
         {.method = UpdateMethod::kShardedWeights, .gradient_sums = DataType::kBFloat16}});
    bases.push_back({&example,
                     example.name + " in bfloat16, Adam",
                     {.optimizer = OptimizerKind::kAdam, .bucket_bytes = 0},
                     true});
    bases.push_back({&example,
                     example.name + " in bfloat16, sharded weights",
                     {.method = UpdateMethod::kShardedWeights},
                     true});
    bases.push_back(
        {&example,
         example.name + " in bfloat16, by owners, summed in it",
         {.method = UpdateMethod::kOwner, .bucket_bytes = 0, .gradient_sums = DataType::kBFloat16},
         true});
  }
  std::vector<Mutant> mutants;
  for (const Lowering& lowered : bases) {
    const ExampleGraph& example = *lowered.example;
    const auto base = std::make_shared<Base>();
    ISOMER_ASSIGN_OR_RETURN(
        base->mapped.graph,
        ParseGraph(lowered.low ? absl::StrReplaceAll(example.parallel, {{"f32", "bf16"}})
                               : example.parallel));
    base->mapped.views = ViewsOf(base->mapped.graph, example.strides);
    ScheduleOptions options;
    options.num_devices = example.num_devices;
    options.loss = "loss";
    options.keep_gradients = true;
    options.update = lowered.update;
    ISOMER_ASSIGN_OR_RETURN(base->schedule,
                            LowerGraph(base->mapped.graph, base->mapped.views, options));
    ISOMER_RETURN_IF_ERROR(AddMutants(lowered.name, base, seed, &mutants));
  }
  ISOMER_RETURN_IF_ERROR(AddPipelines(seed, &mutants));
  ISOMER_RETURN_IF_ERROR(AddStates(seed, &mutants));
  ISOMER_RETURN_IF_ERROR(AddOffloading(seed, &mutants));
  return mutants;
}

}  // namespace isomer
