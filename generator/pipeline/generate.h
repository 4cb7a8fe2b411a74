// The generator from end to end: enumerate, pair, prune, generalise.
#ifndef ISOMER_GENERATOR_PIPELINE_GENERATE_H_
#define ISOMER_GENERATOR_PIPELINE_GENERATE_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "generator/assignments/statistics.h"
#include "generator/pipeline/memo.h"
#include "generator/preconditions/generalize.h"

namespace isomer {

struct GenerateOptions {
  std::set<OpKind> kinds;
  int max_operators = 3;
  uint64_t seed = 1;
  int jobs = 1;  // threads; the result is the same for any number
  // An equation that up to so many rewrites of either side derive is no rule of its own
  // (Derivations in generator/preconditions/prune.h).
  int composition_steps = 1;
  Memo* memo = nullptr;  // of earlier runs; null: nothing is kept
  // Digests of what operators mean, in place of the true ones (generator/pipeline/step_keys.h).
  std::map<OpKind, uint64_t> meanings = {};
  std::FILE* progress = nullptr;  // where bars and lines of progress go; null: nowhere
};

// Rules in order of size: those of one call (families), then pairs of enumerated graphs. None is an
// instance of another, or a composition of smaller ones. Not proved yet.
std::vector<GeneralRule> Generate(const GenerateOptions& options, Statistics* statistics);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_GENERATE_H_
