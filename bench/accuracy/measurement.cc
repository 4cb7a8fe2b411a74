#include "bench/accuracy/measurement.h"

#include <unistd.h>

#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bench/child_process.h"
#include "bench/summary.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// The value of a line `"key": value,`; false if it is of another key.
bool ConsumeKey(absl::string_view line, absl::string_view key, double* value) {
  line = absl::StripAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "\"") || !absl::ConsumePrefix(&line, key) ||
      !absl::ConsumePrefix(&line, "\": ")) {
    return false;
  }
  return absl::SimpleAtod(absl::StripSuffix(line, ","), value);
}

// Each event begins with its name and ends with its arguments; what is in between has one order,
// which does not matter here.
std::vector<TracedTask> ReadTrace(const std::string& json) {
  std::vector<TracedTask> tasks;
  std::map<std::pair<int32_t, int32_t>, int> steps;  // by task and device: seen so far
  double start_us = 0, us = 0, device = 0, task = 0;
  for (absl::string_view line : absl::StrSplit(json, '\n')) {
    ConsumeKey(line, "ts", &start_us);
    ConsumeKey(line, "dur", &us);
    ConsumeKey(line, "tid", &device);
    if (!ConsumeKey(line, "task", &task)) continue;
    TracedTask traced{static_cast<int32_t>(task), static_cast<int32_t>(device)};
    traced.step = steps[{traced.task, traced.device}]++;
    traced.start_us = start_us;
    traced.end_us = start_us + us;
    tasks.push_back(traced);
  }
  return tasks;
}

}  // namespace

absl::Status RunProgramOf(const Programs& programs, int processes, const std::string& program,
                          const std::vector<std::string>& arguments) {
  std::vector<std::string> command;
  if (processes > 0) {
    command = {"mpirun", "--quiet", "-n", absl::StrCat(processes)};
    if (geteuid() == 0) command.insert(command.begin() + 2, "--allow-run-as-root");
  }
  command.push_back(absl::StrCat(programs.bin, "/", program));
  command.insert(command.end(), arguments.begin(), arguments.end());
  ISOMER_ASSIGN_OR_RETURN(const ChildRun run, RunChild(command));
  if (run.exit_code == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(program, ": ", run.complaint.empty() ? "ended without a word" : run.complaint));
}

absl::StatusOr<Measurement> MeasurePlan(const Programs& programs, const std::string& plan,
                                        const std::string& communicator, int devices, int steps) {
  const std::string json = absl::StrCat(programs.work, "/run.json");
  const std::string trace = absl::StrCat(programs.work, "/run.trace");
  // A small rate: what is measured must not end in numbers that are none.
  ISOMER_RETURN_IF_ERROR(RunProgramOf(
      programs, communicator == "mpi" ? devices : 0, "isomer-run",
      {plan, absl::StrCat("--communicator=", communicator), absl::StrCat("--steps=", steps),
       "--learning_rate=1e-4", absl::StrCat("--json=", json), absl::StrCat("--trace=", trace),
       "--trace_steps=5"}));
  ISOMER_ASSIGN_OR_RETURN(const Summary summary, Summary::Read(json));
  ISOMER_ASSIGN_OR_RETURN(const std::string events, ReadFile(trace));
  Measurement measurement;
  ISOMER_ASSIGN_OR_RETURN(measurement.step_us, summary.Number("step_us.median"));
  ISOMER_ASSIGN_OR_RETURN(const double bytes, summary.Number("peak_bytes"));
  measurement.peak_bytes = static_cast<int64_t>(bytes);
  measurement.trace = ReadTrace(events);
  return measurement;
}

}  // namespace isomer
