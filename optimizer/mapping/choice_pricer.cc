#include "optimizer/mapping/choice_pricer.h"

#include <algorithm>

#include "optimizer/cost/halo_cost.h"
#include "pcg/profile/work.h"

namespace isomer {
namespace {

// The devices with replicas of a stored operand's first shard, counted once over micro-batches.
DeviceGroup CopyGroup(const Placement& placement) {
  const size_t axis = placement.type.dims.size();
  return GroupOfAxis(placement.view, axis,
                     placement.type.copies / placement.view.MomentsOfAxis(axis));
}

// The maximum over kinds of devices.
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

Collective CollectiveOf(UpdateMethodTraits::Sum sum) {
  switch (sum) {
    case UpdateMethodTraits::Sum::kAllReduce:
      return Collective::kAllReduce;
    case UpdateMethodTraits::Sum::kReduceScatter:
      return Collective::kReduceScatter;
    case UpdateMethodTraits::Sum::kReduce:
      return Collective::kReduce;
  }
  return Collective::kAllReduce;
}

}  // namespace

WeightBytes BytesOfWeight(const CostOptions& options, DataType dtype) {
  return BytesOfWeight(ComputedIn(options.precision, dtype), options.optimizer,
                       options.gradient_sums, options.averages, options.clips,
                       options.state_precision);
}

Operator AsComputed(const Operator& op, const ComputeGraph::ComputeNode& node,
                    const CostOptions& options) {
  if (options.fp8_scaling == Fp8Scaling::kNone || !CanBeFp8(op.kind())) return op;
  return node.operands[0].stored == node.operands[1].stored ? op : WithFp8(op, options.fp8_scaling);
}

ChoicePricer::ChoicePricer(const CostModel& cost, const CostOptions& options,
                           const ChoiceSpace& space, const ComputeGraph::ComputeNode& node)
    : cost_(cost),
      options_(options),
      space_(space),
      node_(node),
      op_(AsComputed(space.op, node, options)),
      sharding_(space.sharding) {
  std::vector<TensorType> types = space.operands;
  for (TensorType& type : types) {
    if (!IsLoss(space.op.kind())) type.dtype = ComputedIn(options.precision, type.dtype);
  }
  const auto in_precision = InferSharding(space.op, types);
  for (size_t t = 0; t < sharding_.outputs.size(); ++t) {
    output_dtypes_.push_back((in_precision.ok() ? *in_precision : sharding_).outputs[t].dtype);
  }
  for (const auto& operand : node.operands) wanted_.push_back(operand.gradient);
  backward_ = options.training && std::find(wanted_.begin(), wanted_.end(), true) != wanted_.end();
}

void ChoicePricer::SetSharding(const ShardingChoice& choice) {
  types_.clear();
  for (const Placement& operand : choice.operands) {
    types_.push_back(operand.type);
    if (IsLoss(space_.op.kind())) continue;
    types_.back().dtype = ComputedIn(options_.precision, types_.back().dtype);
  }
  sharding_.degrees = choice.degrees;
  for (size_t t = 0; t < choice.outputs.size(); ++t) {
    sharding_.outputs[t] = choice.outputs[t].type;
    sharding_.outputs[t].dtype = output_dtypes_[t];
  }
}

// Time of updating a trained weight's replicas; `sync_us` is the communication, not included.
double ChoicePricer::UpdateUs(const Placement& weight, const ShardingChoice& choice,
                              double* sync_us) const {
  const DeviceGroup group = CopyGroup(weight);
  const WeightBytes each = BytesOfWeight(options_, weight.type.dtype);
  int64_t numbers = weight.type.LocalElements();
  auto add = [&](Collective kind, int64_t times) {
    const int64_t bytes = numbers * SentBytes(each, kind);
    *sync_us += static_cast<double>(times) * cost_.CollectiveUs(kind, bytes, group);
  };
  const UpdateMethodTraits& traits = TraitsOf(options_.update_method);
  add(CollectiveOf(traits.sum), UpdateMethodTraits::Count(traits.sums, choice.moments));
  if (traits.spread != UpdateMethodTraits::Spread::kNothing) {
    const bool gathers = traits.spread == UpdateMethodTraits::Spread::kAllGather;
    add(gathers ? Collective::kAllGather : Collective::kBroadcast,
        UpdateMethodTraits::Count(traits.spreads, choice.moments));
  }
  if (traits.splits_trained) numbers /= group.size();
  // In bytes of a gradient, of which SGD accesses three.
  const int64_t bytes = numbers * each.update / 3;
  return SlowestUs(cost_, choice, [&](int64_t device) {
    return options_.updates_together ? cost_.SharedUpdateUs(bytes, device)
                                     : cost_.UpdateUs(bytes, device);
  });
}

ChoiceCost ChoicePricer::CostOf(const ShardingChoice& choice) {
  SetSharding(choice);
  const Operator& op = op_;
  const Work forward = ForwardWork(op, sharding_, types_, /*saves=*/backward_);
  double us = SlowestUs(
      cost_, choice, [&](int64_t device) { return cost_.CallUs(op, types_, {}, forward, device); });
  double sync_us = 0, update_us = 0;
  if (backward_) {
    const Work gradient = GradientWork(op, sharding_, types_, wanted_);
    us += SlowestUs(cost_, choice, [&](int64_t device) {
      return cost_.CallUs(op, types_, wanted_, gradient, device);
    });
    for (size_t o = 0; o < choice.operands.size(); ++o) {
      if (!node_.operands[o].stored || !wanted_[o]) continue;
      update_us += UpdateUs(choice.operands[o], choice, &sync_us);
    }
  }
  us *= static_cast<double>(choice.moments);
  int64_t bytes = StoredBytes(choice, node_, options_);
  const int64_t saved_bytes = backward_ ? SavedBytes(op, sharding_, types_) : 0;
  bytes += saved_bytes * choice.moments;
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    Placement placement = choice.operands[o];
    placement.type.dtype = ComputedIn(options_.precision, placement.type.dtype);
    const HaloCost halo = CostOfHalo(cost_, sharding_, static_cast<int>(o), placement);
    us += halo.us * (backward_ && wanted_[o] ? 2 : 1);
    if (options_.training) bytes += halo.bytes;
  }
  return {static_cast<float>(us + update_us), static_cast<float>(sync_us),
          static_cast<double>(bytes), saved_bytes};
}

int64_t StoredBytes(const ShardingChoice& choice, const ComputeGraph::ComputeNode& node,
                    const CostOptions& options) {
  int64_t bytes = 0;
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    if (!node.operands[o].stored) continue;
    const TensorType& type = choice.operands[o].type;
    const WeightBytes each = BytesOfWeight(options, type.dtype);
    const int64_t local = type.LocalElements();
    const bool trains = options.training && node.operands[o].gradient;
    const int64_t part = local / CopyGroup(choice.operands[o]).size();
    const auto held = [&](bool splits) { return trains && splits ? part : local; };
    const UpdateMethodTraits& traits = TraitsOf(options.update_method);
    bytes += each.stored * held(traits.splits_weight);
    if (trains) {
      bytes += each.gradient * held(traits.SplitsGradient(choice.moments)) +
               each.trained * held(traits.splits_trained);
    }
  }
  for (const Placement& output : choice.outputs) {
    TensorType type = output.type;
    type.dtype = ComputedIn(options.precision, type.dtype);
    if (options.training) bytes += type.LocalBytes() * choice.moments;
  }
  return bytes;
}

}  // namespace isomer
