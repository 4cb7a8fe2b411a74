// isomer-generate: from operators to a rules file.
#ifndef ISOMER_GENERATOR_GENERATE_COMMAND_H_
#define ISOMER_GENERATOR_GENERATE_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "generator/generate.h"
#include "generator/prove_rules.h"
#include "pcg/support/json.h"

namespace isomer {

struct GenerateCommand {
  GenerateOptions options;         // the memo is that of the work folder
  std::vector<std::string> files;  // to write: each holds the same rules
  std::string generator;           // what the files say made them
  // Folder for the memo, and for what was pruned ("pruned.txt"), refuted or unknown
  // ("rejected.txt"), and why; "": none.
  std::string work_dir;
  std::function<Judge()> make_judge;  // called once per process
};

// Finds rules, has them proved, writes those that are, prints one line, and returns the summary:
//   graphs_enumerated, tensors_kept, bytes_kept, candidates
//   pruned       reason -> candidates
//   settled      rules before proof
//   proved, refuted, unknown
//   rules_by_kind  algebra, parallel (all computing operators are on one side of parallel ones or
//                there are none), mixed (both kinds)
//   digest       of the rules file
//   seconds      phase -> wall time: families, enumerate, settle, prove
//   memo         step -> {hits, misses}
//   peak_rss_bytes, peak_rss_bytes_of_a_child
// Errors: the work folder or a file cannot be written, or a process died.
absl::StatusOr<Json> RunGenerate(const GenerateCommand& command);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_GENERATE_COMMAND_H_
