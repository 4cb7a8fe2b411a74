#include "models/onnx/graph/functions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/graph/subgraph.h"
#include "models/onnx/tensor.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using onnx::AttributeProto;

constexpr int kDeepestCalls = 64;  // calls inside of each other

std::string StandardDomain(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

std::string NameOf(const onnx::FunctionProto& function) {
  const std::string& domain = function.domain();
  return QuotedName(domain.empty() ? function.name() : absl::StrCat(domain, "::", function.name()));
}

template <typename... Parts>
absl::Status Error(const onnx::FunctionProto& function, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("function ", NameOf(function), ": ", parts...));
}

absl::Status TooLarge(const onnx::FunctionProto& function) {
  return absl::UnimplementedError(
      absl::StrCat("function ", NameOf(function), ": the bodies of all calls are too large"));
}

std::string LabelOf(const onnx::NodeProto& node) {
  const bool has_name = !node.name().empty() || node.output_size() == 0;
  return absl::StrCat(has_name ? "node " : "node of ",
                      QuotedName(has_name ? node.name() : node.output(0)), " (",
                      QuotedName(node.op_type()), ")");
}

// Makes the nodes of one body those of one call.
class Expansion {
 public:
  Expansion(const std::string& prefix, int64_t* bytes_left)
      : prefix_(prefix), bytes_left_(bytes_left) {}

  void Rename(const std::string& formal, const std::string& actual) { names_[formal] = actual; }
  void Give(const std::string& attribute, const AttributeProto* value) {
    values_[attribute] = value;
  }

  bool is_too_large() const { return *bytes_left_ < 0; }
  const absl::Status& status() const { return status_; }

  std::string NewName(const std::string& name) {
    if (name.empty() || is_too_large()) return "";
    const auto given = names_.find(name);
    std::string renamed = given != names_.end() ? given->second : absl::StrCat(prefix_, name);
    *bytes_left_ -= static_cast<int64_t>(renamed.size());
    return is_too_large() ? "" : renamed;
  }

  onnx::NodeProto Copy(const onnx::NodeProto& node) {
    *bytes_left_ -= static_cast<int64_t>(node.ByteSizeLong() + sizeof(node));
    if (is_too_large()) return {};
    onnx::NodeProto copy = node;
    ChangeNode(&copy);
    return copy;
  }

 private:
  // Protobuf reads at most 100 messages inside of each other, which bounds the recursion.
  void ChangeNode(onnx::NodeProto* node) {
    if (!node->name().empty()) node->set_name(NewName(node->name()));
    for (std::string& input : *node->mutable_input()) input = NewName(input);
    for (std::string& output : *node->mutable_output()) output = NewName(output);
    google::protobuf::RepeatedPtrField<AttributeProto> attributes;
    attributes.Swap(node->mutable_attribute());
    for (AttributeProto& attribute : attributes) {
      if (attribute.ref_attr_name().empty()) {
        if (attribute.has_g()) ChangeGraph(attribute.mutable_g());
        for (onnx::GraphProto& graph : *attribute.mutable_graphs()) ChangeGraph(&graph);
        *node->add_attribute() = std::move(attribute);
      } else {
        AddReferred(attribute, node);
      }
    }
  }

  void AddReferred(const AttributeProto& reference, onnx::NodeProto* node) {
    const auto value = values_.find(reference.ref_attr_name());
    if (value == values_.end() || is_too_large()) return;
    if (reference.type() != AttributeProto::UNDEFINED &&
        reference.type() != value->second->type()) {
      status_.Update(absl::InvalidArgumentError(
          absl::StrCat("its attribute ", QuotedName(reference.ref_attr_name()), " is of type ",
                       AttributeProto::AttributeType_Name(value->second->type()), ", not ",
                       AttributeProto::AttributeType_Name(reference.type()))));
      return;
    }
    *bytes_left_ -= static_cast<int64_t>(value->second->ByteSizeLong());
    if (is_too_large()) return;
    AttributeProto* const given = node->add_attribute();
    *given = *value->second;
    given->set_name(reference.name());
  }

  void ChangeGraph(onnx::GraphProto* graph) {
    for (onnx::TensorProto& initializer : *graph->mutable_initializer()) {
      initializer.set_name(NewName(initializer.name()));
    }
    for (auto* infos :
         {graph->mutable_input(), graph->mutable_output(), graph->mutable_value_info()}) {
      for (onnx::ValueInfoProto& info : *infos) info.set_name(NewName(info.name()));
    }
    for (onnx::NodeProto& node : *graph->mutable_node()) ChangeNode(&node);
  }

