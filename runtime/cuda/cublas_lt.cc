#include "runtime/cuda/cublas_lt.h"

#include "pcg/support/status_macros.h"
#include "runtime/cuda/library.h"

namespace isomer {

absl::StatusOr<CublasLt> OpenCublasLt() {
  Library library("cuBLASLt, the CUDA toolkit's products of matrices,",
                  CudaLibraryNames("libcublasLt.so"));
  CublasLt lt;
  library.Find("cublasLtCreate", &lt.create);
  library.Find("cublasLtDestroy", &lt.destroy);
  library.Find("cublasLtMatmulDescCreate", &lt.create_operation);
  library.Find("cublasLtMatmulDescSetAttribute", &lt.set_operation);
  library.Find("cublasLtMatmulDescDestroy", &lt.destroy_operation);
  library.Find("cublasLtMatrixLayoutCreate", &lt.create_layout);
  library.Find("cublasLtMatrixLayoutSetAttribute", &lt.set_layout);
  library.Find("cublasLtMatrixLayoutDestroy", &lt.destroy_layout);
  library.Find("cublasLtMatmulPreferenceCreate", &lt.create_preference);
  library.Find("cublasLtMatmulPreferenceSetAttribute", &lt.set_preference);
  library.Find("cublasLtMatmulPreferenceDestroy", &lt.destroy_preference);
  library.Find("cublasLtMatmulAlgoGetHeuristic", &lt.heuristic);
  library.Find("cublasLtMatmul", &lt.matmul);
  ISOMER_RETURN_IF_ERROR(library.status());
  return lt;
}

}  // namespace isomer
