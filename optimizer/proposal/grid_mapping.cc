#include "optimizer/proposal/grid_mapping.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/mapping/role_mapping.h"
#include "optimizer/proposal/expert_calls.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/sharding/compute_graph.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class GridMapper {
 public:
  GridMapper(const Graph& graph, const GridDegrees& degrees, CostTables* tables,
             std::string* misfit)
      : graph_(graph), degrees_(degrees), tables_(*tables), experts_(graph), misfit_(misfit) {}

  absl::StatusOr<MappedModel> Run() {
    if (misfit_ != nullptr) misfit_->clear();
    const PreferencesOfCall preferences = [this](const CallToMap& call) { return Prefer(call); };
    // What leads to a product of experts is no property of a call alone.
    const bool by_place = degrees_.expert > 1;
    ISOMER_ASSIGN_OR_RETURN(MappedModel mapped,
                            MapByRoles(graph_, preferences, by_place, &tables_));
    mapped.copies_arranged = true;
    if (degrees_.tensor > 1) KeepCopiesThatAreRead(&mapped);
    ISOMER_RETURN_IF_ERROR(CheckUsed(mapped));
    return mapped;
  }

 private:
  // What no user reads on every device that computes it is computed by one.
  void KeepCopiesThatAreRead(MappedModel* mapped) const {
    const ComputeGraph compute = AnalyzeCompute(graph_, tables_.options().training);
    std::vector<bool> read(compute.nodes.size(), false);
    // Users come before producers.
    for (size_t i = compute.nodes.size(); i-- > 0;) {
      const ComputeGraph::ComputeNode& node = compute.nodes[i];
      ShardingChoice& choice = mapped->choices.at(node.id);
      if (choice.copies() > 1 && !read[i]) choice = WithoutCopies(choice);
      for (size_t o = 0; o < node.operands.size(); ++o) {
        const ComputeGraph::Operand& operand = node.operands[o];
        if (operand.producer < 0) continue;
        const ShardingChoice& made = mapped->choices.at(compute.nodes[operand.producer].id);
        if (made.outputs[operand.output] == choice.operands[o]) read[operand.producer] = true;
      }
    }
  }

  std::vector<ShardingPreference> Prefer(const CallToMap& call) {
    std::vector<ShardingPreference> preferred;
    if (degrees_ != GridDegrees()) {
      const int experts = degrees_.expert > 1 ? experts_.DimOf(call) : -1;
      const int groups = degrees_.expert > 1 ? experts_.GroupDimOf(call) : -1;
      if (groups >= 0) {
        preferred.push_back(Groups(call, groups));
      } else if (experts >= 0 && Divides(call, experts, degrees_.expert, "expert")) {
        preferred.push_back(Grid(call, experts));
        splits_experts_ = true;
      } else {
        preferred.push_back(Grid(call, -1));
      }
      if (preferred.back().axes.empty()) preferred.clear();  // Data parallelism, as below.
    }
    call.AddDataParallel(&preferred);
    return preferred;
  }

  // Of a call on the rows of groups of experts: each group is where its experts are, and its
  // devices have a part of the batch each.
  ShardingPreference Groups(const CallToMap& call, int groups) const {
    const int batch = call.DimOf(DimRole::kBatch);
    const int64_t degree = call.DegreeFor(groups, degrees_.expert);
    const int64_t of_group = degrees_.expert * degrees_.context * degrees_.tensor / degree;
    const int64_t part = call.DegreeFor(batch, of_group);
    const int64_t rest = call.devices / (degree * of_group);
    const int64_t data = call.DegreeFor(batch, part * rest) / part;
    return {{{kIdleAxis, rest / data},
             {batch, data},
             {groups, degree},
             {kIdleAxis, of_group / part},
             {batch, part}}};
  }

  // `experts`: the iteration dim that is split by expert parallelism, or -1.
  ShardingPreference Grid(const CallToMap& call, int experts) {
    const int batch = call.DimOf(DimRole::kBatch);
    int64_t left = call.devices;
    std::vector<Axis> inner;  // innermost first
    const auto add = [&](int dim, int64_t degree) {
      if (degree == 1) return;
      inner.push_back({dim, degree});
      left /= degree;
    };
    const int sequence = call.DimOf(DimRole::kSequence);
    if (const int64_t part = PartByHeads(call, sequence); part > 0) {
      const int heads = call.declaration().LeadOfOutputDim(0, 1);
      add(heads, part);
      add(sequence, degrees_.tensor * degrees_.context / part);
      add(batch, call.DegreeFor(batch, left));
      splits_heads_ = true;
      return {{inner.rbegin(), inner.rend()}, 0, degrees_.tensor > 1 ? heads : -1, experts};
    }
    const int model = degrees_.tensor > 1 ? ModelDimOf(call) : -1;
    if (const int64_t part = PartOfModel(call, model, sequence); part > 0) {
      add(sequence, degrees_.tensor / part);
      add(model, part);
      if (experts >= 0) add(experts, degrees_.expert);
      add(batch, call.DegreeFor(batch, left));
      return {{inner.rbegin(), inner.rend()}, 0, model, experts};
    }
    const bool is_model =
        model >= 0 && model != batch && Divides(call, model, degrees_.tensor, "tensor");
    if (is_model) add(model, degrees_.tensor);
    const bool shares_sequence = !is_model && degrees_.sequence_parallel;
    const int64_t of_sequence = degrees_.context * (shares_sequence ? degrees_.tensor : 1);
    const bool splits_sequence = sequence >= 0 && sequence != batch && sequence != model &&
                                 call.DegreeFor(sequence, of_sequence) == of_sequence;
    // Rather than leave devices idle: a product that follows reads copies.
    if (!is_model && !(shares_sequence && splits_sequence) && CanBeCopied(call) &&
        (!degrees_.sequence_parallel || call.DegreeFor(batch, left) < left)) {
      add(kCopyAxis, degrees_.tensor);
    }
    if (splits_sequence) {
      add(sequence, of_sequence);
      splits_sequence_ |= degrees_.context > 1;
    }
    if (experts >= 0) add(experts, degrees_.expert);
    if (inner.empty()) return {};
    add(batch, call.DegreeFor(batch, left));
    return {{inner.rbegin(), inner.rend()}, 0, is_model ? model : -1, experts};
  }

  // By how much the heads of an attention are split over tensor x context devices, where that is
  // more than over those of tensor parallelism; what is left of the degree splits the sequence. 0:
  // nothing is gained.
  int64_t PartByHeads(const CallToMap& call, int sequence) const {
    if (!degrees_.context_by_heads || degrees_.context == 1 || sequence < 0) return 0;
    if (!IsAttention(call.space.op.kind())) return 0;
    const int heads = call.declaration().LeadOfOutputDim(0, 1);
    if (heads < 0 || call.space.expansions.SplitOf(heads) == nullptr) return 0;
    if (heads == sequence) return 0;  // Of a cache, whose dim 1 is no sequence.
    const int64_t degree = degrees_.tensor * degrees_.context;
    const int64_t part = call.DegreeFor(heads, degree), rest = degree / part;
    return part > degrees_.tensor && call.DegreeFor(sequence, rest) == rest ? part : 0;
  }

  // Fewer heads than devices, as those of keys may be: by how much they are split, where the
  // sequence is split by what that leaves of the degree; 0: all else. Devices of one head are next
  // to each other: they exchange queries, which have more heads, and results.
  int64_t PartOfModel(const CallToMap& call, int model, int sequence) {
    if (model < 0 || call.roles[model] != DimRole::kModel || degrees_.context > 1) return 0;
    if (sequence < 0 || sequence == model || call.DimOf(DimRole::kBatch) == model) return 0;
    const bool splits = call.space.expansions.SplitOf(model) != nullptr;
    const int64_t part = splits ? call.DegreeFor(model, degrees_.tensor) : 1;
    const int64_t rest = degrees_.tensor / part;
    if (rest == 1 || call.DegreeFor(sequence, rest) != rest) return 0;
    if (part == 1 && !IsAttention(call.space.op.kind())) return 0;
    const int64_t size = splits ? call.declaration().dims[model].size.value() : 1;
    Misfit(call, model, size, degrees_.tensor, "tensor",
           absl::StrCat("split ", part > 1 ? absl::StrCat("by ", part, " in it and ") : "", "by ",
                        rest, " in its sequence, with exchanges among those ", rest));
    return part;
  }

  // What is computed from samples, where a rule says that copies of results are results of copies;
  // a loss is split in its rows.
  bool CanBeCopied(const CallToMap& call) const {
    const auto is_stored = [](const auto& operand) { return operand.stored; };
    return call.declaration().outputs.size() == 1 && !IsLoss(call.space.op.kind()) &&
           tables_.rules().HasCopyOf(call.space.op.kind(), call.node.operand_types) &&
           !std::all_of(call.node.operands.begin(), call.node.operands.end(), is_stored);
  }

  // Of tensor parallelism; -1: the call is not split so.
  int ModelDimOf(const CallToMap& call) const {
    const Declaration& d = call.declaration();
    const int model = call.DimOf(DimRole::kModel);
    // Not the features of its values, each of which takes all scores.
    const int heads = IsAttention(call.space.op.kind()) ? d.LeadOfOutputDim(0, 1) : -1;
    if (heads >= 0 && call.roles[heads] == DimRole::kModel) return heads;
    if (model >= 0) return model;
    const bool is_product = call.IsProductWithWeight() || experts_.IsProduct(call.id);
    if (is_product) {  // column parallel
      return d.LeadOfOutputDim(0, static_cast<int>(d.outputs[0].size()) - 1);
    }
    const bool is_look_up =
        call.space.op.kind() == OpKind::kEmbedding && call.node.operands[0].stored;
    if (!is_look_up) return -1;
    const int rows = d.LeadOfOperandDim(0, 0);
    return rows >= 0 && call.space.expansions.SplitOf(rows) != nullptr ? rows : -1;
  }

  bool Divides(const CallToMap& call, int dim, int64_t degree, const char* flag) {
    if (call.DegreeFor(dim, degree) == degree) return true;
    Misfit(call, dim, call.declaration().dims[dim].size.value(), degree, flag, "split otherwise");
    return false;
  }

  void Misfit(const CallToMap& call, int dim, int64_t size, int64_t degree, const char* flag,
              const std::string& instead) {
    if (misfit_ == nullptr || !misfit_->empty()) return;
    *misfit_ = absl::StrCat("--", flag, "=", degree, " does not divide the ", size, " of dim ",
                            call.declaration().dims[dim].name, " of ", graph_.Label(call.id),
                            ", which is ", instead);
  }

  absl::Status CheckUsed(const MappedModel& mapped) const {
    const auto is_row_parallel = [&](const auto& mapped_call) {
      const auto& [id, choice] = mapped_call;
      return graph_.node(id).op.kind() == OpKind::kMatMul && choice.outputs[0].type.partials > 1;
    };
    if (degrees_.tensor > 1 &&
        std::none_of(mapped.choices.begin(), mapped.choices.end(), is_row_parallel)) {
      return absl::NotFoundError(
          absl::StrCat("--tensor=", degrees_.tensor,
                       ": no matrix product of the model is followed by another without a "
                       "reduction of its columns in between"));
    }
    if (degrees_.context > 1 && !splits_sequence_) {
      return absl::NotFoundError(absl::StrCat("--context=", degrees_.context,
                                              ": no call of the model is split in a sequence"));
    }
    if (degrees_.context_by_heads && !splits_heads_) {
      return absl::NotFoundError(
          absl::StrCat("--context=", degrees_.context,
                       " by heads: no attention of the model has heads for more ", "than ",
                       degrees_.tensor, degrees_.tensor == 1 ? " device" : " devices"));
    }
    if (degrees_.expert > 1 && !splits_experts_) {
      return absl::NotFoundError(absl::StrCat("--expert=", degrees_.expert,
                                              ": the model has no products of so many experts"));
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const GridDegrees degrees_;
  CostTables& tables_;
  const ExpertCalls experts_;
  std::string* const misfit_;
  bool splits_sequence_ = false, splits_heads_ = false, splits_experts_ = false;
};

}  // namespace

absl::StatusOr<MappedModel> MapGrid(const Graph& graph, const GridDegrees& degrees,
                                    CostTables* tables, std::string* misfit) {
  return GridMapper(graph, degrees, tables, misfit).Run();
}

}  // namespace isomer
