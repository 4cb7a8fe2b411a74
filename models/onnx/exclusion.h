// By which numbers the masks of exported networks exclude keys.
#ifndef ISOMER_MODELS_ONNX_EXCLUSION_H_
#define ISOMER_MODELS_ONNX_EXCLUSION_H_

#include <limits>

namespace isomer {

// Minus infinity, and the lowest numbers of float32, bfloat16 and float16.
inline bool ExcludesKeys(double value) {
  return value == -std::numeric_limits<double>::infinity() || value == -0x1.fffffep127 ||
         value == -0x1.fep127 || value == -65504;
}

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_EXCLUSION_H_
