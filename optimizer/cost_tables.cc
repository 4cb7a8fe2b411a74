#include "optimizer/cost_tables.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/call_restriction.h"
#include "optimizer/halo_cost.h"
#include "pcg/support/status_macros.h"
#include "pcg/work.h"

namespace isomer {
namespace {

// The devices that hold the copies of a stored operand's first shard. Copies at several moments of
// a device are one.
DeviceGroup CopyGroup(const Placement& placement) {
  const size_t axis = placement.type.dims.size();
  return {placement.view.start, placement.view.strides[axis],
          placement.type.copies / placement.view.MomentsOfAxis(axis)};
}

std::string PlacementKey(const Placement& placement) {
  std::string key = absl::StrCat(placement.type.ToString(), "@", placement.view.start);
  // Strides of coordinates that do not vary say nothing.
  const TensorType& type = placement.type;
  for (int i = 0; i < type.rank(); ++i) {
    absl::StrAppend(&key, ",", type.dims[i].degree > 1 ? placement.view.strides[i] : 0);
  }
  absl::StrAppend(&key, ",", type.copies > 1 ? placement.view.strides.end()[-2] : 0, ",",
                  type.partials > 1 ? placement.view.strides.end()[-1] : 0);
  if (!placement.view.moments.empty()) {
    absl::StrAppend(&key, "/", absl::StrJoin(placement.view.moments, ","));
  }
  return key;
}

DataType DataTypeIn(DataType precision, DataType dtype) {
  return dtype == DataType::kFloat32 ? precision : dtype;
}

}  // namespace

namespace {

// Devices of several kinds wait for the slowest.
template <typename UsOn>
double SlowestUs(const CostModel& cost, const ShardingChoice& choice, const UsOn& us_on) {
  if (cost.uniform()) return us_on(choice.start);
  double us = 0;
  const Placement& output = choice.outputs[0];
  for (int64_t device : cost.OnePerKind(DevicesOf(output.view, output.type))) {
    us = std::max(us, us_on(device));
  }
  return us;
}

}  // namespace

void CostTables::set_options(const CostOptions& options) {
  const auto costs = [](const CostOptions& o) {
    return std::tuple(o.training, o.precision, o.optimizer, o.update_method, o.zero_stage);
  };
  if (costs(options) != costs(options_)) choice_costs_.clear();
  if (options.training != options_.training || options.precision != options_.precision) {
    reshard_us_.clear();
    edge_us_.clear();
  }
  options_ = options;
  node_us_.clear();
}

int64_t CostTables::num_devices() const {
  return options_.num_devices > 0 ? options_.num_devices : cost_.machine().num_devices();
}

absl::StatusOr<const CallTables*> CostTables::Call(const Operator& op,
                                                   const std::vector<TensorType>& operands,
                                                   int moment_dim,
                                                   const CallRestriction* restriction) {
  ChoiceOptions choice_options = {.num_devices = num_devices(),
                                  .max_axes = options_.max_axes,
                                  .start = options_.first_device,
                                  .moments = options_.moments,
                                  .moment_dim = options_.moments > 1 ? moment_dim : -1};
  bool halves = options_.halves;
  if (restriction != nullptr && restriction->devices) {
    choice_options.num_devices = restriction->devices->count;
    choice_options.start = restriction->devices->first;
  }
  if (restriction != nullptr && (restriction->devices || restriction->whole_machine)) {
    halves = false;
  }
  const std::string key = absl::StrCat(
      choice_options.num_devices, " ", choice_options.start, " ", choice_options.max_axes, " ",
      choice_options.moments, " ", choice_options.moment_dim, " ", halves, "|", op.ToString(), "|",
      absl::StrJoin(operands, "|",
                    [](std::string* out, const TensorType& type) { out->append(type.ToString()); }),
      restriction == nullptr ? "" : absl::StrCat("|", restriction->Key()));
  std::unique_ptr<CallTables>& slot = calls_[key];
  if (slot != nullptr) return slot.get();
  auto call = std::make_unique<CallTables>();
  ISOMER_ASSIGN_OR_RETURN(call->space, EnumerateChoices(rules_, op, operands, choice_options));
  call->shares.assign(call->space.choices.size(), Share::kWhole);
  if (halves) ISOMER_RETURN_IF_ERROR(AddHalves(choice_options, call.get()));
  if (restriction != nullptr) {
    ISOMER_RETURN_IF_ERROR(
        RestrictChoices(*restriction, choice_options, &call->space, &call->shares));
  }
  const auto& choices = call->space.choices;
  for (size_t o = 0; o < operands.size(); ++o) {
    std::vector<Placement> set;
    for (const ShardingChoice& choice : choices) set.push_back(choice.operands[o]);
    call->operands.push_back(Intern(set));
  }
  for (size_t o = 0; o < call->space.sharding.outputs.size(); ++o) {
    std::vector<Placement> set;
    for (const ShardingChoice& choice : choices) set.push_back(choice.outputs[o]);
    call->outputs.push_back(Intern(set));
  }
  slot = std::move(call);
  return slot.get();
}

absl::Status CostTables::AddHalves(const ChoiceOptions& options, CallTables* call) {
  if (options.num_devices % 2 != 0) return absl::OkStatus();
  for (Share share : {Share::kLower, Share::kUpper}) {
    ChoiceOptions of_half = options;
    of_half.num_devices /= 2;
    if (share == Share::kUpper) of_half.start += of_half.num_devices;
    ISOMER_ASSIGN_OR_RETURN(
        ChoiceSpace half, EnumerateChoices(rules_, call->space.op, call->space.operands, of_half));
    for (ShardingChoice& choice : half.choices) {
      call->space.choices.push_back(std::move(choice));
      call->shares.push_back(share);
    }
  }
  return absl::OkStatus();
}

int CostTables::InternPlacement(const Placement& placement) {
  auto [it, added] =
      placement_ids_.try_emplace(PlacementKey(placement), static_cast<int>(placements_.size()));
  if (added) placements_.push_back(std::make_unique<Placement>(placement));
  return it->second;
}

PlacementSetId CostTables::Intern(const std::vector<Placement>& placements) {
  std::vector<int> ids;
  for (const Placement& placement : placements) ids.push_back(InternPlacement(placement));
  auto [it, added] = set_ids_.try_emplace(ids, static_cast<int>(sets_.size()));
  if (added) sets_.push_back(std::move(ids));
  return it->second;
}

Placement CostTables::InPrecision(Placement placement) const {
  placement.type.dtype = DataTypeIn(options_.precision, placement.type.dtype);
  return placement;
}

// Brings the copies of a trained weight up to date, apart from `sync_us`, the communication.
double CostTables::UpdateUs(const Placement& weight, const ShardingChoice& choice,
                            double* sync_us) const {
  const DeviceGroup group = CopyGroup(weight);
  int64_t bytes = weight.type.LocalBytes();
  auto add = [&](Collective kind, int times) {
    *sync_us += times * cost_.CollectiveUs(kind, bytes, group);
  };
  switch (options_.update_method) {
    case UpdateMethod::kAllReduce:
      add(Collective::kAllReduce, 1);
      break;
    case UpdateMethod::kSharded:
    case UpdateMethod::kShardedGradients:
    case UpdateMethod::kShardedWeights:
      // Weights that are held in parts are gathered before the forward and the backward pass.
      add(Collective::kReduceScatter, 1);
      add(Collective::kAllGather, options_.zero_stage >= 3 ? 2 : 1);
      bytes /= group.count;
      break;
    case UpdateMethod::kOwner:
      add(Collective::kReduce, 1);
      add(Collective::kBroadcast, 1);
      break;
  }
  // States are read and written beside the three passes of SGD.
  const int64_t passes = 3 + 2 * NumStates(options_.optimizer);
  return SlowestUs(cost_, choice,
                   [&](int64_t device) { return cost_.UpdateUs(bytes * passes / 3, device); });
}

CostTables::ChoiceCost CostTables::CostOfChoice(const ChoiceSpace& space,
                                                const ShardingChoice& choice,
                                                const ComputeGraph::ComputeNode& node) const {
  std::vector<TensorType> types;
  std::vector<bool> wanted;
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    types.push_back(choice.operands[o].type);
    if (!IsLoss(space.op.kind())) {
      types[o].dtype = DataTypeIn(options_.precision, types[o].dtype);
    }
    wanted.push_back(node.operands[o].gradient);
  }
  auto sharding = InferSharding(space.op, types);
  if (!sharding.ok()) return {};
  double us =
      SlowestUs(cost_, choice, [&, work = ForwardWork(space.op, *sharding, types)](int64_t device) {
        return cost_.CallUs(space.op, types, {}, work, device);
      });
  double sync_us = 0, update_us = 0;
  const bool backward =
      options_.training && std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  if (backward) {
    us += SlowestUs(cost_, choice,
                    [&, work = GradientWork(space.op, *sharding, types, wanted)](int64_t device) {
                      return cost_.CallUs(space.op, types, wanted, work, device);
                    });
    for (size_t o = 0; o < choice.operands.size(); ++o) {
      if (!node.operands[o].stored || !wanted[o]) continue;
      update_us += UpdateUs(choice.operands[o], choice, &sync_us);
    }
  }
  us *= static_cast<double>(choice.moments);
  int64_t bytes = StoredBytes(choice, node, options_);
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    const HaloCost halo =
        CostOfHalo(cost_, *sharding, static_cast<int>(o), InPrecision(choice.operands[o]));
    us += halo.us * (backward && wanted[o] ? 2 : 1);
    if (options_.training) bytes += halo.bytes;
  }
  return {static_cast<float>(us + update_us), static_cast<float>(sync_us),
          static_cast<double>(bytes)};
}

