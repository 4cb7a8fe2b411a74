// Completion of a program's command line by shells: its flags with what they say, words that a flag
// or an argument may be, files. From the declaration that the program is run with.
#ifndef ISOMER_PCG_SUPPORT_COMPLETION_H_
#define ISOMER_PCG_SUPPORT_COMPLETION_H_

#include <string>

#include "pcg/support/program.h"

namespace isomer {

// Each is a file that the shell loads by the program's name: share/bash-completion/completions/P,
// share/zsh/site-functions/_P, share/fish/vendor_completions.d/P.fish.
std::string BashCompletion(const ProgramInfo& info);
std::string ZshCompletion(const ProgramInfo& info);
std::string FishCompletion(const ProgramInfo& info);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_COMPLETION_H_
