// Machines and models, as the classes of isomer._isomer.
#ifndef ISOMER_PYTHON_BINDINGS_MODELS_H_
#define ISOMER_PYTHON_BINDINGS_MODELS_H_

#include <pybind11/pybind11.h>

#include <string>

#include "optimizer/machine/machine.h"
#include "optimizer/request/optimize_request.h"
#include "pcg/ir/plan.h"

namespace isomer {

// What was asked for stays beside the machine: some searches take one device of it.
struct PyMachine {
  MachineRequest request;
  Machine machine;
};

struct PyModel {
  std::string source;  // what messages call it
  Model model;
};

// One (name, dtype, shape) for each of a model's leaves of this kind.
pybind11::list LeavesOf(const Graph& graph, OpKind kind);
pybind11::list OutputsOf(const Graph& graph);

void BindModels(pybind11::module_* module);

}  // namespace isomer

#endif  // ISOMER_PYTHON_BINDINGS_MODELS_H_
