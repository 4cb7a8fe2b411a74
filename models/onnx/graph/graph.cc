#include "models/onnx/graph/graph.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <queue>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/onnx/data_in_file.h"
#include "models/onnx/graph/provenance.h"
#include "models/onnx/graph/subgraph.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int64_t kOldestOpset = 1, kNewestOpset = 26;
constexpr int kDeepest = 64;  // graphs in each other; those of functions add up
constexpr size_t kMostBytes = (size_t{1} << 31) - 1;

class Reader {
 public:
  explicit Reader(const std::string& file) {
    graph_.file = file;
    const size_t slash = file.find_last_of('/');
    graph_.folder = slash == std::string::npos ? "." : file.substr(0, slash + 1);
  }
  // For a graph inside of `node`.
  Reader(const OnnxGraph& outer, const OnnxNode& node) : outer_(&outer) {
    graph_.file = outer.file;
    graph_.folder = outer.folder;
    graph_.opset = outer.OpsetOf(node);
    graph_.opsets = outer.opsets;
    graph_.producer = outer.producer;
    graph_.functions = outer.functions;
    graph_.depth = outer.depth + 1;
    origin_.opset = node.opset;
  }

  absl::StatusOr<OnnxGraph> Read(absl::string_view contents, bool leave_data) {
    onnx::ModelProto model;
    if (contents.empty()) return Error("is empty");
    if (contents.size() > kMostBytes) return Error("above 2 GB, the limit of ONNX files");
    OnnxWithoutData without;
    if (leave_data) {
      without = LeaveDataInFile(contents, std::filesystem::canonical(graph_.file).string());
      contents = without.model;
      in_file_ = std::move(without.data);
    }
    if (!model.ParseFromArray(contents.data(), static_cast<int>(contents.size()))) {
      return Error("no ONNX model, or damaged or cut short");
    }
    if (!model.has_graph() || model.opset_import().empty()) {
      return Error("no ONNX model, or cut short: it has no graph or no opset");
    }
    graph_.producer = model.producer_name();
    ISOMER_RETURN_IF_ERROR(ReadOpsets(model));
    ISOMER_RETURN_IF_ERROR(ReadFunctions(&model));
    return ReadGraph(model.mutable_graph());
  }

  absl::StatusOr<OnnxGraph> ReadGraph(onnx::GraphProto* proto) {
    if (graph_.depth > kDeepest) return Error("graphs more than ", kDeepest, " deep in each other");
    graph_.name = proto->name();
    used_names_ = NamesIn(*proto);
    ISOMER_RETURN_IF_ERROR(ReadLeaves(proto));
    for (onnx::NodeProto& node : *proto->mutable_node()) {
      ISOMER_RETURN_IF_ERROR(ReadNode(&node, origin_));
    }
    ISOMER_RETURN_IF_ERROR(CheckReferences());
    ISOMER_RETURN_IF_ERROR(SortNodes());
    return std::move(graph_);
  }

