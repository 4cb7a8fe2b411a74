// The subcommand `isomer-optimize export`.
#ifndef ISOMER_OPTIMIZER_EXPORT_MAIN_H_
#define ISOMER_OPTIMIZER_EXPORT_MAIN_H_

#include "pcg/support/program.h"

namespace isomer {

// What --help says of it.
ProgramCommand ExportCommand();

// Whether a command line is of the subcommand, and what it does with it: the exit code.
bool IsExport(int argc, const char* const* argv);
int ExportMain(int argc, const char* const* argv);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_EXPORT_MAIN_H_
