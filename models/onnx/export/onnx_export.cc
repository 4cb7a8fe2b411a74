#include "models/onnx/export/onnx_export.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/export/convolution_form.h"
#include "models/onnx/export/export_operators.h"
#include "models/onnx/export/opsets.h"
#include "models/onnx/export/prepared_weights.h"
#include "models/onnx/tensor.h"
#include "pcg/ir/declared_operator.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr size_t kMostBytes = (size_t{1} << 31) - 1;

class GraphExporter {
 public:
  GraphExporter(const Model& model, const Graph& graph, StoredWeights weights, int64_t opset)
      : model_(model), graph_(graph), weights_(weights), opset_(opset) {}

  // After Export: the least that is valid; the file is, if it is no more than its own.
  int64_t needed_opset() const { return needed_opset_; }

  absl::StatusOr<onnx::ModelProto> Export() {
    file_.set_ir_version(IrVersionOf(opset_));
    file_.set_producer_name("Isomer");
    file_.add_opset_import()->set_version(opset_);
    file_.mutable_graph()->set_name(model_.name.empty() ? "graph" : model_.name);
    ISOMER_RETURN_IF_ERROR(ReserveNames());
    PreparedWeights prepared{.values = {},
                             .is_needed = std::vector<bool>(graph_.num_nodes(), true)};
    if (weights_ == StoredWeights::kPrepared) {
      ISOMER_ASSIGN_OR_RETURN(prepared, PrepareWeights(model_, graph_));
    }
    ImportDomains();
    for (NodeId id : graph_.TopologicalOrder()) {
      if (!prepared.is_needed[id.value]) continue;
      ISOMER_RETURN_IF_ERROR(IsLeaf(graph_.node(id).op.kind()) ? AddLeaf(id) : AddCall(id));
    }
    for (const auto& [tensor, values] : prepared.values) {
      ISOMER_RETURN_IF_ERROR(AddStored(tensor, values));
    }
    AddOutputs();
    return std::move(file_);
  }

