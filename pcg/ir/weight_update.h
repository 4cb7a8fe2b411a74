// How training changes weights: by which optimizer, and where copies of a weight are changed.
#ifndef ISOMER_PCG_IR_WEIGHT_UPDATE_H_
#define ISOMER_PCG_IR_WEIGHT_UPDATE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// A weight w with gradient g at learning rate a, in step t = 1, 2, ..; with weight decay d, if
// there is any:
//
//   kSgd       g += d w;  w -= a g
//   kMomentum  g += d w;  v = f v + g;  w -= a v, or a (g + f v) by Nesterov's way
//   kAdam      m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//              w -= a d w + a (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
//   kLion      w -= a d w + a sign(b1 m + (1 - b1) g);  m = b2 m + (1 - b2) g
//   kAdagrad   g += d w;  s = s + g^2;  w -= a g / (sqrt(s) + eps)
//   kLamb      Adam's, with a |w| / |r| in place of a, where r is what Adam, at rate 1 and decay
//              included, subtracts of the weight; a alone where a norm is zero
//   kMuon      weights that are matrices: m = f m + (1 - f) g;  x = m, or f m + (1 - f) g by
//              Nesterov's way;  w -= a d w + a s O(x);  the others: Adam's
//
// O(x) is the nearest matrix with orthonormal rows or columns, roughly: five Newton-Schulz
// iterations (runtime/execution/orthogonalize.h). s is 0.2 sqrt(max(rows, columns)), which makes
// an update as large as Adam's, or sqrt(max(1, rows / columns)).
//
// Adam is of Kingma and Ba, "Adam" (2015), and decays as in Loshchilov and Hutter, "Decoupled
// Weight Decay Regularization" (2019); Lion of Chen et al., "Symbolic Discovery of Optimization
// Algorithms" (2023); Adagrad of Duchi et al., "Adaptive Subgradient Methods" (2011); LAMB of You
// et al., "Large Batch Optimization for Deep Learning" (2020); Muon of Jordan et al., "Muon"
// (2024), with the scale of Liu et al., "Muon is Scalable for LLM Training" (2025). SGD, momentum
// and Adagrad decay, and Nesterov's way is, as PyTorch has them. All decays see w as it was before
// the step. States v, m and s start at zero and are float32; so is w, the master of a weight that
// is kept in lower precision, beside them. All but LAMB and Muon are elementwise, so training
// weights that are arranged in another way, or in parts on several devices, is training the
// original ones. Norms and matrices are those of the model's weights, however they are arranged.
enum class OptimizerKind { kSgd, kMomentum, kAdam, kLion, kAdagrad, kLamb, kMuon };

// What of a weight and its gradient an update of one element depends on.
enum class UpdateNeeds { kElement, kNorms, kMatrix };

// The numbers in the formulas but the learning rate. Plans do not have them: they change nothing of
// what a step costs but a multiplication or two for each weight, which is not counted.
struct OptimizerSettings {
  double momentum = 0.9;  // f
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999;  // b1, b2
  double epsilon = 1e-8;
  double weight_decay = 0;
  // Muon: s is 0.2 sqrt(max(rows, columns)); and by what the rate of Adam's weights is multiplied.
  bool matches_adam = true;
  double adam_rate = 1;
  friend bool operator==(const OptimizerSettings&, const OptimizerSettings&) = default;
};

// What an optimizer is, to all who keep its states, count its work or name it: one row each.
struct OptimizerTraits {
  static constexpr int kMostStates = 2;

  OptimizerKind kind;
  const char* name;
  int num_states;                   // numbers that it keeps for every number of a weight
  const char* states[kMostStates];  // their names
  double flops;                     // for every number of a weight; a root or division counts one
  // Which of the settings it has.
  bool has_momentum, has_betas, has_epsilon;
  // Decay is taken from the weight itself, and not added to its gradient.
  bool decays_weight;
  UpdateNeeds needs;
  OptimizerSettings settings;  // its own: those of PyTorch or of its paper
};
absl::Span<const OptimizerTraits> AllOptimizers();
const OptimizerTraits& TraitsOf(OptimizerKind kind);
// Whether the formulas make sense with them. The error names the setting as flags do.
absl::Status CheckSettings(const OptimizerSettings& settings);

