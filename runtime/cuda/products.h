// Calls that are products of matrices, as a GPU runs them: products by cuBLASLt, and generated
// kernels around them. Plain data, so that what is asked of the library can be tested without it.
//
//   call                     forward                           gradients
//   matmul                   a product for each run of a       a product each; where a matrix is
//                            batch whose matrices lie at       used for several of a batch, a
//                            equal distances                   generated kernel
//   linear                   a product that adds the bias,     the activation's by a generated
//                            the activation by a generated     kernel, then two products, of which
//                            kernel                            one sums the bias's
//   attention                by cuDNN; or scores and values    by cuDNN; or five products, between
//                            by products, softmax by           them a generated kernel
//                            generated kernels                 (attention.cc)
//   convolution              a product of the weights and of   two products, with generated kernels
//                            the windows side by side          around them (convolution.cc)
//   layer norm, RMS norm     (generated)                       two generated kernels (norms.cc)
//   softmax of rows          (generated)                       one (norms.cc)
#ifndef ISOMER_RUNTIME_CUDA_PRODUCTS_H_
#define ISOMER_RUNTIME_CUDA_PRODUCTS_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "runtime/cuda/fused_attention.h"
#include "runtime/device/backend.h"

namespace isomer {

// d[m,n] = a[m,k] b[k,n] (+ bias[n]) (+ what is there), of row-major matrices, `batch` times.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  bool transposes_a = false, transposes_b = false;  // they lie as [k,m], as [n,k]
  DataType operand_dtype = DataType::kFloat32, dtype = DataType::kFloat32;  // of a and b; of d
  bool has_bias = false;                                                    // of the type of d
  // bias[n] is a result: the sums of the columns of b, of the type of d.
  bool sums_b = false;
  bool adds = false;
  int64_t batch = 1, a_stride = 0, b_stride = 0, d_stride = 0;  // in elements
  // From a line of each as it lies to the next; 0: they lie side by side.
  int64_t a_line = 0, b_line = 0, d_line = 0;
  friend bool operator==(const Product&, const Product&) = default;
};

// A buffer of a call, or a part of its workspace.
struct GpuPlace {
  enum Kind { kNone, kRead, kWrite, kWorkspace } kind = kNone;
  int index = 0;      // of reads, of writes
  int64_t bytes = 0;  // from its beginning
  friend bool operator==(const GpuPlace&, const GpuPlace&) = default;
};

struct ProductStep {
  Product product;
  GpuPlace a, b, d, bias = {};
};
struct GeneratedStep {
  KernelCall call;
  std::vector<GpuPlace> reads, writes;
};
// Attention at one time, of what GraphOf says.
struct FusedStep {
  FusedAttention attention;
  std::vector<GpuPlace> places;
};
using GpuStep = std::variant<ProductStep, GeneratedStep, FusedStep>;

struct GpuSteps {
  std::vector<GpuStep> steps;   // one after the other
  int64_t workspace_bytes = 0;  // beside what the steps need themselves

  // Takes so much more of it.
  GpuPlace AddWorkspace(int64_t elements, DataType dtype);
};

// What a call has at one time of what is between its products (scores of attention, windows of a
// convolution), in bytes: so much that a GPU is busy, and no more than is to be had beside a model.
inline constexpr int64_t kMostPartBytes = int64_t{256} << 20;

// A product that the library has nothing for, by less of it: one that sums b as two steps, any
// other as a generated kernel.
std::vector<GpuStep> WithoutLibrary(const Operator& op, const ProductStep& step);

struct GpuStepOptions {
  int64_t most_part_bytes = kMostPartBytes;
  bool fuses_attention = true;  // by cuDNN, where it may
};

// Absent: the call is none of these, or of types that the library does not take.
std::optional<GpuSteps> StepsOfProducts(const KernelCall& call, const GpuStepOptions& options = {});

// Parts of it. REQUIRES: an attention, a convolution, of what StepsOfProducts takes.
GpuSteps StepsOfAttention(const KernelCall& call, const GpuStepOptions& options);
bool IsConvolutionOfProducts(const KernelCall& call);
GpuSteps StepsOfConvolution(const KernelCall& call, int64_t most_part_bytes);
// Of a layer norm or an RMS norm, of a softmax along the last dim: no products, but kernels better
// than what is derived.
GpuSteps StepsOfNormGradient(const KernelCall& call);
GpuSteps StepsOfSoftmaxGradient(const KernelCall& call);
// The gradient of one operand alone, as it is generated.
GeneratedStep GeneratedGradient(KernelCall call, int operand);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_PRODUCTS_H_
