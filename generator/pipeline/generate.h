// The generator from end to end: enumerate, pair, prune, generalise.
#ifndef ISOMER_GENERATOR_PIPELINE_GENERATE_H_
#define ISOMER_GENERATOR_PIPELINE_GENERATE_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "generator/assignments/statistics.h"
#include "generator/enumeration/derived_configurations.h"
#include "generator/preconditions/generalize.h"
#include "generator/workers/work_queue.h"

namespace isomer {

struct GenerateOptions {
  std::set<OpKind> kinds;
  int max_operators = 3;
  ConfigurationChoice configurations = ConfigurationChoice::kWritten;
  uint64_t seed = 1;
  // Who works (on GeneratorSteps); null: this process. The result is the same for any number.
  WorkQueue* queue = nullptr;
  // An equation that up to so many rewrites of either side derive is no rule of its own
  // (Derivations in generator/preconditions/prune.h).
  int composition_steps = 1;
  // Digests of what operators mean, in place of the true ones (generator/pipeline/step_keys.h).
  std::map<OpKind, uint64_t> meanings = {};
  std::FILE* progress = nullptr;  // where bars and lines of progress go; null: nowhere
  // Called with each rule as it is found, in order.
  std::function<void(const GeneralRule&)> on_rule = nullptr;
  // Before, with those that are likely to be among them, in any order.
  std::function<void(const GeneralRule&)> on_likely_rule = nullptr;
};

// Rules in order of size: those of one call (families), then pairs of enumerated graphs. None is an
// instance of another, or a composition of smaller ones. Not proved yet. Errors: those of workers.
absl::StatusOr<std::vector<GeneralRule>> Generate(const GenerateOptions& options,
                                                  Statistics* statistics);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_GENERATE_H_
