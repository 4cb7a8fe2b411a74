#include "models/onnx/import/leaves.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/graph/provenance.h"
#include "models/onnx/import/narrow_integers.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using Dimension = onnx::TensorShapeProto::Dimension;

constexpr size_t kHighestRank = 16;

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
  LeafReader(const OnnxGraph& graph, const ImportOptions& options,
             std::vector<std::string>* assumed)
      : graph_(graph), options_(options), assumed_(assumed) {
    for (const OnnxNode& node : graph.nodes) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        uses_[node.inputs[i]].push_back({&node, static_cast<int>(i)});
      }
    }
    is_graph_only_ = options.input_shapes.empty();
    for (const auto& [name, tensor] : graph.constants) {
      is_graph_only_ &= tensor.is_literal || !tensor.is_float() || tensor.size() <= 1;
    }
  }

  absl::StatusOr<OnnxLeaves> Read() {
    ISOMER_RETURN_IF_ERROR(CheckDimNames());
    if (!graph_.inputs.empty()) {
      ISOMER_RETURN_IF_ERROR(FixBatch(graph_.inputs[0]));
    } else if (options_.batch_size != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(graph_.file, ": it has no inputs, and so no batch"));
    }
    bool is_first = true;
    for (const onnx::ValueInfoProto& input : graph_.inputs) {
      ISOMER_ASSIGN_OR_RETURN(TensorType type, TypeWithoutSizes(input));
      const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
      const bool is_weight = !is_first && is_graph_only_ && IsFloat(type.dtype) &&
                             IsParameter(input.name(), shape, uses_);
      const std::vector<int64_t>* const given = GivenShape(input);
      const int rank = given != nullptr ? static_cast<int>(given->size()) : shape.dim_size();
      for (int i = 0; i < rank; ++i) {
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

  // The shape of the value that the input is to have, where one is given.
  const std::vector<int64_t>* GivenShape(const onnx::ValueInfoProto& input) const {
    const auto found = options_.input_shapes.find(input.name());
    return found == options_.input_shapes.end() ? nullptr : &found->second;
  }

  absl::StatusOr<TensorType> TypeWithoutSizes(const onnx::ValueInfoProto& input) const {
    if (!input.type().has_tensor_type()) return Error(input, "it is no tensor");
    const onnx::TypeProto::Tensor& tensor = input.type().tensor_type();
    const std::vector<int64_t>* const given = GivenShape(input);
    if (!tensor.has_shape() && given == nullptr) return Error(input, "its shape is not stated");
    const size_t rank = given != nullptr ? given->size() : tensor.shape().dim_size();
    if (tensor.has_shape() && rank != static_cast<size_t>(tensor.shape().dim_size())) {
      return Error(input, "it has ", tensor.shape().dim_size(), " dims, but its value ", rank);
    }
    if (rank > kHighestRank) {
      return Error(input, "it has ", rank, " dims; at most ", kHighestRank, " are read");
    }
    TensorType type;
    const absl::StatusOr<DataType> dtype =
        OnnxDataType(tensor.elem_type(), NarrowIntegers::kAsInt32);
    if (!dtype.ok()) return Error(input, dtype.status().message());
    if (IsNarrowInteger(tensor.elem_type())) {
      const absl::Status only_cast = CheckOnlyCast(graph_, input);
      if (!only_cast.ok()) return Error(input, only_cast.message());
    }
    type.dtype = *dtype;
    return type;
  }

  // Every size that was bound by name must be one of an input's.
  absl::Status CheckDimNames() const {
    std::set<std::string> symbols;
    for (const onnx::ValueInfoProto& input : graph_.inputs) {
      for (const Dimension& dim : input.type().tensor_type().shape().dim()) {
        if (!dim.dim_param().empty()) symbols.insert(QuotedName(dim.dim_param()));
      }
    }
    for (const auto& [name, size] : options_.dims) {
      if (symbols.count(QuotedName(name)) > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          graph_.file, ": --dim ", name, "=", size, ": no input has a dim of that name; ",
          symbols.empty() ? "all are fixed"
                          : absl::StrCat("there are ", absl::StrJoin(symbols, ", "))));
    }
    return absl::OkStatus();
  }

  // The size of a dim that the file leaves open, from --dim or the given value; 0: not known.
  int64_t BoundSize(const onnx::ValueInfoProto& input, int i) const {
    const std::vector<int64_t>* const given = GivenShape(input);
    if (given != nullptr) return (*given)[i];
    const Dimension& dim = input.type().tensor_type().shape().dim(i);
    const auto bound = options_.dims.find(dim.dim_param());
    return bound == options_.dims.end() || dim.has_dim_value() ? 0 : bound->second;
  }

  // Decides on the batch: dim 0 of the first input, or the one asked for.
  absl::Status FixBatch(const onnx::ValueInfoProto& input) {
    const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
    if (GivenShape(input) != nullptr) return absl::OkStatus();
    if (shape.dim_size() == 0) {
      if (options_.batch_size == 0) return absl::OkStatus();
      return Error(input, "it has no dims, and so no batch to be of size ", options_.batch_size);
    }
    const Dimension& dim = shape.dim(0);
    if (dim.dim_value() > 0) {
      leaves_.batch = dim.dim_value();
      if (options_.batch_size != 0 && options_.batch_size != leaves_.batch) {
        leaves_.replaced_batch = std::exchange(leaves_.batch, options_.batch_size);
      }
      return absl::OkStatus();
    }
    leaves_.batch_symbol = dim.dim_param();
    leaves_.batch = BoundSize(input, 0);
    if (leaves_.batch == 0) leaves_.batch = options_.batch_size;
    if (leaves_.batch == 0 && assumed_ != nullptr) leaves_.batch = Assume(input, 0);
    if (leaves_.batch == 0) return Unknown(input, 0, Advice());
    if (options_.batch_size == 0 || options_.batch_size == leaves_.batch) return absl::OkStatus();
    return Error(input, "dim 0 (", QuotedName(dim.dim_param()), ") is ", leaves_.batch,
                 " by --dim, and ", options_.batch_size, " by --batch_size");
  }

  // What to give for all sizes that are not known, of all inputs: ": give --batch_size=N --dim
  // s=N".
  std::string Advice() const {
    std::vector<std::string> flags, open;
    for (const onnx::ValueInfoProto& input : graph_.inputs) {
      const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
      std::vector<std::string> sizes;
      bool is_open = false;
      for (int i = 0; i < shape.dim_size(); ++i) {
        const Dimension& dim = shape.dim(i);
        const std::string& symbol = dim.dim_param();
        sizes.push_back(dim.dim_value() > 0 ? absl::StrCat(dim.dim_value())
                        : symbol.empty()    ? "?"
                                            : symbol);
        if (dim.dim_value() > 0 || BoundSize(input, i) > 0) continue;
        const bool is_batch = symbol.empty() ? i == 0 : symbol == leaves_.batch_symbol;
        if (is_batch ? leaves_.batch > 0 : symbol.empty()) continue;
        const std::string flag = is_batch ? "--batch_size=N" : absl::StrCat("--dim ", symbol, "=N");
        if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
        is_open = true;
      }
      if (!is_open) continue;
      open.push_back(
          absl::StrCat(QuotedName(input.name()), " is [", absl::StrJoin(sizes, ","), "]"));
    }
    const std::string shapes = flags.size() > 1 ? absl::StrCat("; ", SomeOf(open)) : "";
    return absl::StrCat(": give ", absl::StrJoin(flags, " "), shapes);
  }

  absl::Status Unknown(const onnx::ValueInfoProto& input, int i, absl::string_view advice) const {
    const Dimension& dim = input.type().tensor_type().shape().dim(i);
    if (dim.dim_value() < 0) return Error(input, "dim ", i, " is ", dim.dim_value());
    if (dim.has_dim_value()) return Error(input, "dim ", i, " is 0", advice);
    return Error(input, "dim ", i, " is symbolic (", QuotedName(dim.dim_param()), ")", advice);
  }

  // A size such as models have there: of an image, a sequence or a batch.
  int64_t Assume(const onnx::ValueInfoProto& input, int i) const {
    const int rank = input.type().tensor_type().shape().dim_size();
    const int64_t size = i == 0 ? 2 : i == 1 && rank >= 4 ? 3 : rank >= 4 ? 224 : 16;
    assumed_->push_back(absl::StrCat(graph_.file, ": input ", QuotedName(input.name()), ": dim ", i,
                                     " is not known, and taken to be ", size));
    return size;
  }

  absl::StatusOr<int64_t> SizeOf(const onnx::ValueInfoProto& input, int i, bool is_weight) {
    const int64_t bound = BoundSize(input, i);
    if (!input.type().tensor_type().has_shape()) return bound;
    const Dimension& dim = input.type().tensor_type().shape().dim(i);
    const bool is_batch_dim = i == 0 && !is_weight;
    if (dim.dim_value() > 0) {
      if (bound != 0 && bound != dim.dim_value()) {
        return Error(input, "dim ", i, " is ", dim.dim_value(), ", but that of its value ", bound);
      }
      if (is_batch_dim && leaves_.replaced_batch != 0) {
        if (dim.dim_value() == leaves_.replaced_batch) return leaves_.batch;
        return Error(input, "dim 0 is ", dim.dim_value(), ", not the batch ",
                     leaves_.replaced_batch, " of the first input; the batch cannot be changed");
      }
      return dim.dim_value();
    }
    if (dim.dim_value() < 0) return Unknown(input, i, "");
    if (bound != 0 || GivenShape(input) != nullptr) return bound;
    const bool is_batch =
        dim.dim_param() == leaves_.batch_symbol && (is_batch_dim || !dim.dim_param().empty());
    if (!is_weight && is_batch && leaves_.batch > 0) return leaves_.batch;
    if (assumed_ != nullptr) {
      int64_t& size = assumed_sizes_[dim.dim_param()];
      if (size == 0 || dim.dim_param().empty()) size = Assume(input, i);
      return size;
    }
    if (dim.dim_param().empty()) {
      return Unknown(input, i, ": export the model with a fixed size here");
    }
    return Unknown(input, i, Advice());
  }

  const OnnxGraph& graph_;
  const ImportOptions& options_;
  std::vector<std::string>* const assumed_;
  std::map<std::string, int64_t> assumed_sizes_;
  bool is_graph_only_ = true;
  Uses uses_;
  OnnxLeaves leaves_;
};

}  // namespace

