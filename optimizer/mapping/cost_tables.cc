#include "optimizer/mapping/cost_tables.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/mapping/call_restriction.h"
#include "optimizer/mapping/choice_pricer.h"
#include "optimizer/mapping/derivation_memo.h"
#include "optimizer/mapping/move_pricer.h"
#include "pcg/ir/call_hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

std::string PlacementKey(const Placement& placement) {
  std::string key = absl::StrCat(placement.type.ToString(), "@", placement.view.start);
  // Strides of coordinates with extent 1 are meaningless.
  const TensorType& type = placement.type;
  for (int i = 0; i < type.rank(); ++i) {
    absl::StrAppend(&key, ",", type.dims[i].degree > 1 ? placement.view.strides[i] : 0);
  }
  absl::StrAppend(&key, ",", type.copies > 1 ? placement.view.strides.end()[-2] : 0, ",",
                  type.partials > 1 ? placement.view.strides.end()[-1] : 0);
  if (!placement.view.moments.empty()) {
    absl::StrAppend(&key, "/", absl::StrJoin(placement.view.moments, ","));
  }
  for (const OuterStride& o : placement.view.outer) {
    absl::StrAppend(&key, ";", o.axis, ",", o.period, ",", o.stride);
  }
  return key;
}

// Placement of one micro-batch of a tensor or, unless `each`, of all micro-batches: a device's
// shards in all of them count as one, as do its partial sums.
Placement WithoutMoments(Placement placement, bool each) {
  if (placement.view.moments.empty()) return placement;
  TensorType& type = placement.type;
  for (int i = 0; i < type.rank(); ++i) {
    if (each) type.dims[i].size /= placement.view.moments[i];
    type.dims[i].degree /= placement.view.moments[i];
  }
  type.copies /= placement.view.moments[type.rank()];
  type.partials /= placement.view.moments[type.rank() + 1];
  placement.view.moments.clear();
  return placement;
}

}  // namespace

// A placement and its gradient, in the precision of communication; each of one micro-batch, where
// these move one by one.
struct PlacementForms {
  struct Both {
    PlacedTensor forward, backward;
  };
  Both whole, each;
};

// A call's space, and its choices under some options.
struct CostTables::KnownCall {
  // Devices, first device, axes, choices, micro-batches and their dim, halves, restriction.
  using Key = std::tuple<int64_t, int64_t, int, int, int64_t, int, bool, std::string>;
  ChoiceSpace space;
  std::map<Key, std::unique_ptr<CallTables>> tables;
  // Unrestricted tables, by options (Caches::setting) and micro-batch dim: few.
  struct Found {
    int setting, moment_dim;
    const CallTables* tables;
  };
  std::vector<Found> found;
};

struct CostTables::Caches {
  explicit Caches(const CostModel& cost) : moves(cost) {}
  // Id of the options that choices depend on; -1: not looked up since they were set.
  int setting = -1;
  std::map<std::tuple<int64_t, int64_t, int64_t, int, int, bool>, int> settings;
  MovePricer moves;
  ExpansionMemo expansions;
  SplitPairs pairs;
  absl::flat_hash_map<uint64_t, std::vector<std::unique_ptr<KnownCall>>>
      calls;  // by hash of the call
  std::map<std::string, int> placement_ids;
  std::map<std::vector<int>, PlacementSetId> set_ids;
  std::vector<std::unique_ptr<PlacementForms>> forms;  // per placement, made lazily
  std::map<std::pair<const CallTables*, std::string>, std::vector<float>> node_us;
  std::map<std::pair<const CallTables*, std::string>, std::vector<ChoiceCost>> choice_costs;
  // Keyed by the price of memory, too.
  std::map<std::tuple<PlacementSetId, PlacementSetId, bool, double>, std::unique_ptr<CostTable>>
      edge_us;
};

