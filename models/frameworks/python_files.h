// The Python that exports are made of, compiled into the programs (python_files.cc.in).
#ifndef ISOMER_MODELS_FRAMEWORKS_PYTHON_FILES_H_
#define ISOMER_MODELS_FRAMEWORKS_PYTHON_FILES_H_

namespace isomer {

extern const char kLeafValues[];      // leaf_values.py
extern const char kTorchOperators[];  // torch_operators.py
extern const char kTorchRuntime[];    // torch_runtime.py
extern const char kJaxOperators[];    // jax_operators.py
extern const char kJaxRuntime[];      // jax_runtime.py

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_PYTHON_FILES_H_
