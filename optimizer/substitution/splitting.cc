#include "optimizer/substitution/splitting.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/mapping/restrictions.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/cut_choice.h"
#include "optimizer/sharding/cut_places.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Hash of the graph in which salts count only by which calls have the same. Salts of operators of
// `kept` count as they are.
absl::StatusOr<uint64_t> HashWithoutSalts(const Graph& graph, const OpKindSet& kept) {
  std::map<int64_t, int64_t> numbers;
  std::vector<Node> nodes;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Operator& op = graph.node(i).op;
    const char* const salt = TraitsOf(op.kind()).salt;
    if (salt == nullptr || kept.test(static_cast<size_t>(op.kind()))) continue;
    if (nodes.empty()) {
      for (int j = 0; j < graph.num_nodes(); ++j) nodes.push_back(graph.node(j));
    }
    const auto next = static_cast<int64_t>(numbers.size());
    nodes[i].op.Set(salt, numbers.try_emplace(op.Int(salt), next).first->second);
  }
  if (nodes.empty()) return graph.StructuralHash();
  ISOMER_ASSIGN_OR_RETURN(const Graph unsalted, GraphFromParts(std::move(nodes), graph.outputs()));
  return unsalted.StructuralHash();
}

class PieceBuilder {
 public:
  PieceBuilder(const Graph& whole, const ComputeGraph& compute, const DimRoles& roles,
               const std::vector<Lifetime>& lifetimes)
      : whole_(whole), compute_(compute), roles_(roles), lifetimes_(lifetimes) {
    std::sort(lifetimes_.begin(), lifetimes_.end(), [](const Lifetime& a, const Lifetime& b) {
      return std::tie(a.made, a.tensor) < std::tie(b.made, b.tensor);
    });
  }

  // The piece of calls [begin, end), between the cuts; the next piece ends at `next_end`.
  absl::StatusOr<Piece> Build(int begin, int end, int next_end, const Cut* in, const Cut* out) {
    piece_ = Piece();
    ids_.clear();
    begin_ = begin;
    if (in != nullptr) {
      piece_.has_in = true;
      piece_.in = in->tensor;
      piece_.in_gradient = compute_.depends_on_weight[in->tensor.node.value];
      piece_.in_node = AddFed("in", in->tensor);
    }
    for (int i = begin; i < end; ++i) {
      ISOMER_RETURN_IF_ERROR(Copy(compute_.nodes[i].id));
    }
    if (out != nullptr) {
      piece_.has_out = true;
      piece_.out = out->tensor;
      piece_.graph.AddOutput(kCrossingOutput, {ids_.at(out->tensor.node), out->tensor.output});
    }
    CarryOut(begin, end, next_end);
    for (const auto& output : whole_.outputs()) {
      auto it = ids_.find(output.tensor.node);
      if (it == ids_.end()) continue;
      piece_.graph.AddOutput(absl::StrCat("output", piece_.graph.outputs().size()),
                             {it->second, output.tensor.output});
    }
    return std::move(piece_);
  }

 private:
  NodeId AddFed(const std::string& name, TensorRef tensor) {
    const NodeId id = piece_.graph.AddInput(name, whole_.type(tensor)).node;
    piece_.whole_ids.resize(id.value + 1);
    piece_.whole_ids[id.value] = tensor.node;
    piece_.fed_roles.push_back({id, roles_.of(tensor)});
    return id;
  }

  absl::Status Copy(NodeId id) {
    if (ids_.count(id) > 0) return absl::OkStatus();
    const Node& node = whole_.node(id);
    NodeId copy;
    if (node.op.kind() == OpKind::kInput) {
      copy = piece_.graph.AddInput(absl::StrCat("input", ids_.size()), node.outputs[0]).node;
    } else if (node.op.kind() == OpKind::kConstant) {
      copy = piece_.graph.AddConstant(absl::StrCat("constant", ids_.size()), node.outputs[0]).node;
    } else if (node.op.kind() == OpKind::kWeight) {
      copy = piece_.graph.AddWeight(absl::StrCat("weight", ids_.size()), node.outputs[0]).node;
    } else {
      std::vector<TensorRef> inputs;
      for (TensorRef input : node.inputs) {
        ISOMER_ASSIGN_OR_RETURN(const TensorRef here, CopyTensor(input));
        inputs.push_back(here);
      }
      ISOMER_ASSIGN_OR_RETURN(copy, piece_.graph.Add(node.op, inputs, node.name));
    }
    ids_[id] = copy;
    piece_.whole_ids.resize(copy.value + 1);
    piece_.whole_ids[copy.value] = id;
    return absl::OkStatus();
  }

  absl::StatusOr<TensorRef> CopyTensor(TensorRef tensor) {
    if (piece_.has_in && tensor == piece_.in) return TensorRef{piece_.in_node, 0};
    const int made = compute_.index[tensor.node.value];
    if (made < 0 || made >= begin_) {
      ISOMER_RETURN_IF_ERROR(Copy(tensor.node));
      return TensorRef{ids_.at(tensor.node), tensor.output};
    }
    for (const Piece::CarriedIn& carried : piece_.carried_in) {
      if (carried.tensor == tensor) return TensorRef{carried.node, 0};
    }
    const NodeId id = AddFed(absl::StrCat("carried", piece_.carried_in.size()), tensor);
    piece_.carried_in.push_back({tensor, id, compute_.depends_on_weight[tensor.node.value]});
    return TensorRef{id, 0};
  }