CostTables::CostTables(const RuleIndex& rules, const CostModel& cost, CostOptions options)
    : rules_(rules),
      cost_(cost),
      options_(options),
      derivation_memo_(std::make_unique<DerivationMemo>(rules)),
      caches_(std::make_unique<Caches>(cost)) {}

CostTables::~CostTables() = default;

void CostTables::set_options(const CostOptions& options) {
  const auto costs = [](const CostOptions& o) {
    return std::tuple(o.training, o.precision, o.fp8_scaling, o.optimizer, o.update_method,
                      o.gradient_sums, o.state_precision, o.clips, o.averages, o.updates_together);
  };
  if (costs(options) != costs(options_)) caches_->choice_costs.clear();
  if (options.training != options_.training || options.precision != options_.precision) {
    caches_->forms.clear();
    caches_->edge_us.clear();
  }
  options_ = options;
  caches_->setting = -1;
  caches_->node_us.clear();
}

int64_t CostTables::num_devices() const {
  return options_.num_devices > 0 ? options_.num_devices : cost_.machine().num_devices();
}

ChoiceOptions CostTables::WholeOptions(int moment_dim) const {
  ChoiceOptions options = {.num_devices = num_devices(),
                           .max_axes = options_.max_axes,
                           .start = options_.first_device,
                           .moments = options_.moments,
                           .moment_dim = options_.moments > 1 ? moment_dim : -1,
                           .limit = options_.max_choices};
  for (int l = 0; l < caches_->moves.levels().size(); ++l) {
    options.units.push_back(caches_->moves.levels()[l].unit);
  }
  return options;
}

namespace {

// Options for a share of the devices of `options`. A half has a quarter of the choices.
ChoiceOptions OptionsOf(Share share, ChoiceOptions options) {
  if (share == Share::kWhole) return options;
  options.num_devices /= 2;
  options.limit /= 4;
  if (share == Share::kUpper) options.start += options.num_devices;
  return options;
}

}  // namespace

absl::StatusOr<CostTables::KnownCall*> CostTables::Find(const Operator& op,
                                                        const std::vector<TensorType>& operands) {
  auto& alike = caches_->calls[QuickHashOfCall(op, operands)];
  for (const auto& known : alike) {
    if (known->space.op == op && known->space.operands == operands) return known.get();
  }
  auto known = std::make_unique<KnownCall>();
  ISOMER_ASSIGN_OR_RETURN(known->space, SpaceOfCall(rules_, op, operands, &caches_->expansions));
  alike.push_back(std::move(known));
  return alike.back().get();
}

absl::StatusOr<const ChoiceSpace*> CostTables::Space(const Operator& op,
                                                     const std::vector<TensorType>& operands) {
  ISOMER_ASSIGN_OR_RETURN(const KnownCall* known, Find(op, operands));
  return &known->space;
}

absl::StatusOr<const CallTables*> CostTables::Call(const Operator& op,
                                                   const std::vector<TensorType>& operands,
                                                   int moment_dim,
                                                   const CallRestriction* restriction) {
  ISOMER_ASSIGN_OR_RETURN(KnownCall* const known, Find(op, operands));
  if (restriction != nullptr) return Tables(moment_dim, restriction, known);
  int& setting = caches_->setting;
  if (setting < 0) {
    const CostOptions& o = options_;
    const auto at = caches_->settings.try_emplace(
        {num_devices(), o.first_device, o.moments, o.max_axes, o.max_choices, o.halves},
        static_cast<int>(caches_->settings.size()));
    setting = at.first->second;
  }
  for (const KnownCall::Found& found : known->found) {
    if (found.setting == setting && found.moment_dim == moment_dim) return found.tables;
  }
  ISOMER_ASSIGN_OR_RETURN(const CallTables* tables, Tables(moment_dim, nullptr, known));
  known->found.push_back({setting, moment_dim, tables});
  return tables;
}

