// isomer-run: runs a plan, or a model as it is, on virtual devices; trains, checks, traces.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "models/dataset.h"
#include "models/load.h"
#include "models/loss.h"
#include "pcg/plan.h"
#include "pcg/schedule/memory.h"
#include "pcg/support/file.h"
#include "pcg/support/json.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "runtime/compare.h"
#include "runtime/job.h"
#include "runtime/statistics.h"

ABSL_FLAG(std::string, backend, "cpu", "cpu");
ABSL_FLAG(std::string, communicator, "threads", "threads: one thread per virtual device");
ABSL_FLAG(int64_t, devices, 0, "virtual devices, at least those of the plan; 0: just those");
ABSL_FLAG(std::string, mode, "training", "of a MODEL: training or inference; a plan has its own");
ABSL_FLAG(int64_t, batch_size, 0, "of a MODEL that leaves it open");
ABSL_FLAG(int64_t, steps, 0, "steps to run; 0: 10, or what --epochs says");
ABSL_FLAG(int64_t, epochs, 0, "passes over the training rows of --data");
ABSL_FLAG(double, learning_rate, 0.1, "of plain SGD");
ABSL_FLAG(std::string, data, "",
          "CSV rows of features and a label, for the model's first float input and its labels; "
          "none: random inputs from the seed");
ABSL_FLAG(double, data_scale, 1.0, "factor of the features (digits.csv: 0.0625)");
ABSL_FLAG(std::string, test_split, "every_fifth",
          "which rows test and do not train: every_fifth, or tail:N, the last N");
ABSL_FLAG(bool, check, false,
          "compare outputs and all gradients of the first step with the unoptimised model on one "
          "device; exit 1 if the largest relative error is above 1e-4");
ABSL_FLAG(uint64_t, seed, 1, "of initial weights that the model lacks, and of random inputs");
ABSL_FLAG(bool, print_schedule, false, "print every task of the schedule first");
ABSL_FLAG(std::string, trace, "", "write a Chrome trace of the last step to this file");
ABSL_FLAG(std::string, out, "", "write the model with the trained weights to this file");

namespace isomer {
namespace {

constexpr double kTolerance = 1e-4;
constexpr int64_t kMaxDevices = 256;

// What is to be run. A model runs as a plan for one device would.
struct Workload {
  Plan plan;
  bool training() const { return plan.mode == "training"; }
};

absl::StatusOr<Workload> LoadWorkload(const std::string& spec) {
  Workload work;
  if (!absl::StartsWith(spec, "zoo:")) {
    ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(spec));
    if (DeclaredKind(contents) == "plan") {
      ISOMER_ASSIGN_OR_RETURN(work.plan, LoadPlan(spec));
      return work;
    }
  }
  LoadOptions options;
  options.batch_size = absl::GetFlag(FLAGS_batch_size);
  ISOMER_ASSIGN_OR_RETURN(work.plan.model, LoadAnyModel(spec, options));
  work.plan.mode = absl::GetFlag(FLAGS_mode);
  if (work.plan.mode != "training" && work.plan.mode != "inference") {
    return absl::InvalidArgumentError(
        absl::StrCat("--mode=", work.plan.mode, ": training or inference is expected"));
  }
  if (work.training()) ISOMER_RETURN_IF_ERROR(AttachLoss(&work.plan.model, "auto"));
  work.plan.graph = work.plan.model.graph;
  work.plan.views = SequentialViews(work.plan.graph);
  return work;
}

absl::Status CheckFlags(Plan* plan) {
  const int64_t devices = absl::GetFlag(FLAGS_devices);
  if (devices != 0 && devices < plan->num_devices) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices=", devices, ": the plan needs ", plan->num_devices));
  }
  plan->num_devices = std::max(devices, plan->num_devices);
  if (plan->num_devices > kMaxDevices) {
    return absl::InvalidArgumentError(absl::StrCat(
        plan->num_devices, " devices: the in-process communicator runs at most ", kMaxDevices));
  }
  if (absl::GetFlag(FLAGS_communicator) != "threads") {
    return absl::InvalidArgumentError(
        absl::StrCat("--communicator=", absl::GetFlag(FLAGS_communicator),
                     ": there is the communicator threads"));
  }
  if (absl::GetFlag(FLAGS_steps) < 0 || absl::GetFlag(FLAGS_epochs) < 0) {
    return absl::InvalidArgumentError("--steps and --epochs must not be negative");
  }
  if (absl::GetFlag(FLAGS_epochs) > 0 && absl::GetFlag(FLAGS_data).empty()) {
    return absl::InvalidArgumentError("--epochs needs --data");
  }
  return absl::OkStatus();
}

