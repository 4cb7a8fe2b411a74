// The generator from end to end: enumerate, pair, prune, generalise.
#ifndef ISOMER_GENERATOR_GENERATE_H_
#define ISOMER_GENERATOR_GENERATE_H_

#include <cstdint>
#include <set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "generator/generalize.h"
#include "generator/statistics.h"

namespace isomer {

struct GenerateOptions {
  std::set<OpKind> kinds;
  int max_operators = 3;
  uint64_t seed = 1;
};

// Rules in order of size: those of one call (expansions), then pairs of enumerated graphs. None is
// an instance of another, or a composition of two smaller ones. Not proved yet.
// `progress` is called with the number of candidates done and their total.
std::vector<GeneralRule> Generate(const GenerateOptions& options, Statistics* statistics,
                                  absl::FunctionRef<void(int64_t, int64_t)> progress);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_GENERATE_H_