absl::StatusOr<const CallTables*> CostTables::Tables(int moment_dim,
                                                     const CallRestriction* restriction,
                                                     KnownCall* known) {
  ChoiceOptions whole = WholeOptions(moment_dim);
  bool halves = options_.halves;
  if (restriction != nullptr && restriction->devices) {
    whole.num_devices = restriction->devices->count;
    whole.start = restriction->devices->first;
  }
  if (restriction != nullptr && (restriction->devices || restriction->whole_machine)) {
    halves = false;
  }
  std::unique_ptr<CallTables>& slot =
      known->tables[{whole.num_devices, whole.start, whole.max_axes, whole.limit, whole.moments,
                     whole.moment_dim, halves, restriction == nullptr ? "" : restriction->Key()}];
  if (slot != nullptr) return slot.get();
  auto call = std::make_unique<CallTables>();
  call->space = known->space;
  for (Share share : {Share::kWhole, Share::kLower, Share::kUpper}) {
    if (share != Share::kWhole && (!halves || whole.num_devices % 2 != 0)) continue;
    AddChoices(OptionsOf(share, whole), &caches_->pairs, &call->space);
    if (share == Share::kWhole && !cost_.uniform()) AddFastestNode(whole, call.get());
    call->shares.resize(call->space.choices.size(), share);
  }
  if (restriction != nullptr) {
    ISOMER_RETURN_IF_ERROR(RestrictChoices(*restriction, whole, &call->space, &call->shares));
  }
  DropDoubles(call.get());
  slot = std::move(call);
  return slot.get();
}

// Choices that leave devices idle use the machine's first devices, which may be its slowest: also
// offers the fastest node.
void CostTables::AddFastestNode(ChoiceOptions options, CallTables* call) {
  const Machine& machine = cost_.machine();
  const int64_t node = machine.devices_per_node(), end = options.start + options.num_devices;
  int64_t fastest = options.start;
  for (int64_t d = options.start; d + node <= end; d += node) {
    if (machine.kind(d).flops_per_us > machine.kind(fastest).flops_per_us) fastest = d;
  }
  if (fastest == options.start) return;
  options.start = fastest;
  options.num_devices = node;
  options.limit /= 4;
  AddChoices(options, &caches_->pairs, &call->space);
}

// Keeps the first of the choices with equal placements of all tensors: they cost the same.
void CostTables::DropDoubles(CallTables* call) {
  std::vector<ShardingChoice>& choices = call->space.choices;
  const size_t operands = call->space.operands.size();
  const size_t tensors = operands + call->space.sharding.outputs.size();
  std::vector<std::vector<int>> ids(tensors);
  std::set<std::vector<int>> seen;
  size_t kept = 0;
  for (size_t k = 0; k < choices.size(); ++k) {
    std::vector<int> own = {static_cast<int>(call->shares[k])};
    for (const Placement& placement : choices[k].operands)
      own.push_back(InternPlacement(placement));
    for (const Placement& placement : choices[k].outputs) own.push_back(InternPlacement(placement));
    if (!seen.insert(own).second) continue;
    for (size_t t = 0; t < tensors; ++t) ids[t].push_back(own[t + 1]);
    if (kept != k) choices[kept] = std::move(choices[k]);
    call->shares[kept++] = call->shares[k];
  }
  choices.resize(kept);
  call->shares.resize(kept);
  for (size_t t = 0; t < tensors; ++t) {
    (t < operands ? call->operands : call->outputs).push_back(InternIds(std::move(ids[t])));
  }
}

int CostTables::InternPlacement(const Placement& placement) {
  auto [it, added] = caches_->placement_ids.try_emplace(PlacementKey(placement),
                                                        static_cast<int>(placements_.size()));
  if (added) placements_.push_back(std::make_unique<Placement>(placement));
  return it->second;
}

PlacementSetId CostTables::Intern(const std::vector<Placement>& placements) {
  std::vector<int> ids;
  for (const Placement& placement : placements) ids.push_back(InternPlacement(placement));
  return InternIds(std::move(ids));
}

