// What the five programs have in common: flags, --help, errors, exit codes.
//
//   ABSL_FLAG(std::string, out, "", "the rules file to write");
//
//   namespace isomer {
//   absl::StatusOr<int> Run(const std::vector<std::string>& arguments) { ...; return kExitDone; }
//   }
//
//   int main(int argc, char** argv) {
//     return isomer::RunProgram({.name = "isomer-generate",
//                                .purpose = "Finds small PCGs that are equal.",
//                                .usage = "--ops=LIST|all --max_ops=N --out=FILE",
//                                .example = "isomer-generate --ops=all --max_ops=2
//                                --out=rules.txt"},
//                               argc, argv, isomer::Run);
//   }
#ifndef ISOMER_PCG_SUPPORT_PROGRAM_H_
#define ISOMER_PCG_SUPPORT_PROGRAM_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/support/json.h"
#include "pcg/support/version.h"

// File that receives the summary that scripts read; "" for none.
ABSL_DECLARE_FLAG(std::string, json);

namespace isomer {

inline constexpr int kExitDone = 0;
inline constexpr int kExitNo = 1;        // the answer is no: refuted, does not fit
inline constexpr int kExitBadInput = 2;  // flags or files

// What the first argument of a program may ask for: "rules FILE".
struct ProgramCommand {
  absl::string_view name;
  absl::string_view usage;               // arguments and main flags, without the name
  absl::string_view purpose;             // one sentence
  std::vector<absl::string_view> flags;  // that apply to it, besides those of every program
};

// Words that shells complete.
struct CompletionWords {
  std::map<std::string, std::vector<std::string>> of_flags =
      {};                                   // "mode": {"training", "inference"}
  std::vector<std::string> arguments = {};  // "zoo:mlp"
};

struct ProgramInfo {
  std::string name;
  std::string purpose;  // one sentence
  std::string usage;    // arguments and main flags; not of a program whose usage is its commands'
  std::string example;  // a whole command
  // Flags of files that it writes, beside --json.
  std::vector<std::string> outputs = {};
  // It may be one of several processes, perhaps of another computer: who writes calls TryOutputs.
  bool one_process_writes = false;
  std::vector<ProgramCommand> commands = {};
  VersionFacts version = {};
  // For manual pages and completion (manual.h, completion.h) alone.
  std::vector<std::string> more_examples = {};
  std::vector<std::pair<std::string, std::string>> environment = {};  // variables, besides common
  CompletionWords (*words)() = nullptr;
  // Reads the file of --operators, before anything else is done.
  absl::Status (*load_operators)(const std::string& path) = nullptr;
};

// Sets Abseil's flags (ABSL_FLAG) from the command line and returns the other arguments, without
// the program's name. Errors name the flag: "unknown flag --budgt (see --help)".
// --flag=value, --flag value, --switch and --noswitch are understood; after "--" all is argument. A
// flag that is a list may be given several times.
absl::StatusOr<std::vector<std::string>> ParseCommandLine(int argc, const char* const* argv);

// Whether the last command line that was parsed gave the flag a value.
bool WasGiven(absl::string_view flag);
// An error if one of these flags was given: "--epochs needs --data" for why = "needs --data". What
// does not apply must not be ignored.
absl::Status RefuseFlags(absl::Span<const absl::string_view> flags, absl::string_view why);
// The same of all flags but these and those of every program.
absl::Status RefuseFlagsBut(absl::Span<const absl::string_view> flags, absl::string_view why);

// The text of --help: purpose, usage, the program's flags with their defaults, the example.
std::string HelpText(const ProgramInfo& info);
// What --help=`form` prints: "" (HelpText), man (manual.h), bash, zsh or fish (completion.h).
absl::StatusOr<std::string> HelpIn(absl::string_view form, const ProgramInfo& info);

// Parses the command line, answers --help and --version, sees that its outputs can be written and
// that none is a file that another flag or argument names (output_files.h), and calls `run` with
// the arguments that are no flags. Returns the exit code: run's own, or kExitBadInput after an
// error or exception was printed.
int RunProgram(const ProgramInfo& info, int argc, const char* const* argv,
               absl::FunctionRef<absl::StatusOr<int>(const std::vector<std::string>&)> run);

// Prints "error: ..." as one line on stderr and returns kExitBadInput; kExitDone when OK.
int ExitWith(const absl::Status& status);

// Whether the outputs of the command line can be written.
absl::Status TryOutputs();

// Writes `summary` to --json's file, when one was asked for.
absl::Status WriteJsonSummary(const Json& summary);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_PROGRAM_H_
