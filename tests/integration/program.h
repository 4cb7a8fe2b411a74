// Runs the built programs as a user does.
#ifndef ISOMER_TESTS_INTEGRATION_PROGRAM_H_
#define ISOMER_TESTS_INTEGRATION_PROGRAM_H_

#include <string>
#include <vector>

namespace isomer {

struct ProgramResult {
  int exit_code = -1;
  std::string out, err;
};

// Runs bin/`program` with the arguments (passed as they are, no shell meaning) and waits.
ProgramResult RunBinary(const std::string& program, const std::vector<std::string>& arguments);

// The same under mpirun, as so many processes, more than cores if need be.
ProgramResult RunUnderMpirun(int processes, const std::string& program,
                             const std::vector<std::string>& arguments);

// A file of the source tree.
std::string SourceFile(const std::string& path);

// A path for files of the running test, in a folder of its own.
std::string ScratchFile(const std::string& name);

}  // namespace isomer

#endif  // ISOMER_TESTS_INTEGRATION_PROGRAM_H_
