#include "python/bindings/models.h"

#include <pybind11/stl.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/load.h"
#include "models/zoo/listing.h"
#include "models/zoo/zoo.h"
#include "optimizer/report/machine_text.h"
#include "pcg/operators/declared/operator_file.h"
#include "python/bindings/convert.h"

namespace isomer {
namespace {

namespace py = pybind11;

std::shared_ptr<PyMachine> LoadPyMachine(py::handle spec, int64_t nodes, int64_t devices_per_node,
                                         double device_memory_gib) {
  auto machine = std::make_shared<PyMachine>();
  machine->request = {.machine = ToBytes(spec),
                      .nodes = nodes,
                      .devices_per_node = devices_per_node,
                      .device_memory_gib = device_memory_gib};
  machine->machine = ValueOrThrow(MachineOf(machine->request, /*search=*/""));
  return machine;
}

py::list LevelsOf(const Machine& machine) {
  py::list levels;
  for (const Machine::Level& level : machine.levels) {
    // A byte a microsecond is a megabyte a second.
    levels.append(py::make_tuple(ToPython(level.name), level.count, level.bytes_per_us * 1e6,
                                 level.latency_us, level.shared));
  }
  return levels;
}

LoadOptions LoadOptionsFrom(int64_t batch_size, py::sequence dims,
                            std::vector<std::string>* notes) {
  LoadOptions options{.batch_size = batch_size, .notes = notes};
  for (const py::handle dim : dims) options.dims.push_back(ToBytes(dim));
  return options;
}

py::tuple LoadPyModel(py::handle spec, int64_t batch_size, py::sequence dims) {
  std::vector<std::string> notes;
  auto model = std::make_shared<PyModel>();
  model->source = ToBytes(spec);
  const LoadOptions options = LoadOptionsFrom(batch_size, std::move(dims), &notes);
  {
    py::gil_scoped_release others_run;
    model->model = ValueOrThrow(LoadAnyModel(model->source, options));
  }
  return py::make_tuple(model, ToPython(notes));
}

py::list Unsupported(py::handle spec, int64_t batch_size, py::sequence dims) {
  std::vector<std::string> notes, lines;
  const std::string source = ToBytes(spec);
  const LoadOptions options = LoadOptionsFrom(batch_size, std::move(dims), &notes);
  {
    py::gil_scoped_release others_run;
    lines = ValueOrThrow(ListUnsupportedOf(source, options));
  }
  return ToPython(lines);
}

int64_t NumParameters(const Graph& graph) {
  int64_t parameters = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() == OpKind::kWeight) parameters += node.outputs[0].NumElements();
  }
  return parameters;
}

int64_t NumOperators(const Graph& graph) {
  int64_t operators = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) operators += !IsLeaf(graph.node(id).op.kind());
  return operators;
}

py::list ZooModels() {
  py::list models;
  for (const ZooModel& model : ListModels()) {
    py::dict parameters;
    for (const ZooParameter& parameter : model.parameters) {
      parameters[ToPython(parameter.name)] = parameter.value;
    }
    models.append(
        py::make_tuple(ToPython(model.name), ToPython(model.description), std::move(parameters)));
  }
  return models;
}

py::tuple TensorToPython(absl::string_view name, const TensorType& type) {
  return py::make_tuple(ToPython(name), ToPython(DataTypeName(type.dtype)),
                        ShapeToPython(type.Sizes()));
}

}  // namespace

py::list LeavesOf(const Graph& graph, OpKind kind) {
  py::list leaves;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() == kind) leaves.append(TensorToPython(node.name, node.outputs[0]));
  }
  return leaves;
}

py::list OutputsOf(const Graph& graph) {
  py::list outputs;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    outputs.append(TensorToPython(output.name, graph.type(output.tensor)));
  }
  return outputs;
}

void BindModels(py::module_* module) {
  py::class_<PyMachine, std::shared_ptr<PyMachine>>(*module, "Machine")
      .def_static("load", &LoadPyMachine, py::arg("spec"), py::arg("nodes"),
                  py::arg("devices_per_node"), py::arg("device_memory_gib"))
      .def_property_readonly("name", [](const PyMachine& m) { return ToPython(m.machine.name); })
      .def_property_readonly("devices", [](const PyMachine& m) { return m.machine.num_devices(); })
      .def_property_readonly("nodes", [](const PyMachine& m) { return m.machine.num_nodes(); })
      .def_property_readonly("memory_bytes",
                             [](const PyMachine& m) { return m.machine.memory_bytes(); })
      .def_property_readonly("device_name",
                             [](const PyMachine& m) { return ToPython(m.machine.device_name()); })
      .def_property_readonly("levels", [](const PyMachine& m) { return LevelsOf(m.machine); })
      .def("text", [](const PyMachine& m) { return ToPython(m.machine.ToString()); })
      .def("describe", [](const PyMachine& m) { return ToPython(DescribeMachine(m.machine)); })
      .def("svg", [](const PyMachine& m) { return ToPython(MachineSvg(m.machine)); });

  py::class_<PyModel, std::shared_ptr<PyModel>>(*module, "Model")
      .def_static("load", &LoadPyModel, py::arg("spec"), py::arg("batch_size"), py::arg("dims"))
      .def_property(
          "source", [](const PyModel& m) { return ToPython(m.source); },
          [](PyModel& m, py::handle source) { m.source = ToBytes(source); })
      .def_property_readonly("name", [](const PyModel& m) { return ToPython(m.model.name); })
      .def_property_readonly("loss", [](const PyModel& m) { return ToPython(m.model.loss); })
      .def_property_readonly("operators",
                             [](const PyModel& m) { return NumOperators(m.model.graph); })
      .def_property_readonly("parameters",
                             [](const PyModel& m) { return NumParameters(m.model.graph); })
      .def_property_readonly("assumptions",
                             [](const PyModel& m) { return ToPython(m.model.assumptions); })
      .def("inputs", [](const PyModel& m) { return LeavesOf(m.model.graph, OpKind::kInput); })
      .def("weights", [](const PyModel& m) { return LeavesOf(m.model.graph, OpKind::kWeight); })
      .def("outputs", [](const PyModel& m) { return OutputsOf(m.model.graph); })
      .def("describe", [](const PyModel& m) { return ToPython(DescribeModel(m.model)); })
      .def("text", [](const PyModel& m) { return ToPython(m.model.graph.ToString()); });

  module->def("unsupported", &Unsupported, py::arg("spec"), py::arg("batch_size"), py::arg("dims"));
  module->def(
      "declare_operators", [](py::handle path) { ThrowIfError(LoadOperators(ToBytes(path))); },
      py::arg("path"));
  module->def("machine_presets", [] { return ToPython(MachinePresets()); });
  module->def("zoo", &ZooModels);
}

}  // namespace isomer
