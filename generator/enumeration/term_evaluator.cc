#include "generator/enumeration/term_evaluator.h"

#include <algorithm>

#include "pcg/support/hash.h"

namespace isomer {
namespace {

uint64_t HashOf(absl::Span<const PrimeField> elements, int type) {
  // Multiply and add with a stream of odd numbers, then mix: two per element.
  uint64_t hash = static_cast<uint64_t>(type), odd = 0x9e3779b97f4a7c15;
  for (PrimeField element : elements) {
    odd = odd * 0xd1342543de82ef95 + 2;
    hash += (element.raw() ^ (element.raw() >> 29)) * odd;
    hash ^= hash >> 32;
  }
  return std::max<uint64_t>(HashMix(hash), 1);  // Not kUnknown.
}

}  // namespace

Fingerprint FingerprintOf(absl::Span<const PrimeField> meaning, int type) {
  std::vector<PrimeField> sample;
  for (int64_t i : SamplePositions(static_cast<int64_t>(meaning.size()))) {
    sample.push_back(meaning[i]);
  }
  return {HashOf(sample, type), HashOf(meaning, type)};
}

void TermEvaluator::GatherOperands(const EnumeratedTerm& term) {
  operands_.clear();
  for (int tensor : term.operands) operands_.push_back((*store_)[tensor].meaning);
}

bool TermEvaluator::Evaluate(const EnumeratedTerm& term, Fingerprints* fingerprints) {
  GatherOperands(term);
  const EnumeratedCall& call = *term.call;
  fingerprints->clear();
  if (!EvaluateMeaning(call, operands_, &meanings_, &scratch_)) return false;
  for (size_t t = 0; t < call.output_types.size(); ++t) {
    fingerprints->push_back(
        FingerprintOf(MeaningOf(call, static_cast<int>(t)), call.output_types[t]));
  }
  return true;
}

bool TermEvaluator::Sample(const EnumeratedTerm& term, Fingerprints* fingerprints) {
  GatherOperands(term);
  const EnumeratedCall& call = *term.call;
  fingerprints->clear();
  if (!EvaluateSample(call, operands_, &meanings_, &scratch_)) return false;
  absl::Span<const PrimeField> left = meanings_;
  for (size_t t = 0; t < call.output_types.size(); ++t) {
    const uint64_t hash = HashOf(left.first(call.sample_sizes[t]), call.output_types[t]);
    const bool is_whole = call.sample_sizes[t] == call.output_sizes[t];
    fingerprints->push_back({hash, is_whole ? hash : Fingerprint::kUnknown});
    left.remove_prefix(call.sample_sizes[t]);
  }
  return true;
}

absl::Span<const PrimeField> TermEvaluator::MeaningOf(const EnumeratedCall& call,
                                                      int output) const {
  int64_t begin = 0;
  for (int t = 0; t < output; ++t) begin += call.output_sizes[t];
  return absl::MakeConstSpan(meanings_).subspan(begin, call.output_sizes[output]);
}

uint64_t TermEvaluator::WholeOf(const EnumeratedTerm& term, int output) {
  GatherOperands(term);
  const EnumeratedCall& call = *term.call;
  if (!EvaluateMeaning(call, operands_, &meanings_, &scratch_)) return Fingerprint::kUnknown;
  return HashOf(MeaningOf(call, output), call.output_types[output]);
}

uint64_t TermEvaluator::WholeOf(const TensorClass& known) {
  if (known.whole != Fingerprint::kUnknown) return known.whole;
  const PatternRef definition = store_->nodes().tensors[known.representative];
  const EnumeratedNode& node = store_->nodes().nodes[definition.node];
  return WholeOf({node.call, node.operands}, definition.index);
}

}  // namespace isomer
