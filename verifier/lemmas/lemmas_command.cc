#include "verifier/lemmas/lemmas_command.h"

#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "verifier/lemmas/lemmas_page.h"
#include "verifier/lemmas/prove_lemmas.h"
#include "verifier/lemmas/second_opinion.h"

namespace isomer {

absl::StatusOr<int> LemmasCommand(const RuleSet& rules, const LemmasOptions& options) {
  std::vector<LemmaEntry> lemmas = LemmasOf(rules);
  Progress progress(absl::StrCat("prove ", lemmas.size(), " premises"), 0);
  ISOMER_RETURN_IF_ERROR(ProveLemmas(options.jobs, &lemmas));
  if (options.exhaustive) {
    progress.Say("second opinion");
    OpinionOptions opinion;
    opinion.jobs = options.jobs;
    ISOMER_RETURN_IF_ERROR(AskSecondOpinion(opinion, &lemmas));
  }
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(LemmasJson(lemmas)));
  if (!options.markdown.empty()) {
    ISOMER_RETURN_IF_ERROR(
        WriteFileAtomically(options.markdown, LemmasPage(lemmas, rules.Digest())));
  }
  std::fputs(LemmasText(lemmas).c_str(), stdout);
  return AllHold(lemmas) ? kExitDone : kExitNo;
}

}  // namespace isomer