  const std::string& prefix_;
  int64_t* const bytes_left_;
  std::map<std::string, std::string> names_;  // of inputs and outputs of the function
  std::map<std::string, const AttributeProto*> values_;
  absl::Status status_;
};

// The attributes of the function that `node`, and graphs inside of it, refer to.
void AddReferences(const onnx::NodeProto& node, std::set<std::string>* references) {
  auto add_graph = [&](const onnx::GraphProto& graph) {
    for (const onnx::NodeProto& inner : graph.node()) AddReferences(inner, references);
  };
  for (const AttributeProto& attribute : node.attribute()) {
    if (!attribute.ref_attr_name().empty()) references->insert(attribute.ref_attr_name());
    if (attribute.has_g()) add_graph(attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) add_graph(graph);
  }
}

}  // namespace

OnnxFunctions::Key OnnxFunctions::KeyOf(const onnx::NodeProto& node) {
  return {StandardDomain(node.domain()), node.op_type(), node.overload()};
}

absl::Status OnnxFunctions::Add(onnx::FunctionProto function, int64_t oldest_opset,
                                int64_t newest_opset) {
  function.set_domain(StandardDomain(function.domain()));
  Function added;
  for (const onnx::OperatorSetIdProto& opset : function.opset_import()) {
    if (!StandardDomain(opset.domain()).empty()) continue;
    added.opset = opset.version();
    if (added.opset >= oldest_opset && added.opset <= newest_opset) continue;
    return Error(function, "opset ", added.opset, "; ", oldest_opset, " to ", newest_opset,
                 " are read");
  }
  for (const std::string& name : function.attribute()) {
    if (!added.attributes.insert(name).second) {
      return Error(function, "it has the attribute ", QuotedName(name), " twice");
    }
  }
  for (const AttributeProto& attribute : function.attribute_proto()) {
    if (!added.attributes.insert(attribute.name()).second) {
      return Error(function, "it has the attribute ", QuotedName(attribute.name()), " twice");
    }
    added.defaults[attribute.name()] = attribute;
  }
  Key key = {function.domain(), function.name(), function.overload()};
  if (functions_.count(key) > 0) return Error(function, "it is defined a second time");
  added.proto = std::move(function);
  functions_[std::move(key)] = std::move(added);
  return absl::OkStatus();
}

