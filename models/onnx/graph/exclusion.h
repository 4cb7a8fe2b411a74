// By which numbers the masks of exported networks exclude keys.
#ifndef ISOMER_MODELS_ONNX_GRAPH_EXCLUSION_H_
#define ISOMER_MODELS_ONNX_GRAPH_EXCLUSION_H_

#include <cmath>

namespace isomer {

// Masks are written with minus infinity, the lowest number of a float type, -1e9 or -1e4. A score
// with one of these beside it is 0 in a softmax of float32, unless the other scores of its query
// are lower by 9,896: exp(-104) is the least that float32 has.
inline constexpr double kHighestExclusion = -1e4;
inline bool ExcludesKeys(double value) { return value <= kHighestExclusion; }

// Over the reals it does not, so that a network that is read so rests on an assumption.
inline bool IsFiniteExclusion(double value) { return ExcludesKeys(value) && std::isfinite(value); }

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_EXCLUSION_H_
