#include "runtime/cuda/cudnn_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

CudnnGraph::Sizes RowMajor(const CudnnGraph::Sizes& sizes) {
  CudnnGraph::Sizes strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

}  // namespace

CudnnPlan::~CudnnPlan() {
  for (size_t i = descriptors_.size(); i-- > 0;) cudnn_.destroy_descriptor(descriptors_[i]);
}

absl::Status CudnnPlan::Run(absl::Span<void* const> tensors, void* workspace,
                            Cudnn::Handle stream) {
  std::vector<void*> pointers(tensors.begin(), tensors.end());
  for (float& scalar : scalars_) pointers.push_back(&scalar);
  Cudnn::Handle pack = nullptr;
  const auto count = static_cast<int64_t>(pointers.size());
  int status = cudnn_.create_descriptor(cudnn::kPack, &pack);
  const auto set = [&](int attribute, int type, int64_t of, const void* elements) {
    if (status == 0) status = cudnn_.set_attribute(pack, attribute, type, of, elements);
  };
  set(cudnn::pack::kIds, cudnn::kOfInt64, count, ids_.data());
  set(cudnn::pack::kPointers, cudnn::kOfPointer, count, pointers.data());
  set(cudnn::pack::kWorkspace, cudnn::kOfPointer, 1, &workspace);
  if (status == 0) status = cudnn_.finalize(pack);
  if (status == 0) status = cudnn_.set_stream(handle_, stream);
  if (status == 0) status = cudnn_.execute(handle_, plan_, pack);
  if (pack != nullptr) cudnn_.destroy_descriptor(pack);
  if (status == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cuDNN: a graph is not started (status ", status, ")"));
}

CudnnGraph::~CudnnGraph() {
  for (size_t i = descriptors_.size(); i-- > 0;) cudnn_.destroy_descriptor(descriptors_[i]);
}

CudnnGraph::Tensor CudnnGraph::Add(Description description) {
  tensors_.push_back(std::move(description));
  return static_cast<Tensor>(tensors_.size()) - 1;
}

CudnnGraph::Tensor CudnnGraph::Given(Sizes sizes, Sizes strides, int type) {
  const Tensor tensor = Add({.sizes = std::move(sizes),
                             .strides = std::move(strides),
                             .type = type,
                             .is_virtual = false});
  given_.push_back(tensor);
  return tensor;
}

CudnnGraph::Tensor CudnnGraph::Scalar(float value, size_t rank) {
  const Sizes ones(rank, 1);
  const Tensor tensor = Add({.sizes = ones,
                             .strides = ones,
                             .type = cudnn::kFloat32,
                             .is_virtual = false,
                             .is_scalar = true});
  scalars_.push_back(tensor);
  values_.push_back(value);
  return tensor;
}

CudnnGraph::Tensor CudnnGraph::Add(Operation operation, Sizes sizes) {
  if (operation.y == kNone) {
    Sizes strides = RowMajor(sizes);
    operation.y = Add(Description{
        .sizes = std::move(sizes), .strides = std::move(strides), .type = operation.type});
  }
  operations_.push_back(operation);
  return operation.y;
}

CudnnGraph::Tensor CudnnGraph::Pointwise(int mode, Tensor x, Tensor b, Tensor result) {
  Sizes sizes = tensors_[x].sizes;
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::max(sizes[i], tensors_[b].sizes[i]);
  return Add({.kind = cudnn::kPointwiseOperation, .mode = mode, .x = x, .b = b, .y = result},
             std::move(sizes));
}

CudnnGraph::Tensor CudnnGraph::Unary(int mode, Tensor x, Tensor result) {
  return Add({.kind = cudnn::kPointwiseOperation, .mode = mode, .x = x, .y = result},
             tensors_[x].sizes);
}

CudnnGraph::Tensor CudnnGraph::IndexOf(Tensor x, int64_t dim) {
  return Add({.kind = cudnn::kPointwiseOperation,
              .mode = cudnn::kIndex,
              .type = cudnn::kInt32,
              .axis = dim,
              .x = x},
             tensors_[x].sizes);
}

CudnnGraph::Tensor CudnnGraph::IsAtLeast(Tensor x, Tensor b) {
  return Add({.kind = cudnn::kPointwiseOperation,
              .mode = cudnn::kGreaterOrEqual,
              .type = cudnn::kBoolean,
              .x = x,
              .b = b},
             tensors_[x].sizes);
}

CudnnGraph::Tensor CudnnGraph::Select(Tensor condition, Tensor x, Tensor otherwise) {
  return Add({.kind = cudnn::kPointwiseOperation,
              .mode = cudnn::kSelect,
              .x = x,
              .b = otherwise,
              .t = condition},
             tensors_[x].sizes);
}

CudnnGraph::Tensor CudnnGraph::Reduce(int reduction, Tensor x, Sizes sizes, Tensor result) {
  return Add({.kind = cudnn::kReductionOperation, .mode = reduction, .x = x, .y = result},
             std::move(sizes));
}

CudnnGraph::Tensor CudnnGraph::MatMul(Tensor a, Tensor b, Tensor result) {
  Sizes sizes = tensors_[a].sizes;
  sizes.back() = tensors_[b].sizes.back();
  return Add({.kind = cudnn::kMatmulOperation, .x = a, .b = b, .y = result}, std::move(sizes));
}

CudnnGraph::Tensor CudnnGraph::Transpose(Tensor x) {
  Description turned = tensors_[x];
  turned.is_virtual = true;
  const size_t rank = turned.sizes.size();
  std::swap(turned.sizes[rank - 1], turned.sizes[rank - 2]);
  std::swap(turned.strides[rank - 1], turned.strides[rank - 2]);
  const Tensor y = Add(std::move(turned));
  operations_.push_back({.kind = cudnn::kReshapeOperation, .x = x, .y = y});
  return y;
}

absl::Status CudnnGraph::Check(int status, absl::string_view what) const {
  if (status == 0) return absl::OkStatus();
  char reason[256] = {};
  cudnn_.last_error(reason, sizeof reason - 1);
  const std::string message = absl::StrCat("cuDNN: ", what, " (status ", status, "): ", reason);
  const bool is_unsupported =
      status >= cudnn::kLeastNotSupported && status <= cudnn::kMostNotSupported;
  return is_unsupported ? absl::UnimplementedError(message) : absl::InternalError(message);
}

absl::StatusOr<Cudnn::Handle> CudnnGraph::Make(int type) {
  Cudnn::Handle made = nullptr;
  ISOMER_RETURN_IF_ERROR(Check(cudnn_.create_descriptor(type, &made), "no descriptor"));
  descriptors_.push_back(made);
  return made;
}

absl::Status CudnnGraph::Set(Cudnn::Handle of, int attribute, int type, int64_t count,
                             const void* elements) {
  return Check(cudnn_.set_attribute(of, attribute, type, count, elements),
               absl::StrCat("refuses attribute ", attribute));
}

absl::Status CudnnGraph::SetOne(Cudnn::Handle of, int attribute, Cudnn::Handle descriptor) {
  return Set(of, attribute, cudnn::kOfDescriptor, 1, &descriptor);
}

absl::Status CudnnGraph::Finalize(Cudnn::Handle of, absl::string_view what) {
  return Check(cudnn_.finalize(of), what);
}

absl::Status CudnnGraph::Describe(Description* tensor, Tensor id) {
  ISOMER_ASSIGN_OR_RETURN(tensor->descriptor, Make(cudnn::kTensor));
  const Cudnn::Handle of = tensor->descriptor;
  const auto rank = static_cast<int64_t>(tensor->sizes.size());
  const int64_t alignment = 16;
  namespace t = cudnn::tensor;
  ISOMER_RETURN_IF_ERROR(Set(of, t::kType, cudnn::kOfDataType, 1, &tensor->type));
  ISOMER_RETURN_IF_ERROR(Set(of, t::kSizes, cudnn::kOfInt64, rank, tensor->sizes.data()));
  ISOMER_RETURN_IF_ERROR(Set(of, t::kStrides, cudnn::kOfInt64, rank, tensor->strides.data()));
  ISOMER_RETURN_IF_ERROR(Set(of, t::kId, cudnn::kOfInt64, 1, &id));
  ISOMER_RETURN_IF_ERROR(Set(of, t::kAlignment, cudnn::kOfInt64, 1, &alignment));
  ISOMER_RETURN_IF_ERROR(Set(of, t::kIsVirtual, cudnn::kOfBool, 1, &tensor->is_virtual));
  ISOMER_RETURN_IF_ERROR(Set(of, t::kIsByValue, cudnn::kOfBool, 1, &tensor->is_scalar));
  return Finalize(of, "refuses a tensor");
}

absl::StatusOr<Cudnn::Handle> CudnnGraph::Describe(const Operation& operation) {
  Cudnn::Handle description = nullptr;
  const auto describe = [&](int kind, int mode_attribute, int mode_type,
                            int type_attribute) -> absl::Status {
    ISOMER_ASSIGN_OR_RETURN(description, Make(kind));
    if (mode_attribute >= 0) {
      ISOMER_RETURN_IF_ERROR(Set(description, mode_attribute, mode_type, 1, &operation.mode));
    }
    ISOMER_RETURN_IF_ERROR(
        Set(description, type_attribute, cudnn::kOfDataType, 1, &operation.type));
    if (operation.axis >= 0) {
      ISOMER_RETURN_IF_ERROR(
          Set(description, cudnn::pointwise::kAxis, cudnn::kOfInt64, 1, &operation.axis));
    }
    return Finalize(description, "refuses an operation");
  };
  ISOMER_ASSIGN_OR_RETURN(const Cudnn::Handle made, Make(operation.kind));
  const auto set = [&](int attribute, Tensor tensor) -> absl::Status {
    if (tensor == kNone) return absl::OkStatus();
    return SetOne(made, attribute, tensors_[tensor].descriptor);
  };
  switch (operation.kind) {
    case cudnn::kPointwiseOperation: {
      namespace o = cudnn::pointwise_operation;
      ISOMER_RETURN_IF_ERROR(describe(cudnn::kPointwise, cudnn::pointwise::kMode, cudnn::kOfMode,
                                      cudnn::pointwise::kType));
      ISOMER_RETURN_IF_ERROR(SetOne(made, o::kDescription, description));
      ISOMER_RETURN_IF_ERROR(set(o::kX, operation.x));
      ISOMER_RETURN_IF_ERROR(set(o::kB, operation.b));
      ISOMER_RETURN_IF_ERROR(set(o::kT, operation.t));
      ISOMER_RETURN_IF_ERROR(set(o::kY, operation.y));
      break;
    }
    case cudnn::kReductionOperation: {
      namespace o = cudnn::reduction_operation;
      ISOMER_RETURN_IF_ERROR(describe(cudnn::kReduction, cudnn::reduction::kOperator,
                                      cudnn::kOfReduction, cudnn::reduction::kType));
      ISOMER_RETURN_IF_ERROR(SetOne(made, o::kDescription, description));
      ISOMER_RETURN_IF_ERROR(set(o::kX, operation.x));
      ISOMER_RETURN_IF_ERROR(set(o::kY, operation.y));
      break;
    }
    case cudnn::kMatmulOperation: {
      namespace o = cudnn::matmul_operation;
      ISOMER_RETURN_IF_ERROR(describe(cudnn::kMatmul, -1, 0, cudnn::matmul::kType));
      ISOMER_RETURN_IF_ERROR(SetOne(made, o::kDescription, description));
      ISOMER_RETURN_IF_ERROR(set(o::kA, operation.x));
      ISOMER_RETURN_IF_ERROR(set(o::kB, operation.b));
      ISOMER_RETURN_IF_ERROR(set(o::kC, operation.y));
      break;
    }
    default: {
      namespace o = cudnn::reshape_operation;
      ISOMER_RETURN_IF_ERROR(set(o::kX, operation.x));
      ISOMER_RETURN_IF_ERROR(set(o::kY, operation.y));
    }
  }
  ISOMER_RETURN_IF_ERROR(Finalize(made, "refuses an operation"));
  return made;
}

absl::StatusOr<std::vector<Cudnn::Handle>> CudnnGraph::ConfigsOf(Cudnn::Handle graph, int mode,
                                                                 Cudnn::Handle device) {
  namespace h = cudnn::heuristic;
  constexpr absl::string_view kNoPlan = "no plan for a graph";
  ISOMER_ASSIGN_OR_RETURN(const Cudnn::Handle heuristic, Make(cudnn::kHeuristic));
  ISOMER_RETURN_IF_ERROR(SetOne(heuristic, h::kGraph, graph));
  ISOMER_RETURN_IF_ERROR(Set(heuristic, h::kMode, cudnn::kOfHeuristic, 1, &mode));
  if (device != nullptr) ISOMER_RETURN_IF_ERROR(SetOne(heuristic, h::kDevice, device));
  ISOMER_RETURN_IF_ERROR(Finalize(heuristic, kNoPlan));
  std::vector<Cudnn::Handle> configs;
  const auto get = [&](int64_t most, int64_t* count, void* elements) {
    return Check(
        cudnn_.get_attribute(heuristic, h::kResults, cudnn::kOfDescriptor, most, count, elements),
        kNoPlan);
  };
  int64_t count = 0;
  ISOMER_RETURN_IF_ERROR(get(0, &count, nullptr));
  for (int64_t i = 0; i < count; ++i) {
    ISOMER_ASSIGN_OR_RETURN(configs.emplace_back(), Make(cudnn::kEngineConfig));
  }
  if (count > 0) ISOMER_RETURN_IF_ERROR(get(count, &count, configs.data()));
  configs.resize(count);
  return configs;
}

absl::StatusOr<std::unique_ptr<CudnnPlan>> CudnnGraph::PlanOf(Cudnn::Handle config,
                                                              Cudnn::Handle handle,
                                                              Cudnn::Handle device) {
  ISOMER_ASSIGN_OR_RETURN(const Cudnn::Handle plan, Make(cudnn::kPlan));
  ISOMER_RETURN_IF_ERROR(handle != nullptr
                             ? Set(plan, cudnn::plan::kHandle, cudnn::kOfHandle, 1, &handle)
                             : SetOne(plan, cudnn::plan::kDevice, device));
  ISOMER_RETURN_IF_ERROR(SetOne(plan, cudnn::plan::kConfig, config));
  ISOMER_RETURN_IF_ERROR(Finalize(plan, "no plan for a graph"));
  std::unique_ptr<CudnnPlan> made(new CudnnPlan(cudnn_));
  int64_t found = 0;
  ISOMER_RETURN_IF_ERROR(
      Check(cudnn_.get_attribute(plan, cudnn::plan::kWorkspaceBytes, cudnn::kOfInt64, 1, &found,
                                 &made->workspace_bytes_),
            "does not say how large a plan's workspace is"));
  made->handle_ = handle;
  made->plan_ = plan;
  made->ids_ = given_;
  made->ids_.insert(made->ids_.end(), scalars_.begin(), scalars_.end());
  made->scalars_ = std::move(values_);
  made->descriptors_ = std::move(descriptors_);
  descriptors_.clear();
  return made;
}

absl::StatusOr<std::unique_ptr<CudnnPlan>> CudnnGraph::Build(Cudnn::Handle handle,
                                                             absl::string_view device) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    ISOMER_RETURN_IF_ERROR(Describe(&tensors_[i], static_cast<Tensor>(i)));
  }
  std::vector<Cudnn::Handle> operations;
  for (const Operation& operation : operations_) {
    ISOMER_ASSIGN_OR_RETURN(operations.emplace_back(), Describe(operation));
  }
  ISOMER_ASSIGN_OR_RETURN(const Cudnn::Handle graph, Make(cudnn::kGraph));
  Cudnn::Handle described = nullptr;
  if (handle != nullptr) {
    ISOMER_RETURN_IF_ERROR(Set(graph, cudnn::graph::kHandle, cudnn::kOfHandle, 1, &handle));
  } else {
    ISOMER_ASSIGN_OR_RETURN(described, Make(cudnn::kDevice));
    ISOMER_RETURN_IF_ERROR(Set(described, cudnn::device::kJson, cudnn::kOfChar,
                               static_cast<int64_t>(device.size()), device.data()));
    ISOMER_RETURN_IF_ERROR(Finalize(described, "refuses a device"));
  }
  ISOMER_RETURN_IF_ERROR(Set(graph, cudnn::graph::kOperations, cudnn::kOfDescriptor,
                             static_cast<int64_t>(operations.size()), operations.data()));
  ISOMER_RETURN_IF_ERROR(Finalize(graph, "refuses a graph"));
  absl::Status last = absl::UnimplementedError("cuDNN: no plan for a graph");
  for (const int mode : {cudnn::kHeuristicA, cudnn::kHeuristicFallback}) {
    const absl::StatusOr<std::vector<Cudnn::Handle>> configs = ConfigsOf(graph, mode, described);
    if (!configs.ok()) {
      last = configs.status();
      continue;
    }
    // The fastest by its own lights first.
    for (const Cudnn::Handle config : *configs) {
      absl::StatusOr<std::unique_ptr<CudnnPlan>> plan = PlanOf(config, handle, described);
      if (plan.ok()) return plan;
      last = plan.status();
    }
  }
  // Whatever it is, another way may compute the same.
  return absl::UnimplementedError(last.message());
}

}  // namespace isomer
