#include "generator/checking/check_rules.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "generator/assignments/bases.h"
#include "generator/assignments/trial.h"
#include "generator/preconditions/settle.h"
#include "pcg/evaluation/partial_field.h"
#include "pcg/ir/operator_call.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool HasAttributeVariables(const Rule& rule) {
  return std::any_of(rule.variables.begin(), rule.variables.end(),
                     [](const RuleVariable& v) { return v.kind == VariableKind::kAttribute; });
}

bool IsSmall(const Binding& binding, int64_t most_elements, int64_t most_shards) {
  int64_t elements = 0;
  for (const TensorType& type : binding.inputs) {
    elements += type.NumElements() * type.partials * type.micro_batches;
    if (type.NumShards() > most_shards) return false;
  }
  return elements <= most_elements;
}

// Spreads `count` draws over bases of sizes `base_unit`; adds those that are small.
void DrawFrom(const Rule& rule, int64_t base_unit, int64_t unit, int count, int64_t most_elements,
              int64_t most_shards, TypeOracle* oracle, Random* random,
              std::vector<Binding>* instances) {
  const std::vector<Binding> bases = BasesOf(rule, base_unit, oracle);
  const size_t end = instances->size() + count;
  for (size_t b = 0; b < bases.size(); ++b) {
    Rule one = rule;
    one.ranks = {RanksOf(bases[b].inputs)};
    const auto missing = static_cast<int>(end - instances->size());
    const int share = std::max(1, missing / static_cast<int>(bases.size() - b));
    for (Binding& binding :
         DrawAdmitted(one, bases[b], share, {.small = true, .unit = unit}, oracle, random)) {
      if (instances->size() == end) return;
      if (IsSmall(binding, most_elements, most_shards)) instances->push_back(std::move(binding));
    }
  }
}

template <typename T>
std::vector<ShardedValue<T>> DrawInputs(const Binding& binding, bool positive, Random* random) {
  std::vector<ShardedValue<T>> inputs;
  for (const TensorType& type : binding.inputs) {
    Value<T> value = RandomValue<T>(type, random);
    if constexpr (std::is_same_v<T, double>) {
      for (Array<T>& part : value.parts) {
        for (T& element : part.data) element = positive ? std::abs(element) : element;
      }
    }
    inputs.emplace_back(value);
  }
  return inputs;
}

// The sum over the partials of a copy.
template <typename T>
Array<T> MeaningOf(const ShardedValue<T>& value, int64_t micro_batch, int64_t copy) {
  Array<T> sum = value.part(micro_batch, 0, copy);
  for (int64_t p = 1; p < value.type.partials; ++p) {
    const Array<T>& part = value.part(micro_batch, p, copy);
    for (size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += part.data[i];
  }
  return sum;
}

// Of every output, micro-batch and copy.
template <typename T>
std::vector<Array<T>> MeaningsOf(const ShardedPattern& pattern, const ShardedValues<T>& values) {
  std::vector<Array<T>> meanings;
  for (PatternRef ref : pattern.outputs) {
    const ShardedValue<T>& value = values[ref];
    for (int64_t m = 0; m < value.type.micro_batches; ++m) {
      for (int64_t c = 0; c < value.type.copies; ++c) meanings.push_back(MeaningOf(value, m, c));
    }
  }
  return meanings;
}

// The gradient of every float input: of every micro-batch and partial, the shares of copies summed.
std::vector<Array<double>> SharesSummed(const std::vector<ShardedValue<double>>& gradients) {
  std::vector<Array<double>> sums;
  for (const ShardedValue<double>& gradient : gradients) {
    if (!IsFloat(gradient.type.dtype)) continue;
    for (size_t i = 0; i < gradient.parts.size(); i += gradient.type.copies) {
      sums.push_back(gradient.parts[i]);
      for (int64_t c = 1; c < gradient.type.copies; ++c) {
        const std::vector<double>& share = gradient.parts[i + c].data;
        for (size_t e = 0; e < share.size(); ++e) sums.back().data[e] += share[e];
      }
    }
  }
  return sums;
}

// The largest difference relative to the largest element of the same array, where `a` is finite.
double RelativeDifference(const std::vector<Array<double>>& a,
                          const std::vector<Array<double>>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t o = 0; o < a.size(); ++o) {
    if (a[o].shape != b[o].shape) return INFINITY;
    double scale = 0, difference = 0;
    for (size_t i = 0; i < a[o].data.size(); ++i) {
      const double x = a[o].data[i], y = b[o].data[i];
      if (!std::isfinite(x)) continue;
      if (!std::isfinite(y)) return INFINITY;
      scale = std::max({scale, std::abs(x), std::abs(y)});
      difference = std::max(difference, std::abs(x - y));
    }
    // What is zero but for rounding is compared with numbers of the size of the inputs.
    constexpr double kSmallest = 1e-3;
    worst = std::max(worst, difference / std::max(scale, kSmallest));
  }
  return worst;
}

