#include "python/bindings/plans.h"

#include <pybind11/stl.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/frameworks/write_export.h"
#include "models/loss.h"
#include "models/onnx/export/onnx_export.h"
#include "models/prepare_model.h"
#include "optimizer/comparison/baseline_summaries.h"
#include "optimizer/page/report_page.h"
#include "optimizer/report/explanation.h"
#include "optimizer/report/node_times.h"
#include "optimizer/report/split_text.h"
#include "optimizer/report/timeline_svg.h"
#include "optimizer/report/trace.h"
#include "optimizer/request/misfit_text.h"
#include "optimizer/search/enough_devices.h"
#include "pcg/ir/machine_view.h"
#include "pcg/ir/precision.h"
#include "pcg/support/file.h"
#include "pcg/support/search_watch.h"
#include "pcg/support/status_macros.h"
#include "python/bindings/convert.h"
#include "python/bindings/models.h"
#include "verifier/certificate/equal_sides.h"
#include "verifier/own_model_main.h"
#include "verifier/plans/judge_plan.h"

namespace isomer {
namespace {

namespace py = pybind11;

using PlanPointer = std::shared_ptr<PyPlan>;

// What a keyword of the type T takes, for messages.
template <typename T>
constexpr const char* kExpected = "text is";
template <>
constexpr const char* kExpected<bool> = "True or False is";
template <>
constexpr const char* kExpected<double> = "a finite number is";
template <>
constexpr const char* kExpected<std::vector<std::string>> = "a list of texts is";
template <typename T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) constexpr const
    char* kExpected<T> = std::is_unsigned_v<T> ? "a whole number of 0 or more is"
                                               : "a whole number is";

// Sets *to if `value` is one of its type: 1 is no truth value, and True no number.
bool SetOption(py::handle value, bool* to) {
  if (!PyBool_Check(value.ptr())) return false;
  *to = value.ptr() == Py_True;
  return true;
}
bool SetOption(py::handle value, std::string* to) {
  if (!PyUnicode_Check(value.ptr()) && !PyBytes_Check(value.ptr())) return false;
  *to = ToBytes(value);
  return true;
}
bool SetOption(py::handle value, std::vector<std::string>* to) {
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) return false;
  for (const py::handle element : value) {
    if (!SetOption(element, &to->emplace_back())) return false;
  }
  return true;
}
template <typename T>
bool SetOption(py::handle value, T* to) {
  if (PyBool_Check(value.ptr())) return false;
  try {
    *to = value.cast<T>();
  } catch (const py::cast_error&) {
    return false;
  }
  if constexpr (std::is_floating_point_v<T>) return std::isfinite(*to);
  return true;
}

template <typename T>
void SetOption(const py::dict& options, const char* name, T* to, std::set<std::string>* given) {
  if (!options.contains(name)) return;
  T value{};
  if (!SetOption(options[name], &value)) {
    throw StatusError(absl::InvalidArgumentError(absl::StrCat(
        "--", name, "=", std::string(py::str(options[name])), ": ", kExpected<T>, " expected")));
  }
  *to = std::move(value);
  given->insert(name);
}

