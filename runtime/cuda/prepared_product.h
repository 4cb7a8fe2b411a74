// A product, as cuBLASLt takes it.
#ifndef ISOMER_RUNTIME_CUDA_PREPARED_PRODUCT_H_
#define ISOMER_RUNTIME_CUDA_PREPARED_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/cublas_lt.h"
#include "runtime/cuda/products.h"

namespace isomer {

// Row-major matrices are column-major ones that are transposed, which is the library's order: of
// d = a b it is given d^T = b^T a^T.
class PreparedProduct {
 public:
  // `alignment`: of all addresses that it will be given, in bytes. `lt` must outlive it; the
  // context of the handle's device is current here and in Run. Unimplemented: the library has no
  // algorithm for it.
  static absl::StatusOr<std::unique_ptr<PreparedProduct>> Make(const CublasLt& lt,
                                                               CublasLt::Handle handle,
                                                               const Product& product,
                                                               int64_t alignment);
  ~PreparedProduct();

  int64_t workspace_bytes() const { return static_cast<int64_t>(heuristic_.workspace_bytes); }
  // Gives it to the stream. `bias`: null if there is none.
  absl::Status Run(const void* a, const void* b, void* d, const void* bias, void* workspace,
                   void* stream) const;

 private:
  PreparedProduct(const CublasLt& lt, CublasLt::Handle handle, const Product& product)
      : lt_(lt), handle_(handle), product_(product) {}
  absl::Status Describe(int64_t alignment);
  absl::Status Check(int status, const char* what) const;

  const CublasLt& lt_;
  const CublasLt::Handle handle_;
  const Product product_;
  CublasLt::Handle operation_ = nullptr, a_ = nullptr, b_ = nullptr, d_ = nullptr;
  CublasLt::Heuristic heuristic_ = {};
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_PREPARED_PRODUCT_H_