bool AllFinite(const std::vector<Array<double>>& arrays) {
  for (const Array<double>& array : arrays) {
    for (double element : array.data) {
      if (!std::isfinite(element)) return false;
    }
  }
  return true;
}

// What such a comparison gives is finite, but over the reals no value.
bool ComparesWhatIsNotFinite(const ShardedPattern& pattern, const ShardedValues<double>& values) {
  for (size_t n = 0; n < pattern.calls.size(); ++n) {
    if (!pattern.calls[n]->declaration.ComparesElements()) continue;
    for (PatternRef operand : pattern.operands[n]) {
      if (!AllFinite(values[operand].parts)) return true;
    }
  }
  return false;
}

// Partials of one output have one gradient; copies have shares of it.
std::vector<ShardedValue<double>> DrawSeeds(const ShardedPattern& pattern, Random* random) {
  std::vector<ShardedValue<double>> seeds;
  for (PatternRef ref : pattern.outputs) {
    const TensorType& type = pattern.TypeOf(ref);
    TensorType shares = type;
    shares.dtype = DataType::kFloat32;
    shares.partials = type.copies;
    const Value<double> drawn = RandomValue<double>(shares, random);
    ShardedValue<double> seed(type);
    for (int64_t m = 0; m < type.micro_batches && IsFloat(type.dtype); ++m) {
      for (int64_t p = 0; p < type.partials; ++p) {
        for (int64_t c = 0; c < type.copies; ++c) seed.part(m, p, c) = drawn.part(m, c);
      }
    }
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

// Until the source has a value.
constexpr int kDraws = 6;

struct Sides {
  ShardedPattern source, target;
};

absl::Status CompareGradients(const Sides& sides, const ShardedValues<double>& source,
                              const ShardedValues<double>& target, Random* random,
                              Differences* differences) {
  const std::vector<ShardedValue<double>> seeds = DrawSeeds(sides.source, random);
  ISOMER_ASSIGN_OR_RETURN(const auto of_source, RunBackward(sides.source, source, seeds));
  ISOMER_ASSIGN_OR_RETURN(const auto of_target, RunBackward(sides.target, target, seeds));
  const std::vector<Array<double>> a = SharesSummed(of_source), b = SharesSummed(of_target);
  differences->gradient = RelativeDifference(a, b);
  for (const std::vector<Array<double>>* side : {&a, &b}) {
    for (const Array<double>& array : *side) {
      for (double element : array.data) differences->zero_gradient &= element == 0;
    }
  }
  return absl::OkStatus();
}

absl::Status CompareDoubles(const Sides& sides, const Binding& binding, Random* random,
                            Differences* differences) {
  auto is_float = [](const TensorType& type) { return IsFloat(type.dtype); };
  bool float_output = false;
  for (PatternRef ref : sides.source.outputs) float_output |= is_float(sides.source.TypeOf(ref));
  differences->has_gradient =
      float_output && std::any_of(binding.inputs.begin(), binding.inputs.end(), is_float);
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto inputs = DrawInputs<double>(binding, /*positive=*/draw > 0, random);
    const auto source = RunForward(sides.source, inputs);
    differences->has_value = source.ok();
    if (!source.ok()) continue;
    const std::vector<Array<double>> meanings = MeaningsOf(sides.source, *source);
    differences->has_value = AllFinite(meanings) && !ComparesWhatIsNotFinite(sides.source, *source);
    if (!differences->has_value) continue;
    ISOMER_ASSIGN_OR_RETURN(const auto target, RunForward(sides.target, inputs));
    differences->forward = RelativeDifference(meanings, MeaningsOf(sides.target, target));
    if (!differences->has_gradient) return absl::OkStatus();
    return CompareGradients(sides, *source, target, random, differences);
  }
  return absl::OkStatus();
}

absl::Status CompareInField(const Sides& sides, const Binding& binding, Random* random,
                            Differences* differences) {
  std::vector<ShardedValue<PartialField>> inputs;
  absl::StatusOr<ShardedValues<PartialField>> source;
  for (int draw = 0; draw < kDraws && !source.ok(); ++draw) {
    inputs = DrawInputs<PartialField>(binding, false, random);
    source = RunForward(sides.source, inputs);
  }
  differences->has_value = source.ok();
  if (!source.ok()) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const auto target, RunForward(sides.target, inputs));
  const auto a = MeaningsOf(sides.source, *source), b = MeaningsOf(sides.target, target);
  differences->exact = a.size() == b.size();
  for (size_t o = 0; o < a.size() && differences->exact; ++o) {
    differences->exact = a[o].shape == b[o].shape && std::equal(a[o].data.begin(), a[o].data.end(),
                                                                b[o].data.begin(), MayBeEqual);
  }
  return absl::OkStatus();
}