OptimizeRequest RequestFrom(const py::dict& options) {
  OptimizeRequest request;
#define ISOMER_SET_OPTION(type, name, value, help) \
  SetOption(options, #name, &request.name, &request.given);
  ISOMER_SEARCH_OPTIONS(ISOMER_SET_OPTION)
#undef ISOMER_SET_OPTION
  return request;
}

template <typename T>
constexpr const char* kPythonType = "int";
template <>
constexpr const char* kPythonType<bool> = "bool";
template <>
constexpr const char* kPythonType<double> = "float";
template <>
constexpr const char* kPythonType<std::string> = "str";
template <>
constexpr const char* kPythonType<std::vector<std::string>> = "list[str]";

py::object DefaultToPython(const std::string& value) { return ToPython(value); }
py::object DefaultToPython(const std::vector<std::string>& value) { return ToPython(value); }
template <typename T>
py::object DefaultToPython(T value) {
  return py::cast(value);
}

// (name, type, default, help) of each option of a search.
py::list SearchOptionTable() {
  const OptimizeRequest defaults;
  py::list table;
#define ISOMER_DESCRIBE_OPTION(type, name, value, help) \
  table.append(                                         \
      py::make_tuple(#name, kPythonType<type>, DefaultToPython(defaults.name), ToPython(help)));
  ISOMER_SEARCH_OPTIONS(ISOMER_DESCRIBE_OPTION)
#undef ISOMER_DESCRIBE_OPTION
  return table;
}

std::shared_ptr<const CostContext> ContextOf(const OptimizeRequest& request, Machine machine) {
  auto context = std::make_shared<CostContext>();
  context->rules = ValueOrThrow(RulesOf(request));
  context->costs = ValueOrThrow(CostsOf(request, std::move(machine)));
  return context;
}

PyPlan::Priced PricedOf(std::shared_ptr<const CostContext> context, OptimizeResult result,
                        std::string misfit) {
  PyPlan::Priced priced;
  priced.context = std::move(context);
  priced.result = std::move(result);
  const CostModel& cost = *priced.context->costs.model;
  priced.report = ValueOrThrow(ReportOf(priced.result, priced.context->rules, cost));
  priced.misfit = std::move(misfit);
  return priced;
}

// As isomer-optimize does.
PlanPointer Search(const OptimizeRequest& request, const PyModel& given,
                   const MachineRequest& machine_request, SearchWatch* watch) {
  auto plan = std::make_shared<PyPlan>();
  OptimizeOptions options = ValueOrThrow(OptionsOf(request));
  options.keep_baselines = true;
  options.search.watch = watch;
  Machine machine = ValueOrThrow(MachineOf(machine_request, request.search));
  Model model = given.model;
  ThrowIfError(PrepareModel(given.source,
                            {.training = options.training,
                             .loss = request.loss,
                             .loss_alone = request.loss_alone,
                             .carry = request.carry,
                             .unfused_attention = request.attention == "unfused",
                             .expert_imbalance = request.expert_imbalance,
                             .expert_loads = request.expert_loads},
                            &model, &plan->notes));
  if (const auto text = LeftOutOutputsText(request, options, model, machine); text.has_value()) {
    plan->notes.push_back(*text);
    ThrowIfError(KeepLossAlone(&model));
  }
  if (const auto text = NoPlanFitsText(model, options, machine); text.has_value()) {
    throw StatusError(absl::ResourceExhaustedError(absl::StrCat(given.source, ": ", *text)));
  }
  ThrowIfError(AddKeptWeights(request, model, &options));
  ThrowIfError(AddCompared(request, model, &options, &plan->notes));
  std::shared_ptr<const CostContext> context = ContextOf(request, std::move(machine));
  const RuleIndex index(context->rules);
  // Calls of unfused attention would be found to be attention.
  if (request.attention == "flash") {
    options.equal = [](const ConcreteSide& source, const ConcreteSide& target,
                       const InputNumbers& numbers) {
      std::set<std::string> lemmas;
      return EqualSides(source, target, &lemmas, numbers).ok();
    };
  }
  OptimizeResult result = ValueOrThrow(Optimize(model, index, *context->costs.model, options));
  result.plan.seal = SealOf(result.plan);
  if (!result.searches.cache_note.empty()) plan->notes.push_back(result.searches.cache_note);
  if (!result.misfit.empty()) plan->notes.push_back(result.misfit);
  std::string misfit;
  if (!result.fits) {
    misfit = ValueOrThrow(MisfitText(result, model, index, *context->costs.model, options));
  }
  plan->priced = PricedOf(std::move(context), std::move(result), std::move(misfit));
  return plan;
}

PlanPointer OptimizeModel(const PyModel& model, const PyMachine& machine, const py::dict& options,
                          SearchWatch* watch) {
  const OptimizeRequest request = RequestFrom(options);
  py::gil_scoped_release others_run;
  return Search(request, model, machine.request, watch);
}

PlanPointer Price(const PyPlan& plan, const PyMachine& machine, const py::dict& options) {
  const OptimizeRequest request = RequestFrom(options);
  py::gil_scoped_release others_run;
  auto priced = std::make_shared<PyPlan>();
  std::shared_ptr<const CostContext> context = ContextOf(request, machine.machine);
  OptimizeResult result = ValueOrThrow(PricePlan(plan.plan(), *context->costs.model));
  // Other predictions make it no other plan; what was changed before stays so.
  if (plan.plan().seal == SealOf(plan.plan())) result.plan.seal = SealOf(result.plan);
  std::string misfit =
      result.fits ? "" : DoesNotFitText(result, machine.machine, /*enough_nodes=*/std::nullopt);
  priced->priced = PricedOf(std::move(context), std::move(result), std::move(misfit));
  return priced;
}

PlanPointer LoadPyPlan(py::handle path) {
  const std::string name = ToBytes(path);
  py::gil_scoped_release others_run;
  auto plan = std::make_shared<PyPlan>();
  plan->loaded = ValueOrThrow(LoadPlan(name));
  return plan;
}

void SavePyPlan(const PyPlan& plan, py::handle path) {
  const std::string name = ToBytes(path);
  py::gil_scoped_release others_run;
  if (plan.priced.has_value() && !plan.priced->result.fits) {
    throw StatusError(absl::FailedPreconditionError(plan.priced->misfit));
  }
  ThrowIfError(SavePlan(name, plan.plan()));
}

const PyPlan::Priced& PricedOrThrow(const PyPlan& plan) {
  if (plan.priced.has_value()) return *plan.priced;
  throw StatusError(absl::FailedPreconditionError(
      "this plan was loaded, and files have no times: plan.price(machine) predicts them"));
}

absl::Status WritePage(const PyPlan& plan, const std::string& path) {
  const PyPlan::Priced& priced = PricedOrThrow(plan);
  ISOMER_RETURN_IF_ERROR(CheckHasPage());
  const CostModel& cost = *priced.context->costs.model;
  BaselineSummaries baselines(priced.result, cost);
  ISOMER_ASSIGN_OR_RETURN(const Json data, PageJson(priced.result, priced.report,
                                                    priced.context->rules, cost, &baselines));
  return WriteFileAtomically(path, PageWith(data, plan.plan().model.name, priced.report.text));
}

absl::Status WriteStepTimeline(const PyPlan& plan, const std::string& path) {
  const PyPlan::Priced& priced = PricedOrThrow(plan);
  const LoweredPlan& lowered = priced.result.lowered;
  return WriteFileAtomically(
      path, TimelineSvg(lowered.mapped.graph, lowered.schedule, priced.result.simulation,
                        priced.context->costs.model->machine()));
}

absl::Status WriteStepTrace(const PyPlan& plan, const std::string& path) {
  const PyPlan::Priced& priced = PricedOrThrow(plan);
  return WriteTrace(path, priced.result.lowered, priced.result.simulation,
                    *priced.context->costs.model);
}

absl::Status WriteOnnx(const PyPlan& plan, const std::string& path) {
  if (plan.plan().mode != "inference") {
    return absl::InvalidArgumentError("export_onnx is for --mode=inference");
  }
  ISOMER_ASSIGN_OR_RETURN(
      const std::string contents,
      OnnxFileOf(plan.plan().model, plan.plan().graph, StoredWeights::kPrepared));
  return WriteFileAtomically(path, contents);
}

// Notes: what is not as the plan has it.
py::list WriteFramework(const PyPlan& plan, const std::string& to, py::handle path) {
  const std::string name = ToBytes(path);
  absl::StatusOr<WrittenExport> written;
  {
    py::gil_scoped_release others_run;
    written = WriteExport(plan.plan(), to, name);
    if (absl::IsUnimplemented(written.status())) {
      written = absl::InvalidArgumentError(
          absl::StrCat("the plan cannot be said in ", to, ": ", written.status().message()));
    }
  }
  return ToPython(ValueOrThrow(std::move(written)).notes);
}

// The method of Python that writes a file.
template <absl::Status (*kWrite)(const PyPlan& plan, const std::string& path)>
void Write(const PyPlan& plan, py::handle path) {
  const std::string name = ToBytes(path);
  py::gil_scoped_release others_run;
  ThrowIfError(kWrite(plan, name));
}

// Files in which weights lie.
py::list WeightFilesOf(const PyPlan& plan) {
  std::set<std::string> files;
  for (const auto& [name, values] : plan.plan().model.weights) {
    if (values.file() != nullptr) files.insert(values.file()->path);
  }
  return ToPython(std::vector<std::string>(files.begin(), files.end()));
}

// The plan's graph, as it runs: in its precision.
MappedGraph MappedOf(const Plan& plan) {
  return ValueOrThrow(InPrecisionOf(plan, plan.graph, plan.views));
}

// (id, name, kind, dtype, shape, shard shape, degrees, copies, partials, micro-batches, devices,
// split, forward us, backward us) of every call, in an order in which they can be computed. The
// last three are None where the plan was not priced.
py::list OperatorsOf(const PyPlan& plan) {
  const MappedGraph mapped = MappedOf(plan.plan());
  const Graph& graph = mapped.graph;
  // Simulated may be a part of the batch, but of the same calls.
  const bool has_times = plan.priced.has_value() &&
                         plan.priced->report.times.size() == static_cast<size_t>(graph.num_nodes());
  py::list operators;
  for (const NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind())) continue;
    const TensorType& type = node.outputs[0];
    const MachineView& view = mapped.views[id.value];
    std::vector<int64_t> degrees;
    for (const Dim& dim : type.dims) degrees.push_back(dim.degree);
    const std::vector<int64_t> of_shards = DevicesOf(view, type);
    const std::set<int64_t> devices(of_shards.begin(), of_shards.end());
    py::object split = py::none(), forward = py::none(), backward = py::none();
    if (has_times) {
      const NodeTimes& times = plan.priced->report.times[id.value];
      forward = py::float_(times.forward_us);
      backward = py::float_(times.backward_us);
      if (!IsParallel(node.op.kind())) {
        const Machine& machine = plan.priced->context->costs.model->machine();
        split = ToPython(ValueOrThrow(SplitOf(mapped, id, machine)).ToString());
      }
    }
    operators.append(py::make_tuple(
        id.value, ToPython(node.name), ToPython(node.op.name()), ToPython(DataTypeName(type.dtype)),
        ShapeToPython(type.Sizes()), ShapeToPython(type.LocalShape()), ShapeToPython(degrees),
        type.copies, type.partials, NumMoments(view),
        ShapeToPython({devices.begin(), devices.end()}), split, forward, backward));
  }
  return operators;
}

py::dict MemoryOf(const PyPlan& plan) {
  const MemoryPeak& peak = PricedOrThrow(plan).result.simulation.memory;
  py::dict bytes;
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    bytes[MemoryCategoryName(static_cast<MemoryCategory>(c))] = peak.categories[c];
  }
  return bytes;
}

