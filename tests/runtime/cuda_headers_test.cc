// Our tables of NVIDIA's functions and constants against its headers, where there are any:
// functions are called through pointers with types of our own, which no compiler compares.
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "runtime/cuda/cublas_lt.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nccl.h"

#if __has_include(<cuda.h>) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <cuda.h>
#define ISOMER_HAS_CUDA_HEADERS
#if __has_include(<nccl.h>)
#include <nccl.h>
#define ISOMER_HAS_NCCL_HEADER
#endif
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
ISOMER_SAME_CALL(CudaDriver, copy, cuMemcpyAsync);
ISOMER_SAME_CALL(CudaDriver, stream_priorities, cuCtxGetStreamPriorityRange);
ISOMER_SAME_CALL(CudaDriver, create_stream, cuStreamCreateWithPriority);
ISOMER_SAME_CALL(CudaDriver, destroy_stream, cuStreamDestroy);
ISOMER_SAME_CALL(CudaDriver, synchronize, cuStreamSynchronize);
ISOMER_SAME_CALL(CudaDriver, query, cuStreamQuery);
ISOMER_SAME_CALL(CudaDriver, create_event, cuEventCreate);
ISOMER_SAME_CALL(CudaDriver, destroy_event, cuEventDestroy);
ISOMER_SAME_CALL(CudaDriver, record, cuEventRecord);
ISOMER_SAME_CALL(CudaDriver, wait_event, cuStreamWaitEvent);
ISOMER_SAME_CALL(CudaDriver, elapsed, cuEventElapsedTime);
ISOMER_SAME_CALL(CudaDriver, wait_value, cuStreamWaitValue32);
ISOMER_SAME_CALL(CudaDriver, device_name, cuDeviceGetName);
ISOMER_SAME_CALL(CudaDriver, begin_capture, cuStreamBeginCapture);
ISOMER_SAME_CALL(CudaDriver, end_capture, cuStreamEndCapture);
ISOMER_SAME_CALL(CudaDriver, instantiate, cuGraphInstantiate);
ISOMER_SAME_CALL(CudaDriver, launch_graph, cuGraphLaunch);
ISOMER_SAME_CALL(CudaDriver, destroy_graph, cuGraphDestroy);
ISOMER_SAME_CALL(CudaDriver, destroy_executable, cuGraphExecDestroy);
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

#ifdef ISOMER_HAS_NCCL_HEADER
ISOMER_SAME_CALL(Nccl, version, ncclGetVersion);
ISOMER_SAME_CALL(Nccl, unique_id, ncclGetUniqueId);
ISOMER_SAME_CALL(Nccl, init, ncclCommInitRankConfig);
ISOMER_SAME_CALL(Nccl, destroy, ncclCommDestroy);
ISOMER_SAME_CALL(Nccl, abort, ncclCommAbort);
ISOMER_SAME_CALL(Nccl, async_error, ncclCommGetAsyncError);
ISOMER_SAME_CALL(Nccl, error_text, ncclGetErrorString);
ISOMER_SAME_CALL(Nccl, last_error, ncclGetLastError);
ISOMER_SAME_CALL(Nccl, all_reduce, ncclAllReduce);
ISOMER_SAME_CALL(Nccl, reduce, ncclReduce);
ISOMER_SAME_CALL(Nccl, broadcast, ncclBroadcast);
ISOMER_SAME_CALL(Nccl, reduce_scatter, ncclReduceScatter);
ISOMER_SAME_CALL(Nccl, all_gather, ncclAllGather);
ISOMER_SAME_CALL(Nccl, send, ncclSend);
ISOMER_SAME_CALL(Nccl, receive, ncclRecv);
ISOMER_SAME_CALL(Nccl, group_start, ncclGroupStart);
ISOMER_SAME_CALL(Nccl, group_end, ncclGroupEnd);

static_assert(sizeof(Nccl::UniqueId) == sizeof(ncclUniqueId));
static_assert(offsetof(Nccl::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(Nccl::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(Nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(Nccl::Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(Nccl::Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(Nccl::Config, split_share) == offsetof(ncclConfig_t, splitShare));

TEST(CudaHeaders, ConstantsOfNcclAreItsOwn) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Nccl::Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.version, unsigned{NCCL_VERSION(2, 18, 0)});
  EXPECT_EQ(ours.max_ctas, theirs.maxCTAs);
  EXPECT_EQ(ours.net_name, theirs.netName);
  EXPECT_EQ(nccl::kSuccess, ncclSuccess);
  EXPECT_EQ(nccl::kInProgress, ncclInProgress);
  EXPECT_EQ(nccl::kSum, ncclSum);
  EXPECT_EQ(nccl::kBytes, ncclInt8);
  EXPECT_EQ(nccl::kInt32, ncclInt32);
  EXPECT_EQ(nccl::kInt64, ncclInt64);
  EXPECT_EQ(nccl::kFloat16, ncclFloat16);
  EXPECT_EQ(nccl::kFloat32, ncclFloat32);
  EXPECT_EQ(nccl::kBFloat16, ncclBfloat16);
}
#endif

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
  EXPECT_EQ(lt::kEpilogueSumsOfA, CUBLASLT_EPILOGUE_BGRADA);
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
  EXPECT_EQ(cuda_driver::kLastCacheBytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  EXPECT_EQ(0, CU_STREAM_WAIT_VALUE_GEQ);
  EXPECT_EQ(cuda_driver::kNotReady, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuda_driver::kCaptureOfThisThread, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(cuda_driver::kNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuda_driver::kPortableAndMapped,
            unsigned{CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP});
}

#else

TEST(CudaHeaders, ConstantsAreTheirs) { GTEST_SKIP() << "there are no headers of a CUDA toolkit"; }

#endif

}  // namespace
}  // namespace isomer
