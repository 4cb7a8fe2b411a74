// Graphs of cuDNN: some operations on tensors that a library's kernel computes at one time, and the
// plan that it makes of them.
#ifndef ISOMER_RUNTIME_CUDA_CUDNN_GRAPH_H_
#define ISOMER_RUNTIME_CUDA_CUDNN_GRAPH_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/cuda/cudnn.h"

namespace isomer {

// Made once, run often.
class CudnnPlan {
 public:
  ~CudnnPlan();
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // `tensors`: in the order in which the graph was given them.
  absl::Status Run(absl::Span<void* const> tensors, void* workspace, Cudnn::Handle stream);

 private:
  friend class CudnnGraph;
  explicit CudnnPlan(const Cudnn& cudnn) : cudnn_(cudnn) {}

  const Cudnn& cudnn_;
  Cudnn::Handle handle_ = nullptr, plan_ = nullptr;
  std::vector<Cudnn::Handle> descriptors_;
  std::vector<int64_t> ids_;  // of what Run is given, then of scalars
  std::deque<float> scalars_;
  int64_t workspace_bytes_ = 0;
};

// What goes wrong is said by Build.
class CudnnGraph {
 public:
  // A tensor of the graph, by its number.
  using Tensor = int64_t;
  using Sizes = std::vector<int64_t>;

  // `cudnn` must outlive it, and the plan.
  explicit CudnnGraph(const Cudnn& cudnn) : cudnn_(cudnn) {}
  CudnnGraph(CudnnGraph&&) = default;
  CudnnGraph(const CudnnGraph&) = delete;
  CudnnGraph& operator=(const CudnnGraph&) = delete;
  ~CudnnGraph();

  // That Run is given. `type`, as all of them: cudnn::kFloat32 ..
  Tensor Given(Sizes sizes, Sizes strides, int type);
  Tensor Scalar(float value, size_t rank);
  // Of row-major tensors that are nowhere in memory, unless `result` is where.
  Tensor Pointwise(int mode, Tensor x, Tensor b, Tensor result = kNone);
  Tensor Unary(int mode, Tensor x, Tensor result = kNone);
  // Where `x` has its elements' coordinates in that dim.
  Tensor IndexOf(Tensor x, int64_t dim);
  // x >= b, a boolean.
  Tensor IsAtLeast(Tensor x, Tensor b);
  Tensor Select(Tensor condition, Tensor x, Tensor otherwise);
  // `sizes`: of the result, of which a dim divides that of x.
  Tensor Reduce(int reduction, Tensor x, Sizes sizes, Tensor result = kNone);
  // [.., m, k] by [.., k, n], summed in float32; of fewer heads b's are those of several of a's.
  Tensor MatMul(Tensor a, Tensor b, Tensor result = kNone);
  // The last two dims exchanged: another view of a result, or of what is given.
  Tensor Transpose(Tensor x);
  // The same tensor, kept in that type.
  void SetType(Tensor tensor, int type) { tensors_[tensor].type = type; }

  // A plan for the device of `handle`, which the plan then has; or, where that is null, for one
  // that is described (cuDNN's JSON), which cannot be run. Unimplemented: the library has none.
  absl::StatusOr<std::unique_ptr<CudnnPlan>> Build(Cudnn::Handle handle,
                                                   absl::string_view device = "");

  static constexpr Tensor kNone = -1;

 private:
  struct Description {
    Sizes sizes, strides;
    int type;
    bool is_virtual = true, is_scalar = false;
    Cudnn::Handle descriptor = nullptr;
  };
  struct Operation {
    int kind, mode = 0, type = cudnn::kFloat32;  // cudnn::kPointwiseOperation ..
    int64_t axis = -1;
    Tensor x = kNone, b = kNone, t = kNone, y = kNone;
  };
  Tensor Add(Description description);
  // Its result, which has these sizes and its type if it is nowhere yet.
  Tensor Add(Operation operation, Sizes sizes);
  absl::Status Describe(Description* tensor, Tensor id);
  absl::StatusOr<Cudnn::Handle> Describe(const Operation& operation);
  // What the library would take for a finished graph, the best first; a plan by one of them.
  absl::StatusOr<std::vector<Cudnn::Handle>> ConfigsOf(Cudnn::Handle graph, int mode,
                                                       Cudnn::Handle device);
  absl::StatusOr<std::unique_ptr<CudnnPlan>> PlanOf(Cudnn::Handle config, Cudnn::Handle handle,
                                                    Cudnn::Handle device);
  absl::StatusOr<Cudnn::Handle> Make(int type);
  absl::Status Set(Cudnn::Handle of, int attribute, int type, int64_t count, const void* elements);
  absl::Status SetOne(Cudnn::Handle of, int attribute, Cudnn::Handle descriptor);
  absl::Status Finalize(Cudnn::Handle of, absl::string_view what);
  absl::Status Check(int status, absl::string_view what) const;

  const Cudnn& cudnn_;
  std::vector<Description> tensors_;
  std::vector<Operation> operations_;
  std::vector<Tensor> given_, scalars_;
  std::deque<float> values_;  // of scalars
  std::vector<Cudnn::Handle> descriptors_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_CUDNN_GRAPH_H_