PlacementSetId CostTables::InternIds(std::vector<int> ids) {
  auto [it, added] = caches_->set_ids.try_emplace(ids, static_cast<int>(sets_.size()));
  if (added) sets_.push_back(std::move(ids));
  return it->second;
}

Placement CostTables::InPrecision(Placement placement) const {
  placement.type.dtype = ComputedIn(options_.precision, placement.type.dtype);
  return placement;
}

const std::vector<float>& CostTables::NodeUs(const CallTables& call,
                                             const ComputeGraph::ComputeNode& node) {
  std::string key;
  for (const auto& operand : node.operands) {
    key += operand.stored ? 's' : '-';
    key += operand.gradient ? 'g' : '-';
  }
  auto [it, added] = caches_->node_us.try_emplace({&call, key});
  if (!added) return it->second;
  std::vector<ChoiceCost>& costs = caches_->choice_costs[{&call, key}];
  if (costs.empty()) {
    ChoicePricer pricer(cost_, options_, call.space, node);
    for (const ShardingChoice& choice : call.space.choices) costs.push_back(pricer.CostOf(choice));
  }
  for (const ChoiceCost& c : costs) {
    it->second.push_back(static_cast<float>(c.us + options_.sync_weight * c.synchronisation_us +
                                            options_.us_per_byte * c.bytes));
  }
  return it->second;
}

// Forward and, with `gradient`, backward.
float CostTables::MoveUs(int from, int to, bool gradient) {
  if (from == to) return 0;
  auto form = [&](int id) -> const PlacementForms& {
    auto& forms = caches_->forms;
    if (forms.size() < placements_.size()) forms.resize(placements_.size());
    if (forms[id] == nullptr) {
      const Placement computed = InPrecision(*placements_[id]);
      const auto both = [&](bool each) -> PlacementForms::Both {
        const Placement forward = WithoutMoments(computed, each);
        return {caches_->moves.Place(forward), caches_->moves.Place(GradientPlacement(forward))};
      };
      forms[id] = std::make_unique<PlacementForms>(PlacementForms{both(false), both(true)});
    }
    return *forms[id];
  };
  // If both ends split the same dim into micro-batches, these are resharded one by one.
  const MachineView &view = placements_[from]->view, &other = placements_[to]->view;
  const bool each = !view.moments.empty() && view.moments == other.moments;
  const double times = each ? static_cast<double>(NumMoments(view)) : 1;
  const auto& produced = each ? form(from).each : form(from).whole;
  const auto& needed = each ? form(to).each : form(to).whole;
  if (!CanReshard(produced.forward.placement.type, needed.forward.placement.type)) {
    return kImpossibleUs;
  }
  double us = caches_->moves.Us(produced.forward, needed.forward);
  if (gradient) us += caches_->moves.Us(needed.backward, produced.backward);
  us *= times;
  // The received tensor is kept for the backward pass, in addition to the sent one.
  if (options_.training) {
    us += options_.us_per_byte * static_cast<double>(needed.forward.placement.type.LocalBytes());
  }
  return static_cast<float>(us);
}

const CostTable& CostTables::EdgeUs(PlacementSetId from, PlacementSetId to, bool gradient) {
  gradient = gradient && options_.training;
  std::unique_ptr<CostTable>& table = caches_->edge_us[{from, to, gradient, options_.us_per_byte}];
  if (table != nullptr) return *table;
  const std::vector<int>&rows = sets_[from], &cols = sets_[to];
  table = std::make_unique<CostTable>(static_cast<int>(rows.size()), static_cast<int>(cols.size()),
                                      kImpossibleUs);
  for (int r = 0; r < table->rows; ++r) {
    for (int c = 0; c < table->cols; ++c) table->at(r, c) = MoveUs(rows[r], cols[c], gradient);
  }
  table->key = table->ContentKey();
  return *table;
}

}  // namespace isomer