const std::vector<float>& CostTables::NodeUs(const CallTables& call,
                                             const ComputeGraph::ComputeNode& node) {
  std::string key;
  for (const auto& operand : node.operands) {
    key += operand.stored ? 's' : '-';
    key += operand.gradient ? 'g' : '-';
  }
  auto [it, added] = node_us_.try_emplace({&call, key});
  if (!added) return it->second;
  std::vector<ChoiceCost>& costs = choice_costs_[{&call, key}];
  if (costs.empty()) {
    for (const ShardingChoice& choice : call.space.choices) {
      costs.push_back(CostOfChoice(call.space, choice, node));
    }
  }
  for (const ChoiceCost& c : costs) {
    it->second.push_back(static_cast<float>(c.us + options_.sync_weight * c.synchronisation_us +
                                            options_.us_per_byte * c.bytes));
  }
  return it->second;
}

namespace {

// What one micro-batch of a tensor is: its pieces at one moment.
Placement OfOneMoment(Placement placement) {
  if (placement.view.moments.empty()) return placement;
  TensorType& type = placement.type;
  for (int i = 0; i < type.rank(); ++i) {
    type.dims[i].size /= placement.view.moments[i];
    type.dims[i].degree /= placement.view.moments[i];
  }
  type.copies /= placement.view.moments[type.rank()];
  type.partials /= placement.view.moments[type.rank() + 1];
  placement.view.moments.clear();
  return placement;
}

// What a device has of a tensor at all moments is one piece. Partial sums of moments are one.
Placement OfAllMoments(Placement placement) {
  if (placement.view.moments.empty()) return placement;
  TensorType& type = placement.type;
  for (int i = 0; i < type.rank(); ++i) type.dims[i].degree /= placement.view.moments[i];
  type.copies /= placement.view.moments[type.rank()];
  type.partials /= placement.view.moments[type.rank() + 1];
  placement.view.moments.clear();
  return placement;
}

}  // namespace