// Where the inputs of a step come from: rows of a data set, or the seed.
class Feeder {
 public:
  static absl::StatusOr<Feeder> Make(const Model& model);

  bool has_data() const { return split_.train.num_rows() > 0; }
  int64_t batches_per_epoch() const { return split_.train.num_rows() / batch_; }
  HostValues Batch(int64_t step) const {
    if (!has_data()) return RandomInputs(*graph_, absl::GetFlag(FLAGS_seed) + step);
    return Rows(split_.train, step % batches_per_epoch() * batch_);
  }
  // The part of the test rows that the model's first output classifies as their label says.
  absl::StatusOr<double> TestAccuracy(Job* job) const;

 private:
  absl::Status FindInputs(const Model& model);
  // `batch_` rows from `first` on; beyond the last they begin again.
  HostValues Rows(const Dataset& data, int64_t first) const;

  const Graph* graph_ = nullptr;
  TrainTest split_;
  int64_t batch_ = 1;
  HostValues others_;  // inputs that the data set has no values for
  std::string features_, labels_, logits_;
  std::vector<int64_t> features_shape_, labels_shape_;
};

absl::Status Feeder::FindInputs(const Model& model) {
  const std::string& file = absl::GetFlag(FLAGS_data);
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (node.op.kind() != OpKind::kInput || node.outputs[0].rank() == 0) continue;
    const bool is_float = node.outputs[0].dtype == DataType::kFloat32;
    std::string& name = is_float ? features_ : labels_;
    if (!name.empty()) continue;
    name = node.name;
    (is_float ? features_shape_ : labels_shape_) = node.outputs[0].Sizes();
  }
  if (features_.empty() || labels_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": the model needs a float input and an integer one for labels"));
  }
  batch_ = features_shape_[0];
  int64_t per_row = 1;
  for (size_t i = 1; i < features_shape_.size(); ++i) per_row *= features_shape_[i];
  if (per_row != split_.train.num_features) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": rows of ", split_.train.num_features,
                                                   " features; input '", features_, "' takes ",
                                                   per_row));
  }
  if (labels_shape_ != std::vector<int64_t>{batch_}) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": input '", labels_, "' does not take one label per row"));
  }
  if (split_.train.num_rows() < batch_) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", split_.train.num_rows(),
                                                   " training rows are fewer than one batch of ",
                                                   batch_));
  }
  return absl::OkStatus();
}

absl::StatusOr<Feeder> Feeder::Make(const Model& model) {
  Feeder feeder;
  feeder.graph_ = &model.graph;
  const std::string file = absl::GetFlag(FLAGS_data);
  if (file.empty()) return feeder;
  ISOMER_ASSIGN_OR_RETURN(const Dataset data, ReadCsv(file, absl::GetFlag(FLAGS_data_scale)));
  const std::string split = absl::GetFlag(FLAGS_test_split);
  absl::string_view tail = split;
  int64_t test_rows = 0;
  if (split == "every_fifth") {
    feeder.split_ = SplitEveryFifth(data);
  } else if (absl::ConsumePrefix(&tail, "tail:") && absl::SimpleAtoi(tail, &test_rows) &&
             test_rows >= 0 && test_rows <= data.num_rows()) {
    feeder.split_ = SplitTail(data, test_rows);
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "--test_split=", split, ": every_fifth is expected, or tail:N with N rows or fewer"));
  }
  ISOMER_RETURN_IF_ERROR(feeder.FindInputs(model));
  feeder.others_ = RandomInputs(model.graph, absl::GetFlag(FLAGS_seed));
  feeder.logits_ = model.graph.outputs()[0].name;
  return feeder;
}

HostValues Feeder::Rows(const Dataset& data, int64_t first) const {
  HostValues inputs = others_;
  Array<double> features(features_shape_), labels(labels_shape_);
  for (int64_t b = 0; b < batch_; ++b) {
    const int64_t row = (first + b) % data.num_rows();
    std::copy(data.row(row).begin(), data.row(row).end(),
              features.data.begin() + b * data.num_features);
    labels.data[b] = static_cast<double>(data.labels[row]);
  }
  inputs[features_] = std::move(features);
  inputs[labels_] = std::move(labels);
  return inputs;
}

