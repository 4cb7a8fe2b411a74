#include "models/onnx/graph/shared_parameters.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/graph/initializers.h"
#include "models/onnx/graph/provenance.h"

namespace isomer {
namespace {

using Dims = std::vector<int64_t>;

// That the result of an operator of a program may have one element of its operand several times.
bool Repeats(absl::string_view stem) {
  for (const char* op : {"broadcast_to", "embedding", "expand", "gather", "index", "index_select",
                         "repeat", "repeat_interleave", "take", "tile"}) {
    if (stem == op) return true;
  }
  return false;
}

// Its dims, with 1 for those along which all slices are equal.
Dims WithoutRepetitions(const OnnxTensor& tensor) {
  Dims once = tensor.dims;
  int64_t inner = tensor.size();
  for (int64_t& size : once) {
    const int64_t outer = tensor.size() / inner;
    inner /= size;
    bool is_repeated = true;
    for (int64_t o = 0; o < outer && is_repeated; ++o) {
      const auto slice = tensor.floats.begin() + o * size * inner;
      // All are equal if each element is that of the next slice.
      is_repeated = std::equal(slice, slice + (size - 1) * inner, slice + inner);
    }
    if (is_repeated) size = 1;
  }
  return once;
}

// One of each element: those at 0 of the dims that `once` has no more.
std::vector<float> Elements(const OnnxTensor& tensor, const Dims& once) {
  std::vector<float> elements;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    bool is_first = true;
    int64_t rest = i;
    for (size_t d = once.size(); d-- > 0 && is_first; rest /= tensor.dims[d]) {
      is_first = once[d] == tensor.dims[d] || rest % tensor.dims[d] == 0;
    }
    if (is_first) elements.push_back(tensor.floats[i]);
  }
  return elements;
}

class SharedParameters {
 public:
  explicit SharedParameters(OnnxGraph* graph) : graph_(graph) {}

  void Restore(std::vector<std::string>* notes) {
    for (const auto& [name, provenance] : graph_->provenance) {
      const auto found = graph_->constants.find(name);
      if (provenance.folded_from.empty() || found == graph_->constants.end()) continue;
      const OnnxTensor& tensor = found->second;
      if (IsTrained(tensor) && !tensor.dims.empty() && tensor.size() > 0) Restore(name, tensor);
      tensor.floats.LetGo();
    }
    if (nodes_.empty()) return;
    for (const std::string& name : replaced_) graph_->constants.erase(name);
    graph_->nodes.insert(graph_->nodes.begin(), nodes_.begin(), nodes_.end());
    graph_->IndexProducers();
    if (shared_.empty()) return;
    notes->push_back(absl::StrCat(
        "the exporter wrote ", shared_.size(), shared_.size() == 1 ? " tensor" : " tensors",
        " again for other uses of a parameter; it is one, as in PyTorch: ", SomeOf(shared_)));
  }

 private:
  // A tensor that is no other, and what is trained in its place.
  struct First {
    const OnnxTensor* tensor;
    std::string parameter;
    Dims once;
  };

  void Restore(const std::string& name, const OnnxTensor& tensor) {
    const std::vector<std::string> origins = ModuleTensorsOf(name, *graph_);
    if (AllEqual(tensor)) {
      // Initialised so: no more than the name tells what was repeated.
      if (StemOf(name) != "expand" || tensor.dims[0] == 1) return;
      Dims once = tensor.dims;
      once[0] = 1;
      Replace(name, tensor, NewParameter(name, origins, tensor, once), once);
      return;
    }
    Dims once = WithoutRepetitions(tensor);
    if (const std::string origin = OriginWith(origins, tensor, once); !origin.empty()) {
      Replace(name, tensor, origin, once);
      return;
    }
    if (!MayRepeat(name)) once = tensor.dims;
    std::vector<First>& firsts = of_origins_[origins];
    for (const First& first : firsts) {
      if (first.once != once || !HaveEqualElements(*first.tensor, tensor, once)) continue;
      shared_.push_back(absl::StrCat(QuotedName(name), " (", QuotedName(first.parameter), ")"));
      Replace(name, tensor, first.parameter, once);
      return;
    }
    firsts.push_back({&tensor, name, once});
    if (once == tensor.dims) return;
    firsts.back().parameter = NewParameter(name, origins, tensor, once);
    Replace(name, tensor, firsts.back().parameter, once);
  }

