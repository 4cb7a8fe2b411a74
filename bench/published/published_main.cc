// Predicted steps beside steps that clusters measured, at the configurations that ran.
//
// Usage: build/release/bench/published [--rows=TEXT] [--random=N] [--search]
#include <unistd.h>
#include <algorithm>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/marshalling.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/published/least_memory.h"
#include "bench/search/optimizer_run.h"
#include "bench/search/table.h"
#include "optimizer/request/optimize_request.h"
#include "optimizer/request/option_list.h"
#include "pcg/ir/weight_update.h"
#include "pcg/support/file.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"

ABSL_FLAG(std::string, steps, ISOMER_SOURCE_DIR "/bench/published/steps.tsv", "the measured steps");
ABSL_FLAG(std::string, rows, "", "only rows with this text in them");
ABSL_FLAG(int64_t, random, 0, "also so many random legal configurations of each row");
ABSL_FLAG(double, random_s, 0,
          "of --random, seconds of each row after which no more are drawn; 0: any");
ABSL_FLAG(bool, search, false,
          "also what the search finds, with the row's precision and attention");
ABSL_FLAG(double, limit_s, 600,
          "seconds after which a run is given up; of --random, after which a configuration is "
          "counted as such");
ABSL_FLAG(uint64_t, seed, 1, "of --random");

namespace isomer {
namespace {

using Row = std::map<std::string, std::string>;

absl::StatusOr<std::vector<Row>> ReadRows(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<std::string> names;
  std::vector<Row> rows;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    if (names.empty()) {
      names = cells;
      continue;
    }
    if (cells.size() != names.size()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": a row of ", cells.size(), " cells"));
    }
    Row row;
    for (size_t i = 0; i < names.size(); ++i) row[names[i]] = cells[i];
    if (absl::StrContains(line, absl::GetFlag(FLAGS_rows))) rows.push_back(std::move(row));
  }
  return rows;
}

int64_t Number(const Row& row, const std::string& name) {
  int64_t value = 0;
  return absl::SimpleAtoi(row.at(name), &value) ? value : 0;
}

struct Configuration {
  int64_t tensor = 1, context = 1, expert = 1, stages = 1, chunks = 1, micro_batch_size = 1;
  bool sequence_parallel = true;
  std::string recompute, update;

  std::string ToString() const {
    return absl::StrCat("t", tensor, sequence_parallel ? "" : " (no sp)", " c", context, " e",
                        expert, " p", stages, "x", chunks, " b", micro_batch_size, " ", recompute,
                        " ", update);
  }
};

OptimizeRequest RequestOf(const Row& row) {
  OptimizeRequest request;
  request.precision = "bfloat16";
  request.optimizer = "adam";
  request.loss_alone = true;
  request.attention = row.at("attention");
  // Of bfloat16's size, so that costs are the same.
  if (row.at("gradients") == "float16") request.gradient_precision = "bfloat16";
  return request;
}

OptimizeRequest RequestOf(const Row& row, const Configuration& c) {
  OptimizeRequest request = RequestOf(row);
  request.sequence_parallel = c.sequence_parallel;
  if (Number(row, "overlap") == 0) request.bucket_bytes = UpdateOptions::kOneBucket;
  request.plan = "grid";
  request.tensor = c.tensor;
  request.context = c.context;
  request.expert = c.expert;
  request.pipeline = absl::StrCat(c.stages, "x", c.chunks);
  request.micro_batch_size = c.micro_batch_size;
  request.recompute = c.recompute;
  request.update = c.update;
  // Nothing that it would be compared with.
  request.without = {"data_parallel", "zero3", "megatron", "published", "grids"};
  return request;
}

