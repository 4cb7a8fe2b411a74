#include "python/bindings/sessions.h"
#include "pcg/ir/expert_room.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/schedule/lowering/lower.h"
#include "python/bindings/convert.h"
#include "python/bindings/plans.h"
#include "runtime/checking/first_step_check.h"
#include "runtime/execution/host_memory.h"
#include "runtime/execution/job.h"
#include "runtime/execution/leaf_values.h"
#include "runtime/execution/make_backend.h"
#include "runtime/execution/muon_weights.h"

namespace isomer {
namespace {

namespace py = pybind11;

// The leaves of the model of this kind by name.
std::map<std::string, TensorType> TypesOfLeaves(const Graph& graph, OpKind kind) {
  std::map<std::string, TensorType> types;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() == kind) types[node.name] = node.outputs[0];
  }
  return types;
}

// The arrays of a dict by name, each of a leaf in `types`.
HostValues ValuesFrom(const py::dict& arrays, const std::map<std::string, TensorType>& types,
                      const std::string& what) {
  HostValues values;
  for (const auto& [key, array] : arrays) {
    const std::string name = ToBytes(key);
    const auto type = types.find(name);
    if (type == types.end()) {
      std::vector<std::string> names;
      for (const auto& [known, unused] : types) names.push_back(known);
      constexpr size_t kNamed = 8;
      const bool all = names.size() <= kNamed;
      if (!all) names.resize(kNamed);
      throw StatusError(absl::InvalidArgumentError(
          absl::StrCat("no ", what, " is called '", name, "'; there are ",
                       absl::StrJoin(names, ", "), all ? "" : ", ..")));
    }
    values[name] = FromBuffer(array, type->second, absl::StrCat(what, " '", name, "'"));
  }
  return values;
}

HostValues InputsFrom(const py::dict& arrays, const Graph& graph) {
  const auto types = TypesOfLeaves(graph, OpKind::kInput);
  HostValues inputs = ValuesFrom(arrays, types, "input");
  for (const auto& [name, type] : types) {
    if (inputs.count(name) > 0) continue;
    throw StatusError(absl::InvalidArgumentError(
        absl::StrCat("input '", name, "' is missing, ", type.ToString())));
  }
  return inputs;
}

// How a session trains, beside what the plan says.
struct TrainingOptions {
  double weight_decay = 0, clip_norm = 0;
  std::optional<std::string> no_decay;
};

// A job of a plan, its weights set. Calls from several threads wait for each other.
class Session {
 public:
  Session(std::shared_ptr<PyPlan> of, const py::dict& weights, uint64_t seed,
          const std::string& execution, double weight_decay,
          const std::optional<std::string>& no_decay, double clip_norm)
      : plan_(std::move(of)),
        seed_(seed),
        training_{.weight_decay = weight_decay, .clip_norm = clip_norm, .no_decay = no_decay} {
    given_ = ValuesFrom(weights, TypesOfLeaves(plan().model.graph, OpKind::kWeight), "weight");
    py::gil_scoped_release others_run;
    Start(execution);
  }

  // Steps between two flushes, of which there may be several: one dict of arrays for each.
  void Train(const py::list& steps, double learning_rate) {
    std::vector<HostValues> inputs;
    for (const py::handle step : steps) {
      inputs.push_back(InputsFrom(step.cast<py::dict>(), plan().model.graph));
    }
    py::gil_scoped_release others_run;
    const std::lock_guard<std::mutex> lock(mutex_);
    ThrowIfError(job_->TrainSteps(inputs, learning_rate));
  }

  void Evaluate(const py::dict& arrays) {
    const HostValues inputs = InputsFrom(arrays, plan().model.graph);
    py::gil_scoped_release others_run;
    const std::lock_guard<std::mutex> lock(mutex_);
    ThrowIfError(job_->Evaluate(inputs));
  }