  bool MayRepeat(const std::string& name) const {
    const std::vector<std::string>& from = graph_->provenance.at(name).folded_from;
    return Repeats(StemOf(name)) || std::any_of(from.begin(), from.end(), [](const auto& other) {
             return Repeats(StemOf(other));
           });
  }

  // Of those that the tensor was computed from, the parameter that it is; "" for none.
  std::string OriginWith(const std::vector<std::string>& origins, const OnnxTensor& tensor,
                         const Dims& once) const {
    for (const std::string& origin : origins) {
      const auto found = graph_->constants.find(origin);
      if (found == graph_->constants.end() || !IsTrained(found->second) ||
          found->second.size() != NumElementsOf(once) || found->second.dtype != tensor.dtype) {
        continue;
      }
      const std::vector<float> elements = Elements(tensor, once);
      if (std::equal(elements.begin(), elements.end(), found->second.floats.begin())) return origin;
    }
    return "";
  }

  static bool HaveEqualElements(const OnnxTensor& a, const OnnxTensor& b, const Dims& once) {
    if (a.dtype != b.dtype) return false;
    if (a.dims != b.dims) return Elements(a, once) == Elements(b, once);
    return std::equal(a.floats.begin(), a.floats.end(), b.floats.begin());
  }

  std::string NewParameter(const std::string& name, const std::vector<std::string>& origins,
                           const OnnxTensor& tensor, const Dims& once) {
    const std::string parameter =
        UnusedName(origins.size() == 1 ? origins[0] : name + "/once", graph_);
    OnnxTensor& value = graph_->constants[parameter];
    value.dtype = tensor.dtype;
    value.dims = once;
    value.floats = Elements(tensor, once);
    return parameter;
  }

  // `name` is made of `parameter`, of the same elements, which have the dims `once`.
  void Replace(const std::string& name, const OnnxTensor& tensor, const std::string& parameter,
               const Dims& once) {
    std::string from = parameter;
    const bool is_repeated = once != tensor.dims;
    if (!is_repeated || graph_->constants[parameter].dims != once) {
      const std::string to = is_repeated ? UnusedName(name + "/shaped", graph_) : name;
      AddNode("Reshape", from, once, to);
      from = to;
    }
    if (is_repeated) AddNode("Expand", from, tensor.dims, name);
    replaced_.push_back(name);
  }

  void AddNode(const std::string& op, const std::string& from, const Dims& dims,
               const std::string& to) {
    OnnxTensor sizes;
    sizes.dtype = DataType::kInt64;
    sizes.ints = dims;
    sizes.dims = {sizes.size()};
    sizes.is_literal = true;
    OnnxNode node;
    node.op = op;
    node.label = absl::StrCat("node of ", QuotedName(to), " ('", op, "')");
    node.inputs = {from, UnusedName(to + "/sizes", graph_)};
    node.outputs = {to};
    graph_->constants[node.inputs[1]] = std::move(sizes);
    nodes_.push_back(std::move(node));
  }

  OnnxGraph* const graph_;
  std::vector<OnnxNode> nodes_;
  std::vector<std::string> replaced_;
  std::vector<std::string> shared_;  // for a note
  std::map<std::vector<std::string>, std::vector<First>> of_origins_;
};

}  // namespace

void RestoreSharedParameters(OnnxGraph* graph, std::vector<std::string>* notes) {
  SharedParameters(graph).Restore(notes);
}

}  // namespace isomer
