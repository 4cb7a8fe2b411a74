// isomer-generate: from operators to a rules file.
#ifndef ISOMER_GENERATOR_PIPELINE_GENERATE_COMMAND_H_
#define ISOMER_GENERATOR_PIPELINE_GENERATE_COMMAND_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "generator/pipeline/generate.h"
#include "generator/pipeline/prove_rules.h"
#include "generator/workers/workers.h"
#include "pcg/support/json.h"

namespace isomer {

struct GenerateCommand {
  GenerateOptions options;  // without queue and threads
  int jobs = 1;             // processes that work; the result is the same for any number
  // Who work in their place, on GeneratorSteps(make_judge); null: nobody does.
  Workers* workers = nullptr;
  std::vector<std::string> files;  // to write: each holds the same rules
  std::string generator;           // what the files say made them
  // Folder for the memo, and for what was pruned ("pruned.txt"), refuted or unknown
  // ("rejected.txt"), and why; "": none.
  std::string work_dir;
  std::function<Judge()> make_judge;  // called once per worker
};

struct GenerateOutcome {
  Statistics statistics;
  int64_t settled = 0;  // rules before proof
  RuleSet proved;
  std::vector<Rule> rejected;  // refuted or unknown
  int64_t refuted = 0, unknown = 0;
  std::map<std::string, Memo::Counts> memo;  // by step
};

// Finds rules, has them proved, and writes those that are. Errors: the work folder or a file cannot
// be written, or a process died.
absl::StatusOr<GenerateOutcome> RunGenerate(const GenerateCommand& command);

// For scripts:
//   graphs_enumerated, tensors_kept, bytes_kept, candidates
//   pruned         reason -> candidates
//   settled, proved, refuted, unknown
//   rules_by_kind  algebra, parallel (of parallel operators alone), mixed
//   digest         of the rules
//   seconds        phase -> wall time: families, enumerate, settle, prove. Workers that have
//   nothing
//                  to do in one phase begin with a later one
//   memo           step -> hits, misses
//   peak_rss_bytes, and that of the largest child
Json SummaryOf(const GenerateOutcome& outcome);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_GENERATE_COMMAND_H_
