// Mutants of what devices run: waits, bytes, orders, and the memory plan beneath them.
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/example_graphs.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/program/program.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "verifier/mutation/mutants.h"
#include "verifier/mutation/program_run.h"
#include "verifier/mutation/state_examples.h"

namespace isomer {
namespace {

struct Runnable {
  Schedule schedule;
  MemoryPlan memory;
  Program program;
};
using CommandChange = std::function<void(Runnable*)>;
using CommandChanges = std::vector<std::pair<std::string, CommandChange>>;

void ChangesOfCommand(const Runnable& base, size_t d, int32_t place, CommandChanges* changes) {
  const std::vector<Command>& list = base.program.devices[d];
  const Command& command = list[place];
  const auto keep = [&](const std::string& what, std::function<void(Command*)> change) {
    changes->emplace_back(absl::StrCat("device ", d, ", command ", place, ": ", what),
                          [d, place, change = std::move(change)](Runnable* mutant) {
                            change(&mutant->program.devices[d][place]);
                          });
  };
  for (size_t w = 0; w < command.waits.size(); ++w) {
    keep(absl::StrCat("wait for ", command.waits[w], " deleted"), [w](Command* mutant) {
      mutant->waits.erase(mutant->waits.begin() + static_cast<int64_t>(w));
    });
    keep(absl::StrCat("wait for ", command.waits[w], " for the one before it"),
         [w](Command* mutant) { --mutant->waits[w]; });
  }
  for (int32_t queue = 0; queue < base.program.num_queues; ++queue) {
    if (queue == command.queue) continue;
    keep(absl::StrCat("on the queue ", QueueName(queue)),
         [queue](Command* mutant) { mutant->queue = queue; });
  }
  if (command.signals) keep("its signal deleted", [](Command* mutant) { mutant->signals = false; });
  for (bool reads : {true, false}) {
    const auto& ranges = reads ? command.bytes.reads : command.bytes.writes;
    const auto at = [reads](Command* mutant) -> SmallList<ByteRange, 3>& {
      return reads ? mutant->bytes.reads : mutant->bytes.writes;
    };
    const char* verb = reads ? "reads " : "writes ";
    for (size_t i = 0; i < ranges.size(); ++i) {
      keep(absl::StrCat(verb, ranges[i].begin, " moved up by its size"), [at, i](Command* mutant) {
        ByteRange& range = at(mutant)[i];
        const int64_t bytes = range.end - range.begin;
        range = {range.begin + bytes, range.end + bytes, range.on_host};
      });
      keep(absl::StrCat(verb, ranges[i].begin, " left out"), [at, i](Command* mutant) {
        at(mutant).erase(at(mutant).begin() + static_cast<int64_t>(i));
      });
    }
  }
  if (place + 1 == static_cast<int32_t>(list.size())) return;
  // Waits go on naming the commands that they named.
  changes->emplace_back(
      absl::StrCat("device ", d, ": commands ", place, " and ", place + 1, " exchanged"),
      [d, place](Runnable* mutant) {
        std::vector<Command>& of = mutant->program.devices[d];
        std::swap(of[place], of[place + 1]);
        for (Command& command : of) {
          for (int32_t& other : command.waits) {
            if (other == place) {
              other = place + 1;
            } else if (other == place + 1) {
              other = place;
            }
          }
        }
      });
}

// A buffer or a workspace elsewhere, and a program that goes by it.
void ChangesOfMemory(const Runnable& base, CommandChanges* changes) {
  using Offset = std::function<int64_t&(MemoryPlan*)>;
  const auto keep = [&](const std::string& what, int64_t offset, int64_t size, const Offset& of) {
    for (const int64_t by : {-size, size}) {
      if (by == 0 || offset + by < 0) continue;
      changes->emplace_back(absl::StrCat(what, " moved ", by < 0 ? "down" : "up", " by its size"),
                            [of, by](Runnable* mutant) {
                              of(&mutant->memory) += by;
                              mutant->program = CompileProgram(mutant->schedule, mutant->memory,
                                                               mutant->program.num_queues);
                            });
    }
  };
  for (size_t id = 0; id < base.schedule.buffers.size(); ++id) {
    keep(absl::StrCat("buffer ", id), base.memory.offsets[id],
         Aligned(base.schedule.buffers[id].bytes()),
         [id](MemoryPlan* memory) -> int64_t& { return memory->offsets[id]; });
  }
  for (size_t t = 0; t < base.schedule.tasks.size(); ++t) {
    const Task& task = base.schedule.tasks[t];
    if (task.workspace_bytes == 0) continue;
    const int32_t device = task.devices[0], number = static_cast<int32_t>(t);
    keep(absl::StrCat("workspace of task ", t), base.memory.ScratchOffset(number, device),
         Aligned(task.workspace_bytes), [device, number](MemoryPlan* memory) -> int64_t& {
           return memory->scratch[device][number];
         });
  }
}

// As kernels might have them: as large as the first of their results.
void AddWorkspaces(Schedule* schedule) {
  for (Task& task : schedule->tasks) {
    if (!RunsKernel(task)) continue;
    const auto is_there = [](BufferId id) { return id != kNoBuffer; };
    task.workspace_bytes =
        schedule->buffers[*std::find_if(task.writes.begin(), task.writes.end(), is_there)].bytes();
  }
}

MutantVerdict JudgeProgram(const Runnable& base, const CommandChange& change) {
  Runnable mutant = base;
  change(&mutant);
  if (const absl::Status verdict = CheckMemory(mutant.schedule, mutant.memory); !verdict.ok()) {
    return Caught("CheckMemory");
  }
  if (!CheckProgram(mutant.schedule, mutant.memory, mutant.program).ok()) {
    return Caught("CheckProgram");
  }
  constexpr uint64_t kOrders = 20;
  const auto expected = RunProgramOnNames(base.schedule, base.memory, base.program, 0);
  if (!expected.ok()) return Missed("the program itself cannot be run");
  for (uint64_t seed = 0; seed < kOrders; ++seed) {
    const auto found = RunProgramOnNames(mutant.schedule, mutant.memory, mutant.program, seed);
    if (!found.ok()) return Missed("accepted, but cannot be run");
    if (*found != *expected) {
      return Missed("accepted, but something reads what another wrote",
                    absl::StrCat("order ", seed));
    }
  }
  return Equal("every task reads what it read, in all orders that were drawn");
}

// So many of the mutants of an example's program.
absl::Status AddPrograms(const ExampleGraph& example, const ScheduleOptions& options, uint64_t seed,
                         std::vector<Mutant>* mutants) {
  constexpr size_t kMutantsOfAProgram = 120;
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(example.parallel));
  const auto base = std::make_shared<Runnable>();
  ISOMER_ASSIGN_OR_RETURN(base->schedule,
                          LowerGraph(graph, ViewsOf(graph, example.strides), options));
  AddWorkspaces(&base->schedule);
  base->memory = PlanMemory(base->schedule);
  base->program = CompileProgram(base->schedule, base->memory, kMostQueues);
  ISOMER_RETURN_IF_ERROR(CheckSchedule(graph, base->schedule));
  CommandChanges changes;
  for (size_t d = 0; d < base->program.devices.size(); ++d) {
    for (size_t place = 0; place < base->program.devices[d].size(); ++place) {
      ChangesOfCommand(*base, d, static_cast<int32_t>(place), &changes);
    }
  }
  ChangesOfMemory(*base, &changes);
  std::sort(changes.begin(), changes.end(), [&](const auto& a, const auto& b) {
    return HashBytes(a.first, seed) < HashBytes(b.first, seed);
  });
  if (changes.size() > kMutantsOfAProgram) changes.resize(kMutantsOfAProgram);
  for (auto& [what, change] : changes) {
    mutants->push_back(
        {MutantKind::kProgram, example.name, what,
         [base, change = std::move(change)](Prover*) { return JudgeProgram(*base, change); }});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Mutant>> ProgramMutants(uint64_t seed) {
  std::vector<Mutant> mutants;
  for (const ExampleGraph& example : ExampleGraphs()) {
    ScheduleOptions options;
    options.num_devices = example.num_devices;
    options.loss = "loss";
    options.update = {.optimizer = OptimizerKind::kAdam, .method = UpdateMethod::kSharded};
    ISOMER_RETURN_IF_ERROR(AddPrograms(example, options, seed, &mutants));
  }
  for (const ExampleGraph& example : StateExamples()) {
    ISOMER_RETURN_IF_ERROR(AddPrograms(example, StateOptions(example), seed, &mutants));
  }
  return mutants;
}

}  // namespace isomer
