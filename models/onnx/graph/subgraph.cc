#include "models/onnx/graph/subgraph.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

// Protobuf itself reads at most 100 messages inside of each other, which bounds the recursion.
void AddCaptures(const onnx::GraphProto& graph, std::set<std::string>* captures);

void AddCaptures(const onnx::AttributeProto& attribute, std::set<std::string>* captures) {
  if (attribute.has_g()) AddCaptures(attribute.g(), captures);
  for (const onnx::GraphProto& graph : attribute.graphs()) AddCaptures(graph, captures);
}

std::set<std::string> DefinedIn(const onnx::GraphProto& graph) {
  std::set<std::string> defined;
  for (const onnx::TensorProto& initializer : graph.initializer()) {
    defined.insert(initializer.name());
  }
  for (const onnx::ValueInfoProto& input : graph.input()) defined.insert(input.name());
  for (const onnx::NodeProto& node : graph.node()) {
    defined.insert(node.output().begin(), node.output().end());
  }
  return defined;
}

void AddCaptures(const onnx::GraphProto& graph, std::set<std::string>* captures) {
  std::set<std::string> used;
  for (const onnx::NodeProto& node : graph.node()) {
    used.insert(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) AddCaptures(attribute, &used);
  }
  for (const onnx::ValueInfoProto& output : graph.output()) used.insert(output.name());
  const std::set<std::string> defined = DefinedIn(graph);
  for (const std::string& name : used) {
    if (!name.empty() && defined.count(name) == 0) captures->insert(name);
  }
}

void Rename(const Renaming& renaming, std::string* name) {
  const auto found = renaming.find(*name);
  if (found != renaming.end()) *name = found->second;
}

void RenameUses(const Renaming& renaming, onnx::NodeProto* node);

void RenameUses(const Renaming& renaming, onnx::NodeProto* node) {
  for (std::string& input : *node->mutable_input()) Rename(renaming, &input);
  for (std::string& output : *node->mutable_output()) Rename(renaming, &output);
  for (onnx::AttributeProto& attribute : *node->mutable_attribute()) {
    if (attribute.has_g()) RenameAll(renaming, attribute.mutable_g());
    for (onnx::GraphProto& graph : *attribute.mutable_graphs()) RenameAll(renaming, &graph);
  }
}

}  // namespace

std::set<std::string> CapturesOf(const onnx::AttributeProto& attribute) {
  std::set<std::string> captures;
  AddCaptures(attribute, &captures);
  return captures;
}

void AddNames(const onnx::NodeProto& node, std::set<std::string>* names) {
  names->insert(node.input().begin(), node.input().end());
  names->insert(node.output().begin(), node.output().end());
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) names->merge(NamesIn(attribute.g()));
    for (const onnx::GraphProto& inner : attribute.graphs()) names->merge(NamesIn(inner));
  }
}

std::set<std::string> NamesIn(const onnx::GraphProto& graph) {
  std::set<std::string> names = DefinedIn(graph);
  for (const onnx::ValueInfoProto& output : graph.output()) names.insert(output.name());
  for (const onnx::NodeProto& node : graph.node()) AddNames(node, &names);
  return names;
}

std::string UnusedPrefix(const std::string& name,
                         std::initializer_list<const std::set<std::string>*> used) {
  constexpr size_t kLongest = 64;
  constexpr int64_t kMostDoubled = int64_t{1} << 60;
  const std::string prefix = name.size() > kLongest ? "inner/" : absl::StrCat(name, "/");
  std::string unused = prefix;
  auto is_used = [&](const std::set<std::string>* names) {
    const auto from = names->lower_bound(unused);
    return from != names->end() && absl::StartsWith(*from, unused);
  };
  // From the number of names on, and doubled: a file cannot make many such searches long.
  int64_t number = 1;
  for (const std::set<std::string>* names : used) number += static_cast<int64_t>(names->size());
  while (std::any_of(used.begin(), used.end(), is_used)) {
    unused = absl::StrCat(prefix, number, "/");
    number = number < kMostDoubled ? 2 * number : number + 1;
  }
  return unused;
}

void RenameAll(const Renaming& renaming, onnx::GraphProto* graph) {
  for (onnx::TensorProto& initializer : *graph->mutable_initializer()) {
    Rename(renaming, initializer.mutable_name());
  }
  for (onnx::ValueInfoProto& input : *graph->mutable_input()) {
    Rename(renaming, input.mutable_name());
  }
  for (onnx::NodeProto& node : *graph->mutable_node()) RenameUses(renaming, &node);
  for (onnx::ValueInfoProto& output : *graph->mutable_output()) {
    Rename(renaming, output.mutable_name());
  }
}

void RenameDefined(const std::string& prefix, const std::set<std::string>& taken,
                   onnx::GraphProto* graph) {
  Renaming renaming;
  for (const std::string& name : DefinedIn(*graph)) {
    if (!name.empty() && taken.count(name) > 0) renaming[name] = absl::StrCat(prefix, name);
  }
  if (!renaming.empty()) RenameAll(renaming, graph);
}

}  // namespace isomer