// Forward, and forward and backward.
std::pair<float, float> CostTables::ReshardBothUs(int from, int to) {
  Placement produced = InPrecision(placement(from)), needed = InPrecision(placement(to));
  double times = 1;
  // Where both ends work through micro-batches of the same dim, these move one by one.
  const bool moves_each = produced.view.moments == needed.view.moments;
  if (moves_each) times = static_cast<double>(NumMoments(produced.view));
  produced = moves_each ? OfOneMoment(produced) : OfAllMoments(produced);
  needed = moves_each ? OfOneMoment(needed) : OfAllMoments(needed);
  if (!CanReshard(produced.type, needed.type)) return {kImpossibleUs, kImpossibleUs};
  const double forward = times * ReshardUs(cost_, produced, needed);
  double both = forward;
  if (options_.training) {
    both += times * ReshardUs(cost_, GradientPlacement(needed), GradientPlacement(produced));
  }
  return {static_cast<float>(forward), static_cast<float>(both)};
}

const CostTable& CostTables::EdgeUs(PlacementSetId from, PlacementSetId to, bool gradient) {
  std::unique_ptr<CostTable>& table = edge_us_[{from, to, gradient}];
  if (table != nullptr) return *table;
  const std::vector<int>&rows = sets_[from], &cols = sets_[to];
  table = std::make_unique<CostTable>(static_cast<int>(rows.size()), static_cast<int>(cols.size()),
                                      kImpossibleUs);
  for (int r = 0; r < table->rows; ++r) {
    for (int c = 0; c < table->cols; ++c) {
      const Placement &produced = placement(rows[r]), &needed = placement(cols[c]);
      if (!CanReshard(produced.type, needed.type)) continue;
      auto [it, added] = reshard_us_.try_emplace({rows[r], cols[c]});
      if (added && rows[r] != cols[c]) it->second = ReshardBothUs(rows[r], cols[c]);
      table->at(r, c) = gradient ? it->second.second : it->second.first;
    }
  }
  table->key = table->ContentKey();
  return *table;
}

int64_t StoredBytes(const ShardingChoice& choice, const ComputeGraph::ComputeNode& node,
                    const CostOptions& options) {
  int64_t bytes = 0;
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    if (!node.operands[o].stored) continue;
    const int64_t local = choice.operands[o].type.LocalBytes();
    const bool trains = options.training && node.operands[o].gradient;
    const bool sharded = options.update_method == UpdateMethod::kSharded && trains;
    const int64_t part = sharded ? local / CopyGroup(choice.operands[o]).count : local;
    auto share = [&](int stage) { return options.zero_stage >= stage ? part : local; };
    bytes += share(3);
    if (trains) bytes += share(2) + NumStates(options.optimizer) * share(1);
  }
  for (const Placement& output : choice.outputs) {
    TensorType type = output.type;
    type.dtype = DataTypeIn(options.precision, type.dtype);
    if (options.training) bytes += type.LocalBytes() * choice.moments;
  }
  return bytes;
}

}  // namespace isomer
