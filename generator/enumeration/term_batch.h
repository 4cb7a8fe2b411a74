// Terms of the last size, evaluated many at a time by several threads.
//
// Which term is first of its class, and so what stands for what, depends on the order in which
// terms are kept: the enumerator keeps them one by one. Nearly all of the work is evaluation, which
// depends on nothing: it is done before, batch by batch, in any order. What a batch leaves out
// (terms equal to a renaming of another of the same batch, for example) is evaluated when it is
// kept, so that the result is the same for any number of threads and any size of batches.
#ifndef ISOMER_GENERATOR_ENUMERATION_TERM_BATCH_H_
#define ISOMER_GENERATOR_ENUMERATION_TERM_BATCH_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "generator/enumeration/term_evaluator.h"
#include "generator/enumeration/term_store.h"
#include "generator/enumeration/work_items.h"

namespace isomer {

// A renaming of a term that permutes its inputs: of the term, and of its operands.
struct PermutedNaming {
  NamingId naming;
  absl::InlinedVector<NamingId, 3> operands;
};

struct FingerprintedTerm {
  EnumeratedTerm term;
  Fingerprints fingerprints;  // none: it cannot be evaluated, or was not yet
};

struct BatchTerm {
  FingerprintedTerm canonical;
  NamingId naming = -1;
  // Other than the term itself, in the order of Namings::Renamings.
  const std::vector<PermutedNaming>* renamings = nullptr;
  std::vector<FingerprintedTerm> renamed;  // as many as renamings, or none: not evaluated yet
  bool is_new = false;                     // an output has a sample that no earlier tensor has
};

class TermBatch {
 public:
  TermBatch(TermStore* store, int threads)
      : store_(store), threads_(threads), evaluators_(threads, TermEvaluator(store)) {}

  // REQUIRES: operands of `item`.
  void Add(const WorkItem& item, const TensorList& operands);
  bool full() const;
  // Evaluates the terms: samples, of those which equal nothing also those of their renamings; the
  // whole of those whose sample is known. Completes the classes that they may belong to.
  void Evaluate();
  std::vector<BatchTerm>& terms() { return terms_; }
  void Clear();

  // Samples of all renamings, if there are none yet.
  void SampleRenamings(BatchTerm* term, TermEvaluator* evaluator) const;

 private:
  struct Place {  // an output of a term
    int term, output;
  };
  struct First {
    Place place;
    bool met = false;  // by another of the batch
  };
  const std::vector<PermutedNaming>& Permuted(NamingId naming, const TensorList& operands);
  // Outputs that have the sample of another tensor, and the classes of those.
  void FindSuspects();
  void AddSuspect(Place place);

  TermStore* const store_;
  const int threads_;
  std::vector<TermEvaluator> evaluators_;  // per thread
  std::vector<BatchTerm> terms_;
  std::vector<Place> suspects_;
  std::vector<int> classes_;                    // whose whole is wanted
  absl::flat_hash_map<uint64_t, First> first_;  // by sample
  // By the namings of the operands.
  absl::node_hash_map<std::vector<NamingId>, std::vector<PermutedNaming>> permuted_;
  const WorkItem* last_item_ = nullptr;
  const std::vector<PermutedNaming>* last_permuted_ = nullptr;  // of its terms
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_TERM_BATCH_H_
