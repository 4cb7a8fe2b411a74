#include "runtime/checking/check_executions.h"

#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// By a title: "output loss", "gradient of w".
using Tensors = std::map<std::string, Array<double>>;

absl::StatusOr<Tensors> RunTwice(const Graph& graph, const Schedule& schedule,
                                 const HostValues& weights, const HostValues& inputs,
                                 double learning_rate, const JobOptions& options,
                                 Backend* backend) {
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Job> job,
                          Job::Start(graph, schedule, backend, options));
  ISOMER_RETURN_IF_ERROR(job->SetParameters(weights));
  const bool training = schedule.options.training;
  const std::vector<HostValues> of_steps(schedule.num_steps(), inputs);
  Tensors tensors;
  const auto add = [&](const std::string& what, HostValues values) {
    for (auto& [name, value] : values) tensors[absl::StrCat(what, name)] = std::move(value);
  };
  for (int step = 0; step < 2; ++step) {
    ISOMER_RETURN_IF_ERROR(training ? job->TrainSteps(of_steps, learning_rate)
                                    : job->Evaluate(inputs));
    for (const Graph::NamedOutput& output : graph.outputs()) {
      ISOMER_ASSIGN_OR_RETURN(tensors[absl::StrCat("output ", output.name)],
                              job->Output(output.name));
    }
  }
  if (!training) return tensors;
  tensors["loss scale"] = Array<double>({1}, job->loss_scale().value());
  if (options.needs_gradient_norm()) {
    tensors["gradient norm"] = Array<double>({1}, job->gradient_norm());
  }
  ISOMER_ASSIGN_OR_RETURN(HostValues parameters, job->Parameters());
  add("parameter ", std::move(parameters));
  if (schedule.options.keep_gradients) {
    ISOMER_ASSIGN_OR_RETURN(HostValues gradients, job->Gradients());
    add("gradient of ", std::move(gradients));
  }
  return tensors;
}

bool AreEqual(const Array<double>& a, const Array<double>& b) {
  return a.shape == b.shape &&
         std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(double)) == 0;
}

}  // namespace

absl::StatusOr<ExecutionsCheck> CheckExecutions(const Graph& graph, const Schedule& schedule,
                                                const HostValues& weights, const HostValues& inputs,
                                                double learning_rate, int64_t seeds,
                                                Backend* backend, const JobOptions& options) {
  const auto run = [&](const Execution& execution) {
    JobOptions of_run = options;
    of_run.execution = execution;
    of_run.pin = false;
    of_run.control = nullptr;
    of_run.communicator = nullptr;
    return RunTwice(graph, schedule, weights, inputs, learning_rate, of_run, backend);
  };
  Progress progress("check executions", seeds + 2);
  ISOMER_ASSIGN_OR_RETURN(const Tensors expected, run({ExecutionKind::kInline}));
  progress.Advance();
  ExecutionsCheck check;
  check.seeds = seeds;
  check.tensors = static_cast<int64_t>(expected.size());
  for (int64_t seed = 0; seed <= seeds && check.difference.empty(); ++seed) {
    const bool threaded = seed == 0;
    const std::string name = threaded ? std::string("the threaded run")
                                      : absl::StrCat("the adversarial run of seed ", seed);
    const absl::StatusOr<Tensors> actual =
        run({threaded ? ExecutionKind::kThreaded : ExecutionKind::kAdversarial,
             static_cast<uint64_t>(seed)});
    if (!actual.ok()) {
      return absl::Status(actual.status().code(),
                          absl::StrCat(name, ": ", actual.status().message()));
    }
    progress.Advance();
    for (const auto& [title, value] : expected) {
      if (AreEqual(value, actual->at(title))) continue;
      check.difference = absl::StrCat(title, " in ", name);
      break;
    }
  }
  return check;
}

}  // namespace isomer
