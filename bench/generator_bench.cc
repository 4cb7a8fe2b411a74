// How fast is generation, and how fast are its rules read? Enumeration of graphs of 1 to 4
// operators (rate, memory, growth), the share of each phase, and loading with all indices.
//
//   generator_bench --benchmark_filter=Enumerate    the table of growth in bench/README.md
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>

#include "bench/resources.h"
#include "bench/taso_configuration.h"
#include "generator/enumeration/configuration.h"
#include "generator/enumeration/enumerator.h"
#include "generator/pipeline/generate.h"
#include "pcg/support/check.h"
#include "rules/language/rule.h"

namespace isomer {
namespace {

struct Run {
  double seconds = 0, cpu_seconds = 0;
  double candidate_seconds = 0;  // of making patterns of the equations that were found
  int64_t graphs = 0, candidates = 0;
  int64_t peak_bytes = 0;
};

// Runs `work` in a process of its own, so that its peak of memory is its own.
Run InProcess(const std::function<void(Statistics*)>& work) {
  int ends[2];
  ISOMER_CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  ISOMER_CHECK(child >= 0);
  Run run;
  if (child == 0) {
    Statistics statistics;
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = CpuSeconds();
    work(&statistics);
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    run.cpu_seconds = CpuSeconds() - cpu_start;
    run.candidate_seconds = statistics.seconds["candidates"];
    run.graphs = statistics.graphs_enumerated;
    run.candidates = statistics.candidates;
    _exit(write(ends[1], &run, sizeof run) == sizeof run ? 0 : 1);
  }
  close(ends[1]);
  ISOMER_CHECK(read(ends[0], &run, sizeof run) == sizeof run);
  close(ends[0]);
  rusage usage{};
  ISOMER_CHECK(wait4(child, nullptr, 0, &usage) == child);
  run.peak_bytes = int64_t{usage.ru_maxrss} * 1024;
  return run;
}

// Graphs of up to `max_operators` of the core set: contraction, elementwise operators, layout.
Configuration CoreSet(int max_operators) {
  for (Configuration& configuration :
       Configurations({AllOpKinds().begin(), AllOpKinds().end()}, max_operators)) {
    if (configuration.name != "algebra") continue;
    configuration.max_operators = max_operators;
    return configuration;
  }
  ISOMER_CHECK(false);
  return {};
}

// Arguments: operators of one graph, threads.
void Enumerate(benchmark::State& state, Configuration (*set)(int)) {
  const Configuration configuration = set(static_cast<int>(state.range(0)));
  const Run nothing = InProcess([](Statistics*) {});
  Run run;
  for (auto _ : state) {
    run = InProcess([&](Statistics* statistics) {
      TypeOracle oracle;
      Random random(1);
      statistics->candidates =
          static_cast<int64_t>(isomer::Enumerate(configuration, &oracle, &random, statistics,
                                                 static_cast<int>(state.range(1)))
                                   .size());
    });
    state.SetIterationTime(run.seconds);
  }
  const auto graphs = static_cast<double>(run.graphs);
  state.counters["graphs"] = graphs;
  state.counters["graphs/s"] = graphs / run.seconds;
  state.counters["graphs/cpu_s"] = graphs / run.cpu_seconds;
  state.counters["cpu_s"] = run.cpu_seconds;
  state.counters["fingerprints_s"] = run.seconds - run.candidate_seconds;
  state.counters["candidates"] = static_cast<double>(run.candidates);
  state.counters["bytes/graph"] = static_cast<double>(run.peak_bytes - nothing.peak_bytes) / graphs;
}
BENCHMARK_CAPTURE(Enumerate, core, CoreSet)
    ->ArgNames({"operators", "threads"})
    ->Args({1, 1})
    ->Args({2, 1})
    ->Args({3, 1})
    ->Args({3, 2})
    ->Args({4, 2})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// TASO's own operators and inputs, 3 operators a side: its generator enumerates 16.4 million graphs
// in 124 s with 7.1 GB on two Zen-4 cores.
BENCHMARK_CAPTURE(Enumerate, taso, TasoConfiguration)
    ->ArgNames({"operators", "threads"})
    ->Args({1, 1})
    ->Args({2, 1})
    ->Args({3, 1})
    ->Args({3, 2})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// The shipped rules, repeated under other rank vectors until there are at least `count`.
RuleSet ManyRules(const RuleSet& shipped, int64_t count) {
  RuleSet many;
  for (int copy = 0; static_cast<int64_t>(many.rules.size()) < count; ++copy) {
    for (Rule rule : shipped.rules) {
      if (copy > 0) rule.ranks.push_back(std::vector<int>(rule.num_inputs, 4 + copy));
      SetId(&rule);
      many.rules.push_back(std::move(rule));
      if (static_cast<int64_t>(many.rules.size()) == count) break;
    }
  }
  return many;
}

// Parse, validate, index, inverses: all that a program does before it can match.
void Load(benchmark::State& state) {
  const std::string path = "/tmp/generator_bench_" + std::to_string(getpid()) + ".rules";
  InProcess([&](Statistics*) {
    const auto shipped = LoadRules(ISOMER_SOURCE_DIR "/rules/default.rules");
    ISOMER_CHECK(shipped.ok() && SaveRules(path, ManyRules(*shipped, state.range(0))).ok());
  });
  double cpu_seconds = 0;
  for (auto _ : state) {
    // As a program does it: once, in fresh memory, and the rules are kept.
    const Run run = InProcess([&](Statistics*) {
      static const auto* const kRules = new absl::StatusOr<RuleSet>(LoadRules(path));
      ISOMER_CHECK(kRules->ok());
    });
    state.SetIterationTime(run.seconds);
    cpu_seconds += run.cpu_seconds;
  }
  state.counters["cpu_ms"] = 1e3 * cpu_seconds / static_cast<double>(state.iterations());
  std::remove(path.c_str());
}
BENCHMARK(Load)->ArgName("rules")->Arg(500)->Arg(2000)->Arg(4000)->UseManualTime()->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace isomer

BENCHMARK_MAIN();