 private:
  // Where a node comes from.
  struct Origin {
    std::string function;  // what messages call the function; "" for the graph itself
    int64_t opset = 0;     // of the default domain; 0: that of the file
  };

  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(graph_.file, ": ", parts...));
  }

  absl::Status ReadOpsets(const onnx::ModelProto& model) {
    for (const onnx::OperatorSetIdProto& opset : model.opset_import()) {
      graph_.opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
    }
    const auto found = graph_.opsets.find("");
    if (found == graph_.opsets.end()) return Error("it states no opset of the default domain");
    graph_.opset = found->second;
    if (graph_.opset >= kOldestOpset && graph_.opset <= kNewestOpset) return absl::OkStatus();
    return Error("opset ", graph_.opset, "; ", kOldestOpset, " to ", kNewestOpset, " are read");
  }

  absl::Status ReadFunctions(onnx::ModelProto* model) {
    graph_.functions = std::make_shared<OnnxFunctions>();
    for (onnx::FunctionProto& function : *model->mutable_functions()) {
      const absl::Status status =
          graph_.functions->Add(std::move(function), kOldestOpset, kNewestOpset);
      if (!status.ok()) return Error(status.message());
    }
    return absl::OkStatus();
  }

  absl::Status Define(const std::string& tensor, const std::string& by) {
    if (tensor.empty()) return Error(by, ": a name is empty");
    if (graph_.names.insert(tensor).second) return absl::OkStatus();
    return Error(by, ": the tensor ", QuotedName(tensor), " is defined a second time");
  }

  // Initializers may have large data, which is let go of as it is read.
  absl::Status ReadLeaves(onnx::GraphProto* proto) {
    if (proto->sparse_initializer_size() > 0) return Error("sparse initializers are not read");
    int place = 0;
    for (onnx::TensorProto& initializer : *proto->mutable_initializer()) {
      const auto in_file = in_file_.find(place++);
      const std::string label = absl::StrCat("initializer ", QuotedName(initializer.name()));
      ISOMER_RETURN_IF_ERROR(Define(initializer.name(), label));
      absl::StatusOr<OnnxTensor> tensor = ReadOnnxTensor(
          initializer, &graph_.folder, in_file == in_file_.end() ? nullptr : &in_file->second);
      if (!tensor.ok()) return Error(label, ": ", tensor.status().message());
      graph_.constants[initializer.name()] = *std::move(tensor);
      const std::string name = initializer.name();
      graph_.has_double |= initializer.data_type() == onnx::TensorProto::DOUBLE;
      initializer.Clear();
      initializer.set_name(name);
    }
    for (const onnx::ValueInfoProto& value : proto->value_info()) {
      if (!graph_.constants.contains(value.name())) continue;
      OnnxProvenance provenance = ProvenanceOf(value);
      if (provenance.kind.empty() && provenance.folded_from.empty()) continue;
      graph_.provenance[value.name()] = std::move(provenance);
    }
    for (onnx::ValueInfoProto& input : *proto->mutable_input()) {
      if (graph_.constants.count(input.name()) > 0) continue;
      ISOMER_RETURN_IF_ERROR(
          Define(input.name(), absl::StrCat("input ", QuotedName(input.name()))));
      graph_.has_double |= input.type().tensor_type().elem_type() == onnx::TensorProto::DOUBLE;
      graph_.inputs.push_back(std::move(input));
    }
    for (onnx::ValueInfoProto& output : *proto->mutable_output()) {
      graph_.outputs.push_back(std::move(output));
    }
    if (graph_.outputs.empty()) return Error("the graph has no outputs");
    return absl::OkStatus();
  }

  static std::string LabelOf(const onnx::NodeProto& node, const Origin& origin) {
    const std::string name = !node.name().empty() ? QuotedName(node.name())
                             : node.output_size() == 0
                                 ? std::string("without name or output")
                                 : absl::StrCat("of ", QuotedName(node.output(0)));
    return absl::StrCat("node ", name, " (", QuotedName(node.op_type()), ")",
                        origin.function.empty() ? "" : " of function ", origin.function);
  }

  absl::Status ReadNode(onnx::NodeProto* node, const Origin& origin) {
    OnnxNode read;
    read.op = node->op_type();
    read.domain = node->domain() == "ai.onnx" ? "" : node->domain();
    read.label = LabelOf(*node, origin);
    read.module = ModuleOf(*node);
    read.is_named_by_module = absl::StartsWith(node->name(), "/");
    read.lost = LossOf(*node);
    read.opset = origin.opset;
    const auto is_empty = [](const std::string& name) { return name.empty(); };
    if (std::all_of(node->output().begin(), node->output().end(), is_empty)) {
      return Error(read.label, ": it has no output");
    }
    for (const onnx::AttributeProto& attribute : node->attribute()) {
      if (attribute.ref_attr_name().empty()) continue;
      return Error(read.label, ": its attribute ", QuotedName(attribute.name()),
                   " is that of a function, but the node is in none");
    }
    if (graph_.functions->Defines(*node)) return ReadCall(*node, read.label, origin);
    read.inputs.assign(node->input().begin(), node->input().end());
    read.outputs.assign(node->output().begin(), node->output().end());
    for (onnx::AttributeProto& attribute : *node->mutable_attribute()) {
      const std::string key = attribute.name();
      for (const std::string& name : CapturesOf(attribute)) read.captures.push_back(name);
      read.attributes[key] = std::move(attribute);
    }
    for (const std::string& output : read.outputs) {
      if (!output.empty()) ISOMER_RETURN_IF_ERROR(Define(output, read.label));
    }
    if (read.op == "Constant" && read.domain.empty()) return ReadConstant(read);
    graph_.nodes.push_back(std::move(read));
    return absl::OkStatus();
  }

  // The body takes the place of the call.
  absl::Status ReadCall(const onnx::NodeProto& call, const std::string& label,
                        const Origin& origin) {
    const auto output = std::find_if(call.output().begin(), call.output().end(),
                                     [](const std::string& name) { return !name.empty(); });
    const std::string prefix = outer_ == nullptr
                                   ? UnusedPrefix(*output, {&used_names_})
                                   : UnusedPrefix(*output, {&used_names_, &outer_->names});
    absl::StatusOr<FunctionBody> body = graph_.functions->Expand(call, prefix);
    if (!body.ok()) {
      return absl::Status(body.status().code(),
                          absl::StrCat(graph_.file, ": ", label, ": ", body.status().message()));
    }
    for (const onnx::NodeProto& node : body->nodes) AddNames(node, &used_names_);
    const Origin inside = {body->name, body->opset != 0 ? body->opset : origin.opset};
    for (onnx::NodeProto& node : body->nodes) {
      ISOMER_RETURN_IF_ERROR(ReadNode(&node, inside));
    }
    return absl::OkStatus();
  }

  absl::Status ReadConstant(const OnnxNode& node) {
    if (node.attributes.size() != 1) {
      return Error(node.label, ": it has ", node.attributes.size(), " attributes, not one value");
    }
    const auto& [key, attribute] = *node.attributes.begin();
    OnnxTensor tensor;
    if (key == "value") {
      absl::StatusOr<OnnxTensor> read = ReadOnnxTensor(attribute.t(), &graph_.folder);
      if (!read.ok()) return Error(node.label, ": ", read.status().message());
      tensor = *std::move(read);
    } else if (key == "value_float") {
      tensor.floats = {attribute.f()};
    } else if (key == "value_floats") {
      tensor.floats = std::vector<float>(attribute.floats().begin(), attribute.floats().end());
      tensor.dims = {tensor.size()};
    } else if (key == "value_int") {
      tensor.dtype = DataType::kInt64;
      tensor.ints = {attribute.i()};
    } else if (key == "value_ints") {
      tensor.dtype = DataType::kInt64;
      tensor.ints.assign(attribute.ints().begin(), attribute.ints().end());
      tensor.dims = {tensor.size()};
    } else {
      return Error(node.label, ": values of the kind ", QuotedName(key), " are not read");
    }
    tensor.is_literal = true;
    graph_.constants[node.outputs[0]] = std::move(tensor);
    return absl::OkStatus();
  }

  bool IsDefined(const std::string& tensor) const {
    return graph_.names.count(tensor) > 0 || (outer_ != nullptr && outer_->names.count(tensor) > 0);
  }

  absl::Status CheckReferences() const {
    for (const OnnxNode& node : graph_.nodes) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i].empty() || IsDefined(node.inputs[i])) continue;
        return Error(node.label, ": its input ", i, " ", QuotedName(node.inputs[i]),
                     " is the output of no node, no input and no initializer");
      }
      for (const std::string& name : node.captures) {
        if (IsDefined(name)) continue;
        return Error(node.label, ": its subgraph takes ", QuotedName(name),
                     ", which nothing defines");
      }
    }
    for (const onnx::ValueInfoProto& output : graph_.outputs) {
      if (IsDefined(output.name())) continue;
      return Error("output ", QuotedName(output.name()), " is defined by no node");
    }
    return absl::OkStatus();
  }

  // Kahn's algorithm; among the nodes that are ready, the file's order.
  absl::Status SortNodes() {
    std::map<std::string, int> producers;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const std::string& output : graph_.nodes[n].outputs) {
        if (!output.empty()) producers[output] = static_cast<int>(n);
      }
    }
    std::vector<std::vector<int>> users(graph_.nodes.size());
    std::vector<int> waiting(graph_.nodes.size(), 0);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const auto* names : {&graph_.nodes[n].inputs, &graph_.nodes[n].captures}) {
        for (const std::string& name : *names) {
          const auto producer = producers.find(name);
          if (producer == producers.end()) continue;
          users[producer->second].push_back(static_cast<int>(n));
          ++waiting[n];
        }
      }
    }
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    for (size_t n = 0; n < waiting.size(); ++n) {
      if (waiting[n] == 0) ready.push(static_cast<int>(n));
    }
    std::vector<OnnxNode> sorted;
    while (!ready.empty()) {
      const int n = ready.top();
      ready.pop();
      for (int user : users[n]) {
        if (--waiting[user] == 0) ready.push(user);
      }
      for (const std::string& output : graph_.nodes[n].outputs) {
        if (!output.empty()) graph_.producers[output] = static_cast<int>(sorted.size());
      }
      sorted.push_back(std::move(graph_.nodes[n]));
    }
    for (size_t n = 0; n < waiting.size(); ++n) {
      if (waiting[n] > 0) return Error(graph_.nodes[n].label, " lies on or behind a cycle");
    }
    graph_.nodes = std::move(sorted);
    return absl::OkStatus();
  }

  OnnxGraph graph_;
  std::map<int, ExternalData> in_file_;  // data of initializers that the message is without
  std::set<std::string> used_names_;     // also those of graphs inside of this one
  const OnnxGraph* outer_ = nullptr;
  Origin origin_;
};

}  // namespace

void OnnxGraph::IndexProducers() {
  producers.clear();
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const std::string& output : nodes[n].outputs) {
      if (!output.empty()) producers[output] = static_cast<int>(n);
    }
  }
}

const OnnxNode* OnnxGraph::Producer(const std::string& tensor) const {
  const auto found = producers.find(tensor);
  return found == producers.end() ? nullptr : &nodes[found->second];
}

absl::StatusOr<OnnxGraph> ReadOnnxGraph(absl::string_view contents, const std::string& file,
                                        bool leave_data) {
  return Reader(file).Read(contents, leave_data);
}

absl::StatusOr<OnnxGraph> ReadOnnxSubgraph(const OnnxGraph& outer, const OnnxNode& node,
                                           onnx::GraphProto proto) {
  const std::set<std::string> inner = NamesIn(proto);
  RenameDefined(UnusedPrefix(node.outputs[0], {&outer.names, &inner}), outer.names, &proto);
  return Reader(outer, node).ReadGraph(&proto);
}

}  // namespace isomer