absl::StatusOr<double> Feeder::TestAccuracy(Job* job) const {
  int64_t right = 0;
  const int64_t rows = split_.test.num_rows();
  for (int64_t first = 0; first < rows; first += batch_) {
    ISOMER_RETURN_IF_ERROR(job->Evaluate(Rows(split_.test, first)));
    ISOMER_ASSIGN_OR_RETURN(const Array<double> logits, job->Output(logits_));
    if (logits.shape.size() != 2 || logits.shape[0] != batch_) {
      return absl::InvalidArgumentError(
          absl::StrCat("output '", logits_, "' does not classify: it is not [", batch_, ", n]"));
    }
    const int64_t classes = logits.shape[1];
    for (int64_t b = 0; b < batch_ && first + b < rows; ++b) {
      const auto line = logits.data.begin() + b * classes;
      right += std::max_element(line, line + classes) - line == split_.test.labels[first + b];
    }
  }
  return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(rows, 1));
}

// The first step again, on one device and without the optimiser's work.
absl::StatusOr<bool> CheckFirstStep(const Plan& plan, const HostValues& weights,
                                    const HostValues& inputs, Job* job, Json* summary) {
  const bool training = plan.mode == "training";
  ISOMER_ASSIGN_OR_RETURN(const StepValues expected,
                          ReferenceStep(plan.model, weights, inputs, training));
  ISOMER_ASSIGN_OR_RETURN(const StepValues actual, ValuesOfLastStep(plan.model, job, training));
  const Comparison comparison = Compare(expected, actual);
  const bool agrees = comparison.max_rel_error <= kTolerance;
  Json& check = (*summary)["check"];
  check["max_rel_error"] = comparison.max_rel_error;
  check["worst"] = comparison.worst;
  check["tolerance"] = kTolerance;
  for (const auto& [name, error] : comparison.outputs) check["outputs"][name] = error;
  for (const auto& [name, error] : comparison.gradients) check["gradients"][name] = error;
  absl::PrintF("check: %d outputs and %d gradients, largest relative error %.2g (%s): %s\n",
               comparison.outputs.size(), comparison.gradients.size(), comparison.max_rel_error,
               comparison.worst, agrees ? "agrees" : "DOES NOT AGREE");
  return agrees;
}

class Runner {
 public:
  Runner(const Plan& plan, const Feeder& feeder, Job* job)
      : plan_(plan), feeder_(feeder), job_(*job) {}

  absl::Status Run(const HostValues& weights, Json* summary);
  // What --check found; true without it.
  bool agrees() const { return agrees_; }

 private:
  absl::Status Step(int64_t step, const HostValues& inputs);
  absl::Status EndEpoch(int64_t epoch, Json* summary);

  const Plan& plan_;
  const Feeder& feeder_;
  Job& job_;
  std::vector<double> step_us_, losses_;
  bool agrees_ = true;
};

absl::Status Runner::Step(int64_t step, const HostValues& inputs) {
  const auto start = std::chrono::steady_clock::now();
  ISOMER_RETURN_IF_ERROR(plan_.mode == "training"
                             ? job_.TrainStep(inputs, absl::GetFlag(FLAGS_learning_rate))
                             : job_.Evaluate(inputs));
  step_us_.push_back(
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  if (plan_.model.loss.empty()) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const Array<double> loss, job_.Output(plan_.model.loss));
  losses_.push_back(loss.data[0]);
  if (!std::isfinite(losses_.back())) {
    return absl::OutOfRangeError(
        absl::StrCat("the loss of step ", step + 1, " is not finite; try a lower --learning_rate"));
  }
  return absl::OkStatus();
}

absl::Status Runner::EndEpoch(int64_t epoch, Json* summary) {
  const int64_t batches = feeder_.batches_per_epoch();
  double mean = 0;
  for (int64_t b = 0; b < batches; ++b) mean += losses_[losses_.size() - batches + b];
  ISOMER_ASSIGN_OR_RETURN(const double accuracy, feeder_.TestAccuracy(&job_));
  absl::PrintF("epoch %d: mean loss %.4f, test accuracy %.2f %%\n", epoch,
               mean / static_cast<double>(batches), 100 * accuracy);
  std::fflush(stdout);
  (*summary)["metrics"]["test_accuracy"] = accuracy;
  return absl::OkStatus();
}