  py::dict Outputs(int32_t step) {
    std::map<std::string, std::unique_ptr<HostTensor>> outputs;
    {
      py::gil_scoped_release others_run;
      const std::lock_guard<std::mutex> lock(mutex_);
      const Graph& graph = plan().model.graph;
      for (const Graph::NamedOutput& output : graph.outputs()) {
        const Array<double> value = ValueOrThrow(job_->Output(output.name, step));
        outputs[output.name] = std::make_unique<HostTensor>(value, graph.type(output.tensor).dtype);
      }
    }
    return TensorsToPython(std::move(outputs));
  }

  py::dict Gradients(int32_t step) {
    return Leaves([&] { return job_->Gradients(step); });
  }
  py::dict Parameters() {
    return Leaves([&] { return job_->Parameters(); });
  }

  double StepUs() {
    py::gil_scoped_release others_run;
    const std::lock_guard<std::mutex> lock(mutex_);
    return ValueOrThrow(job_->StepUs());
  }
  int32_t num_steps() const { return job_->num_steps(); }

  // Does the step and compares it with the model's.
  FirstStepCheck Check(const py::dict& arrays) {
    const HostValues inputs = InputsFrom(arrays, plan().model.graph);
    py::gil_scoped_release others_run;
    const std::lock_guard<std::mutex> lock(mutex_);
    HostValues weights = ValueOrThrow(InitialWeights(plan().model, seed_));
    for (const auto& [name, value] : given_) weights[name] = value;
    ThrowIfError(job_->SetParameters(weights));
    if (plan().mode == "training") {
      const std::vector<HostValues> steps(job_->num_steps(), inputs);
      ThrowIfError(job_->TrainSteps(steps, /*learning_rate=*/0));
    } else {
      ThrowIfError(job_->Evaluate(inputs));
    }
    return ValueOrThrow(CheckFirstStep(plan(), weights, inputs, backend_.get(), job_.get()));
  }

 private:
  const Plan& plan() const { return plan_->plan(); }

  void Start(const std::string& execution) {
    ThrowIfError(CheckRunsInThreads(plan()));
    ThrowIfError(CheckFitsHost(absl::StrCat(plan().model.name, ": weights",
                                            plan().mode == "training" ? " and their states" : ""),
                               LeastBytesOfModel(plan())));
    JobOptions options{.pin = false};
    options.statistics = plan().model.statistics;
    options.expert_imbalance = AssumedImbalance(plan().model);
    options.execution.kind = ValueOrThrow(ParseExecutionKind(execution));
    options.execution.seed = seed_;
    if (plan().mode == "training") SetTraining(&options);
    backend_ = ValueOrThrow(MakeBackend("cpu"));
    LoweredPlan lowered = ValueOrThrow(LowerPlan(plan(), plan().mode == "training"));
    mapped_ = std::move(lowered.mapped);
    job_ = ValueOrThrow(
        Job::Start(mapped_.graph, std::move(lowered.schedule), backend_.get(), options));
    if (given_.empty()) {
      ThrowIfError(job_->SetParameters(InitialLeafValues(plan().model, seed_)));
      return;
    }
    HostValues weights = ValueOrThrow(InitialWeights(plan().model, seed_));
    for (const auto& [name, value] : given_) weights[name] = value;
    ThrowIfError(job_->SetParameters(weights));
  }

  void SetTraining(JobOptions* options) const {
    const OptimizerTraits& traits = TraitsOf(plan().update.optimizer);
    options->optimizer = traits.settings;
    options->optimizer->weight_decay = training_.weight_decay;
    options->no_decay = training_.no_decay;
    options->clip_norm = training_.clip_norm;
    if (traits.needs != UpdateNeeds::kMatrix) return;
    options->matrices = ValueOrThrow(MuonWeights(plan().model.graph, std::nullopt));
  }

  static py::dict TensorsToPython(std::map<std::string, std::unique_ptr<HostTensor>> tensors) {
    py::dict dict;
    for (auto& [name, tensor] : tensors) dict[ToPython(name)] = py::cast(std::move(tensor));
    return dict;
  }

