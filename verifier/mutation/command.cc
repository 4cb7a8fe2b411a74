#include "verifier/mutation/command.h"

#include <cstdio>
#include <vector>

#include "absl/flags/flag.h"
#include "pcg/support/file.h"
#include "pcg/support/json.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "rules/language/rule.h"
#include "verifier/mutation/known_answers.h"
#include "verifier/mutation/mutation.h"

ABSL_FLAG(int, rule_mutants, 600, "mutate: how many mutants of rules are tried");
ABSL_FLAG(int, mutants, 0, "mutate: at most so many of each other kind; 0: all");
ABSL_FLAG(int64_t, mutation_seed, 1, "mutate: what the samples are drawn from");
ABSL_FLAG(bool, list_equal, false, "mutate: list the mutants that are equal, each with its reason");
ABSL_FLAG(std::string, mutation_table, "", "mutate: write the tables here, as Markdown");
ABSL_FLAG(std::string, record_answers, "",
          "mutate: write what the declarations of the example calls compute here, and do no more");

namespace isomer {

absl::StatusOr<int> RunMutateCommand(const std::string& rules_path, int jobs) {
  if (const std::string path = absl::GetFlag(FLAGS_record_answers); !path.empty()) {
    ISOMER_ASSIGN_OR_RETURN(const std::string answers, KnownAnswersText());
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(path, answers));
    return kExitDone;
  }
  MutationOptions options;
  options.rule_mutants = absl::GetFlag(FLAGS_rule_mutants);
  options.limit = absl::GetFlag(FLAGS_mutants);
  options.seed = static_cast<uint64_t>(absl::GetFlag(FLAGS_mutation_seed));
  if (options.rule_mutants < 0 || options.limit < 0) {
    return absl::InvalidArgumentError("--rule_mutants and --mutants must not be negative");
  }
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(rules_path));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Mutant> mutants, AllMutants(rules, options));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<MutantVerdict> verdicts, JudgeMutants(mutants, jobs));
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(MutationJson(mutants, verdicts)));
  if (const std::string path = absl::GetFlag(FLAGS_mutation_table); !path.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(path, MutationMarkdown(mutants, verdicts)));
  }
  std::fputs(MutationText(mutants, verdicts, absl::GetFlag(FLAGS_list_equal)).c_str(), stdout);
  return NothingIsMissed(verdicts) ? kExitDone : kExitNo;
}

}  // namespace isomer
