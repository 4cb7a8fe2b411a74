#include "models/onnx/leaves.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using Dimension = onnx::TensorShapeProto::Dimension;

constexpr int kHighestRank = 16;

struct Use {
  const OnnxNode* node;
  int operand;
};
using Uses = std::map<std::string, std::vector<Use>>;

bool IsOneOf(const std::string& op, std::initializer_list<const char*> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool IsParameterPlace(const Use& use, const onnx::TensorShapeProto& shape) {
  const std::string& op = use.node->op;
  if (!use.node->domain.empty()) return false;
  if (IsOneOf(op, {"Conv", "Gemm", "LayerNormalization"})) {
    return use.operand == 1 || use.operand == 2;
  }
  if (op == "BatchNormalization") return use.operand >= 1;
  if (op == "Gather") return use.operand == 0;
  if (op == "MatMul") return use.operand == 1 && shape.dim_size() == 2;
  if (IsOneOf(op, {"Add", "Sub", "Mul", "Div"})) {
    return shape.dim_size() <= 1 || shape.dim(0).dim_value() == 1;
  }
  return false;
}

// True if every use of `tensor`, seen through operators that only relabel, is a parameter's place.
// The graph has no cycles; a chain of relabelling is followed with a stack.
bool IsParameter(const std::string& tensor, const onnx::TensorShapeProto& shape,
                 const Uses& all_uses) {
  std::vector<std::string> stack = {tensor};
  bool is_used = false;
  while (!stack.empty()) {
    const std::string name = std::move(stack.back());
    stack.pop_back();
    const auto uses = all_uses.find(name);
    if (uses == all_uses.end()) continue;
    for (const Use& use : uses->second) {
      const bool relabels =
          use.operand == 0 && IsOneOf(use.node->op, {"Identity", "Cast", "Transpose", "Reshape",
                                                     "Unsqueeze", "Squeeze"});
      if (relabels) {
        stack.push_back(use.node->outputs[0]);
      } else if (!IsParameterPlace(use, shape)) {
        return false;
      }
      is_used = true;
    }
  }
  return is_used;
}

class LeafReader {
 public:
  LeafReader(const OnnxGraph& graph, int64_t batch_size) : graph_(graph), batch_size_(batch_size) {
    for (const OnnxNode& node : graph.nodes) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        uses_[node.inputs[i]].push_back({&node, static_cast<int>(i)});
      }
    }
    for (const auto& [name, tensor] : graph.constants) {
      is_graph_only_ &=
          tensor.is_literal || tensor.dtype != DataType::kFloat32 || tensor.size() <= 1;
    }
  }

  absl::StatusOr<OnnxLeaves> Read() {
    if (graph_.inputs.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(graph_.file, ": the graph has no inputs"));
    }
    ISOMER_RETURN_IF_ERROR(FixBatch(graph_.inputs[0]));
    bool is_first = true;
    for (const onnx::ValueInfoProto& input : graph_.inputs) {
      ISOMER_ASSIGN_OR_RETURN(TensorType type, TypeWithoutSizes(input));
      const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
      const bool is_weight = !is_first && is_graph_only_ && type.dtype == DataType::kFloat32 &&
                             IsParameter(input.name(), shape, uses_);
      for (int i = 0; i < shape.dim_size(); ++i) {
        ISOMER_ASSIGN_OR_RETURN(const int64_t size, SizeOf(input, i, is_weight));
        type.dims.push_back({size, 1});
      }
      if (absl::Status status = ValidateTensorType(type); !status.ok()) {
        return Error(input, status.message());
      }
      if (is_weight) {
        leaves_.weights[input.name()] = std::move(type);
      } else {
        leaves_.data.push_back({input.name(), std::move(type)});
      }
      is_first = false;
    }
    return std::move(leaves_);
  }

 private:
  template <typename... Parts>
  absl::Status Error(const onnx::ValueInfoProto& input, const Parts&... parts) const {
    return absl::InvalidArgumentError(
        absl::StrCat(graph_.file, ": input ", QuotedName(input.name()), ": ", parts...));
  }

  absl::StatusOr<TensorType> TypeWithoutSizes(const onnx::ValueInfoProto& input) const {
    if (!input.type().has_tensor_type()) return Error(input, "it is no tensor");
    const onnx::TypeProto::Tensor& tensor = input.type().tensor_type();
    if (!tensor.has_shape()) return Error(input, "its shape is not stated");
    if (tensor.shape().dim_size() > kHighestRank) {
      return Error(input, "it has ", tensor.shape().dim_size(), " dims; at most ", kHighestRank,
                   " are read");
    }
    TensorType type;
    const absl::StatusOr<DataType> dtype = OnnxDataType(tensor.elem_type());
    if (!dtype.ok()) return Error(input, dtype.status().message());
    type.dtype = *dtype;
    return type;
  }

  // Decides on the batch: dim 0 of the first input, or the one asked for.
  absl::Status FixBatch(const onnx::ValueInfoProto& input) {
    const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
    if (shape.dim_size() == 0) {
      if (batch_size_ == 0) return absl::OkStatus();
      return Error(input, "it has no dims, and so no batch to be of size ", batch_size_);
    }
    const Dimension& dim = shape.dim(0);
    if (dim.dim_value() > 0) {
      leaves_.batch = dim.dim_value();
      if (batch_size_ != 0 && batch_size_ != leaves_.batch) {
        leaves_.replaced_batch = std::exchange(leaves_.batch, batch_size_);
      }
    } else {
      if (batch_size_ == 0) return Unknown(input, 0, ": give --batch_size=N");
      leaves_.batch = batch_size_;
      leaves_.batch_symbol = dim.dim_param();
    }
    return absl::OkStatus();
  }

  absl::Status Unknown(const onnx::ValueInfoProto& input, int i, absl::string_view advice) const {
    const Dimension& dim = input.type().tensor_type().shape().dim(i);
    if (dim.dim_value() < 0) return Error(input, "dim ", i, " is ", dim.dim_value());
    if (dim.has_dim_value()) return Error(input, "dim ", i, " is 0", advice);
    return Error(input, "dim ", i, " is symbolic (", QuotedName(dim.dim_param()), ")", advice);
  }

  absl::StatusOr<int64_t> SizeOf(const onnx::ValueInfoProto& input, int i, bool is_weight) const {
    const Dimension& dim = input.type().tensor_type().shape().dim(i);
    const bool is_batch_dim = i == 0 && !is_weight;
    if (dim.dim_value() > 0) {
      if (is_batch_dim && leaves_.replaced_batch != 0) {
        if (dim.dim_value() == leaves_.replaced_batch) return leaves_.batch;
        return Error(input, "dim 0 is ", dim.dim_value(), ", not the batch ",
                     leaves_.replaced_batch, " of the first input; the batch cannot be changed");
      }
      return dim.dim_value();
    }
    if (dim.dim_value() < 0) return Unknown(input, i, "");
    const bool is_batch =
        dim.dim_param() == leaves_.batch_symbol && (is_batch_dim || !dim.dim_param().empty());
    if (!is_weight && is_batch && leaves_.batch > 0) return leaves_.batch;
    return Unknown(input, i, ": export the model with a fixed size here");
  }

  const OnnxGraph& graph_;
  const int64_t batch_size_;
  bool is_graph_only_ = true;
  Uses uses_;
  OnnxLeaves leaves_;
};

}  // namespace

absl::StatusOr<OnnxLeaves> ReadLeaves(const OnnxGraph& graph, int64_t batch_size) {
  return LeafReader(graph, batch_size).Read();
}

absl::Status CheckDeclaredType(const onnx::ValueInfoProto& declared, const TensorType& computed,
                               const OnnxLeaves& leaves) {
  if (!declared.type().tensor_type().has_shape()) return absl::OkStatus();
  const onnx::TensorShapeProto& shape = declared.type().tensor_type().shape();
  auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("output ", QuotedName(declared.name()), ": ",
                                                   what, ", but its type is ",
                                                   computed.ToString()));
  };
  if (shape.dim_size() != computed.rank()) {
    return error(absl::StrCat("the file declares rank ", shape.dim_size()));
  }
  for (int i = 0; i < shape.dim_size(); ++i) {
    int64_t size = shape.dim(i).dim_value();
    if (size <= 0) continue;
    if (i == 0 && leaves.replaced_batch != 0 && size % leaves.replaced_batch == 0) {
      size = size / leaves.replaced_batch * leaves.batch;
    }
    if (size != computed.dims[i].size) {
      return error(absl::StrCat("dim ", i, " must be ", size));
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
