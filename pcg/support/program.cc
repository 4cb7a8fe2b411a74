#include "pcg/support/program.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pcg/support/completion.h"
#include "pcg/support/file.h"
#include "pcg/support/manual.h"
#include "pcg/support/output_files.h"
#include "pcg/support/program_flags.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"

ABSL_FLAG(std::string, json, "", "write the summary that scripts read to this file");
ABSL_FLAG(std::string, operators, "", "a file that declares further operators");

namespace isomer {
namespace {

absl::Status UnknownFlag(absl::string_view name) {
  const std::string underscored = absl::StrReplaceAll(name, {{"-", "_"}});
  const std::string hint = underscored != name && FindFlag(underscored) != nullptr
                               ? absl::StrCat("did you mean --", underscored, "?")
                               : "see --help";
  return absl::InvalidArgumentError(absl::StrCat("unknown flag --", name, " (", hint, ")"));
}

absl::Status SetFlag(absl::CommandLineFlag* flag, absl::string_view value) {
  std::string reason;
  if (flag->ParseFrom(value, &reason)) {
    const absl::optional<double> number = flag->TryGet<double>();
    if (!number.has_value() || std::isfinite(*number)) return absl::OkStatus();
    reason = "a finite number is expected";
  }
  return absl::InvalidArgumentError(absl::StrCat("flag --", flag->Name(), ": '", value,
                                                 "' is no value for it", reason.empty() ? "" : ": ",
                                                 reason));
}

// The form of --help that is asked for: "" of --help, "man" of --help=man.
std::optional<absl::string_view> HelpAskedFor(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (argument == "--") return std::nullopt;
    if (argument == "--help" || argument == "-help" || argument == "-h") return "";
    if (absl::ConsumePrefix(&argument, "--help=")) return argument;
  }
  return std::nullopt;
}

bool AsksForVersion(int argc, const char* const* argv) {
  for (int i = 1; i < argc && absl::string_view(argv[i]) != "--"; ++i) {
    if (absl::string_view(argv[i]) == "--version") return true;
  }
  return false;
}

std::string OneLine(absl::string_view text) {
  std::vector<absl::string_view> lines =
      absl::StrSplit(text, absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  return absl::StrJoin(lines, " ");
}

std::set<std::string>& GivenFlags() {
  static auto* const flags = new std::set<std::string>;
  return *flags;
}

std::vector<NamedFile>& GivenOutputs() {
  static auto* const outputs = new std::vector<NamedFile>;
  return *outputs;
}

// Before hours of work: nothing is lost, neither what is read nor what is found.
absl::Status CheckFiles(const ProgramInfo& info, const std::vector<std::string>& arguments) {
  std::set<std::string> written(info.outputs.begin(), info.outputs.end());
  written.insert("json");
  std::vector<NamedFile> outputs, inputs;
  for (const std::string& argument : arguments) inputs.push_back({"", argument});
  for (const std::string& name : GivenFlags()) {
    const absl::CommandLineFlag* flag = FindFlag(name);
    std::vector<std::string> paths = {flag->CurrentValue()};
    if (flag->IsOfType<std::vector<std::string>>()) paths = absl::StrSplit(paths[0], ',');
    for (std::string& path : paths) {
      if (path.empty()) continue;
      (written.count(name) > 0 ? outputs : inputs).push_back({absl::StrCat("--", name), path});
    }
  }
  // Names of models, words and numbers are none.
  std::erase_if(inputs, [](const NamedFile& file) {
    std::error_code ignored;
    return !std::filesystem::is_regular_file(file.path, ignored);
  });
  ISOMER_RETURN_IF_ERROR(CheckAreApart(outputs, inputs));
  GivenOutputs() = std::move(outputs);
  return info.one_process_writes ? absl::OkStatus() : TryOutputs();
}

}  // namespace

// In place of absl::ParseCommandLine, which exits by itself with code 1: here that means "no".
absl::StatusOr<std::vector<std::string>> ParseCommandLine(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  GivenFlags().clear();
  std::set<absl::CommandLineFlag*> lists;  // that were given already
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (argument == "--") {
      arguments.insert(arguments.end(), argv + i + 1, argv + argc);
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      arguments.emplace_back(argument);
      continue;
    }
    argument.remove_prefix(absl::StartsWith(argument, "--") ? 2 : 1);
    const size_t equals = argument.find('=');
    const absl::string_view name = argument.substr(0, equals);
    absl::CommandLineFlag* flag = FindFlag(name);
    absl::string_view value;
    if (flag == nullptr) {
      absl::string_view positive = name;
      if (absl::ConsumePrefix(&positive, "no") && equals == argument.npos)
        flag = FindFlag(positive);
      if (flag == nullptr || !flag->IsOfType<bool>()) return UnknownFlag(name);
      value = "false";
    } else if (equals != argument.npos) {
      value = argument.substr(equals + 1);
    } else if (flag->IsOfType<bool>()) {
      value = "true";
    } else if (++i < argc) {
      value = argv[i];
    } else {
      return absl::InvalidArgumentError(absl::StrCat("flag --", name, " needs a value"));
    }
    // A list that is given again goes on.
    std::string joined;
    if (flag->IsOfType<std::vector<std::string>>() && !lists.insert(flag).second) {
      value = joined = absl::StrCat(flag->CurrentValue(), ",", value);
    }
    ISOMER_RETURN_IF_ERROR(SetFlag(flag, value));
    GivenFlags().insert(std::string(flag->Name()));
  }
  return arguments;
}

