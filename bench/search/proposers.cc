#include "bench/search/proposers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/zoo_networks.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Of a step: less is rounding.
constexpr double kDiffers = 1e-4;
// Steps that get longer by more are worse plans.
constexpr double kWorse = 1e-3;

double MedianOf(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  const auto middle = numbers.begin() + (numbers.size() - 1) / 2;
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

std::string Percent(double share) { return absl::StrFormat("%.2f", 100 * share); }

// What switching one off brought, over all runs.
struct Without {
  std::vector<double> longer;  // of the step, as a share
  double most = -1;
  std::string where;
  double cpu_s = 0, all_cpu_s = 0;
};

}  // namespace

absl::StatusOr<Table> ProposersTable(const TableContext& context) {
  constexpr int64_t kNodes[] = {2, 8};
  std::map<std::string, Without> by_name;
  Table table("proposers",
              {"without", "runs", "longer", "median %", "most %", "CPU, all = 1", "most on"});
  for (const int64_t nodes : kNodes) {
    for (const std::string network : kSearchedNetworks) {
      if (!context.Wants(network)) continue;
      OptimizerJob job{.model = absl::StrCat("zoo:", network),
                       .machine = "dgx_h100",
                       .nodes = nodes,
                       .devices_per_node = 8};
      job.batch_size = BatchOn(network, job.devices());
      const std::vector<std::string> flags = {"--loss_alone", "--budget=100", "--threads=1"};
      job.flags = flags;
      const absl::StatusOr<Outcome> all = context.runner.RunToPlan(job, context.limit_s);
      if (!all.ok()) {
        table.AddNote(std::string(all.status().message()));
        continue;
      }
      ISOMER_ASSIGN_OR_RETURN(const double us, all->summary.Number("predicted_step_us"));
      // Without those that proposed nothing the run is the same.
      for (const auto& [name, row] : all->summary.Find("proposers")->struct_value().fields()) {
        if (!context.proposers.empty() && context.proposers.count(name) == 0) continue;
        job.flags = flags;
        job.flags.push_back(absl::StrCat("--without=", name));
        const absl::StatusOr<Outcome> without = context.runner.RunToPlan(job, context.limit_s);
        if (!without.ok()) {
          table.AddNote(absl::StrCat("without ", name, ": ", without.status().message()));
          continue;
        }
        ISOMER_ASSIGN_OR_RETURN(const double without_us,
                                without->summary.Number("predicted_step_us"));
        Without& sum = by_name[name];
        sum.longer.push_back(without_us / us - 1);
        sum.cpu_s += without->run.cpu_seconds;
        sum.all_cpu_s += all->run.cpu_seconds;
        if (sum.longer.back() <= sum.most) continue;
        sum.most = sum.longer.back();
        sum.where = absl::StrCat(network, " x ", job.devices());
      }
    }
  }
  for (const auto& [name, sum] : by_name) {
    const auto longer = std::count_if(sum.longer.begin(), sum.longer.end(),
                                      [](double share) { return share > kDiffers; });
    table.AddRow({name, absl::StrCat(sum.longer.size()), absl::StrCat(longer),
                  Percent(MedianOf(sum.longer)), Percent(sum.most),
                  absl::StrFormat("%.2f", sum.cpu_s / sum.all_cpu_s), sum.where});
  }
  return table;
}

absl::StatusOr<Table> ChangesTable(const TableContext& context) {
  if (!context.before.has_value()) {
    return absl::InvalidArgumentError("changes: --before=FOLDER of the programs to compare with");
  }
  struct Place {
    const char* machine;
    int64_t nodes, devices;
  };
  constexpr Place kPlaces[] = {{"dgx_h100", 1, 1},
                               {"dgx_h100", 1, 8},
                               {"dgx_h100", 2, 8},
                               {"dgx_h100", 8, 8},
                               {"summit", 8, 6}};
  Table table("changes",
              {"network", "machine", "devices", "mode", "before us", "now us", "longer %"});
  std::vector<double> cpu;
  int runs = 0, differ = 0, worse = 0;
  for (const Place& place : kPlaces) {
    for (const char* mode : {"training", "inference"}) {
      for (const ZooModel& model : ListModels()) {
        if (!context.Wants(model.name)) continue;
        const OptimizerJob job{.model = absl::StrCat("zoo:", model.name),
                               .machine = place.machine,
                               .nodes = place.nodes,
                               .devices_per_node = place.devices,
                               .flags = {absl::StrCat("--mode=", mode)}};
        const auto before = context.before->RunToPlan(job, context.limit_s);
        const auto now = context.runner.RunToPlan(job, context.limit_s);
        ++runs;
        if (!before.ok() && !now.ok()) continue;
        const auto step_of = [](const absl::StatusOr<Outcome>& outcome) -> absl::StatusOr<double> {
          if (!outcome.ok()) return outcome.status();
          return outcome->summary.Number("predicted_step_us");
        };
        const auto before_us = step_of(before), now_us = step_of(now);
        const auto text = [](const absl::StatusOr<double>& us) {
          return us.ok() ? absl::StrFormat("%.1f", *us) : std::string("no plan");
        };
        const bool both = before_us.ok() && now_us.ok();
        const double longer = both ? *now_us / *before_us - 1 : 0;
        if (both) cpu.push_back(now->run.cpu_seconds / before->run.cpu_seconds);
        worse += !now_us.ok() || longer > kWorse;
        if (both && std::abs(longer) <= kDiffers) continue;
        ++differ;
        table.AddRow({model.name, place.machine, absl::StrCat(job.devices()), mode, text(before_us),
                      text(now_us), both ? Percent(longer) : ""});
      }
    }
  }
  table.AddNote(absl::StrFormat(
      "%d runs; %d plans differ, of which %d are longer by more than %.1f %% or are gone; CPU "
      "seconds of a search, median: %.2f of those before",
      runs, differ, worse, 100 * kWorse, MedianOf(cpu)));
  return table;
}

}  // namespace isomer