// Numbers that an optimizer keeps for every number of a weight: 0, 1, 2.
int NumStates(OptimizerKind kind);
// "adam_square": of a state, from 0, for files; behind the optimizer's own that of the average,
// "average". REQUIRES: there are so many.
const char* StateName(OptimizerKind kind, int state);
// Arithmetic for every number of a weight.
double UpdateFlops(OptimizerKind kind);
// And for a part of this shape, with the products that Muon makes of a matrix.
double UpdateFlops(OptimizerKind kind, absl::Span<const int64_t> shape);

// Whether a weight that is stored in `dtype` is trained as a float32 master.
bool HasMaster(DataType dtype);

// What training takes for every number of a weight, in bytes. docs/memory.md has what becomes of it
// with each method.
struct WeightBytes {
  int64_t stored = 0;    // what calls read
  int64_t gradient = 0;  // where it is summed over micro-batches
  int64_t reduced = 0;   // of the gradient, what is summed over devices
  int64_t trained = 0;   // the master, if there is one, and the optimizer's states
  int64_t update = 0;    // read and written by an update
};
// `gradient_sums`, `states`: UpdateOptions has them.
WeightBytes BytesOfWeight(DataType stored, OptimizerKind optimizer, DataType gradient_sums,
                          bool averages = false, bool clips = false,
                          DataType states = DataType::kFloat32);

// How the copies of a weight on several devices are kept equal. All give the same weights. What is
// held once, in parts, is as in Rajbhandari et al., "ZeRO" (2020): the optimizer's state (stage 1),
// also the gradient (2), also the weight (3).
enum class UpdateMethod {
  kAllReduce,  // all-reduce the gradient, update every copy
  kSharded,    // reduce-scatter the gradient, update a part, all-gather the parts; micro-batches'
               // gradients are summed before: stage 1 with them, 2 without
  kShardedGradients,  // reduce-scatter the gradient of each micro-batch, else the same: stage 2
  kShardedWeights,    // keep a part, all-gather before use, forward and backward, of each
                      // micro-batch; reduce-scatter its gradient, update the part: stage 3
  kOwner,             // reduce the gradient to an owner, update there, broadcast
};

// What a method is, to all who count its bytes and what it sends: one row each.
struct UpdateMethodTraits {
  enum class Sum { kAllReduce, kReduceScatter, kReduce };  // of gradients
  enum class Spread { kNothing, kAllGather, kBroadcast };  // of weights
  // When something is done: once a step, for each micro-batch, or for each pass of each.
  enum class Times { kStep, kMicroBatch, kPass };

  UpdateMethod method;
  const char* name;
  int zero_stage;  // with micro-batches; 0: it is none of ZeRO
  // Of what devices that hold a weight keep a part each.
  bool splits_trained, splits_gradient, splits_weight;
  Sum sum;
  Times sums;
  Spread spread;
  Times spreads;
  // Gradients that are split when they are summed need not be kept whole before, where there is one
  // micro-batch: stage 1 is 2 then.
  bool SplitsGradient(int64_t micro_batches) const {
    return splits_gradient || (splits_trained && micro_batches == 1);
  }
  // How often something is done in a step of so many micro-batches.
  static int64_t Count(Times times, int64_t micro_batches) {
    return times == Times::kStep ? 1 : times == Times::kPass ? 2 * micro_batches : micro_batches;
  }
};
absl::Span<const UpdateMethodTraits> AllUpdateMethods();
const UpdateMethodTraits& TraitsOf(UpdateMethod method);
// Those of ZeRO, each with less on a device than the one before and no less to send. Stages 1 and 2
// are one where there is one micro-batch.
std::vector<UpdateMethod> ZeroMethods(int64_t micro_batches);

