// Our tables of NVIDIA's functions and constants against its headers, where there are any:
// functions are called through pointers with types of our own, which no compiler compares.
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "runtime/cuda/cublas_lt.h"
#include "runtime/cuda/driver.h"

#if __has_include(<cuda.h>) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <cuda.h>
#define ISOMER_HAS_CUDA_HEADERS
#endif

namespace isomer {
namespace {

#ifdef ISOMER_HAS_CUDA_HEADERS

template <typename A, typename B>
constexpr bool kPassedAlike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> ==
                                  std::is_pointer_v<B>&& std::is_floating_point_v<A> ==
                                  std::is_floating_point_v<B>;

template <typename Ours, typename Theirs>
struct Calls;
template <typename R, typename... A, typename S, typename... B>
struct Calls<R (*)(A...), S (*)(B...)> {
  static constexpr bool Match() {
    if constexpr (sizeof...(A) != sizeof...(B)) {
      return false;
    } else {
      return kPassedAlike<R, S> && (kPassedAlike<A, B> && ...);
    }
  }
};
template <typename Ours, typename Theirs>
constexpr bool kSameCall = Calls<Ours, Theirs>::Match();
#define ISOMER_SAME_CALL(table, member, function) \
  static_assert(kSameCall<decltype(table::member), decltype(&function)>)

ISOMER_SAME_CALL(CudaDriver, init, cuInit);
ISOMER_SAME_CALL(CudaDriver, device_count, cuDeviceGetCount);
ISOMER_SAME_CALL(CudaDriver, device, cuDeviceGet);
ISOMER_SAME_CALL(CudaDriver, device_attribute, cuDeviceGetAttribute);
ISOMER_SAME_CALL(CudaDriver, retain_context, cuDevicePrimaryCtxRetain);
ISOMER_SAME_CALL(CudaDriver, release_context, cuDevicePrimaryCtxRelease);
ISOMER_SAME_CALL(CudaDriver, set_context, cuCtxSetCurrent);
ISOMER_SAME_CALL(CudaDriver, allocate, cuMemAlloc);
ISOMER_SAME_CALL(CudaDriver, free, cuMemFree);
ISOMER_SAME_CALL(CudaDriver, allocate_host, cuMemHostAlloc);
ISOMER_SAME_CALL(CudaDriver, free_host, cuMemFreeHost);
ISOMER_SAME_CALL(CudaDriver, memory_info, cuMemGetInfo);
ISOMER_SAME_CALL(CudaDriver, copy_in, cuMemcpyHtoDAsync);
ISOMER_SAME_CALL(CudaDriver, copy_out, cuMemcpyDtoHAsync);
ISOMER_SAME_CALL(CudaDriver, copy, cuMemcpyDtoDAsync);
ISOMER_SAME_CALL(CudaDriver, create_stream, cuStreamCreate);
ISOMER_SAME_CALL(CudaDriver, destroy_stream, cuStreamDestroy);
ISOMER_SAME_CALL(CudaDriver, synchronize, cuStreamSynchronize);
ISOMER_SAME_CALL(CudaDriver, load_module, cuModuleLoadData);
ISOMER_SAME_CALL(CudaDriver, unload_module, cuModuleUnload);
ISOMER_SAME_CALL(CudaDriver, function, cuModuleGetFunction);
ISOMER_SAME_CALL(CudaDriver, launch, cuLaunchKernel);
ISOMER_SAME_CALL(CudaDriver, error_name, cuGetErrorName);
ISOMER_SAME_CALL(CudaDriver, error_text, cuGetErrorString);

ISOMER_SAME_CALL(CublasLt, create, cublasLtCreate);
ISOMER_SAME_CALL(CublasLt, destroy, cublasLtDestroy);
ISOMER_SAME_CALL(CublasLt, create_operation, cublasLtMatmulDescCreate);
ISOMER_SAME_CALL(CublasLt, set_operation, cublasLtMatmulDescSetAttribute);
ISOMER_SAME_CALL(CublasLt, destroy_operation, cublasLtMatmulDescDestroy);
ISOMER_SAME_CALL(CublasLt, create_layout, cublasLtMatrixLayoutCreate);
ISOMER_SAME_CALL(CublasLt, set_layout, cublasLtMatrixLayoutSetAttribute);
ISOMER_SAME_CALL(CublasLt, destroy_layout, cublasLtMatrixLayoutDestroy);
ISOMER_SAME_CALL(CublasLt, create_preference, cublasLtMatmulPreferenceCreate);
ISOMER_SAME_CALL(CublasLt, set_preference, cublasLtMatmulPreferenceSetAttribute);
ISOMER_SAME_CALL(CublasLt, destroy_preference, cublasLtMatmulPreferenceDestroy);
ISOMER_SAME_CALL(CublasLt, heuristic, cublasLtMatmulAlgoGetHeuristic);
ISOMER_SAME_CALL(CublasLt, matmul, cublasLtMatmul);

static_assert(sizeof(CublasLt::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(CublasLt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(CublasLt::Heuristic, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(CublasLt::Heuristic, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));

TEST(CudaHeaders, ConstantsAreTheirs) {
  namespace lt = cublas_lt;
  EXPECT_EQ(lt::kFloat32, CUDA_R_32F);
  EXPECT_EQ(lt::kFloat16, CUDA_R_16F);
  EXPECT_EQ(lt::kBFloat16, CUDA_R_16BF);
  EXPECT_EQ(lt::kComputeFloat32, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(lt::kTransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_EQ(lt::kTransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
  EXPECT_EQ(lt::kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  EXPECT_EQ(lt::kBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  EXPECT_EQ(lt::kBiasType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  EXPECT_EQ(lt::kEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(lt::kBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  EXPECT_EQ(lt::kBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  EXPECT_EQ(lt::kWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(lt::kAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  EXPECT_EQ(lt::kAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  EXPECT_EQ(lt::kAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  EXPECT_EQ(lt::kAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  EXPECT_EQ(lt::kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cuda_driver::kNoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(cuda_driver::kCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(cuda_driver::kCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(cuda_driver::kNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuda_driver::kPortableAndMapped,
            unsigned{CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP});
}

#else

TEST(CudaHeaders, ConstantsAreTheirs) { GTEST_SKIP() << "there are no headers of a CUDA toolkit"; }

#endif

}  // namespace
}  // namespace isomer
