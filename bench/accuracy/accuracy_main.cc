// How true predictions are: plans of several networks, for one and two devices, profiled, predicted
// and measured on this computer, as threads and as processes.
//
// Network by network: its plans' kernels are profiled, and then the plans are run in turn, several
// times, so that what else the computer does strikes all alike. Predictions use nothing but the
// profile: measured steps have no say in them.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/accuracy/comparison.h"
#include "bench/accuracy/measurement.h"
#include "bench/accuracy/report.h"
#include "optimizer/cost/cost.h"
#include "optimizer/cost/memory_cost.h"
#include "optimizer/machine/machine.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/plan.h"
#include "pcg/profile/profile.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/file.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"

ABSL_FLAG(std::vector<std::string>, models, {}, "names of networks; none: all");
ABSL_FLAG(std::vector<std::string>, communicators, std::vector<std::string>({"threads", "mpi"}),
          "threads, mpi");
ABSL_FLAG(int32_t, rounds, 3, "runs of each plan with each communicator");
ABSL_FLAG(double, seconds, 0.4, "of steps in each run, about");
ABSL_FLAG(double, seconds_per_kernel, 0.1, "the most time to spend on measuring one");
ABSL_FLAG(std::string, cache, "step", "what kernels find in the caches: isomer-profile's flag");
ABSL_FLAG(std::string, out, "bench/results", "folder for accuracy.md, .json and .svg");
ABSL_FLAG(std::string, tasks, "", "write every task, predicted and measured, to this CSV file");
ABSL_FLAG(std::string, bin, "", "folder of the programs; none: bin/ beside this one's folder");