std::string Disagreement(const Differences& found, const CheckOptions& options) {
  if (!found.exact) return "values differ over the field";
  if (!(found.forward <= options.forward_tolerance)) {
    return absl::StrFormat("values differ by %.3g", found.forward);
  }
  if (!(found.gradient <= options.gradient_tolerance)) {
    return absl::StrFormat("gradients differ by %.3g", found.gradient);
  }
  return "";
}

}  // namespace

std::string BindingText(const Binding& binding) {
  std::string text;
  for (size_t i = 0; i < binding.inputs.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? ", " : "", "x", i, " ", binding.inputs[i].ToString());
  }
  for (const auto& [name, value] : binding.variables) absl::StrAppend(&text, " ", name, "=", value);
  for (const auto& [name, value] : binding.numbers) absl::StrAppend(&text, " ", name, "=", value);
  for (const auto& [name, value] : binding.attributes) {
    absl::StrAppend(&text, " ", name, "=", AttributeText(value));
  }
  return text;
}

std::string RuleCheck::ToString() const {
  std::string text = absl::StrFormat("%s: %d instances (%d distinct), values within %.1e", id,
                                     instances, distinct, forward);
  switch (gradients) {
    case Gradient::kNone:
      absl::StrAppend(&text, ", nothing to differentiate");
      break;
    case Gradient::kZero:
      absl::StrAppend(&text, ", all gradients zero");
      break;
    case Gradient::kChecked:
      absl::StrAppendFormat(&text, ", gradients within %.1e", gradient);
  }
  if (without_value > 0) absl::StrAppend(&text, ", ", without_value, " without a value");
  if (!failure.empty()) absl::StrAppend(&text, ", FAILS: ", failure);
  return text;
}

