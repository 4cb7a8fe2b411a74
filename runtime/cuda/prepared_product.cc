#include "runtime/cuda/prepared_product.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// What an algorithm may use beside its matrices: what PyTorch gives it on a Hopper GPU.
constexpr size_t kMostWorkspace = size_t{32} << 20;

int CublasTypeOf(DataType dtype) {
  switch (dtype) {
    case DataType::kBFloat16:
      return cublas_lt::kBFloat16;
    case DataType::kFloat16:
      return cublas_lt::kFloat16;
    default:
      return cublas_lt::kFloat32;
  }
}

std::string ToString(const Product& p) {
  return absl::StrCat("a product of ", p.m, " x ", p.k, " by ", p.k, " x ", p.n, " in ",
                      DataTypeName(p.operand_dtype),
                      p.batch > 1 ? absl::StrCat(", ", p.batch, " times") : "");
}

}  // namespace

absl::Status PreparedProduct::Check(int status, const char* what) const {
  if (status == 0) return absl::OkStatus();
  const std::string message =
      absl::StrCat("cuBLASLt: ", ToString(product_), ": ", what, " (status ", status, ")");
  return status == cublas_lt::kNotSupported ? absl::UnimplementedError(message)
                                            : absl::InternalError(message);
}

absl::StatusOr<std::unique_ptr<PreparedProduct>> PreparedProduct::Make(const CublasLt& lt,
                                                                       CublasLt::Handle handle,
                                                                       const Product& product,
                                                                       int64_t alignment) {
  std::unique_ptr<PreparedProduct> prepared(new PreparedProduct(lt, handle, product));
  ISOMER_RETURN_IF_ERROR(prepared->Describe(alignment));
  return prepared;
}

PreparedProduct::~PreparedProduct() {
  if (operation_ != nullptr) lt_.destroy_operation(operation_);
  for (CublasLt::Handle layout : {a_, b_, d_}) {
    if (layout != nullptr) lt_.destroy_layout(layout);
  }
}

absl::Status PreparedProduct::Describe(int64_t alignment) {
  const Product& p = product_;
  const int type = CublasTypeOf(p.operand_dtype), d_type = CublasTypeOf(p.dtype);
  ISOMER_RETURN_IF_ERROR(
      Check(lt_.create_operation(&operation_, cublas_lt::kComputeFloat32, cublas_lt::kFloat32),
            "no operation"));
  const auto set = [&](int attribute, auto value) {
    return Check(lt_.set_operation(operation_, attribute, &value, sizeof value),
                 "refuses an attribute of the operation");
  };
  // The library's A is our b, its B our a.
  ISOMER_RETURN_IF_ERROR(set(cublas_lt::kTransposeA, int32_t{p.transposes_b ? 1 : 0}));
  ISOMER_RETURN_IF_ERROR(set(cublas_lt::kTransposeB, int32_t{p.transposes_a ? 1 : 0}));
  if (p.has_bias || p.sums_b) {
    ISOMER_RETURN_IF_ERROR(set(cublas_lt::kEpilogue, int32_t{p.sums_b ? cublas_lt::kEpilogueSumsOfA
                                                                      : cublas_lt::kEpilogueBias}));
    ISOMER_RETURN_IF_ERROR(set(cublas_lt::kBiasType, int32_t{d_type}));
  }
  const auto layout = [&](CublasLt::Handle* made, int of_type, int64_t rows, int64_t columns,
                          int64_t stride, int64_t line = 0) -> absl::Status {
    // Of a row-major matrix: its columns are the library's rows, side by side.
    ISOMER_RETURN_IF_ERROR(
        Check(lt_.create_layout(made, of_type, static_cast<uint64_t>(columns),
                                static_cast<uint64_t>(rows), line == 0 ? columns : line),
              "no layout"));
    const int32_t batch = static_cast<int32_t>(p.batch);
    if (batch == 1) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(Check(
        lt_.set_layout(*made, cublas_lt::kBatchCount, &batch, sizeof batch), "refuses a batch"));
    return Check(lt_.set_layout(*made, cublas_lt::kBatchStride, &stride, sizeof stride),
                 "refuses a batch");
  };
  ISOMER_RETURN_IF_ERROR(layout(&a_, type, p.transposes_a ? p.k : p.m, p.transposes_a ? p.m : p.k,
                                p.a_stride, p.a_line));
  ISOMER_RETURN_IF_ERROR(layout(&b_, type, p.transposes_b ? p.n : p.k, p.transposes_b ? p.k : p.n,
                                p.b_stride, p.b_line));
  ISOMER_RETURN_IF_ERROR(layout(&d_, d_type, p.m, p.n, p.d_stride, p.d_line));
  CublasLt::Handle preference = nullptr;
  ISOMER_RETURN_IF_ERROR(Check(lt_.create_preference(&preference), "no preference"));
  const uint32_t aligned = static_cast<uint32_t>(alignment);
  int status = lt_.set_preference(preference, cublas_lt::kWorkspaceBytes, &kMostWorkspace,
                                  sizeof kMostWorkspace);
  for (int attribute : {cublas_lt::kAlignmentA, cublas_lt::kAlignmentB, cublas_lt::kAlignmentC,
                        cublas_lt::kAlignmentD}) {
    if (status == 0) status = lt_.set_preference(preference, attribute, &aligned, sizeof aligned);
  }
  int found = 0;
  if (status == 0) {
    status = lt_.heuristic(handle_, operation_, b_, a_, d_, d_, preference, 1, &heuristic_, &found);
  }
  lt_.destroy_preference(preference);
  ISOMER_RETURN_IF_ERROR(Check(status, "no algorithm"));
  if (found == 0)
    return Check(heuristic_.state == 0 ? cublas_lt::kNotSupported : heuristic_.state,
                 "no algorithm");
  return absl::OkStatus();
}

absl::Status PreparedProduct::Run(const void* a, const void* b, void* d, const void* bias,
                                  void* workspace, void* stream) const {
  if (product_.has_bias || product_.sums_b) {
    ISOMER_RETURN_IF_ERROR(
        Check(lt_.set_operation(operation_, cublas_lt::kBiasPointer, &bias, sizeof bias),
              "refuses a bias"));
  }
  const float alpha = 1, beta = product_.adds ? 1 : 0;
  return Check(lt_.matmul(handle_, operation_, &alpha, b, b_, a, a_, &beta, d, d_, d, d_,
                          &heuristic_.algorithm, workspace, heuristic_.workspace_bytes, stream),
               "is not started");
}

}  // namespace isomer
