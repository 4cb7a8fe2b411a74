#include "bench/accuracy/measurement.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

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
  std::string command;
  if (processes > 0) {
    command = absl::StrCat("mpirun --quiet ", geteuid() == 0 ? "--allow-run-as-root " : "", "-n ",
                           processes, " ");
  }
  absl::StrAppend(&command, Quoted(absl::StrCat(programs.bin, "/", program)));
  for (const std::string& argument : arguments) absl::StrAppend(&command, " ", Quoted(argument));
  const std::string err = absl::StrCat(programs.work, "/err");
  absl::StrAppend(&command, " >/dev/null 2>", Quoted(err), " </dev/null");
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  const std::string said = ReadFile(err).value_or("");
  const std::vector<std::string> lines = absl::StrSplit(said, '\n', absl::SkipWhitespace());
  return absl::InternalError(
      absl::StrCat(program, ": ", lines.empty() ? "ended by a signal" : lines.back()));
}

absl::StatusOr<double> NumberIn(const std::string& json, const std::string& object,
                                const std::string& key) {
  size_t at = 0;
  if (!object.empty()) at = json.find(absl::StrCat("\"", object, "\": {"));
  if (at != std::string::npos) at = json.find(absl::StrCat("\"", key, "\":"), at);
  double value = 0;
  if (at == std::string::npos ||
      !ConsumeKey(absl::string_view(json).substr(at, json.find('\n', at) - at), key, &value)) {
    return absl::NotFoundError(absl::StrCat("no ", object, " ", key, " in the summary"));
  }
  return value;
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
  ISOMER_ASSIGN_OR_RETURN(const std::string summary, ReadFile(json));
  ISOMER_ASSIGN_OR_RETURN(const std::string events, ReadFile(trace));
  Measurement measurement;
  ISOMER_ASSIGN_OR_RETURN(measurement.step_us, NumberIn(summary, "step_us", "median"));
  ISOMER_ASSIGN_OR_RETURN(const double bytes, NumberIn(summary, "", "peak_bytes"));
  measurement.peak_bytes = static_cast<int64_t>(bytes);
  measurement.trace = ReadTrace(events);
  return measurement;
}

}  // namespace isomer
