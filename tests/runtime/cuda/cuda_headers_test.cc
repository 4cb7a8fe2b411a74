// Our tables of NVIDIA's functions and constants against its headers, where there are any:
// functions are called through pointers with types of our own, which no compiler compares.
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "runtime/cuda/cublas_lt.h"
#include "runtime/cuda/cudnn.h"
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
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define ISOMER_HAS_CUDNN_HEADER
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

#ifdef ISOMER_HAS_CUDNN_HEADER
ISOMER_SAME_CALL(Cudnn, create, cudnnCreate);
ISOMER_SAME_CALL(Cudnn, destroy, cudnnDestroy);
ISOMER_SAME_CALL(Cudnn, set_stream, cudnnSetStream);
ISOMER_SAME_CALL(Cudnn, create_descriptor, cudnnBackendCreateDescriptor);
ISOMER_SAME_CALL(Cudnn, destroy_descriptor, cudnnBackendDestroyDescriptor);
ISOMER_SAME_CALL(Cudnn, set_attribute, cudnnBackendSetAttribute);
ISOMER_SAME_CALL(Cudnn, get_attribute, cudnnBackendGetAttribute);
ISOMER_SAME_CALL(Cudnn, finalize, cudnnBackendFinalize);
ISOMER_SAME_CALL(Cudnn, execute, cudnnBackendExecute);
static_assert(std::is_same_v<decltype(Cudnn::last_error), decltype(&cudnnGetLastErrorString)>);