// Calls inside of each other end, and their number is bounded.
absl::Status OnnxFunctions::CheckCallees(const onnx::NodeProto& node, int depth, int* height) {
  if (const auto callee = functions_.find(KeyOf(node)); callee != functions_.end()) {
    ISOMER_RETURN_IF_ERROR(Check(&callee->second, depth + 1));
    *height = std::max(*height, callee->second.height + 1);
  }
  for (const AttributeProto& attribute : node.attribute()) {
    for (const onnx::NodeProto& inner : attribute.g().node()) {
      ISOMER_RETURN_IF_ERROR(CheckCallees(inner, depth, height));
    }
    for (const onnx::GraphProto& graph : attribute.graphs()) {
      for (const onnx::NodeProto& inner : graph.node()) {
        ISOMER_RETURN_IF_ERROR(CheckCallees(inner, depth, height));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status OnnxFunctions::CheckNames(const Function& function) const {
  const onnx::FunctionProto& proto = function.proto;
  std::set<std::string> defined, references;
  auto define = [&](const std::string& name, const std::string& by) {
    if (name.empty()) return Error(proto, by, ": a name is empty");
    if (defined.insert(name).second) return absl::OkStatus();
    return Error(proto, by, ": ", QuotedName(name), " is defined a second time");
  };
  for (const std::string& input : proto.input()) {
    ISOMER_RETURN_IF_ERROR(define(input, "its inputs"));
  }
  for (const onnx::NodeProto& node : proto.node()) {
    for (const std::string& output : node.output()) {
      if (!output.empty()) ISOMER_RETURN_IF_ERROR(define(output, LabelOf(node)));
    }
  }
  for (const onnx::NodeProto& node : proto.node()) {
    std::set<std::string> used(node.input().begin(), node.input().end());
    for (const AttributeProto& attribute : node.attribute()) used.merge(CapturesOf(attribute));
    for (const std::string& name : used) {
      if (name.empty() || defined.count(name) > 0) continue;
      return Error(proto, LabelOf(node), ": it takes ", QuotedName(name),
                   ", which the function does not define");
    }
    references.clear();
    AddReferences(node, &references);
    for (const std::string& name : references) {
      if (function.attributes.count(name) > 0) continue;
      return Error(proto, LabelOf(node), ": it takes the attribute ", QuotedName(name),
                   ", which the function does not have");
    }
  }
  std::set<std::string> outputs;
  for (const std::string& output : proto.output()) {
    if (defined.count(output) == 0) {
      return Error(proto, "its output ", QuotedName(output), " is defined by no node");
    }
    if (!outputs.insert(output).second) {
      return Error(proto, "it has the output ", QuotedName(output), " twice");
    }
  }
  return absl::OkStatus();
}

absl::Status OnnxFunctions::Check(Function* function, int depth) {
  if (function->is_being_checked) {
    return Error(function->proto, "it calls itself, directly or through others");
  }
  if (depth + function->height > kDeepestCalls) {
    return Error(function->proto, "calls more than ", kDeepestCalls, " deep inside of each other");
  }
  if (function->is_checked) return absl::OkStatus();
  ISOMER_RETURN_IF_ERROR(CheckNames(*function));
  function->is_being_checked = true;
  absl::Status status;
  for (const onnx::NodeProto& node : function->proto.node()) {
    status = CheckCallees(node, depth, &function->height);
    if (!status.ok()) break;
  }
  function->is_being_checked = false;
  function->is_checked = status.ok();
  return status;
}

absl::StatusOr<FunctionBody> OnnxFunctions::Expand(const onnx::NodeProto& call,
                                                   const std::string& prefix) {
  Function& function = functions_.at(KeyOf(call));
  const onnx::FunctionProto& proto = function.proto;
  ISOMER_RETURN_IF_ERROR(Check(&function, 1));
  if (call.input_size() > proto.input_size() || call.output_size() > proto.output_size()) {
    return Error(proto, "the call has ", call.input_size(), " inputs and ", call.output_size(),
                 " outputs, the function ", proto.input_size(), " and ", proto.output_size());
  }
  // Also what a call leaves out is looked at.
  constexpr int64_t kBytesPerName = 512;
  bytes_left_ -= kBytesPerName * (proto.input_size() + proto.output_size() +
                                  static_cast<int64_t>(function.attributes.size()));
  if (bytes_left_ < 0) return TooLarge(proto);
  Expansion expansion(prefix, &bytes_left_);
  std::map<std::string, std::string> actual;
  for (int i = 0; i < proto.input_size(); ++i) {
    actual[proto.input(i)] = i < call.input_size() ? call.input(i) : "";
    expansion.Rename(proto.input(i), actual[proto.input(i)]);
  }
  FunctionBody body;
  body.opset = function.opset;
  body.name = NameOf(proto);
  for (int i = 0; i < call.output_size(); ++i) {
    if (call.output(i).empty()) continue;
    const auto input = actual.find(proto.output(i));
    if (input == actual.end()) {
      expansion.Rename(proto.output(i), call.output(i));
      continue;
    }
    onnx::NodeProto& identity = body.nodes.emplace_back();
    identity.set_op_type("Identity");
    identity.add_input(input->second);
    identity.add_output(call.output(i));
  }
  for (const auto& [name, value] : function.defaults) expansion.Give(name, &value);
  for (const AttributeProto& attribute : call.attribute()) {
    if (function.attributes.count(attribute.name()) == 0) {
      return Error(proto, "it has no attribute ", QuotedName(attribute.name()));
    }
    if (attribute.has_g() || attribute.graphs_size() > 0) {
      return absl::UnimplementedError(absl::StrCat("function ", body.name, ": its attribute ",
                                                   QuotedName(attribute.name()),
                                                   " is a graph, which is not read"));
    }
    expansion.Give(attribute.name(), &attribute);
  }
  for (const onnx::NodeProto& node : proto.node()) {
    body.nodes.push_back(expansion.Copy(node));
    if (--nodes_left_ < 0 || expansion.is_too_large()) return TooLarge(proto);
    if (!expansion.status().ok()) {
      return Error(proto, LabelOf(node), ": ", expansion.status().message());
    }
  }
  return body;
}

}  // namespace isomer