py::list StepsOf(const PyPlan& plan) {
  py::list steps;
  for (const DerivationStep& step : plan.plan().steps) steps.append(ToPython(step.rule));
  return steps;
}

py::dict Verify(const PyPlan& plan, const PyModel* own, const std::string& rules_path,
                const std::string& schedule, bool reprove) {
  CertificateReport report;
  OwnModelFindings of_model;
  std::optional<int> rules_proved;
  absl::Status verdict;
  {
    py::gil_scoped_release others_run;
    PlanJudgeOptions options{.reprove = reprove};
    options.certificate.schedule = ValueOrThrow(ParseScheduleCheck(schedule));
    OptimizeRequest request;
    request.rules = rules_path;
    const RuleSet rules = ValueOrThrow(RulesOf(request));
    if (own != nullptr) {
      verdict = ExpectOwnModel(own->model, own->source, plan.plan(), &of_model);
    }
    if (verdict.ok()) verdict = JudgePlan(plan.plan(), rules, options, &report, &rules_proved);
    if (!verdict.ok() && !absl::IsFailedPrecondition(verdict)) throw StatusError(verdict);
  }
  py::dict steps_by;
  for (const auto& [by, count] : report.steps) steps_by[EqualByName(by)] = count;
  py::dict seconds;
  seconds["seal"] = report.seal;
  seconds["types"] = report.types;
  seconds["replay"] = report.replay;
  seconds["lower"] = report.lower;
  seconds["schedule"] = report.schedule;
  py::dict result;
  result["accepted"] = verdict.ok();
  result["reason"] =
      ToPython(absl::string_view(verdict.message().data(), verdict.message().size()));
  result["steps"] = plan.plan().steps.size();
  result["steps_by"] = steps_by;
  result["lemmas"] = ToPython(std::vector<std::string>(report.lemmas.begin(), report.lemmas.end()));
  result["scheduled_devices"] = report.scheduled_devices;
  result["rules_proved"] = rules_proved.has_value() ? py::cast(*rules_proved) : py::none();
  result["loss"] = ToPython(of_model.loss);
  result["outputs_left_out"] = of_model.outputs_left_out;
  result["deviations"] = ToPython(DeviationsOf(plan.plan()));
  result["assumptions"] = ToPython(plan.plan().model.assumptions);
  result["seconds"] = seconds;
  return result;
}

}  // namespace