bool WasGiven(absl::string_view flag) { return GivenFlags().count(std::string(flag)) > 0; }

absl::Status RefuseFlags(absl::Span<const absl::string_view> flags, absl::string_view why) {
  for (absl::string_view flag : flags) {
    if (WasGiven(flag)) return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", why));
  }
  return absl::OkStatus();
}

absl::Status RefuseFlagsBut(absl::Span<const absl::string_view> flags, absl::string_view why) {
  for (const std::string& flag : GivenFlags()) {
    if (IsOfEveryProgram(flag) || std::find(flags.begin(), flags.end(), flag) != flags.end())
      continue;
    return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", why));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> HelpIn(absl::string_view form, const ProgramInfo& info) {
  if (form.empty()) return HelpText(info);
  if (form == "man") return ManualPage(info);
  if (form == "bash") return BashCompletion(info);
  if (form == "zsh") return ZshCompletion(info);
  if (form == "fish") return FishCompletion(info);
  return absl::InvalidArgumentError(
      absl::StrCat("--help=", form, ": there are man, bash, zsh and fish"));
}

int RunProgram(const ProgramInfo& info, int argc, const char* const* argv,
               absl::FunctionRef<absl::StatusOr<int>(const std::vector<std::string>&)> run) {
  if (const auto form = HelpAskedFor(argc, argv); form.has_value()) {
    const absl::StatusOr<std::string> text = HelpIn(*form, info);
    if (!text.ok()) return ExitWith(text.status());
    std::fputs(text->c_str(), stdout);
    return kExitDone;
  }
  if (AsksForVersion(argc, argv)) {
    std::fputs(VersionText(info.name, info.version).c_str(), stdout);
    return kExitDone;
  }
  try {
    absl::StatusOr<std::vector<std::string>> arguments = ParseCommandLine(argc, argv);
    if (!arguments.ok()) return ExitWith(arguments.status());
    const absl::Status files = CheckFiles(info, *arguments);
    if (!files.ok()) return ExitWith(files);
    if (info.load_operators != nullptr) {
      const absl::Status operators = info.load_operators(absl::GetFlag(FLAGS_operators));
      if (!operators.ok()) return ExitWith(operators);
    }
    absl::StatusOr<int> code = run(*arguments);
    return code.ok() ? *code : ExitWith(code.status());
  } catch (const std::exception& exception) {
    return ExitWith(absl::InternalError(exception.what()));
  }
}

absl::Status TryOutputs() { return CheckCanWriteAll(GivenOutputs()); }

int ExitWith(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  std::fflush(stdout);
  EraseProgressLine();
  std::fprintf(stderr, "error: %s\n", OneLine(status.message()).c_str());
  return kExitBadInput;
}

absl::Status WriteJsonSummary(const Json& summary) {
  const std::string path = absl::GetFlag(FLAGS_json);
  return path.empty() ? absl::OkStatus() : WriteFileAtomically(path, summary.Print());
}

}  // namespace isomer