// The options that are not as they are without.
std::vector<std::string> FlagsOf(const OptimizeRequest& request) {
  const OptimizeRequest none;
  std::vector<std::string> flags;
#define ISOMER_SAY_OPTION(type, name, value, help)                                  \
  if (request.name != none.name) {                                                  \
    flags.push_back(absl::StrCat("--" #name "=", absl::UnparseFlag(request.name))); \
  }
  ISOMER_SEARCH_OPTIONS(ISOMER_SAY_OPTION)
#undef ISOMER_SAY_OPTION
  return flags;
}

OptimizerJob JobOf(const Row& row) {
  constexpr int64_t kNode = 8;
  return {.model = absl::StrCat("zoo:", row.at("model")),
          .machine = row.at("machine"),
          .nodes = std::max<int64_t>(1, Number(row, "gpus") / kNode),
          .devices_per_node = std::min(kNode, Number(row, "gpus")),
          .batch_size = Number(row, "batch"),
          .flags = FlagsOf(RequestOf(row))};
}

OptimizerJob JobOf(const Row& row, const Configuration& c) {
  OptimizerJob job = JobOf(row);
  job.flags = FlagsOf(RequestOf(row, c));
  return job;
}

// Those that the row may mean, where it does not say all.
std::vector<Configuration> ConfigurationsOf(const Row& row) {
  const Configuration base = {.tensor = Number(row, "tp"),
                              .context = Number(row, "cp"),
                              .expert = Number(row, "ep"),
                              .stages = Number(row, "pp"),
                              .sequence_parallel = Number(row, "sp") == 1,
                              .recompute = row.at("recompute"),
                              .update = row.at("update")};
  const auto choices = [&](const std::string& name, std::vector<int64_t> unknown) {
    return row.at(name) == "-" ? std::move(unknown) : std::vector<int64_t>{Number(row, name)};
  };
  std::vector<std::string> recomputed = {row.at("recompute")};
  if (recomputed[0] == "-") recomputed = {"none", "selective", "full"};
  std::vector<Configuration> all;
  for (int64_t chunks : choices("chunks", {2, 3, 4, 8})) {
    for (int64_t size : choices("mbs", {1, 2, 4})) {
      for (const std::string& recompute : recomputed) {
        all.push_back(base);
        all.back().chunks = chunks;
        all.back().micro_batch_size = size;
        all.back().recompute = recompute;
      }
    }
  }
  return all;
}

struct Found {
  double step_us = 0, mfu = 0, bytes = 0, seconds = 0;
  bool fits = false;
  std::string degrees = {};  // "tensor 8 x pipeline 16 (8 chunks) x .."
};

// Absent: it is no legal configuration.
absl::StatusOr<std::optional<Found>> FoundIn(const Outcome& outcome) {
  if (!outcome.has_plan()) {
    if (!outcome.run.timed_out && outcome.run.exit_code == kExitBadInput) return std::nullopt;
    return absl::InternalError(outcome.run.timed_out ? "not done in time" : outcome.run.complaint);
  }
  Found found{.seconds = outcome.run.seconds, .fits = outcome.found()};
  ISOMER_ASSIGN_OR_RETURN(found.step_us, outcome.summary.Number("predicted_step_us"));
  ISOMER_ASSIGN_OR_RETURN(found.mfu, outcome.summary.Number("mfu"));
  ISOMER_ASSIGN_OR_RETURN(found.bytes, outcome.summary.Number("predicted_peak_bytes"));
  ISOMER_ASSIGN_OR_RETURN(found.degrees, outcome.summary.Text("headline"));
  found.degrees.resize(std::min(found.degrees.size(), found.degrees.find(": ")));
  return found;
}

absl::StatusOr<std::optional<Found>> Run(const OptimizerRunner& runner, const OptimizerJob& job) {
  ISOMER_ASSIGN_OR_RETURN(const Outcome outcome, runner.Run(job, absl::GetFlag(FLAGS_limit_s)));
  auto found = FoundIn(outcome);
  if (found.ok()) return found;
  return absl::InternalError(
      absl::StrCat(absl::StrJoin(job.flags, " "), ": ", found.status().message()));
}

bool IsBetter(const Found& a, const Found& b) {
  return a.fits != b.fits ? a.fits : a.step_us < b.step_us;
}

struct Chosen {
  Configuration configuration;
  Found found;
};

absl::StatusOr<std::optional<Chosen>> BestOf(const OptimizerRunner& runner, const Row& row) {
  std::optional<Chosen> best;
  for (const Configuration& configuration : ConfigurationsOf(row)) {
    ISOMER_ASSIGN_OR_RETURN(const std::optional<Found> found,
                            Run(runner, JobOf(row, configuration)));
    if (!found.has_value()) continue;
    if (!best.has_value() || IsBetter(*found, best->found)) best = Chosen{configuration, *found};
  }
  return best;
}

// Degrees that multiply up, of any size; what is not legal for other reasons is refused in a line.
Configuration RandomConfiguration(const Row& row, std::mt19937_64* random) {
  const auto draw = [&](const std::vector<int64_t>& from) {
    return from[(*random)() % from.size()];
  };
  const auto divisors = [](int64_t of, int64_t most) {
    std::vector<int64_t> all;
    for (int64_t d = 1; d <= std::min(of, most); ++d) {
      if (of % d == 0) all.push_back(d);
    }
    return all;
  };
  constexpr int64_t kMostStages = 64;
  Configuration c;
  int64_t left = Number(row, "gpus");
  c.tensor = draw(divisors(std::min<int64_t>(8, left), 8));
  left /= c.tensor;
  c.stages = draw(divisors(left, kMostStages));
  left /= c.stages;
  if (Number(row, "ep") > 1) c.expert = draw(divisors(left, left));
  c.chunks = c.stages == 1 ? 1 : draw({1, 2, 3, 4});
  c.micro_batch_size = draw({1, 1, 2, 4});
  c.recompute = std::vector<std::string>{"none", "selective", "full"}[(*random)() % 3];
  c.update = std::vector<std::string>{"all_reduce", "sharded", "sharded_weights"}[(*random)() % 3];
  return c;
}

// What random legal configurations of a row, all different, come to.
struct Luck {
  std::optional<Chosen> best;  // of those that were planned
  int64_t legal = 0;
  int64_t too_large = 0;  // for their weights and states alone
  int64_t misfits = 0;    // for more
  int64_t given_up = 0;   // not planned in time
};

absl::StatusOr<Luck> Draw(const OptimizerRunner& runner, const Row& row, std::mt19937_64* random) {
  Luck luck;
  const int64_t wanted = absl::GetFlag(FLAGS_random);
  if (wanted == 0) return luck;
  const OptimizerJob job = JobOf(row);
  const MachineRequest machine = {
      .machine = job.machine, .nodes = job.nodes, .devices_per_node = job.devices_per_node};
  Progress progress(absl::StrCat("random configurations of ", job.model), wanted);
  ISOMER_ASSIGN_OR_RETURN(
      const std::unique_ptr<LeastMemory> memory,
      LeastMemory::Make(job.model, job.batch_size, machine,
                        RequestOf(row, {.recompute = "none", .update = "all_reduce"})));
  const auto start = std::chrono::steady_clock::now();
  const double most_s = absl::GetFlag(FLAGS_random_s);
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  constexpr int64_t kTriesEach = 50;
  std::set<std::string> seen;
  for (int64_t tried = 0; luck.legal < wanted && tried < kTriesEach * wanted; ++tried) {
    if (most_s > 0 && seconds() > most_s) break;
    const Configuration configuration = RandomConfiguration(row, random);
    // On few devices many are drawn more than once.
    if (!seen.insert(configuration.ToString()).second) continue;
    ISOMER_ASSIGN_OR_RETURN(const std::optional<int64_t> bytes,
                            memory->BytesOf(RequestOf(row, configuration)));
    if (!bytes.has_value()) continue;
    ++luck.legal;
    progress.Advance();
    if (*bytes > memory->memory_bytes()) {
      ++luck.too_large;
      continue;
    }
    ISOMER_ASSIGN_OR_RETURN(const Outcome outcome,
                            runner.Run(JobOf(row, configuration), absl::GetFlag(FLAGS_limit_s)));
    if (outcome.run.timed_out) {
      ++luck.given_up;
      continue;
    }
    ISOMER_ASSIGN_OR_RETURN(const std::optional<Found> one, FoundIn(outcome));
    if (!one.has_value()) {
      --luck.legal;
      continue;
    }
    if (!one->fits) ++luck.misfits;
    if (!luck.best.has_value() || IsBetter(*one, luck.best->found)) {
      luck.best = Chosen{configuration, *one};
    }
  }
  return luck;
}

absl::StatusOr<int> Main(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) return absl::InvalidArgumentError("takes no arguments");
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Row> rows, ReadRows(absl::GetFlag(FLAGS_steps)));
  const std::string work =
      (std::filesystem::temp_directory_path() / absl::StrCat("published.", getpid())).string();
  std::filesystem::create_directories(work);
  const OptimizerRunner runner(ISOMER_BIN_DIR, work);
  Table table("published", {"run", "GPUs", "measured, s", "predicted, s", "error", "MFU",
                            "memory, GiB", "configuration", "planned in, s"});
  Table searched("searched", {"run", "GPUs", "configuration, s", "search, s", "of it", "took, s",
                              "the search's"});
  Table drawn("random", {"run", "GPUs", "configuration, s", "search, s", "best random, s", "which",
                         "legal", "do not fit", "given up"});
  std::vector<double> errors;
  std::mt19937_64 random(absl::GetFlag(FLAGS_seed));
  for (const Row& row : rows) {
    const std::string name = absl::StrCat(row.at("source"), " ", row.at("model"));
    ISOMER_ASSIGN_OR_RETURN(const std::optional<Chosen> best, BestOf(runner, row));
    if (!best.has_value()) {
      return absl::InternalError(absl::StrCat(name, ": no configuration of the row is legal"));
    }
    const Found& found = best->found;
    double measured_s = 0;
    if (!absl::SimpleAtod(row.at("step_s"), &measured_s) || measured_s <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": step_s is no time"));
    }
    const double measured_us = 1e6 * measured_s;
    const double error = found.step_us / measured_us - 1;
    errors.push_back(std::abs(error));
    table.AddRow(
        {name, row.at("gpus"), absl::StrFormat("%.2f", measured_us / 1e6),
         absl::StrFormat("%.2f", found.step_us / 1e6), absl::StrFormat("%+.1f %%", 100 * error),
         absl::StrFormat("%.1f %%", 100 * found.mfu),
         absl::StrFormat("%.1f%s", found.bytes / (1 << 30), found.fits ? "" : " (does not fit)"),
         best->configuration.ToString(), absl::StrFormat("%.1f", found.seconds)});
    std::optional<Found> plan;
    if (absl::GetFlag(FLAGS_search)) {
      ISOMER_ASSIGN_OR_RETURN(plan, Run(runner, JobOf(row)));
      searched.AddRow(
          {name, row.at("gpus"), absl::StrFormat("%.2f", found.step_us / 1e6),
           plan.has_value() ? absl::StrFormat("%.2f", plan->step_us / 1e6) : "none",
           plan.has_value() ? absl::StrFormat("%.3f", plan->step_us / found.step_us) : "",
           plan.has_value() ? absl::StrFormat("%.1f", plan->seconds) : "",
           plan.has_value() ? plan->degrees : ""});
    }
    ISOMER_ASSIGN_OR_RETURN(const Luck luck, Draw(runner, row, &random));
    if (luck.legal > 0) {
      const std::optional<Chosen>& best_drawn = luck.best;
      drawn.AddRow({name, row.at("gpus"), absl::StrFormat("%.2f", found.step_us / 1e6),
                    plan.has_value() ? absl::StrFormat("%.2f", plan->step_us / 1e6) : "",
                    best_drawn.has_value()
                        ? absl::StrFormat("%.2f%s", best_drawn->found.step_us / 1e6,
                                          best_drawn->found.fits ? "" : " (does not fit)")
                        : "none fits",
                    best_drawn.has_value() ? best_drawn->configuration.ToString() : "",
                    absl::StrCat(luck.legal), absl::StrCat(luck.too_large + luck.misfits),
                    absl::StrCat(luck.given_up)});
    }
  }
  std::sort(errors.begin(), errors.end());
  if (!errors.empty()) {
    table.AddNote(absl::StrFormat("Median error %.1f %%, largest %.1f %%, of %d rows.",
                                  100 * errors[errors.size() / 2], 100 * errors.back(),
                                  errors.size()));
  }
  std::printf("%s", table.Markdown().c_str());
  if (absl::GetFlag(FLAGS_search)) std::printf("\n%s", searched.Markdown().c_str());
  if (absl::GetFlag(FLAGS_random) > 0) std::printf("\n%s", drawn.Markdown().c_str());
  std::filesystem::remove_all(work);
  return kExitDone;
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram({.name = "published",
                             .purpose = "Predicted steps beside those that clusters measured.",
                             .usage = "[--rows=TEXT] [--random=N] [--search]",
                             .example = "build/release/bench/published --rows=llama"},
                            argc, argv, isomer::Main);
}