namespace isomer {
namespace {

struct Network {
  const char* name;
  const char* spec;
};
// Steps of 5 to 100 ms on one core.
constexpr Network kNetworks[] = {
    {"mlp", "zoo:mlp?layers=4&inputs=512&hidden=1024&classes=100&batch=128"},
    {"lenet", "zoo:lenet?batch=128"},
    {"squeezenet", "zoo:squeezenet?side=64&classes=100&batch=4"},
    {"resnext50",
     "zoo:resnext50?blocks1=1&blocks2=1&blocks3=1&blocks4=1&groups=4&stem=16&side=32&"
     "classes=10&batch=32"},
    {"encoder",
     "zoo:encoder?layers=2&hidden=256&heads=4&intermediate=1024&vocabulary=1000&seq=32&"
     "batch=8"},
    {"rnnlm", "zoo:rnnlm?layers=1&steps=6&hidden=256&embedding=256&vocabulary=1000&batch=32"},
    {"rnntc", "zoo:rnntc?layers=1&steps=6&hidden=256&embedding=256&vocabulary=1000&batch=32"},
    {"nmt", "zoo:nmt?layers=1&steps=4&hidden=128&embedding=128&vocabulary=500&batch=32"},
    {"dlrm", "zoo:dlrm?tables=4&rows=20000&features=64&bottom_hidden=256&top_hidden=512&batch=256"},
    {"xdl", "zoo:xdl?tables=4&rows=10000&hidden=256&batch=512"},
};

// How plans are asked for. The searches are for a machine of estimated rates: as it is, and with
// links so fast that other ways to split win. `may_fail`: not every network has such a plan.
struct PlanKind {
  const char* name;
  int devices;
  std::vector<std::string> flags;
  bool may_fail = false;
};
std::vector<PlanKind> PlanKinds() {
  const std::string fast =
      absl::StrCat("--machine=", ISOMER_SOURCE_DIR, "/bench/accuracy/fast_links.textproto");
  const std::string plain = "--update=all_reduce", here = "--machine=laptop_cpu";
  return {
      {"one device", 1, {here, "--plan=data_parallel", plain}},
      {"data parallel", 2, {here, "--plan=data_parallel", plain}},
      {"data parallel, updates in shards", 2, {here, "--plan=data_parallel", "--update=sharded"}},
      {"megatron", 2, {here, "--plan=megatron", plain}, true},
      {"searched", 2, {here, "--budget=60"}},
      {"searched, fast links", 2, {fast, "--budget=60"}}};
}

struct PlanFile {
  std::string kind, path;
  int devices = 1;
  LoweredPlan lowered;
};

// The different plans of a network.
absl::StatusOr<std::vector<PlanFile>> MakePlans(const Programs& programs, const Network& network) {
  std::vector<PlanFile> plans;
  std::vector<std::string> seen;
  for (const PlanKind& kind : PlanKinds()) {
    PlanFile file{kind.name,
                  absl::StrCat(programs.work, "/", network.name, plans.size(), ".plan"),
                  kind.devices,
                  {}};
    std::vector<std::string> arguments = {network.spec, absl::StrCat("--out=", file.path),
                                          absl::StrCat("--devices_per_node=", kind.devices)};
    arguments.insert(arguments.end(), kind.flags.begin(), kind.flags.end());
    const absl::Status made = RunProgramOf(programs, 0, "isomer-optimize", arguments);
    if (!made.ok() && kind.may_fail) continue;
    ISOMER_RETURN_IF_ERROR(made);
    ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlan(file.path));
    ISOMER_ASSIGN_OR_RETURN(file.lowered, LowerPlan(plan));
    std::string tasks = file.lowered.schedule.ToString(file.lowered.mapped.graph);
    if (std::find(seen.begin(), seen.end(), tasks) != seen.end()) continue;
    seen.push_back(std::move(tasks));
    plans.push_back(std::move(file));
  }
  return plans;
}

std::string ProfileFile(const Programs& programs, int devices) {
  return absl::StrCat(programs.work, "/", devices, ".profile");
}

// Adds what the plans need to the profile of as many devices as they have.
absl::Status ProfilePlans(const Programs& programs, const std::vector<PlanFile>& plans) {
  for (int devices : {1, 2}) {
    std::vector<std::string> arguments = {
        absl::StrCat("--out=", ProfileFile(programs, devices)),
        absl::StrCat("--seconds_per_kernel=", absl::GetFlag(FLAGS_seconds_per_kernel)),
        absl::StrCat("--cache=", absl::GetFlag(FLAGS_cache))};
    for (const PlanFile& plan : plans) {
      if (plan.devices == devices) arguments.push_back(plan.path);
    }
    for (const std::string& communicator : absl::GetFlag(FLAGS_communicators)) {
      // One device has no collectives, and its kernels are the same.
      if (devices == 1 && communicator != absl::GetFlag(FLAGS_communicators)[0]) continue;
      const bool processes = communicator == "mpi";
      std::vector<std::string> all = arguments;
      all.push_back(absl::StrCat("--communicator=", communicator));
      if (!processes) all.push_back(absl::StrCat("--devices=", devices));
      ISOMER_RETURN_IF_ERROR(
          RunProgramOf(programs, processes ? devices : 0, "isomer-profile", all));
    }
  }
  return absl::OkStatus();
}

// The profile without the collectives of other communicators.
absl::StatusOr<Profile> ProfileFor(const Programs& programs, int devices,
                                   const std::string& communicator) {
  ISOMER_ASSIGN_OR_RETURN(Profile profile, LoadProfile(ProfileFile(programs, devices)));
  const std::string other = communicator == "mpi" ? " threads " : " mpi ";
  std::erase_if(profile.tables,
                [&](const auto& table) { return absl::StrContains(table.first, other); });
  return profile;
}

class Accuracy {
 public:
  explicit Accuracy(Programs programs) : programs_(std::move(programs)) {}

