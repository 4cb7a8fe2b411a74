// cuDNN's graphs, opened at run time, as its manual describes them (cudnn_graph.h, 9.0 and later).
#ifndef ISOMER_RUNTIME_CUDA_CUDNN_H_
#define ISOMER_RUNTIME_CUDA_CUDNN_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace isomer {

struct Cudnn {
  using Handle = void*;
  int (*create)(Handle* handle);
  int (*destroy)(Handle handle);
  int (*set_stream)(Handle handle, Handle stream);
  int (*create_descriptor)(int type, Handle* descriptor);
  int (*destroy_descriptor)(Handle descriptor);
  int (*set_attribute)(Handle descriptor, int attribute, int type, int64_t count,
                       const void* elements);
  int (*get_attribute)(Handle descriptor, int attribute, int type, int64_t most, int64_t* count,
                       void* elements);
  int (*finalize)(Handle descriptor);
  int (*execute)(Handle handle, Handle plan, Handle pack);
  void (*last_error)(char* text, size_t size);
};

// What of cudnn_graph.h's enumerations is used.
namespace cudnn {
// Statuses: of 3000 to 3999 a graph is not supported.
inline constexpr int kLeastNotSupported = 3000, kMostNotSupported = 3999;
// Of elements.
inline constexpr int kFloat32 = 0, kFloat16 = 2, kInt32 = 4, kBFloat16 = 9, kBoolean = 11;
// Of attributes.
inline constexpr int kOfHandle = 0, kOfDataType = 1, kOfBool = 2, kOfInt64 = 3, kOfPointer = 6,
                     kOfHeuristic = 8, kOfMode = 14, kOfDescriptor = 15, kOfReduction = 18,
                     kOfChar = 24;
// Descriptors.
inline constexpr int kPointwise = 0, kEngineConfig = 3, kHeuristic = 4, kPlan = 5,
                     kPointwiseOperation = 13, kGraph = 15, kPack = 16, kTensor = 17, kMatmul = 18,
                     kMatmulOperation = 19, kReduction = 21, kReductionOperation = 22,
                     kReshapeOperation = 31, kDevice = 38;
// Modes of pointwise operations, operators of reductions, and of heuristics.
inline constexpr int kAdd = 0, kMultiply = 1, kDivide = 6, kSubtract = 9, kExp = 13, kLog = 15,
                     kIdentity = 21, kGreaterOrEqual = 303, kIndex = 501, kSelect = 601;
inline constexpr int kSum = 0, kMaximum = 3;
inline constexpr int kHeuristicA = 3, kHeuristicFallback = 2;
// Attributes, of the descriptor of that name.
namespace pointwise {
inline constexpr int kMode = 0, kType = 1, kAxis = 9;
}
namespace heuristic {
inline constexpr int kMode = 200, kGraph = 201, kResults = 202, kDevice = 204;
}
namespace plan {
inline constexpr int kHandle = 400, kConfig = 401, kWorkspaceBytes = 402, kDevice = 407;
}
namespace pointwise_operation {
inline constexpr int kDescription = 750, kX = 751, kB = 752, kY = 753, kT = 758;
}
namespace graph {
inline constexpr int kHandle = 800, kOperations = 801;
}
namespace tensor {
inline constexpr int kAlignment = 900, kType = 901, kSizes = 902, kStrides = 903, kId = 906,
                     kIsVirtual = 907, kIsByValue = 908;
}
namespace pack {
inline constexpr int kIds = 1000, kPointers = 1001, kWorkspace = 1003;
}
namespace matmul {
inline constexpr int kType = 1500;
}
namespace matmul_operation {
inline constexpr int kA = 1520, kB = 1521, kC = 1522, kDescription = 1523;
}
namespace reduction {
inline constexpr int kOperator = 1600, kType = 1601;
}
namespace reduction_operation {
inline constexpr int kX = 1610, kY = 1611, kDescription = 1612;
}
namespace reshape_operation {
inline constexpr int kX = 2200, kY = 2201;
}
namespace device {
inline constexpr int kJson = 2702;
}
}  // namespace cudnn

// Unavailable, with what is missing.
absl::StatusOr<Cudnn> OpenCudnn();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_CUDNN_H_
