// cuBLASLt, NVIDIA's products of matrices, opened when a program first asks for a GPU.
#ifndef ISOMER_RUNTIME_CUDA_CUBLAS_LT_H_
#define ISOMER_RUNTIME_CUDA_CUBLAS_LT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

// The functions of cublasLt.h that are used, with its types: handles and descriptors are pointers,
// enumerations ints; a result of 0 is success. A table, so that tests have one of their own.
struct CublasLt {
  using Handle = void*;
  struct Algorithm {
    uint64_t data[8];
  };
  struct Heuristic {
    Algorithm algorithm;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
  };
  int (*create)(Handle* handle);
  int (*destroy)(Handle handle);
  int (*create_operation)(Handle* operation, int compute_type, int scale_type);
  int (*set_operation)(Handle operation, int attribute, const void* value, size_t bytes);
  int (*destroy_operation)(Handle operation);
  int (*create_layout)(Handle* layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*set_layout)(Handle layout, int attribute, const void* value, size_t bytes);
  int (*destroy_layout)(Handle layout);
  int (*create_preference)(Handle* preference);
  int (*set_preference)(Handle preference, int attribute, const void* value, size_t bytes);
  int (*destroy_preference)(Handle preference);
  int (*heuristic)(Handle handle, Handle operation, Handle a, Handle b, Handle c, Handle d,
                   Handle preference, int count, Heuristic* results, int* found);
  int (*matmul)(Handle handle, Handle operation, const void* alpha, const void* a, Handle a_layout,
                const void* b, Handle b_layout, const void* beta, const void* c, Handle c_layout,
                void* d, Handle d_layout, const Algorithm* algorithm, void* workspace,
                size_t workspace_bytes, Handle stream);
};

// What of cublasLt.h's enumerations is used.
namespace cublas_lt {
inline constexpr int kNotSupported = 15;                          // CUBLAS_STATUS_NOT_SUPPORTED
inline constexpr int kFloat32 = 0, kFloat16 = 2, kBFloat16 = 14;  // cudaDataType
inline constexpr int kComputeFloat32 = 68;                        // CUBLAS_COMPUTE_32F
inline constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8,
                     kBiasType = 26;                     // of an operation
inline constexpr int kEpilogueBias = 4,                  // CUBLASLT_EPILOGUE_BIAS
    kEpilogueSumsOfA = 256;                              // CUBLASLT_EPILOGUE_BGRADA
inline constexpr int kBatchCount = 5, kBatchStride = 6;  // of a layout
inline constexpr int kWorkspaceBytes = 1, kAlignmentA = 5, kAlignmentB = 6, kAlignmentC = 7,
                     kAlignmentD = 8;  // of a preference
}  // namespace cublas_lt

// Unavailable, with what is missing.
absl::StatusOr<CublasLt> OpenCublasLt();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_CUBLAS_LT_H_
