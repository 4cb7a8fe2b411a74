#include "runtime/execution/leaf_values.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/evaluation/leaf_draws.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

using Leaf = LeafValues::Leaf;

class GivenLeaf : public Leaf {
 public:
  GivenLeaf(const StoredValues& values, DataType dtype) : values_(values), dtype_(dtype) {}
  void Read(int64_t first, int64_t stride, int64_t count, double* to) const override {
    for (int64_t i = 0; i < count; ++i) to[i] = values_[static_cast<size_t>(first + i * stride)];
    RoundElements(dtype_, to, count);
  }
  void LetGo() const override { values_.LetGo(); }

 private:
  const StoredValues& values_;
  const DataType dtype_;
};

class DrawnLeaf : public Leaf {
 public:
  DrawnLeaf(uint64_t stream, double deviation, DataType dtype)
      : stream_(stream), deviation_(deviation), dtype_(dtype) {}
  void Read(int64_t first, int64_t stride, int64_t count, double* to) const override {
    for (int64_t i = 0; i < count; ++i) {
      Random random(stream_, (first + i * stride) * Random::kOfNormal);
      to[i] = deviation_ * random.Normal();
    }
    RoundElements(dtype_, to, count);
  }

 private:
  const uint64_t stream_;
  const double deviation_;
  const DataType dtype_;
};

class OnesLeaf : public Leaf {
 public:
  void Read(int64_t, int64_t, int64_t count, double* to) const override {
    std::fill_n(to, count, 1.0);
  }
};

class HeldLeaf : public Leaf {
 public:
  explicit HeldLeaf(const Array<double>& values) : values_(values) {}
  void Read(int64_t first, int64_t stride, int64_t count, double* to) const override {
    for (int64_t i = 0; i < count; ++i) to[i] = values_.data[first + i * stride];
  }

 private:
  const Array<double>& values_;
};

}  // namespace

InitialLeafValues::InitialLeafValues(const Model& model, uint64_t seed) {
  const auto users = model.graph.Users();
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (!IsStored(node.op.kind())) continue;
    const TensorType& type = node.outputs[0];
    const auto given = model.weights.find(node.name);
    if (given != model.weights.end()) {
      leaves_[node.name] = std::make_unique<GivenLeaf>(given->second, type.dtype);
      sizes_[node.name] = static_cast<int64_t>(given->second.size());
      continue;
    }
    const LeafRole role = RoleOf(model.graph, users, NodeId{id});
    if (StartsAtOne(role)) {
      leaves_[node.name] = std::make_unique<OnesLeaf>();
    } else {
      leaves_[node.name] = std::make_unique<DrawnLeaf>(Random::StreamOf(seed, node.name),
                                                       Deviation(role, type.Sizes()), type.dtype);
    }
  }
}

absl::StatusOr<const Leaf*> InitialLeafValues::Find(const Graph& graph, NodeId leaf) const {
  const Node& node = graph.node(leaf);
  const auto found = leaves_.find(node.name);
  if (found == leaves_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(graph.Label(leaf), ": no value was given"));
  }
  const auto size = sizes_.find(node.name);
  const int64_t elements = node.outputs[0].NumElements();
  if (size != sizes_.end() && size->second != elements) {
    return absl::InvalidArgumentError(absl::StrCat(graph.Label(leaf), ": ", size->second,
                                                   " initial values for ", elements, " elements"));
  }
  return found->second.get();
}

HeldLeafValues::HeldLeafValues(const HostValues& values) : values_(values) {
  for (const auto& [name, array] : values) leaves_[name] = std::make_unique<HeldLeaf>(array);
}

absl::StatusOr<const Leaf*> HeldLeafValues::Find(const Graph& graph, NodeId leaf) const {
  const Node& node = graph.node(leaf);
  const auto found = values_.find(node.name);
  if (found == values_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(graph.Label(leaf), ": no value was given"));
  }
  if (found->second.shape != node.outputs[0].Sizes()) {
    return absl::InvalidArgumentError(absl::StrCat(graph.Label(leaf),
                                                   ": the value given has another shape than ",
                                                   node.outputs[0].ToString()));
  }
  return leaves_.at(node.name).get();
}

}  // namespace isomer
