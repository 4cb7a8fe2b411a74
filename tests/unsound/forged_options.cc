// What a plan says of itself: how it trains, in which numbers, what it takes.
#include <limits>

#include "tests/unsound/false_plans.h"

namespace isomer {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

ClaimChange OfUpdate(std::function<void(UpdateOptions*)> change) {
  return [=](PlanClaim* claim) { change(&claim->plan.update); };
}
ClaimChange Method(const std::string& weight) {
  return OfUpdate([=](UpdateOptions* u) { u->methods[weight] = UpdateMethod::kOwner; });
}
ClaimChange BucketEnd(const std::string& weight) {
  return OfUpdate([=](UpdateOptions* u) { u->bucket_ends = {weight}; });
}
ClaimChange Flushes(int32_t steps) {
  return OfUpdate([=](UpdateOptions* u) { u->steps_between_flushes = steps; });
}
ClaimChange Of(std::function<void(Plan*)> change) {
  return [=](PlanClaim* claim) { change(&claim->plan); };
}

}  // namespace

std::vector<Forgery> ForgedOptions() {
  using Update = UpdateOptions;
  constexpr char kOfInference[] = "a plan for inference says how weights are updated";
  return {
      {"updates", "of a weight that there is not", "sharded", Method("middle"),
       "no weight 'middle' to be updated"},
      {"updates", "of a weight spelled otherwise", "sharded", Method("Up"), "no weight 'Up'"},
      {"updates", "of an input", "sharded", Method("x"), "no weight 'x'"},
      {"updates", "of a constant", "embedding", Method("kept"), "no weight 'kept'"},
      {"updates", "of a call", "sharded", Method("up/product"), "no weight 'up/product'"},
      {"updates", "of nothing", "sharded", Method(""), "no weight ''"},
      {"updates", "a bucket behind an input", "data", BucketEnd("target"),
       "no weight 'target' for a bucket"},
      {"updates", "a bucket behind a constant", "embedding", BucketEnd("kept"),
       "no weight 'kept' for a bucket"},
      {"updates", "a bucket behind nothing", "data", BucketEnd(""), "no weight '' for a bucket"},
      {"updates", "buckets of fewer bytes than none", "data",
       OfUpdate([](Update* u) { u->bucket_bytes = -1; }), "buckets of -1 bytes"},
      {"updates", "drained every third step", "two_versions", Flushes(3), "even"},
      {"updates", "drained before the first step", "two_versions", Flushes(-2), "even"},
      {"updates", "drained every fourth step where nothing flows", "data", Flushes(4),
       "there is no pipeline"},
      {"updates", "drained every second step where nothing flows", "tensor", Flushes(2),
       "there is no pipeline"},
      {"updates", "an optimizer that there is not", "data",
       [](proto::PlanProto* p) { p->mutable_update()->set_optimizer("adamax"); }, "adamax"},
      {"updates", "a method that there is not", "data",
       [](proto::PlanProto* p) { p->mutable_update()->set_method("zero4"); }, "zero4"},
      {"updates", "a method that there is not, of one weight", "data",
       [](proto::PlanProto* p) { (*p->mutable_update()->mutable_methods())["up"] = "none"; },
       "none"},
      {"updates", "where nothing is trained: an optimizer", "inference",
       OfUpdate([](Update* u) { u->optimizer = OptimizerKind::kAdam; }), kOfInference},
      {"updates", "where nothing is trained: a method", "inference", Method("up"), kOfInference},
      {"updates", "where nothing is trained: shards", "inference",
       OfUpdate([](Update* u) { u->method = UpdateMethod::kShardedWeights; }), kOfInference},
      {"updates", "where nothing is trained: versions", "inference", Flushes(4), kOfInference},
      {"updates", "where nothing is trained: states", "inference",
       OfUpdate([](Update* u) { u->states_on_host = true; }), kOfInference},
      {"updates", "where nothing is trained: states in low precision", "inference",
       [](proto::PlanProto* p) { p->mutable_update()->set_state_precision("bfloat16"); },
       "the optimizer sgd has none"},
      {"updates", "states in bfloat16", "data", OfUpdate([](Update* u) {
         u->optimizer = OptimizerKind::kAdam;
         u->state_precision = DataType::kBFloat16;
       }),
       ""},
      {"updates", "states in float16", "data", OfUpdate([](Update* u) {
         u->optimizer = OptimizerKind::kAdam;
         u->state_precision = DataType::kFloat16;
       }),
       "float32 or bfloat16"},
      {"updates", "sums that only grow in bfloat16", "data", OfUpdate([](Update* u) {
         u->optimizer = OptimizerKind::kAdagrad;
         u->state_precision = DataType::kBFloat16;
       }),
       "adagrad's sums only grow"},
      {"updates", "states of whole matrices in bfloat16", "data", OfUpdate([](Update* u) {
         u->optimizer = OptimizerKind::kMuon;
         u->state_precision = DataType::kBFloat16;
       }),
       "does not update each number by itself"},
      {"updates", "where nothing is trained: averages", "inference",
       OfUpdate([](Update* u) { u->averages = true; }), kOfInference},
      {"updates", "gradients summed in less than float32's range", "data",
       OfUpdate([](Update* u) { u->gradient_sums = DataType::kFloat16; }),
       "gradients are summed in float16 of a plan in float32"},
      {"updates", "gradients summed in integers", "data",
       [](proto::PlanProto* p) { p->mutable_update()->set_gradient_sums("int64"); },
       "precision 'int64'"},
      {"updates", "where nothing is trained: rounded sums", "inference",
       OfUpdate([](Update* u) { u->gradient_sums = DataType::kBFloat16; }), kOfInference},
      {"updates", "gradients summed in bfloat16, as it says", "data",
       OfUpdate([](Update* u) { u->gradient_sums = DataType::kBFloat16; }), ""},
      {"updates", "of two versions, clipped", "data", OfUpdate([](Update* u) {
         u->steps_between_flushes = 2;
         u->clips = true;
       }),
       "do not go with clipping"},
      {"updates", "at once, clipped, averaged", "data",
       OfUpdate([](Update* u) { u->immediate = u->clips = u->averages = true; }), ""},
      {"updates", "by LAMB, with an owner", "tied", OfUpdate([](Update* u) {
         u->optimizer = OptimizerKind::kLamb;
         u->method = UpdateMethod::kOwner;
       }),
       ""},
      {"updates", "shards of everything", "data",
       OfUpdate([](Update* u) { u->method = UpdateMethod::kShardedWeights; }), ""},
      {"updates", "an owner of a table that two calls read", "tied", Method("table"), ""},
      {"updates", "at once, one by one, states on the host", "data", OfUpdate([](Update* u) {
         u->immediate = true;
         u->bucket_bytes = 0;
         u->states_on_host = true;
       }),
       ""},

      {"options", "a mode that there is not", "data", Of([](Plan* p) { p->mode = "both"; }),
       "mode 'both' is neither"},
      {"options", "no mode", "data", Of([](Plan* p) { p->mode = ""; }), "mode '' is neither"},
      {"options", "inference, with Adam", "data", Of([](Plan* p) { p->mode = "inference"; }),
       kOfInference},
      {"options", "a step that takes less than no time", "data",
       Of([](Plan* p) { p->predicted_step_us = -1; }), "predicted_step_us: -1"},
      {"options", "a step of no time that can be told", "data",
       Of([](Plan* p) { p->predicted_step_us = kNan; }), "predicted_step_us: nan"},
      {"options", "a step that never ends", "data",
       Of([](Plan* p) { p->predicted_step_us = kInfinity; }), "predicted_step_us: inf"},
      {"options", "devices of less than no speed", "data", Of([](Plan* p) { p->peak_flops = -1; }),
       "peak_flops: -1"},
      {"options", "devices of no speed that can be told", "inference",
       Of([](Plan* p) { p->peak_flops = kNan; }), "peak_flops: nan"},
      {"options", "devices of no end of speed", "data",
       Of([](Plan* p) { p->peak_flops = kInfinity; }), "peak_flops: inf"},
      {"options", "devices of a speed that is not known", "data",
       Of([](Plan* p) { p->peak_flops = 0; }), ""},
      {"options", "less than no memory", "data", Of([](Plan* p) { p->predicted_peak_bytes = -1; }),
       "predicted_peak_bytes: -1"},
      {"options", "fewer micro-batches in flight than none", "data",
       Of([](Plan* p) { p->zero_bubble.most_in_flight = -1; }), "-1 micro-batches in flight"},
      {"options", "gradients of weights in no time", "data",
       Of([](Plan* p) { p->zero_bubble.weights = -1; }), "a time of -1"},
      {"options", "backward passes in halves where there are none", "inference",
       Of([](Plan* p) { p->zero_bubble.most_in_flight = 2; }), "no backward pass in inference"},
      {"options", "backward passes in halves of two versions", "two_versions",
       Of([](Plan* p) { p->zero_bubble.most_in_flight = 2; }), "do not go with"},
      {"options", "backward passes in halves where nobody waits", "data",
       Of([](Plan* p) { p->zero_bubble.most_in_flight = 2; }), ""},
      {"options", "the other order of branches", "data",
       Of([](Plan* p) { p->spread_branches = !p->spread_branches; }), ""},

      {"low_precision", "in integers", "low",
       [](proto::PlanProto* p) { p->set_precision("int64"); }, "precision 'int64'"},
      {"low_precision", "in numbers that there are not", "low",
       [](proto::PlanProto* p) { p->set_precision("float8"); }, "precision 'float8'"},
      {"low_precision", "in numbers by another name", "low",
       [](proto::PlanProto* p) { p->set_precision("bf16"); }, "precision 'bf16'"},
      {"low_precision", "gradients summed in the other one", "low",
       OfUpdate([](Update* u) { u->gradient_sums = DataType::kFloat16; }),
       "gradients are summed in float16 of a plan in bfloat16"},
      {"low_precision", "8 bits with a scale per column", "low",
       [](proto::PlanProto* p) { p->mutable_fp8()->set_scaling("column"); }, "scaling 'column'"},
      {"low_precision", "8 bits of float16", "low", Of([](Plan* p) {
         p->precision = DataType::kFloat16;
         p->fp8.scaling = Fp8Scaling::kRow;
       }),
       "in bfloat16"},
      {"low_precision", "8 bits but for a weight that there is not", "low",
       Of([](Plan* p) { p->fp8 = {.scaling = Fp8Scaling::kRow, .kept = {"middle"}}; }),
       "no product is with a weight 'middle'"},
      {"low_precision", "8 bits within no error", "low", Of([](Plan* p) {
         p->fp8 = {.scaling = Fp8Scaling::kRow, .kept = {}, .error_budget = kNan};
       }),
       "an error budget of nan"},
      {"low_precision", "8 bits of all products", "low",
       Of([](Plan* p) { p->fp8.scaling = Fp8Scaling::kTensor; }), ""},
      {"low_precision", "in float16", "low", Of([](Plan* p) { p->precision = DataType::kFloat16; }),
       ""},
  };
}

}  // namespace isomer