// "sgd", "momentum", "adam", ..; "all_reduce", "sharded", "sharded_gradients", "sharded_weights",
// "owner".
const char* OptimizerName(OptimizerKind kind);
absl::StatusOr<OptimizerKind> ParseOptimizer(absl::string_view name);
std::vector<std::string> OptimizerNames();
const char* UpdateMethodName(UpdateMethod method);
absl::StatusOr<UpdateMethod> ParseUpdateMethod(absl::string_view name);
// Of UpdateOptions. The error says what is expected.
absl::Status CheckStepsBetweenFlushes(int64_t steps);

struct UpdateOptions {
  OptimizerKind optimizer = OptimizerKind::kSgd;
  UpdateMethod method = UpdateMethod::kAllReduce;    // of weights that `methods` does not name
  std::map<std::string, UpdateMethod> methods = {};  // by the weight's name
  // Gradients that become ready one after the other are synchronised together up to so many bytes
  // a device, as PyTorch does (Li et al., "PyTorch Distributed", 2020), and their weights updated
  // together; so are weights that need no synchronisation. 0: each by itself.
  int64_t bucket_bytes = int64_t{25} << 20;
  // More than any device has: all are synchronised when the last is ready, behind the backward
  // pass.
  static constexpr int64_t kOneBucket = int64_t{1} << 50;
  // If there are any, buckets end behind the gradients of these weights, by name, whatever bytes
  // they have.
  std::set<std::string> bucket_ends = {};
  // Buckets are synchronised once they are full. Else they wait for an exchange that follows soon
  // and that calls wait for, as links are first in, first out.
  bool eager_sums = false;
  bool sums_wait() const { return bucket_bytes > 0 && !eager_sums; }
  // Weights are updated as soon as their gradients are summed, which then make room for others.
  // Micro-batches, whose gradients are complete at the end, are updated there all the same.
  bool immediate = false;
  // In what gradients of weights are sent between devices and come back summed. In bfloat16 or
  // float16 they are half the bytes, and lose by it: each share is rounded, and so is the sum.
  DataType gradient_sums = DataType::kFloat32;
  // Of the optimizer's own states, which updates compute with in float32 and round to nearest.
  // In bfloat16 they are half the bytes. Averages and masters stay float32.
  DataType state_precision = DataType::kFloat32;
  // The optimizer's states and masters lie in the host's memory; updates read and write them there
  // (Ren et al., "ZeRO-Offload", 2021, has them, and the updates, on the host).
  bool states_on_host = false;
  // After so many steps a pipeline is drained; an even number, or 1. More than 1 is PipeDream-2BW
  // (Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", 2021, section 3.1), for
  // which each device keeps two versions of its weights, and which is another training: with w(t)
  // the weights after t steps, step t + 1 makes w(t + 1) of w(t) and the gradient at w(t - 1).
  int32_t steps_between_flushes = 1;
  // The squares of all gradients are summed before the first update, which may scale them by their
  // norm (clipping).
  bool clips = false;
  // A running average of each weight is kept and updated with it, behind the optimizer's states.
  bool averages = false;

  // Numbers that are kept for every number of a weight.
  int num_states() const { return NumStates(optimizer) + (averages ? 1 : 0); }
  // The type of state `i`, from 0; the average is the last.
  DataType TypeOfState(int i) const {
    return i < NumStates(optimizer) ? state_precision : DataType::kFloat32;
  }
  // What an update does depends on gradients of other devices or weights: none is immediate.
  bool all_gradients_first() const {
    return clips || TraitsOf(optimizer).needs != UpdateNeeds::kElement;
  }
  friend bool operator==(const UpdateOptions&, const UpdateOptions&) = default;
};

// Weights of two versions are updated before the gradients of the steps in between are known; and
// states are in bfloat16 only where updates are elementwise.
absl::Status CheckGoTogether(const UpdateOptions& update);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_WEIGHT_UPDATE_H_
