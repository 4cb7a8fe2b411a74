// Writes the plans whose certificates bench/certificates.sh checks: FOLDER/NETWORK.DEVICES.
//
// They are the baselines that people write by hand (Megatron-LM within nodes of 8 for the
// transformers, data parallelism for the others), one sample a device: their derivations have as
// many steps as those that a search finds, and need no simulation of 1024 devices to be made.
// Nothing asks whether they fit into memory; a certificate is about equality.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/zoo_training.h"
#include "optimizer/machine/machine.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/sharding/rule_index.h"
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
  ISOMER_ASSIGN_OR_RETURN(const Model model, TrainedInZoo(network.name, devices));
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine("dgx_h100", devices / 8, 8));
  const CostModel cost(std::move(machine));
  CostTables tables(rules, cost, {.training = true});
  ISOMER_ASSIGN_OR_RETURN(const MappedModel mapped,
                          MapBaseline(network.baseline, model.graph, &tables));
  return DerivePlan(model, mapped, /*training=*/true, &tables);
}

absl::Status Write(const std::string& folder) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  for (const Network& network : kNetworks) {
    for (int64_t devices : kDevices) {
      ISOMER_ASSIGN_OR_RETURN(const Plan plan, MakePlan(network, devices, index));
      ISOMER_RETURN_IF_ERROR(SavePlan(absl::StrCat(folder, "/", network.name, ".", devices), plan));
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: certificate_plans FOLDER\n");
    return 2;
  }
  const absl::Status written = isomer::Write(argv[1]);
  if (written.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(written.message()).c_str());
  return 1;
}