std::vector<Binding> DrawInstances(const Rule& rule, int count, uint64_t seed, TypeOracle* oracle) {
  Random random(seed);
  std::vector<Binding> instances;
  // Shapes of sample calls are fixed; they are split by what divides them.
  const bool fixed = HasAttributeVariables(rule);
  struct Kind {
    int64_t base_unit, unit;
    int share;
  };
  // Degrees 1 to 4 on sizes around 2 and 4, and, apart from what rules are found with, 3 and 5.
  const std::vector<Kind> kinds =
      fixed ? std::vector<Kind>{{1, 0, 100}}
            : std::vector<Kind>{{2, 0, 40}, {4, 0, 30}, {3, 3, 20}, {5, 5, 10}};
  int64_t most_elements = 400, most_shards = 24;
  for (int round = 0; round < 6 && static_cast<int>(instances.size()) < count; ++round) {
    for (const Kind& kind : kinds) {
      const int missing = count - static_cast<int>(instances.size());
      const int wanted = round == 0 ? count * kind.share / 100 : missing;
      DrawFrom(rule, kind.base_unit, kind.unit, std::min(wanted, missing), most_elements,
               most_shards, oracle, &random, &instances);
    }
    if (round >= 1) most_elements *= 8, most_shards *= 2;
  }
  return instances;
}

absl::StatusOr<Differences> Compare(const Rule& rule, const Binding& binding, uint64_t seed,
                                    ShardedCalls* calls) {
  Sides sides;
  ISOMER_ASSIGN_OR_RETURN(sides.source, Spread(rule.source, binding, calls));
  ISOMER_ASSIGN_OR_RETURN(sides.target, Spread(rule.target, binding, calls));
  for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
    const TensorType& from = sides.source.TypeOf(rule.source.outputs[o]);
    const TensorType& to = sides.target.TypeOf(rule.target.outputs[o]);
    if (from == to) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("types differ: ", from.ToString(), " and ", to.ToString()));
  }
  Random random(seed);
  Differences differences;
  ISOMER_RETURN_IF_ERROR(CompareInField(sides, binding, &random, &differences));
  ISOMER_RETURN_IF_ERROR(CompareDoubles(sides, binding, &random, &differences));
  return differences;
}

RuleCheck CheckRule(const Rule& rule, const CheckOptions& options, TypeOracle* oracle,
                    ShardedCalls* calls) {
  RuleCheck check;
  check.id = rule.id;
  const uint64_t seed = HashCombine(options.seed, rule.Digest());
  std::set<std::string> distinct;
  for (const Binding& binding : DrawInstances(rule, options.instances, seed, oracle)) {
    const uint64_t instance_seed = HashCombine(seed, check.instances++);
    const std::string text = BindingText(binding);
    distinct.insert(text);
    check.distinct = static_cast<int>(distinct.size());
    const absl::StatusOr<Differences> found = Compare(rule, binding, instance_seed, calls);
    const std::string failure =
        found.ok() ? Disagreement(*found, options) : std::string(found.status().message());
    if (!failure.empty()) {
      check.failure = absl::StrCat(failure, " at ", text, " (seed ", instance_seed, ")");
      return check;
    }
    check.without_value += !found->has_value;
    check.forward = std::max(check.forward, found->forward);
    check.gradient = std::max(check.gradient, found->gradient);
    if (!found->has_gradient) continue;
    if (!found->zero_gradient) check.gradients = RuleCheck::Gradient::kChecked;
    if (check.gradients == RuleCheck::Gradient::kNone) check.gradients = RuleCheck::Gradient::kZero;
  }
  return check;
}

std::vector<RuleCheck> CheckRules(const std::vector<Rule>& rules, const CheckOptions& options,
                                  absl::FunctionRef<void()> done) {
  std::vector<Rule> all;
  for (const Rule& rule : rules) {
    all.push_back(rule);
    if (rule.reversible) all.push_back(Inverse(rule));
  }
  std::vector<RuleCheck> checks(all.size());
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  auto work = [&] {
    TypeOracle oracle;
    ShardedCalls calls;
    for (size_t r = next++; r < all.size(); r = next++) {
      checks[r] = CheckRule(all[r], options, &oracle, &calls);
      const std::lock_guard<std::mutex> lock(mutex);
      done();
    }
  };
  std::vector<std::thread> threads;
  for (int job = 1; job < options.jobs; ++job) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return checks;
}

}  // namespace isomer
