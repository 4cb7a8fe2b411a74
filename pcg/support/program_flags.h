// The flags of the running program, as they are declared with ABSL_FLAG.
#ifndef ISOMER_PCG_SUPPORT_PROGRAM_FLAGS_H_
#define ISOMER_PCG_SUPPORT_PROGRAM_FLAGS_H_

#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/strings/string_view.h"

namespace isomer {

// Without those of Abseil's library; nullptr: there is none.
absl::CommandLineFlag* FindFlag(absl::string_view name);
// All but those of every program, by name.
std::vector<const absl::CommandLineFlag*> ProgramFlags();

// Of every program, and documented once. --help and --version are answered before flags are parsed:
// they are `is_parsed` false.
struct CommonFlag {
  absl::string_view name;
  absl::string_view value;  // "FILE"; "" of a switch
  absl::string_view help;
  bool is_parsed = true;
};
const std::vector<CommonFlag>& CommonFlags();
bool IsOfEveryProgram(absl::string_view name);

enum class FlagForm { kSwitch, kNumber, kText, kList };
FlagForm FormOf(const absl::CommandLineFlag& flag);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_PROGRAM_FLAGS_H_
