// The attributes of a call as a device has them that computes a part of it: sizes are those of the
// part, and a part that must know where it begins is told.
#ifndef ISOMER_MODELS_FRAMEWORKS_LOCAL_ATTRIBUTES_H_
#define ISOMER_MODELS_FRAMEWORKS_LOCAL_ATTRIBUTES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/frameworks/placed_program.h"
#include "pcg/ir/graph.h"

namespace isomer {

// A dim of which a task reads a window: its elements [stride * first + offset, .. + length), those
// outside of the tensor being `outside`.
struct WindowOfDim {
  int dim = 0;
  std::vector<int> digits;  // of the mesh: `first` is how far along these the device is
  int64_t stride = 0, offset = 0, length = 0;
  double outside = 0;
};

struct LocalCall {
  std::string function;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<WindowOfDim> windows;  // of operand 0
  int64_t divisor = 1;               // the mean of the part is so many times its share
};

// How the text of a device's place along digits is written: "self.at(0, 1)".
using PlaceText = std::string (*)(const std::vector<int>& digits);
// "torch." or "jnp.", before the name of a type.
LocalCall WholeCall(const Node& node, const std::string& dtype_prefix);

// Errors: a part of the call cannot be computed by the operator alone.
absl::StatusOr<LocalCall> LocalCallOf(const Node& node, const PlacedCall& call, const Mesh& mesh,
                                      PlaceText place, const std::string& dtype_prefix);

// "torch.float32".
std::string PythonType(DataType dtype, const std::string& prefix);

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_LOCAL_ATTRIBUTES_H_