  template <typename F>
  py::dict Leaves(const F& take) {
    std::map<std::string, std::unique_ptr<HostTensor>> tensors;
    {
      py::gil_scoped_release others_run;
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [name, value] : ValueOrThrow(take())) {
        tensors[name] = std::make_unique<HostTensor>(value, DataType::kFloat32);
      }
    }
    return TensorsToPython(std::move(tensors));
  }

  std::shared_ptr<PyPlan> plan_;
  uint64_t seed_;
  TrainingOptions training_;
  HostValues given_;  // weights in place of the model's
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<Backend> backend_;
  MappedGraph mapped_;
  std::unique_ptr<Job> job_;  // ends before what it uses
};

// (error, norm, bound, comparable, agrees) by name.
py::dict DifferencesOf(const std::map<std::string, Difference>& differences) {
  py::dict dict;
  for (const auto& [name, d] : differences) {
    dict[ToPython(name)] = py::make_tuple(d.error, d.norm, d.bound, d.comparable(), d.agrees());
  }
  return dict;
}

py::dict ComparisonOf(const StepCheck& check) {
  py::dict dict;
  const Comparison& comparison = check.comparison;
  dict["agrees"] = comparison.agrees();
  dict["max_relative_error"] = comparison.max_rel_error;
  dict["worst"] = ToPython(comparison.worst);
  dict["rounding"] = ToPython(check.rounding.ToString());
  dict["outputs"] = DifferencesOf(comparison.outputs);
  dict["gradients"] = DifferencesOf(comparison.gradients);
  return dict;
}

py::dict CheckOf(Session& session, const py::dict& inputs) {
  const FirstStepCheck check = session.Check(inputs);
  py::dict dict = ComparisonOf(check.check);
  dict["agrees"] = check.agrees();
  dict["reference"] = ToPython(check.reference);
  dict["in_float32"] = check.in_float32.has_value() ? py::object(ComparisonOf(*check.in_float32))
                                                    : py::object(py::none());
  return dict;
}

py::dict RandomInputsOf(const PyPlan& plan, uint64_t seed) {
  const Graph& graph = plan.plan().model.graph;
  const auto types = TypesOfLeaves(graph, OpKind::kInput);
  py::dict dict;
  for (const auto& [name, value] : RandomInputs(graph, seed)) {
    const auto type = types.find(name);
    if (type == types.end()) continue;
    dict[ToPython(name)] = py::cast(std::make_unique<HostTensor>(value, type->second.dtype));
  }
  return dict;
}

}  // namespace

void BindSessions(py::module_* module) {
  py::class_<HostTensor>(*module, "HostTensor", py::buffer_protocol())
      .def_buffer([](HostTensor& tensor) { return tensor.Buffer(); });

  py::class_<Session>(*module, "Session")
      .def(py::init<std::shared_ptr<PyPlan>, const py::dict&, uint64_t, const std::string&, double,
                    const std::optional<std::string>&, double>(),
           py::arg("plan"), py::arg("weights"), py::arg("seed"), py::arg("execution"),
           py::arg("weight_decay"), py::arg("no_decay"), py::arg("clip_norm"))
      .def("train", &Session::Train, py::arg("steps"), py::arg("learning_rate"))
      .def("evaluate", &Session::Evaluate, py::arg("inputs"))
      .def("outputs", &Session::Outputs, py::arg("step"))
      .def("gradients", &Session::Gradients, py::arg("step"))
      .def("parameters", &Session::Parameters)
      .def("check", &CheckOf, py::arg("inputs"))
      .def_property_readonly("step_us", &Session::StepUs)
      .def_property_readonly("steps_between_flushes", &Session::num_steps);

  module->def("random_inputs", &RandomInputsOf, py::arg("plan"), py::arg("seed"));
}

}  // namespace isomer
