// What is said of a program, from the declaration that it is run with: --help, and manual pages.
#ifndef ISOMER_PCG_SUPPORT_MANUAL_H_
#define ISOMER_PCG_SUPPORT_MANUAL_H_

#include <string>

#include "pcg/support/program.h"

namespace isomer {

// A page for man(1), section 1, in the macros of man(7): the text of --help with exit codes, files
// and the environment.
std::string ManualPage(const ProgramInfo& info);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_MANUAL_H_