absl::StatusOr<OnnxLeaves> ReadLeaves(const OnnxGraph& graph, const ImportOptions& options,
                                      std::vector<std::string>* assumed) {
  return LeafReader(graph, options, assumed).Read();
}

absl::Status CheckDeclaredType(const onnx::ValueInfoProto& declared, const TensorType& computed,
                               const OnnxLeaves& leaves) {
  auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("output ", QuotedName(declared.name()), ": ",
                                                   what, ", but its type is ",
                                                   computed.ToString()));
  };
  if (declared.type().value_case() == onnx::TypeProto::VALUE_NOT_SET) return absl::OkStatus();
  if (!declared.type().has_tensor_type()) return error("the file declares no tensor");
  const onnx::TypeProto::Tensor& type = declared.type().tensor_type();
  if (type.elem_type() != onnx::TensorProto::UNDEFINED) {
    const absl::StatusOr<DataType> dtype = OnnxDataType(type.elem_type());
    if (!dtype.ok()) return error(absl::StrCat("the file declares ", dtype.status().message()));
    if (*dtype != computed.dtype) {
      return error(absl::StrCat("the file declares ", DataTypeName(*dtype)));
    }
  }
  if (!type.has_shape()) return absl::OkStatus();
  const onnx::TensorShapeProto& shape = type.shape();
  if (shape.dim_size() != computed.rank()) {
    return error(absl::StrCat("the file declares rank ", shape.dim_size()));
  }
  for (int i = 0; i < shape.dim_size(); ++i) {
    int64_t size = shape.dim(i).dim_value();
    if (size <= 0) continue;
    if (i == 0 && leaves.replaced_batch != 0 && size % leaves.replaced_batch == 0) {
      const int64_t images = size / leaves.replaced_batch;
      if (__builtin_mul_overflow(images, leaves.batch, &size)) {
        return error(absl::StrCat("dim ", i, " is ", images, " times the batch"));
      }
    }
    if (size != computed.dims[i].size) {
      return error(absl::StrCat("dim ", i, " must be ", size));
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