 private:
  // Of declared operators, which have one version.
  void ImportDomains() {
    std::set<std::string> domains;
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const OpKind kind = graph_.node(NodeId{id}).op.kind();
      if (!IsBuiltIn(kind)) domains.insert(DeclaredOperatorOf(kind).onnx_domain);
    }
    for (const std::string& domain : domains) {
      onnx::OperatorSetIdProto* const opset = file_.add_opset_import();
      opset->set_domain(domain);
      opset->set_version(1);
    }
  }

  // Leaves and outputs keep their names, so these go first.
  absl::Status ReserveNames() {
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = graph_.node(id);
      if (!IsLeaf(node.op.kind())) continue;
      names_.insert(node.name);
      tensors_[{NodeId{id}, 0}] = node.name;
    }
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      if (names_.insert(output.name).second) {
        tensors_.insert({output.tensor, output.name});
      } else if (NameOf(output.tensor) != output.name) {
        return absl::InvalidArgumentError(absl::StrCat("output ", QuotedName(output.name),
                                                       ": another tensor has that name, too"));
      }
    }
    return absl::OkStatus();
  }

  const std::string& NameOf(TensorRef tensor) {
    const auto [name, is_new] = tensors_.insert({tensor, ""});
    if (is_new) {
      const std::string& wanted = graph_.node(tensor.node).name;
      const std::string base = wanted.empty() ? absl::StrCat("tensor", tensor.node.value) : wanted;
      name->second =
          UniqueName(tensor.output == 0 ? base : absl::StrCat(base, ".", tensor.output), &names_);
    }
    return name->second;
  }

  static void SetType(const std::string& name, const TensorType& type, onnx::ValueInfoProto* info) {
    info->set_name(name);
    onnx::TypeProto::Tensor* const tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(OnnxElementType(type.dtype));
    tensor->mutable_shape();
    for (const Dim& dim : type.dims) {
      tensor->mutable_shape()->add_dim()->set_dim_value(dim.size);
    }
  }

  absl::Status AddLeaf(NodeId id) {
    const Node& node = graph_.node(id);
    const TensorType& type = node.outputs[0];
    if (type.IsParallel()) return Error(id, "it is parallel: ", type.ToString());
    const auto value = model_.weights.find(node.name);
    if (node.op.kind() == OpKind::kInput || value == model_.weights.end()) {
      SetType(node.name, type, file_.mutable_graph()->add_input());
      return absl::OkStatus();
    }
    return AddStored({id, 0}, value->second);
  }

  absl::Status AddStored(TensorRef tensor, const StoredValues& values) {
    const TensorType& type = graph_.type(tensor);
    bytes_ += values.size() * BytesPerElement(type.dtype);
    if (bytes_ > kMostBytes) {
      return Error(tensor.node, "weights are above 2 GB, the limit of ONNX files");
    }
    onnx::TensorProto* stored;
    if (graph_.node(tensor.node).op.kind() == OpKind::kConstant) {
      stored = AddConstantNode(NameOf(tensor), file_.mutable_graph());
    } else {
      stored = file_.mutable_graph()->add_initializer();
      stored->set_name(NameOf(tensor));
    }
    for (const Dim& dim : type.dims) stored->add_dims(dim.size);
    SetElements(type.dtype, values.ToVector(), stored);
    return absl::OkStatus();
  }

  absl::Status AddCall(NodeId id) {
    const Node& node = graph_.node(id);
    const OnnxExporter exporter = FindOnnxExporter(node.op.kind());
    if (exporter == nullptr) {
      return Error(id, IsParallel(node.op.kind()) ? "it is parallel; ONNX is for one device"
                                                  : "it has no form in ONNX");
    }
    std::vector<std::string> inputs, outputs;
    for (TensorRef input : node.inputs) inputs.push_back(NameOf(input));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      outputs.push_back(NameOf({id, static_cast<int32_t>(i)}));
    }
    NodeExporter exported(graph_, id, std::move(inputs), std::move(outputs), &names_, opset_,
                          file_.mutable_graph());
    exporter(exported);
    needed_opset_ = std::max(needed_opset_, exported.needed_opset());
    return exported.status().ok() ? absl::OkStatus() : Error(id, exported.status().message());
  }

  // An output of another name than its tensor has is a copy.
  void AddOutputs() {
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      SetType(output.name, graph_.type(output.tensor), file_.mutable_graph()->add_output());
      const std::string& name = NameOf(output.tensor);
      if (name == output.name) continue;
      onnx::NodeProto* const copy = file_.mutable_graph()->add_node();
      copy->set_op_type("Identity");
      copy->set_name(output.name);
      copy->add_input(name);
      copy->add_output(output.name);
    }
  }

  template <typename... Parts>
  absl::Status Error(NodeId id, const Parts&... parts) const {
    return absl::UnimplementedError(absl::StrCat(graph_.Label(id), ": ", parts...));
  }

  const Model& model_;
  const Graph& graph_;
  const StoredWeights weights_;
  const int64_t opset_;
  int64_t needed_opset_ = kLeastOpset;
  onnx::ModelProto file_;
  std::set<std::string> names_;
  std::map<TensorRef, std::string> tensors_;
  size_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::string> OnnxFileOf(const Model& model, const Graph& graph,
                                       StoredWeights weights) {
  const bool is_for_others = weights == StoredWeights::kPrepared;
  ISOMER_ASSIGN_OR_RETURN(const Graph formed,
                          is_for_others ? ConvolutionForm(graph) : absl::StatusOr<Graph>(graph));
  onnx::ModelProto file;
  for (int64_t opset = kLeastOpset, needed = kLeastOpset;; opset = needed) {
    GraphExporter exporter(model, formed, weights, opset);
    ISOMER_ASSIGN_OR_RETURN(file, exporter.Export());
    needed = exporter.needed_opset();
    if (needed <= opset) break;
  }
  std::string contents;
  if (file.ByteSizeLong() > kMostBytes || !file.SerializeToString(&contents)) {
    return absl::UnimplementedError("the model is above 2 GB, the limit of ONNX files");
  }
  return contents;
}

}  // namespace isomer
