// How long does checking a certificate take, in how much memory? One fresh isomer-verify per plan.
//
// Plans are the baselines that people write by hand (Megatron-LM within nodes of 8 for the
// transformers, data parallelism for the others): their derivations have as many steps as those
// that a search finds, and need no simulation of 1024 devices to be made. Nothing asks whether they
// fit into memory; a certificate is about equality.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "models/load.h"
#include "models/loss.h"
#include "optimizer/baselines.h"
#include "optimizer/derivation.h"
#include "optimizer/machine.h"
#include "optimizer/rule_index.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct Network {
  const char* name;
  const char* baseline;
};
constexpr Network kNetworks[] = {{"bert_large", kMegatron},
                                 {"inception_v3", kDataParallel},
                                 {"dlrm", kDataParallel},
                                 {"gpt_175b", kMegatron}};
constexpr int64_t kDevices[] = {8, 64, 1024};

absl::StatusOr<Plan> MakePlan(const Network& network, int64_t devices, const RuleIndex& rules) {
  LoadOptions load;
  load.batch_size = devices;  // one sample a device
  ISOMER_ASSIGN_OR_RETURN(Model model, LoadAnyModel(std::string("zoo:") + network.name, load));
  ISOMER_RETURN_IF_ERROR(AttachLoss(&model, "auto"));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine("dgx_h100", devices / 8, 8));
  const CostModel cost(std::move(machine));
  CostTables tables(rules, cost, {.training = true});
  ISOMER_ASSIGN_OR_RETURN(const MappedModel mapped,
                          MapBaseline(network.baseline, model.graph, &tables));
  return DerivePlan(model, mapped, /*training=*/true, &tables);
}

struct Run {
  bool accepted = false;
  double seconds = 0;
  int64_t rss_bytes = 0;
};

Run Verify(const std::string& path, const std::string& schedule) {
  const std::string program = std::string(ISOMER_BIN_DIR) + "/isomer-verify";
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(127);
    execl(program.c_str(), program.c_str(), "plan", path.c_str(), schedule.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, seconds.count(), usage.ru_maxrss * 1024};
}

absl::Status Measure(const std::string& folder) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  std::printf(
      "| network | devices | steps | nodes | bytes | check | memory | with all ranks | memory |\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const Network& network : kNetworks) {
    for (int64_t devices : kDevices) {
      const std::string path = folder + "/" + network.name + "." + std::to_string(devices);
      struct stat file {};
      if (stat(path.c_str(), &file) != 0) {
        ISOMER_ASSIGN_OR_RETURN(const Plan made, MakePlan(network, devices, index));
        ISOMER_RETURN_IF_ERROR(SavePlan(path, made));
        stat(path.c_str(), &file);
      }
      ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlan(path));
      const Run check = Verify(path, "--schedule=classes");
      std::printf("| %s | %d | %d | %d | %.0f k | %.2f s | %.0f MB |", network.name,
                  static_cast<int>(devices), static_cast<int>(plan.steps.size()),
                  plan.graph.num_nodes(), static_cast<double>(file.st_size) * 1e-3, check.seconds,
                  static_cast<double>(check.rss_bytes) * 1e-6);
      if (!check.accepted) std::printf(" refused |");
      if (devices <= 64) {
        const Run all = Verify(path, "--schedule=all");
        std::printf(" %.2f s | %.0f MB |\n", all.seconds,
                    static_cast<double>(all.rss_bytes) * 1e-6);
      } else {
        std::printf(" | |\n");
      }
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: certificate_bench FOLDER  (plans that lie there are taken)\n");
    return 2;
  }
  const absl::Status measured = isomer::Measure(argv[1]);
  if (measured.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(measured.message()).c_str());
  return 1;
}