  void CarryOut(int begin, int end, int next_end) {
    auto lifetime = std::partition_point(lifetimes_.begin(), lifetimes_.end(),
                                         [&](const Lifetime& l) { return l.made < begin; });
    for (; lifetime != lifetimes_.end() && lifetime->made < end; ++lifetime) {
      const TensorRef tensor = lifetime->tensor;
      const bool crosses = piece_.has_out && tensor == piece_.out;
      if (lifetime->last_use < (crosses ? next_end : end)) continue;
      piece_.graph.AddOutput(CarriedOutput(piece_.carried_out.size()),
                             {ids_.at(tensor.node), tensor.output});
      piece_.carried_out.push_back({tensor});
    }
  }

  const Graph& whole_;
  const ComputeGraph& compute_;
  const DimRoles& roles_;
  std::vector<Lifetime> lifetimes_;  // in order of places
  Piece piece_;
  int begin_ = 0;
  std::map<NodeId, NodeId> ids_;
};

void CountCarriedUses(std::vector<Piece>* pieces) {
  std::map<TensorRef, int> uses;
  for (const Piece& piece : *pieces) {
    for (const Piece::CarriedIn& carried : piece.carried_in) {
      for (int i = 0; i < piece.graph.num_nodes(); ++i) {
        const std::vector<TensorRef>& inputs = piece.graph.node(i).inputs;
        uses[carried.tensor] +=
            static_cast<int>(std::count(inputs.begin(), inputs.end(), TensorRef{carried.node, 0}));
      }
    }
  }
  for (Piece& piece : *pieces) {
    for (Piece::CarriedOut& carried : piece.carried_out) carried.uses = uses[carried.tensor];
  }
}

absl::Status SetKey(const RuleMatcher* matcher, Piece* piece) {
  ISOMER_ASSIGN_OR_RETURN(
      piece->key,
      HashWithoutSalts(piece->graph, matcher == nullptr ? OpKindSet() : matcher->kinds()));
  piece->key = HashCombine(piece->key, piece->in_gradient);
  for (const Piece::CarriedIn& carried : piece->carried_in) {
    piece->key = HashCombine(piece->key, carried.gradient);
  }
  for (const Piece::CarriedOut& carried : piece->carried_out) {
    piece->key = HashCombine(piece->key, static_cast<uint64_t>(carried.uses));
  }
  for (const FedRoles& fed : piece->fed_roles) {
    for (DimRole role : fed.roles)
      piece->key = HashCombine(piece->key, static_cast<uint64_t>(role));
  }
  return absl::OkStatus();
}

void Restrict(const Restrictions& restrictions, Piece* piece) {
  for (size_t i = 0; i < piece->whole_ids.size(); ++i) {
    const bool is_fed =
        std::any_of(piece->fed_roles.begin(), piece->fed_roles.end(),
                    [&](const FedRoles& fed) { return fed.input.value == static_cast<int>(i); });
    const CallRestriction* restriction = is_fed ? nullptr : restrictions.Of(piece->whole_ids[i]);
    piece->restrictions.push_back(restriction);
    if (restriction == nullptr) continue;
    piece->key = HashCombine(piece->key, i, HashBytes(restriction->Key()));
  }
}

}  // namespace

std::string CarriedOutput(size_t place) { return absl::StrCat("@carried", place); }

std::vector<NodeId> Piece::FedWithGradient() const {
  std::vector<NodeId> fed;
  if (has_in && in_gradient) fed.push_back(in_node);
  for (const CarriedIn& carried : carried_in) {
    if (carried.gradient) fed.push_back(carried.node);
  }
  return fed;
}

namespace {

std::vector<bool> DependOnInputs(const Graph& graph) {
  std::vector<bool> fed(graph.num_nodes(), false);
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    fed[id.value] = node.op.kind() == OpKind::kInput ||
                    std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorRef input) {
                      return static_cast<bool>(fed[input.node.value]);
                    });
  }
  return fed;
}

}  // namespace

absl::StatusOr<std::vector<Piece>> SplitGraph(const Graph& graph, int min_nodes,
                                              const Restrictions* restrictions,
                                              RuleMatcher* matcher) {
  const ComputeGraph compute = AnalyzeCompute(graph);
  const int n = static_cast<int>(compute.nodes.size());
  const std::vector<Lifetime> lifetimes = LifetimesOf(graph, compute);
  std::vector<Cut> cuts = FindCuts(graph, compute, lifetimes);
  // Results of weights alone may be computed when these are loaded, and then cross nowhere.
  const std::vector<bool> fed = DependOnInputs(graph);
  std::erase_if(cuts, [&](const Cut& cut) { return !fed[cut.tensor.node.value]; });
  std::vector<int> places;
  for (const Cut& cut : cuts) places.push_back(cut.after);
  const std::vector<double> spanning = matcher == nullptr
                                           ? std::vector<double>(cuts.size(), 0)
                                           : CountSpanningMatches(graph, compute, places, matcher);
  const std::vector<int> chosen = ChooseCuts(places, spanning, n, min_nodes);
  const DimRoles roles = RolesOf(graph);
  const auto end_of = [&](size_t c) { return c < chosen.size() ? places[chosen[c]] + 1 : n; };
  std::vector<Piece> pieces;
  PieceBuilder builder(graph, compute, roles, lifetimes);
  for (size_t c = 0; c <= chosen.size(); ++c) {
    const Cut* in = c == 0 ? nullptr : &cuts[chosen[c - 1]];
    const Cut* out = c == chosen.size() ? nullptr : &cuts[chosen[c]];
    ISOMER_ASSIGN_OR_RETURN(
        Piece piece, builder.Build(c == 0 ? 0 : end_of(c - 1), end_of(c), end_of(c + 1), in, out));
    pieces.push_back(std::move(piece));
  }
  CountCarriedUses(&pieces);
  for (Piece& piece : pieces) {
    ISOMER_RETURN_IF_ERROR(SetKey(matcher, &piece));
    if (restrictions != nullptr) Restrict(*restrictions, &piece);
  }
  return pieces;
}

}  // namespace isomer
