#include "models/experts_room.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/expert_room.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// A dim is a product of factors, the slowest first. A capacity is a factor that becomes another.
struct Factor {
  int64_t before = 1, after = 1;
  bool is_capacity = false;
};
using Factors = std::vector<Factor>;

int64_t SizeAfter(const Factors& factors) {
  int64_t size = 1;
  for (const Factor& factor : factors) size *= factor.after;
  return size;
}

bool HasCapacity(const Factors& factors) {
  return std::any_of(factors.begin(), factors.end(),
                     [](const Factor& factor) { return factor.is_capacity; });
}

// Takes factors in their order, for dims of a reshape: so many elements at a time.
class FactorQueue {
 public:
  explicit FactorQueue(const std::vector<Factors>& dims) {
    for (const Factors& dim : dims) left_.insert(left_.end(), dim.begin(), dim.end());
  }

  // Those of a dim of that size; false: a capacity lies across its end. `next`: the size of the dim
  // behind it, or 0. A capacity of one token is a dim of its own where there is one of size 1.
  bool Take(int64_t size, int64_t next, Factors* taken) {
    while (place_ < left_.size()) {
      Factor& factor = left_[place_];
      if (factor.before == 1) {
        if (size == 1 && next == 1 && factor.is_capacity && !taken->empty()) break;
        taken->push_back(factor);
        ++place_;
        continue;
      }
      if (size == 1) break;
      const int64_t part = std::gcd(size, factor.before);
      if (part == factor.before) {
        taken->push_back(factor);
        ++place_;
      } else if (part == 1 || factor.is_capacity) {
        return false;
      } else {
        taken->push_back({part, part});
        factor = {factor.before / part, factor.before / part};
      }
      size /= part;
    }
    return size == 1;
  }

 private:
  Factors left_;
  size_t place_ = 0;
};

// Adds the calls of a graph to another one, whose capacities are others.
class RoomGiver {
 public:
  RoomGiver(double imbalance, const Graph& old) : imbalance_(imbalance), old_(old) {}

  absl::StatusOr<Graph> Run() {
    for (NodeId id : old_.TopologicalOrder()) {
      const Node& node = old_.node(id);
      if (IsLeaf(node.op.kind())) {
        now_[{id, 0}] = graph_.AddLeaf(node.op.kind(), node.name, node.outputs[0]);
        factors_[{id, 0}] = Unchanged(node.outputs[0]);
        continue;
      }
      const absl::Status added = Add(id);
      if (added.ok()) continue;
      return absl::InvalidArgumentError(absl::StrCat(old_.Label(id), ": ", added.message()));
    }
    for (const Graph::NamedOutput& output : old_.outputs()) {
      if (graph_.type(now_.at(output.tensor)) != old_.type(output.tensor)) {
        return absl::InvalidArgumentError(
            absl::StrCat("output ", output.name, ": its size is that of the experts' room"));
      }
      graph_.AddOutput(output.name, now_.at(output.tensor));
    }
    return std::move(graph_);
  }

 private:
  static std::vector<Factors> Unchanged(const TensorType& type) {
    std::vector<Factors> dims;
    for (int64_t size : type.Sizes()) dims.push_back({{size, size}});
    return dims;
  }

