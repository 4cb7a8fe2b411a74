// isomer._isomer: what the package isomer is made of. Its classes hold C++ values and know little
// of Python; what a user sees, with types and docstrings, is python/isomer.
#include <pybind11/pybind11.h>

#include "pcg/support/data_path.h"
#include "python/bindings/convert.h"
#include "python/bindings/models.h"
#include "python/bindings/plans.h"
#include "python/bindings/sessions.h"

PYBIND11_MODULE(_isomer, module) {
  isomer::RegisterErrors();
  isomer::BindModels(&module);
  isomer::BindPlans(&module);
  isomer::BindSessions(&module);
  module.def(
      "set_data_folder",
      [](pybind11::handle folder) { isomer::SetDataFolder(isomer::ToBytes(folder)); },
      pybind11::arg("folder"));
}
