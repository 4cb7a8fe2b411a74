// Plans that run on virtual devices, as the class Session of isomer._isomer.
#ifndef ISOMER_PYTHON_BINDINGS_SESSIONS_H_
#define ISOMER_PYTHON_BINDINGS_SESSIONS_H_

#include <pybind11/pybind11.h>

namespace isomer {

// REQUIRES: BindPlans was called.
void BindSessions(pybind11::module_* module);

}  // namespace isomer

#endif  // ISOMER_PYTHON_BINDINGS_SESSIONS_H_