void BindPlans(py::module_* module) {
  py::class_<SearchWatch>(*module, "SearchWatch")
      .def(py::init<>())
      .def("end", &SearchWatch::End)
      .def_property_readonly("plans", &SearchWatch::plans)
      .def_property_readonly("best_step_us", &SearchWatch::best_step_us);

  py::class_<PyPlan, PlanPointer>(*module, "Plan")
      .def_static("load", &LoadPyPlan, py::arg("path"))
      .def("save", &SavePyPlan, py::arg("path"))
      .def("price", &Price, py::arg("machine"), py::arg("options"))
      .def("verify", &Verify, py::arg("model").none(true), py::arg("rules"), py::arg("schedule"),
           py::arg("reprove"))
      .def("operators", &OperatorsOf)
      .def("steps", &StepsOf)
      .def("memory", &MemoryOf)
      .def("inputs", [](const PyPlan& p) { return LeavesOf(p.plan().model.graph, OpKind::kInput); })
      .def("weights",
           [](const PyPlan& p) { return LeavesOf(p.plan().model.graph, OpKind::kWeight); })
      .def("outputs", [](const PyPlan& p) { return OutputsOf(p.plan().model.graph); })
      .def("graph_text", [](const PyPlan& p) { return ToPython(p.plan().graph.ToString()); })
      .def("graph_dot", [](const PyPlan& p) { return ToPython(p.plan().graph.ToDot()); })
      .def("json", [](const PyPlan& p) { return ToPython(PricedOrThrow(p).report.json.Print()); })
      .def("headline", [](const PyPlan& p) { return ToPython(PricedOrThrow(p).report.headline); })
      .def("text", [](const PyPlan& p) { return ToPython(PricedOrThrow(p).report.text); })
      .def("write_page", &Write<WritePage>, py::arg("path"))
      .def("write_timeline", &Write<WriteStepTimeline>, py::arg("path"))
      .def("write_trace", &Write<WriteStepTrace>, py::arg("path"))
      .def("write_onnx", &Write<WriteOnnx>, py::arg("path"))
      .def("write_framework", &WriteFramework, py::arg("to"), py::arg("path"))
      .def_property_readonly("is_priced", [](const PyPlan& p) { return p.priced.has_value(); })
      .def_property_readonly(
          "fits", [](const PyPlan& p) { return !p.priced.has_value() || p.priced->result.fits; })
      .def_property_readonly(
          "misfit",
          [](const PyPlan& p) { return ToPython(p.priced.has_value() ? p.priced->misfit : ""); })
      .def_property_readonly("weight_files", &WeightFilesOf)
      .def_property_readonly("notes", [](const PyPlan& p) { return ToPython(p.notes); })
      .def_property_readonly("model_name",
                             [](const PyPlan& p) { return ToPython(p.plan().model.name); })
      .def_property_readonly("loss", [](const PyPlan& p) { return ToPython(p.plan().model.loss); })
      .def_property_readonly("mode", [](const PyPlan& p) { return ToPython(p.plan().mode); })
      .def_property_readonly("precision",
                             [](const PyPlan& p) { return ToPython(PrecisionName(p.plan())); })
      .def_property_readonly(
          "optimizer",
          [](const PyPlan& p) { return ToPython(OptimizerName(p.plan().update.optimizer)); })
      .def_property_readonly(
          "update",
          [](const PyPlan& p) { return ToPython(UpdateMethodName(p.plan().update.method)); })
      .def_property_readonly("machine_name",
                             [](const PyPlan& p) { return ToPython(p.plan().machine); })
      .def_property_readonly("devices", [](const PyPlan& p) { return p.plan().num_devices; })
      .def_property_readonly("predicted_step_us",
                             [](const PyPlan& p) { return p.plan().predicted_step_us; })
      .def_property_readonly("predicted_peak_bytes",
                             [](const PyPlan& p) { return p.plan().predicted_peak_bytes; })
      .def_property_readonly("deviations",
                             [](const PyPlan& p) { return ToPython(DeviationsOf(p.plan())); });

  module->def("optimize", &OptimizeModel, py::arg("model"), py::arg("machine"), py::arg("options"),
              py::arg("watch"));
  module->def("search_options", &SearchOptionTable);
}

}  // namespace isomer
