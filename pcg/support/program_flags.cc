#include "pcg/support/program_flags.h"

#include <algorithm>
#include <cstdint>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"

namespace isomer {
namespace {

bool IsOurs(const absl::CommandLineFlag& flag) {
  return !absl::StrContains(flag.Filename(), "absl/flags/");
}

}  // namespace

absl::CommandLineFlag* FindFlag(absl::string_view name) {
  absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  return flag != nullptr && IsOurs(*flag) ? flag : nullptr;
}

std::vector<const absl::CommandLineFlag*> ProgramFlags() {
  std::vector<const absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (IsOurs(*flag) && !IsOfEveryProgram(name)) flags.push_back(flag);
  }
  std::sort(flags.begin(), flags.end(),
            [](const absl::CommandLineFlag* a, const absl::CommandLineFlag* b) {
              return a->Name() < b->Name();
            });
  return flags;
}

const std::vector<CommonFlag>& CommonFlags() {
  static const auto* const flags = new std::vector<CommonFlag>{
      {"help", "", "say this; --help=man, bash, zsh or fish: a manual page, completion", false},
      {"json", "FILE", "write the summary that scripts read to this file"},
      {"operators", "FILE", "a file that declares further operators"},
      {"quiet", "", "no progress and no notes, only results and errors"},
      {"version", "", "the version, and what the program was built with", false},
  };
  return *flags;
}

bool IsOfEveryProgram(absl::string_view name) {
  return std::any_of(CommonFlags().begin(), CommonFlags().end(),
                     [&](const CommonFlag& flag) { return flag.name == name; });
}

FlagForm FormOf(const absl::CommandLineFlag& flag) {
  if (flag.IsOfType<bool>()) return FlagForm::kSwitch;
  if (flag.IsOfType<std::string>()) return FlagForm::kText;
  if (flag.IsOfType<std::vector<std::string>>()) return FlagForm::kList;
  return FlagForm::kNumber;
}

}  // namespace isomer
