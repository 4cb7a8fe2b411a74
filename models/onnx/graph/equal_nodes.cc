#include "models/onnx/graph/equal_nodes.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

// Literals of so many elements are compared; others are those of one name.
constexpr int64_t kMostCompared = 64;

// The same for equal literals.
std::string KeyOf(const OnnxTensor& tensor) {
  std::string key =
      absl::StrCat(static_cast<int>(tensor.dtype), " ", absl::StrJoin(tensor.dims, ","), " ",
                   tensor.is_literal, " ", absl::StrJoin(tensor.ints, ","), " ");
  for (float value : tensor.floats) {
    key.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return key;
}

// Same operands, same outputs, and nothing else.
bool IsFunction(const OnnxNode& node) {
  for (const char* other : {"Random", "Bernoulli", "Multinomial", "Dropout"}) {
    if (absl::StartsWith(node.op, other)) return false;
  }
  for (const auto& [name, attribute] : node.attributes) {
    if (attribute.has_g() || attribute.graphs_size() > 0) return false;
  }
  return node.captures.empty();
}

std::string KeyOf(const OnnxNode& node) {
  std::string key = absl::StrCat(node.domain, " ", node.op, " ", node.opset, " ",
                                 node.outputs.size(), "(", absl::StrJoin(node.inputs, ","), ")");
  for (const auto& [name, attribute] : node.attributes) {
    absl::StrAppend(&key, " ", attribute.SerializeAsString());
  }
  return key;
}

class Merger {
 public:
  explicit Merger(OnnxGraph* graph) : graph_(*graph) {}

  void Run() {
    for (const onnx::ValueInfoProto& output : graph_.outputs) kept_.insert(output.name());
    for (const OnnxNode& node : graph_.nodes) {
      kept_.insert(node.captures.begin(), node.captures.end());
    }
    FindEqualLiterals();
    std::erase_if(graph_.nodes, [&](OnnxNode& node) { return IsRepeated(&node); });
    graph_.IndexProducers();
  }

 private:
  void FindEqualLiterals() {
    std::map<std::string, std::string> known;
    for (const auto& [name, tensor] : graph_.constants) {
      if (tensor.is_float() && !tensor.is_literal) continue;
      untrained_.insert(name);
      if (tensor.size() > kMostCompared) continue;
      const auto [first, is_new] = known.try_emplace(KeyOf(tensor), name);
      if (!is_new) instead_[name] = first->second;
    }
  }

  // After its operands are those to use instead.
  bool IsRepeated(OnnxNode* node) {
    bool is_untrained = true;
    for (std::string& input : node->inputs) {
      is_untrained = is_untrained && (input.empty() || untrained_.contains(input));
      const auto found = instead_.find(input);
      if (found != instead_.end()) input = found->second;
    }
    if (!is_untrained || !IsFunction(*node)) return false;
    untrained_.insert(node->outputs.begin(), node->outputs.end());
    const auto [first, is_new] = known_.try_emplace(KeyOf(*node), node->outputs);
    if (is_new) return false;
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      const std::string& output = node->outputs[i];
      if (kept_.contains(output) || (!output.empty() && first->second[i].empty())) return false;
    }
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      if (!node->outputs[i].empty()) instead_[node->outputs[i]] = first->second[i];
    }
    return true;
  }

  OnnxGraph& graph_;
  std::set<std::string> kept_;                  // names of what others see
  std::set<std::string> untrained_;             // constants, and what is computed from them
  std::map<std::string, std::string> instead_;  // by name, the one to use: literals and outputs
  std::map<std::string, std::vector<std::string>> known_;  // outputs by key
};

}  // namespace

void MergeEqualNodes(OnnxGraph* graph) { Merger(graph).Run(); }

}  // namespace isomer