  absl::Status AddNetwork(const Network& network, Progress* progress) {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<PlanFile> plans, MakePlans(programs_, network));
    ISOMER_RETURN_IF_ERROR(ProfilePlans(programs_, plans));
    progress->Advance();
    struct Entry {
      const PlanFile* plan;
      PlanComparison comparison;
      Simulation simulation;
      std::vector<Measurement> runs = {};
    };
    std::vector<Entry> entries;
    for (const PlanFile& plan : plans) {
      for (const std::string& communicator : absl::GetFlag(FLAGS_communicators)) {
        ISOMER_ASSIGN_OR_RETURN(Simulation simulation, Predict(plan, communicator));
        PlanComparison comparison{network.name, plan.kind, communicator, plan.devices};
        entries.push_back({&plan, std::move(comparison), std::move(simulation)});
      }
    }
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      for (Entry& entry : entries) {
        const double steps = absl::GetFlag(FLAGS_seconds) * 1e6 / entry.simulation.step_us;
        ISOMER_ASSIGN_OR_RETURN(
            Measurement run,
            MeasurePlan(programs_, entry.plan->path, entry.comparison.communicator,
                        entry.plan->devices, static_cast<int>(std::clamp(steps, 10.0, 200.0))));
        entry.runs.push_back(std::move(run));
      }
      progress->Advance();
    }
    for (Entry& entry : entries) {
      Compare(entry.plan->lowered.mapped.graph, entry.plan->lowered.schedule, entry.simulation,
              entry.runs, &entry.comparison);
      pairs_.push_back(std::move(entry.comparison));
    }
    return absl::OkStatus();
  }

  const std::vector<PlanComparison>& pairs() const { return pairs_; }

 private:
  absl::StatusOr<Simulation> Predict(const PlanFile& plan, const std::string& communicator) const {
    ISOMER_ASSIGN_OR_RETURN(const Profile profile,
                            ProfileFor(programs_, plan.devices, communicator));
    ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine("laptop_cpu", 0, plan.devices));
    const CostModel cost(std::move(machine), &profile);
    const Graph& graph = plan.lowered.mapped.graph;
    Schedule schedule = plan.lowered.schedule;
    const PredictedMemory memory =
        PredictMemory(&profile, graph, /*cores=*/false, /*num_queues=*/1, &schedule);
    Simulation simulation = Simulate(cost, graph, schedule, &memory.plan);
    simulation.peak_bytes = *absl::c_max_element(memory.bytes_per_device);
    return simulation;
  }

  const Programs programs_;
  std::vector<PlanComparison> pairs_;
};

absl::StatusOr<std::vector<Network>> ChosenNetworks() {
  std::vector<std::string> wanted = absl::GetFlag(FLAGS_models);
  std::vector<Network> networks;
  std::vector<std::string> names;
  for (const Network& network : kNetworks) {
    names.push_back(network.name);
    const auto at = std::find(wanted.begin(), wanted.end(), network.name);
    if (wanted.empty() || at != wanted.end()) networks.push_back(network);
  }
  for (const std::string& name : wanted) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--models: there is no ", name, "; there are ", absl::StrJoin(names, ", ")));
    }
  }
  return networks;
}

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) return absl::InvalidArgumentError("no arguments are expected");
  if (absl::GetFlag(FLAGS_rounds) < 1) {
    return absl::InvalidArgumentError("--rounds must be positive");
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Network> networks, ChosenNetworks());
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  Programs programs{absl::GetFlag(FLAGS_bin), (std::filesystem::temp_directory_path() /
                                               absl::StrCat("isomer-accuracy-", getpid()))
                                                  .string()};
  if (programs.bin.empty()) programs.bin = (self.parent_path().parent_path() / "bin").string();
  std::filesystem::create_directories(programs.work);
  Accuracy accuracy(programs);
  Progress progress("accuracy",
                    static_cast<int64_t>(networks.size()) * (absl::GetFlag(FLAGS_rounds) + 1));
  for (const Network& network : networks) {
    const absl::Status status = accuracy.AddNetwork(network, &progress);
    if (status.ok()) continue;
    return absl::Status(status.code(), absl::StrCat(network.name, ": ", status.message()));
  }
  std::filesystem::remove_all(programs.work);
  const AccuracySummary summary = Summarise(accuracy.pairs());
  const std::string out = absl::GetFlag(FLAGS_out);
  std::filesystem::create_directories(out);
  const std::string page = AccuracyPage(accuracy.pairs(), summary);
  ISOMER_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(out, "/accuracy.md"), page));
  ISOMER_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(out, "/accuracy.json"),
                                             AccuracyJson(accuracy.pairs(), summary).Print()));
  ISOMER_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(out, "/accuracy.svg"), AccuracySvg(accuracy.pairs())));
  if (const std::string tasks = absl::GetFlag(FLAGS_tasks); !tasks.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(tasks, TasksCsv(accuracy.pairs())));
  }
  absl::PrintF("%s", page);
  return kExitDone;
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram(
      {.name = "accuracy",
       .purpose = "Compares predicted with measured step times and memory on this computer.",
       .usage = "[--models=NAME,..] [--rounds=N] [--out=FOLDER]",
       .example = "build/release/bench/accuracy --models=mlp,lenet --out=/tmp/results"},
      argc, argv, isomer::Run);
}