  absl::Status Add(NodeId id) {
    const Node& node = old_.node(id);
    Operator op = node.op;
    if (SendsToExperts(op.kind())) {
      ISOMER_RETURN_IF_ERROR(Route(id, &op));
    } else if (op.kind() == OpKind::kReshape) {
      ISOMER_RETURN_IF_ERROR(Reshape(id, &op));
    } else {
      ISOMER_RETURN_IF_ERROR(Follow(id));
    }
    std::vector<TensorRef> inputs;
    for (TensorRef input : node.inputs) inputs.push_back(now_.at(input));
    ISOMER_ASSIGN_OR_RETURN(const NodeId added,
                            graph_.Add(std::move(op), std::move(inputs), std::string(node.name)));
    for (int32_t o = 0; o < static_cast<int32_t>(node.outputs.size()); ++o) {
      now_[{id, o}] = {added, o};
      const std::vector<int64_t> sizes = graph_.type({added, o}).Sizes();
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == SizeAfter(factors_.at({id, o})[i])) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("dim ", i, " does not follow the room that experts have"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Route(NodeId id, Operator* op) {
    const Node& node = old_.node(id);
    const std::vector<int64_t> scores = old_.type(node.inputs[0]).Sizes();
    if (HasExpertGroups(scores)) {
      return absl::InvalidArgumentError(
          "experts in groups have the room that capacity_percent says: a group's unused rows count "
          "as rows that choose");
    }
    const ExpertRoom room = ExpertRoomOf(*op, scores);
    const int64_t capacity = room.CapacityFor(imbalance_);
    op->Set("capacity", capacity);
    for (int32_t o = 0; o < static_cast<int32_t>(node.outputs.size()); ++o) {
      factors_[{id, o}] = Unchanged(node.outputs[o]);
    }
    const int32_t slots = op->kind() == OpKind::kTop2Gating ? 0 : 2;
    factors_[{id, slots}].back() = {{room.capacity, capacity, /*is_capacity=*/true}};
    return absl::OkStatus();
  }

  absl::Status Reshape(NodeId id, Operator* op) {
    const Node& node = old_.node(id);
    const std::vector<int64_t> sizes = node.outputs[0].Sizes();
    const std::vector<Factors>& operand = factors_.at(node.inputs[0]);
    if (std::none_of(operand.begin(), operand.end(), HasCapacity)) {
      factors_[{id, 0}] = Unchanged(node.outputs[0]);
      return absl::OkStatus();
    }
    FactorQueue queue(operand);
    std::vector<Factors>& dims = factors_[{id, 0}];
    std::vector<int64_t> after;
    for (size_t i = 0; i < sizes.size(); ++i) {
      Factors& dim = dims.emplace_back();
      if (!queue.Take(sizes[i], i + 1 < sizes.size() ? sizes[i + 1] : 0, &dim)) {
        return absl::InvalidArgumentError(
            absl::StrCat("dim ", i, " has a part of the room that an expert has"));
      }
      after.push_back(SizeAfter(dim));
    }
    op->Set("shape", std::move(after));
    return absl::OkStatus();
  }

  // Dims of outputs are those of operands that lead the same dim of the iteration.
  absl::Status Follow(NodeId id) {
    const Node& node = old_.node(id);
    std::vector<TensorType> types;
    for (TensorRef input : node.inputs) types.push_back(old_.type(input));
    ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(node.op, types));
    const Declaration& declaration = sharding.declaration;
    std::map<int, const Factors*> by_lead;
    for (size_t o = 0; o < node.inputs.size(); ++o) {
      const std::vector<Factors>& dims = factors_.at(node.inputs[o]);
      for (size_t i = 0; i < dims.size(); ++i) {
        const int lead = declaration.LeadOfOperandDim(static_cast<int>(o), static_cast<int>(i));
        if (lead >= 0 && HasCapacity(dims[i])) by_lead[lead] = &dims[i];
      }
    }
    for (int32_t o = 0; o < static_cast<int32_t>(node.outputs.size()); ++o) {
      std::vector<Factors> dims = Unchanged(node.outputs[o]);
      for (size_t i = 0; i < dims.size(); ++i) {
        const auto of = by_lead.find(declaration.LeadOfOutputDim(o, static_cast<int>(i)));
        if (of != by_lead.end()) dims[i] = *of->second;
      }
      factors_[{id, o}] = std::move(dims);
    }
    return absl::OkStatus();
  }

  const double imbalance_;
  const Graph& old_;
  Graph graph_;
  std::map<TensorRef, TensorRef> now_;
  std::map<TensorRef, std::vector<Factors>> factors_;
};

}  // namespace

absl::Status CheckSendsToExperts(const Model& model) {
  bool looks_up = false;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const OpKind kind = model.graph.node(id).op.kind();
    if (SendsToExperts(kind)) return absl::OkStatus();
    looks_up |= kind == OpKind::kGatherMatMul;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      model.name, " sends no tokens to experts (topk_routing, top2_gating)",
      looks_up ? "; rows that look up their matrix (gather_matmul) are where they are, whatever "
                 "they choose"
               : ""));
}

absl::Status GiveExpertsRoom(double imbalance, Model* model) {
  ISOMER_RETURN_IF_ERROR(CheckSendsToExperts(*model));
  ISOMER_ASSIGN_OR_RETURN(model->graph, RoomGiver(imbalance, model->graph).Run());
  std::erase_if(model->assumptions, [](const auto& line) { return ParseImbalance(line) > 0; });
  model->assumptions.push_back(ImbalanceAssumption(imbalance));
  return absl::OkStatus();
}

absl::Status CheckAreLoadsOf(const Model& model, const ExpertLoads& loads) {
  ISOMER_RETURN_IF_ERROR(CheckSendsToExperts(model));
  std::map<std::string, const ExpertLoad*> by_name;
  for (const ExpertLoad& call : loads.calls) by_name[call.node] = &call;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (!SendsToExperts(node.op.kind())) continue;
    const auto of = by_name.find(node.name);
    if (of == by_name.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no load of ", model.graph.Label({id})));
    }
    const int64_t experts = ExpertRoomOf(node.op, model.graph.type(node.inputs[0]).Sizes()).experts;
    if (static_cast<int64_t>(of->second->tokens.size()) != experts) {
      return absl::InvalidArgumentError(absl::StrCat("it has a load of ", of->second->tokens.size(),
                                                     " experts of ", model.graph.Label({id}),
                                                     ", which has ", experts));
    }
    by_name.erase(of);
  }
  if (by_name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", by_name.begin()->first, "' is no call that sends tokens to experts"));
}

}  // namespace isomer
