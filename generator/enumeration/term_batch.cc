#include "generator/enumeration/term_batch.h"

#include <algorithm>

#include "generator/enumeration/in_chunks.h"

namespace isomer {
namespace {

// Many chunks a batch, so that threads end together; a batch of some 10 MB.
constexpr size_t kTermsOfBatch = 1 << 15, kTermsAtOnce = 256;

bool IsNeeded(const Fingerprint& fingerprint) { return fingerprint.whole == Fingerprint::kUnknown; }

}  // namespace

bool TermBatch::full() const { return terms_.size() >= kTermsOfBatch; }

void TermBatch::Clear() {
  terms_.clear();
  suspects_.clear();
  classes_.clear();
  first_.clear();
}

void TermBatch::Add(const WorkItem& item, const TensorList& operands) {
  const NamingId naming = item.naming < 0 ? store_->NamingOf(operands) : item.naming;
  if (&item != last_item_ || item.naming < 0) {
    last_item_ = &item;
    last_permuted_ = &Permuted(naming, operands);
  }
  terms_.emplace_back();
  terms_.back().canonical.term = {item.call, operands};
  terms_.back().naming = naming;
  terms_.back().renamings = last_permuted_;
}

const std::vector<PermutedNaming>& TermBatch::Permuted(NamingId naming,
                                                       const TensorList& operands) {
  std::vector<NamingId> key;
  for (int tensor : operands) key.push_back((*store_)[tensor].naming);
  const auto [entry, fresh] = permuted_.try_emplace(key);
  if (!fresh) return entry->second;
  Namings& namings = store_->namings();
  for (NamingId renaming : std::vector<NamingId>(namings.Renamings(naming))) {
    if (renaming == naming || !namings.UseSameInputs(naming, renaming)) continue;
    PermutedNaming permuted{renaming, {}};
    for (NamingId part : key) {
      permuted.operands.push_back(namings.Renamed(part, naming, renaming));
    }
    entry->second.push_back(std::move(permuted));
  }
  return entry->second;
}

void TermBatch::Evaluate() {
  InChunks(threads_, terms_.size(), kTermsAtOnce, [&](int thread, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      FingerprintedTerm& canonical = terms_[i].canonical;
      evaluators_[thread].Sample(canonical.term, &canonical.fingerprints);
    }
  });
  FindSuspects();
  InChunks(threads_, suspects_.size(), kTermsAtOnce / 4, [&](int thread, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto [index, output] = suspects_[i];
      FingerprintedTerm& suspect = terms_[index].canonical;
      suspect.fingerprints[output].whole = evaluators_[thread].WholeOf(suspect.term, output);
    }
  });
  InChunks(threads_, classes_.size(), kTermsAtOnce / 4, [&](int thread, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      TensorClass& wanted = store_->Class(classes_[i]);
      wanted.whole = evaluators_[thread].WholeOf(wanted);
    }
  });
  InChunks(threads_, terms_.size(), kTermsAtOnce, [&](int thread, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (terms_[i].is_new) SampleRenamings(&terms_[i], &evaluators_[thread]);
    }
  });
}

void TermBatch::FindSuspects() {
  for (size_t i = 0; i < terms_.size(); ++i) {
    Fingerprints& fingerprints = terms_[i].canonical.fingerprints;
    for (size_t t = 0; t < fingerprints.size(); ++t) {
      const Place place{static_cast<int>(i), static_cast<int>(t)};
      int number = store_->FirstWithSample(fingerprints[t].sample);
      bool is_known = number >= 0;
      for (; number >= 0; number = store_->Class(number).next) {
        if (store_->Class(number).whole == Fingerprint::kUnknown) classes_.push_back(number);
      }
      if (!is_known) {
        const auto [first, fresh] = first_.try_emplace(fingerprints[t].sample, First{place});
        is_known = !fresh;
        if (!fresh && !first->second.met) {
          first->second.met = true;
          AddSuspect(first->second.place);
        }
      }
      if (is_known) {
        AddSuspect(place);
      } else {
        terms_[i].is_new = true;
      }
    }
  }
  std::sort(classes_.begin(), classes_.end());
  classes_.erase(std::unique(classes_.begin(), classes_.end()), classes_.end());
}

void TermBatch::AddSuspect(Place place) {
  if (IsNeeded(terms_[place.term].canonical.fingerprints[place.output])) {
    suspects_.push_back(place);
  }
}

void TermBatch::SampleRenamings(BatchTerm* term, TermEvaluator* evaluator) const {
  if (!term->renamed.empty()) return;
  FingerprintedTerm& canonical = term->canonical;
  term->renamed.reserve(term->renamings->size());
  for (const PermutedNaming& permuted : *term->renamings) {
    FingerprintedTerm& renamed = term->renamed.emplace_back();
    renamed.term = canonical.term;
    bool has_operands = true;
    for (size_t o = 0; o < permuted.operands.size(); ++o) {
      int& operand = renamed.term.operands[o];
      operand = store_->Renaming((*store_)[operand].orbit, permuted.operands[o]);
      has_operands &= operand >= 0;
    }
    if (!has_operands) continue;
    evaluator->Sample(renamed.term, &renamed.fingerprints);
    // Often a term equals itself with its inputs exchanged.
    for (size_t t = 0; t < renamed.fingerprints.size(); ++t) {
      Fingerprint &one = canonical.fingerprints[t], &other = renamed.fingerprints[t];
      if (one.sample != other.sample) continue;
      const int output = static_cast<int>(t);
      if (IsNeeded(one)) one.whole = evaluator->WholeOf(canonical.term, output);
      if (IsNeeded(other)) other.whole = evaluator->WholeOf(renamed.term, output);
    }
  }
}

}  // namespace isomer