TEST(CudaHeaders, ConstantsOfCudnnAreItsOwn) {
  namespace c = cudnn;
  EXPECT_EQ(c::kLeastNotSupported, CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(c::kMostNotSupported / 1000, CUDNN_STATUS_NOT_SUPPORTED / 1000);
  EXPECT_EQ(c::kFloat32, CUDNN_DATA_FLOAT);
  EXPECT_EQ(c::kFloat16, CUDNN_DATA_HALF);
  EXPECT_EQ(c::kInt32, CUDNN_DATA_INT32);
  EXPECT_EQ(c::kBFloat16, CUDNN_DATA_BFLOAT16);
  EXPECT_EQ(c::kBoolean, CUDNN_DATA_BOOLEAN);
  EXPECT_EQ(c::kOfHandle, CUDNN_TYPE_HANDLE);
  EXPECT_EQ(c::kOfDataType, CUDNN_TYPE_DATA_TYPE);
  EXPECT_EQ(c::kOfBool, CUDNN_TYPE_BOOLEAN);
  EXPECT_EQ(c::kOfInt64, CUDNN_TYPE_INT64);
  EXPECT_EQ(c::kOfPointer, CUDNN_TYPE_VOID_PTR);
  EXPECT_EQ(c::kOfHeuristic, CUDNN_TYPE_HEUR_MODE);
  EXPECT_EQ(c::kOfMode, CUDNN_TYPE_POINTWISE_MODE);
  EXPECT_EQ(c::kOfDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  EXPECT_EQ(c::kOfReduction, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
  EXPECT_EQ(c::kOfChar, CUDNN_TYPE_CHAR);
  EXPECT_EQ(c::kPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  EXPECT_EQ(c::kEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  EXPECT_EQ(c::kHeuristic, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  EXPECT_EQ(c::kPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_EQ(c::kPointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  EXPECT_EQ(c::kGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_EQ(c::kPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  EXPECT_EQ(c::kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_EQ(c::kMatmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  EXPECT_EQ(c::kMatmulOperation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  EXPECT_EQ(c::kReduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  EXPECT_EQ(c::kReductionOperation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  EXPECT_EQ(c::kReshapeOperation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  EXPECT_EQ(c::kAdd, CUDNN_POINTWISE_ADD);
  EXPECT_EQ(c::kMultiply, CUDNN_POINTWISE_MUL);
  EXPECT_EQ(c::kDivide, CUDNN_POINTWISE_DIV);
  EXPECT_EQ(c::kSubtract, CUDNN_POINTWISE_SUB);
  EXPECT_EQ(c::kExp, CUDNN_POINTWISE_EXP);
  EXPECT_EQ(c::kLog, CUDNN_POINTWISE_LOG);
  EXPECT_EQ(c::kIdentity, CUDNN_POINTWISE_IDENTITY);
  EXPECT_EQ(c::kGreaterOrEqual, CUDNN_POINTWISE_CMP_GE);
  EXPECT_EQ(c::kIndex, CUDNN_POINTWISE_GEN_INDEX);
  EXPECT_EQ(c::kSelect, CUDNN_POINTWISE_BINARY_SELECT);
  EXPECT_EQ(c::kSum, CUDNN_REDUCE_TENSOR_ADD);
  EXPECT_EQ(c::kMaximum, CUDNN_REDUCE_TENSOR_MAX);
  EXPECT_EQ(c::kHeuristicA, CUDNN_HEUR_MODE_A);
  EXPECT_EQ(c::kHeuristicFallback, CUDNN_HEUR_MODE_FALLBACK);
  EXPECT_EQ(c::pointwise::kMode, CUDNN_ATTR_POINTWISE_MODE);
  EXPECT_EQ(c::pointwise::kType, CUDNN_ATTR_POINTWISE_MATH_PREC);
  EXPECT_EQ(c::pointwise::kAxis, CUDNN_ATTR_POINTWISE_AXIS);
  EXPECT_EQ(c::heuristic::kMode, CUDNN_ATTR_ENGINEHEUR_MODE);
  EXPECT_EQ(c::heuristic::kGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  EXPECT_EQ(c::heuristic::kResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
  EXPECT_EQ(c::plan::kHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  EXPECT_EQ(c::plan::kConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  EXPECT_EQ(c::plan::kWorkspaceBytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  EXPECT_EQ(c::pointwise_operation::kDescription, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  EXPECT_EQ(c::pointwise_operation::kX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  EXPECT_EQ(c::pointwise_operation::kB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  EXPECT_EQ(c::pointwise_operation::kY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  EXPECT_EQ(c::pointwise_operation::kT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
  EXPECT_EQ(c::graph::kHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
  EXPECT_EQ(c::graph::kOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  EXPECT_EQ(c::tensor::kAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  EXPECT_EQ(c::tensor::kType, CUDNN_ATTR_TENSOR_DATA_TYPE);
  EXPECT_EQ(c::tensor::kSizes, CUDNN_ATTR_TENSOR_DIMENSIONS);
  EXPECT_EQ(c::tensor::kStrides, CUDNN_ATTR_TENSOR_STRIDES);
  EXPECT_EQ(c::tensor::kId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  EXPECT_EQ(c::tensor::kIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  EXPECT_EQ(c::tensor::kIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  EXPECT_EQ(c::pack::kIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  EXPECT_EQ(c::pack::kPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  EXPECT_EQ(c::pack::kWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  EXPECT_EQ(c::matmul::kType, CUDNN_ATTR_MATMUL_COMP_TYPE);
  EXPECT_EQ(c::matmul_operation::kA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  EXPECT_EQ(c::matmul_operation::kB, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  EXPECT_EQ(c::matmul_operation::kC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  EXPECT_EQ(c::matmul_operation::kDescription, CUDNN_ATTR_OPERATION_MATMUL_DESC);
  EXPECT_EQ(c::reduction::kOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
  EXPECT_EQ(c::reduction::kType, CUDNN_ATTR_REDUCTION_COMP_TYPE);
  EXPECT_EQ(c::reduction_operation::kX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  EXPECT_EQ(c::reduction_operation::kY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  EXPECT_EQ(c::reduction_operation::kDescription, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  EXPECT_EQ(c::reshape_operation::kX, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
  EXPECT_EQ(c::reshape_operation::kY, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
#if CUDNN_VERSION >= 90800
  EXPECT_EQ(c::kDevice, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  EXPECT_EQ(c::heuristic::kDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  EXPECT_EQ(c::plan::kDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  EXPECT_EQ(c::device::kJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#endif
}
#else
TEST(CudaHeaders, ConstantsOfCudnnAreItsOwn) { GTEST_SKIP() << "there is no header of cuDNN"; }
#endif

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