absl::Status Runner::Run(const HostValues& weights, Json* summary) {
  const bool epochs = feeder_.has_data() && !plan_.model.loss.empty();
  int64_t steps = absl::GetFlag(FLAGS_steps);
  if (steps == 0) {
    const int64_t passes = absl::GetFlag(FLAGS_epochs);
    steps = passes > 0 ? passes * feeder_.batches_per_epoch() : 10;
  }
  Progress progress("run", steps);
  for (int64_t step = 0; step < steps; ++step) {
    const HostValues inputs = feeder_.Batch(step);
    const bool last = step + 1 == steps;
    if (last && !absl::GetFlag(FLAGS_trace).empty()) job_.StartTrace();
    ISOMER_RETURN_IF_ERROR(Step(step, inputs));
    progress.Advance();
    if (last && !absl::GetFlag(FLAGS_trace).empty()) {
      ISOMER_RETURN_IF_ERROR(WriteFileAtomically(absl::GetFlag(FLAGS_trace), job_.ChromeTrace()));
    }
    if (step == 0 && absl::GetFlag(FLAGS_check)) {
      ISOMER_ASSIGN_OR_RETURN(agrees_, CheckFirstStep(plan_, weights, inputs, &job_, summary));
    }
    if (epochs && (step + 1) % feeder_.batches_per_epoch() == 0) {
      ISOMER_RETURN_IF_ERROR(EndEpoch((step + 1) / feeder_.batches_per_epoch(), summary));
    }
  }
  const Spread spread = SpreadOf(step_us_);
  (*summary)["steps"] = steps;
  (*summary)["step_us"]["median"] = spread.median;
  (*summary)["step_us"]["min"] = spread.min;
  (*summary)["step_us"]["max"] = spread.max;
  (*summary)["loss"] = Json(losses_);
  absl::PrintF("%d steps on %d devices, median %.0f us a step", steps, plan_.num_devices,
               spread.median);
  if (!losses_.empty()) absl::PrintF("; loss %.6g -> %.6g", losses_.front(), losses_.back());
  absl::PrintF("\n");
  return absl::OkStatus();
}

absl::Status SaveTrainedModel(const Model& model, Job* job) {
  const std::string path = absl::GetFlag(FLAGS_out);
  if (path.empty()) return absl::OkStatus();
  Model trained = model;
  ISOMER_ASSIGN_OR_RETURN(const HostValues parameters, job->Parameters());
  for (const auto& [name, value] : parameters) {
    trained.weights[name].assign(value.data.begin(), value.data.end());
  }
  return SaveModel(path, trained);
}

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) {
    return absl::InvalidArgumentError("one PLAN or MODEL is expected (see --help)");
  }
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                          MakeBackend(absl::GetFlag(FLAGS_backend)));
  ISOMER_ASSIGN_OR_RETURN(Workload work, LoadWorkload(arguments[0]));
  Plan& plan = work.plan;
  ISOMER_RETURN_IF_ERROR(CheckFlags(&plan));
  ISOMER_ASSIGN_OR_RETURN(const Feeder feeder, Feeder::Make(plan.model));
  ISOMER_ASSIGN_OR_RETURN(Schedule schedule, LowerPlan(plan, absl::GetFlag(FLAGS_check)));
  if (absl::GetFlag(FLAGS_print_schedule)) {
    std::fputs(schedule.ToString(plan.graph).c_str(), stdout);
  }
  Json summary;
  summary["model"] = plan.model.name;
  summary["backend"] = std::string(backend->name());
  summary["devices"] = plan.num_devices;
  summary["mode"] = plan.mode;
  summary["peak_bytes"] = PeakBytes(schedule);
  summary["metrics"] = Json::EmptyObject();
  ISOMER_ASSIGN_OR_RETURN(const HostValues weights,
                          InitialWeights(plan.model, absl::GetFlag(FLAGS_seed)));
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Job> job,
                          Job::Start(plan.graph, std::move(schedule), backend.get()));
  ISOMER_RETURN_IF_ERROR(job->SetParameters(weights));
  Runner runner(plan, feeder, job.get());
  ISOMER_RETURN_IF_ERROR(runner.Run(weights, &summary));
  ISOMER_RETURN_IF_ERROR(SaveTrainedModel(plan.model, job.get()));
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  return runner.agrees() ? kExitDone : kExitNo;
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram(
      {.name = "isomer-run",
       .purpose = "Runs a plan, or a model as it is, on virtual devices.",
       .usage = "PLAN|MODEL [--steps=N] [--data=FILE] [--check]",
       .example = "isomer-run digits.plan --data=models/data/digits.csv --data_scale=0.0625 "
                  "--epochs=20 --learning_rate=0.1"},
      argc, argv, isomer::Run);
}
