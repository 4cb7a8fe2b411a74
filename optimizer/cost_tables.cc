#include "optimizer/cost_tables.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/halo_cost.h"
#include "pcg/support/status_macros.h"
#include "pcg/work.h"

namespace isomer {
namespace {

// The devices that hold the copies of a stored operand's first shard.
std::vector<int32_t> CopyGroup(const Placement& placement) {
  std::vector<int32_t> group;
  const int64_t stride = placement.view.strides.end()[-2];
  for (int64_t c = 0; c < placement.type.copies; ++c) {
    group.push_back(static_cast<int32_t>(placement.view.start + c * stride));
  }
  return group;
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
  return key;
}

}  // namespace

namespace {

DataType DataTypeIn(DataType precision, DataType dtype) {
  return dtype == DataType::kFloat32 ? precision : dtype;
}

}  // namespace

void CostTables::set_options(const CostOptions& options) {
  options_ = options;
  node_us_.clear();
}

absl::StatusOr<const CallTables*> CostTables::Call(const Operator& op,
                                                   const std::vector<TensorType>& operands) {
  const std::string key =
      absl::StrCat(op.ToString(), "|",
                   absl::StrJoin(operands, "|", [](std::string* out, const TensorType& type) {
                     out->append(type.ToString());
                   }));
  std::unique_ptr<CallTables>& slot = calls_[key];
  if (slot != nullptr) return slot.get();
  auto call = std::make_unique<CallTables>();
  ISOMER_ASSIGN_OR_RETURN(call->space,
                          EnumerateChoices(rules_, op, operands,
                                           {.num_devices = cost_.machine().num_devices(),
                                            .max_axes = options_.max_axes}));
  call->shares.assign(call->space.choices.size(), Share::kWhole);
  if (options_.halves) ISOMER_RETURN_IF_ERROR(AddHalves(call.get()));
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

absl::Status CostTables::AddHalves(CallTables* call) {
  const int64_t devices = cost_.machine().num_devices();
  if (devices % 2 != 0) return absl::OkStatus();
  for (Share share : {Share::kLower, Share::kUpper}) {
    ISOMER_ASSIGN_OR_RETURN(ChoiceSpace half,
                            EnumerateChoices(rules_, call->space.op, call->space.operands,
                                             {.num_devices = devices / 2,
                                              .max_axes = options_.max_axes,
                                              .start = share == Share::kUpper ? devices / 2 : 0}));
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

float CostTables::ChoiceUs(const ChoiceSpace& space, const ShardingChoice& choice,
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
  if (!sharding.ok()) return kImpossibleUs;
  const std::vector<int64_t> devices =
      cost_.OnePerKind(DevicesOf(choice.outputs[0].view, choice.outputs[0].type));
  // Devices of several kinds wait for the slowest.
  const auto slowest_us = [&](const auto& us_on) {
    double us = 0;
    for (int64_t device : devices) us = std::max(us, us_on(device));
    return us;
  };
  double us = slowest_us([&, work = ForwardWork(space.op, *sharding, types)](int64_t device) {
    return cost_.CallUs(space.op, types, {}, work, device);
  });
  const bool backward =
      options_.training && std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  if (backward) {
    us += slowest_us([&, work = GradientWork(space.op, *sharding, types, wanted)](int64_t device) {
      return cost_.CallUs(space.op, types, wanted, work, device);
    });
    for (size_t o = 0; o < choice.operands.size(); ++o) {
      if (!node.operands[o].stored || !wanted[o]) continue;
      const int64_t bytes = choice.operands[o].type.LocalBytes();
      us += options_.sync_weight *
            cost_.CollectiveUs(Collective::kAllReduce, bytes, CopyGroup(choice.operands[o]));
      // States are read and written beside the three passes of SGD.
      const int64_t passes = 3 + 2 * NumStates(options_.optimizer);
      us += slowest_us([&](int64_t device) { return cost_.UpdateUs(bytes * passes / 3, device); });
    }
  }
  int64_t bytes = StoredBytes(choice, node, options_);
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    const HaloCost halo =
        CostOfHalo(cost_, *sharding, static_cast<int>(o), InPrecision(choice.operands[o]));
    us += halo.us * (backward && wanted[o] ? 2 : 1);
    if (options_.training) bytes += halo.bytes;
  }
  us += options_.us_per_byte * static_cast<double>(bytes);
  return static_cast<float>(us);
}

const std::vector<float>& CostTables::NodeUs(const CallTables& call,
                                             const ComputeGraph::ComputeNode& node) {
  std::string key;
  for (const auto& operand : node.operands) {
    key += operand.stored ? 's' : '-';
    key += operand.gradient ? 'g' : '-';
  }
  auto [it, added] = node_us_.try_emplace({&call, key});
  if (added) {
    for (const ShardingChoice& choice : call.space.choices) {
      it->second.push_back(ChoiceUs(call.space, choice, node));
    }
  }
  return it->second;
}

const CostTable& CostTables::EdgeUs(PlacementSetId from, PlacementSetId to, bool gradient) {
  std::unique_ptr<CostTable>& table = edge_us_[{from, to, gradient}];
  if (table != nullptr) return *table;
  const std::vector<int>&rows = sets_[from], &cols = sets_[to];
  table = std::make_unique<CostTable>(static_cast<int>(rows.size()), static_cast<int>(cols.size()),
                                      kImpossibleUs);
  for (int r = 0; r < table->rows; ++r) {
    for (int c = 0; c < table->cols; ++c) {
      const Placement produced = InPrecision(placement(rows[r]));
      const Placement needed = InPrecision(placement(cols[c]));
      if (!CanReshard(produced.type, needed.type)) continue;
      auto [it, added] = reshard_us_.try_emplace({rows[r], cols[c]});
      if (added && rows[r] != cols[c]) {
        const float forward = static_cast<float>(ReshardUs(cost_, produced, needed));
        it->second = {forward, forward};
        if (options_.training) {
          it->second.second += static_cast<float>(
              ReshardUs(cost_, GradientPlacement(needed), GradientPlacement(produced)));
        }
      }
      table->at(r, c) = gradient ? it->second.second : it->second.first;
    }
  }
  return *table;
}

int64_t StoredBytes(const ShardingChoice& choice, const ComputeGraph::ComputeNode& node,
                    const CostOptions& options) {
  int64_t bytes = 0;
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    const int64_t local = choice.operands[o].type.LocalBytes();
    if (node.operands[o].stored) {
      const bool trains = options.training && node.operands[o].gradient;
      bytes += local * (trains ? 2 + NumStates(options.optimizer) : 1);
    }
  }
  for (const Placement& output : choice.outputs) {
    TensorType type = output.type;
    type.dtype = DataTypeIn(options.precision, type.dtype);
    if (options.training) bytes += type.LocalBytes();
  }
  return bytes;
}

}  // namespace isomer
