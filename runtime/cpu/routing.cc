// Which experts a token goes to.
#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "runtime/cpu/expert_choice.h"
#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

struct RoutingShape {
  int64_t groups, tokens, experts, choices, capacity;
  bool has_bias;

  explicit RoutingShape(const KernelCall& call)
      : groups(GroupsOf(call.operands[0])),
        tokens(call.operands[0].shape.end()[-2]),
        experts(call.operands[0].shape.back()),
        choices(call.op.Int("k")),
        capacity(call.op.Int("capacity")),
        has_bias(call.operands.size() > 1) {}

 private:
  template <typename Operand>
  static int64_t GroupsOf(const Operand& scores) {
    int64_t groups = 1;
    for (size_t i = 0; i + 2 < scores.shape.size(); ++i) groups *= scores.shape[i];
    return groups;
  }
};

// Calls f(token of all groups, its choices in order, the slot of each: -1 where there was none).
template <typename Function>
void RouteTokens(const RoutingShape& of, Reads reads, Function f) {
  const float *scores = Floats(reads[0]), *bias = of.has_bias ? Floats(reads[1]) : nullptr;
  ExpertChoice choice(of.experts, of.choices);
  std::vector<int64_t> slots(of.choices), taken;
  for (int64_t token = 0; token < of.groups * of.tokens; ++token, scores += of.experts) {
    if (token % of.tokens == 0) taken.assign(of.experts, 0);
    const absl::Span<const int64_t> order = choice.Of(scores, bias);
    for (int64_t r = 0; r < of.choices; ++r) {
      const int64_t place = taken[order[r]]++;
      slots[r] = place < of.capacity ? order[r] * of.capacity + place : -1;
    }
    f(token, order, slots);
  }
}

float SumOfChosen(const RoutingShape& of, const float* scores, absl::Span<const int64_t> order) {
  float sum = 0;
  for (int64_t r = 0; r < of.choices; ++r) sum += scores[order[r]];
  return sum;
}

}  // namespace

KernelFunction TopKRoutingKernel(const KernelCall& call) {
  const RoutingShape of(call);
  if (call.gradient) {
    return [of](Reads reads, Writes writes) {
      constexpr size_t kOutputs = 3;
      const float* g = Floats(reads[(of.has_bias ? 2 : 1) + kOutputs]);
      float* dx = Floats(writes[0]);
      if (of.has_bias && writes[1] != nullptr) std::fill_n(Floats(writes[1]), of.experts, 0.0f);
      if (dx == nullptr) return absl::OkStatus();
      std::fill_n(dx, of.groups * of.tokens * of.experts, 0.0f);
      RouteTokens(of, reads, [&](int64_t token, const auto& order, const auto& slots) {
        const float* scores = Floats(reads[0]) + token * of.experts;
        const float *of_token = g + token * of.choices, sum = SumOfChosen(of, scores, order);
        float mean = 0;
        for (int64_t r = 0; r < of.choices; ++r) {
          if (slots[r] >= 0) mean += of_token[r] * scores[order[r]] / sum;
        }
        for (int64_t r = 0; r < of.choices; ++r) {
          dx[token * of.experts + order[r]] = ((slots[r] >= 0 ? of_token[r] : 0) - mean) / sum;
        }
      });
      return absl::OkStatus();
    };
  }
  return [of](Reads reads, Writes writes) {
    float* weights = Floats(writes[0]);
    int64_t* slot_of = static_cast<int64_t*>(writes[1]);
    int64_t* token_of = static_cast<int64_t*>(writes[2]);
    std::fill_n(token_of, of.groups * of.experts * of.capacity, 0);
    RouteTokens(of, reads, [&](int64_t token, const auto& order, const auto& slots) {
      const float* scores = Floats(reads[0]) + token * of.experts;
      const float sum = SumOfChosen(of, scores, order);
      for (int64_t r = 0; r < of.choices; ++r) {
        const int64_t i = token * of.choices + r;
        weights[i] = slots[r] >= 0 ? scores[order[r]] / sum : 0;
        slot_of[i] = std::max<int64_t>(slots[r], 0);
        if (slots[r] < 0) continue;
        token_of[token / of.tokens * of.experts * of.capacity + slots[r]] = token % of.tokens;
      }
    });
    return absl::OkStatus();
  };
}

}  // namespace isomer
