// How many graphs are there of all operators at so many a side, how many of them are equal, and
// what does it take to see that? Each configuration is enumerated in a process of its own, with
// limits on its time and memory; those that reach one are named.
//
//   enumeration_growth --max_ops=4                             the written configurations
//   enumeration_growth --configurations=derived --max_ops=3    those that follow from declarations
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/resources.h"
#include "generator/enumeration/configuration.h"
#include "generator/enumeration/derived_configurations.h"
#include "generator/enumeration/enumerator.h"
#include "pcg/support/check.h"
#include "pcg/support/forked_child.h"

ABSL_FLAG(std::string, configurations, "written", "written or derived");
ABSL_FLAG(int, max_ops, 4, "operators of one side, for each configuration");
ABSL_FLAG(double, limit_s, 120, "time of one configuration");
ABSL_FLAG(double, limit_gib, 6, "memory of one configuration");
ABSL_FLAG(int, threads, 1, "of one configuration");

namespace isomer {
namespace {

struct Growth {
  bool ended = false;
  int64_t graphs = 0, kept = 0, candidates = 0;
  double seconds = 0, cpu_seconds = 0, gib = 0;
};

double GibOf(pid_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/statm"));
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / (1 << 30);
}

Growth EnumerateHere(const Configuration& configuration) {
  TypeOracle oracle;
  Random random(1);
  Statistics statistics;
  Growth growth;
  growth.candidates = static_cast<int64_t>(
      Enumerate(configuration, &oracle, &random, &statistics, absl::GetFlag(FLAGS_threads)).size());
  growth.graphs = statistics.graphs_enumerated;
  growth.kept = statistics.tensors_kept;
  growth.cpu_seconds = CpuSeconds();
  growth.gib = PeakGib();
  growth.ended = true;
  return growth;
}

Growth EnumerateInProcess(const Configuration& configuration) {
  int ends[2];
  ISOMER_CHECK(pipe(ends) == 0);
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<pid_t> child = ForkChild([&] {
    const Growth growth = EnumerateHere(configuration);
    _exit(write(ends[1], &growth, sizeof growth) == sizeof growth ? 0 : 1);
  });
  ISOMER_CHECK(child.ok());
  close(ends[1]);
  Growth growth;
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double peak = 0;
  while (waitpid(*child, nullptr, WNOHANG) == 0) {
    peak = std::max(peak, GibOf(*child));
    if (peak > absl::GetFlag(FLAGS_limit_gib) || seconds() > absl::GetFlag(FLAGS_limit_s)) {
      kill(*child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (read(ends[0], &growth, sizeof growth) != sizeof growth) {
    growth = {};
    growth.gib = peak;
  }
  close(ends[0]);
  growth.seconds = seconds();
  return growth;
}

std::vector<Configuration> Chosen() {
  const std::set<OpKind> all = {AllOpKinds().begin(), AllOpKinds().end()};
  const int most = absl::GetFlag(FLAGS_max_ops);
  const bool derived = absl::GetFlag(FLAGS_configurations) == "derived";
  return derived ? DerivedConfigurations(all, most) : Configurations(all, most);
}

void Main() {
  Growth total;
  std::vector<std::string> unfinished;
  const std::vector<Configuration> chosen = Chosen();
  for (const Configuration& configuration : chosen) {
    const Growth growth = EnumerateInProcess(configuration);
    absl::PrintF("%12d graphs %9d kept %9d candidates %8.2f s %6.2f GiB%s  %s\n", growth.graphs,
                 growth.kept, growth.candidates, growth.seconds, growth.gib,
                 growth.ended ? "" : "  NOT ENDED", configuration.name);
    std::fflush(stdout);
    total.gib = std::max(total.gib, growth.gib);
    if (!growth.ended) unfinished.push_back(configuration.name);
    total.graphs += growth.graphs;
    total.kept += growth.kept;
    total.candidates += growth.candidates;
    total.seconds += growth.seconds;
    total.cpu_seconds += growth.cpu_seconds;
  }
  absl::PrintF(
      "%d configurations at %d operators: %d graphs, %d kept, %d candidates, %.0f s of CPU time, "
      "at most %.2f GiB; %d not ended\n",
      chosen.size(), absl::GetFlag(FLAGS_max_ops), total.graphs, total.kept, total.candidates,
      total.cpu_seconds, total.gib, unfinished.size());
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  isomer::Main();
}
