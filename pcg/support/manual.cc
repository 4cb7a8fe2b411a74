#include "pcg/support/manual.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "pcg/support/program_flags.h"

namespace isomer {
namespace {

// Text as roff shows it: no escapes, no requests, hyphens that can be searched for and copied.
std::string Roff(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(
      text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
  const bool begins_as_request =
      !escaped.empty() && (escaped.front() == '.' || escaped.front() == '\'');
  return begins_as_request ? absl::StrCat("\\&", escaped) : escaped;
}

std::string Bold(absl::string_view text) { return absl::StrCat("\\fB", Roff(text), "\\fR"); }

void AddItem(absl::string_view head, absl::string_view text, std::string* page) {
  absl::StrAppend(page, ".TP\n", head, "\n", Roff(text), "\n");
}

void AddExample(absl::string_view command, std::string* page) {
  absl::StrAppend(page, ".nf\n.RS\n", Roff(command), "\n.RE\n.fi\n");
}

std::string FlagHead(absl::string_view name, absl::string_view value) {
  const std::string flag = Bold(absl::StrCat("--", name));
  return value.empty() ? flag : absl::StrCat(flag, "=\\fI", value, "\\fR");
}

std::string FlagHead(const absl::CommandLineFlag& flag) {
  switch (FormOf(flag)) {
    case FlagForm::kSwitch:
      // What is on by default is switched off.
      return flag.DefaultValue() == "true" ? FlagHead(absl::StrCat("no", flag.Name()), "")
                                           : FlagHead(flag.Name(), "");
    case FlagForm::kNumber:
      return FlagHead(flag.Name(), "N");
    case FlagForm::kText:
      return FlagHead(flag.Name(), "VALUE");
    case FlagForm::kList:
      return FlagHead(flag.Name(), "LIST");
  }
  return "";
}

std::string FlagText(const absl::CommandLineFlag& flag) {
  const std::string value = flag.DefaultValue();
  const bool is_off = FormOf(flag) == FlagForm::kSwitch && value == "false";
  const absl::string_view opening = FormOf(flag) == FlagForm::kSwitch && !is_off ? "not: " : "";
  return absl::StrCat(
      opening, flag.Help(),
      value.empty() || is_off || !opening.empty() ? "" : absl::StrCat(" (default: ", value, ")"));
}

// Of all programs.
const std::pair<absl::string_view, absl::string_view> kExitCodes[] = {
    {"0", "Done."},
    {"1", "The answer is no: refuted, refused, does not fit."},
    {"2",
     "Flags or files are bad: one line on standard error says which, and what is wrong. "
     "No file is half written."},
};
const std::pair<absl::string_view, absl::string_view> kFiles[] = {
    {"PREFIX/share/isomer/rules/default.rules", "the proved rules that come with Isomer"},
    {"PREFIX/share/isomer/optimizer/machines", "machines that are known by name"},
    {"~/.cache/isomer", "results that later runs need not find again; may be removed at any time"},
};
const std::pair<absl::string_view, absl::string_view> kEnvironment[] = {
    {"XDG_CACHE_HOME", "where isomer/ is kept instead of in ~/.cache"},
    {"TERM", "dumb: progress is a line now and then, and none is drawn again"},
};

std::string UsageOf(const ProgramInfo& info) {
  std::vector<std::string> lines;
  if (!info.usage.empty()) {
    lines.push_back(absl::StrCat(Bold(info.name), " ", Roff(info.usage), "\n"));
  }
  for (const ProgramCommand& command : info.commands) {
    lines.push_back(
        absl::StrCat(Bold(info.name), " ", Bold(command.name), " ", Roff(command.usage), "\n"));
  }
  return absl::StrJoin(lines, ".br\n");
}

// A part of a program that has flags of its own, such as isomer-run's checkpoints_main.cc; "" for
// what is of the whole program.
std::string TopicOf(const absl::CommandLineFlag& flag) {
  const std::string file = flag.Filename();
  absl::string_view stem = absl::string_view(file).substr(file.find_last_of('/') + 1);
  if (!absl::ConsumeSuffix(&stem, "_main.cc") || absl::StartsWith(stem, "isomer_")) return "";
  return absl::StrReplaceAll(stem, {{"_", " "}});
}

std::string FlagsOf(const ProgramCommand& command) {
  return absl::StrJoin(command.flags, ", ", [](std::string* out, absl::string_view flag) {
    absl::StrAppend(out, "--", flag);
  });
}

}  // namespace

std::string HelpText(const ProgramInfo& info) {
  std::string text = absl::StrCat(info.purpose, "\n\nUsage:");
  std::vector<std::string> uses;
  if (!info.usage.empty()) uses.push_back(info.usage);
  for (const ProgramCommand& command : info.commands) {
    uses.push_back(absl::StrCat(command.name, " ", command.usage));
  }
  for (const std::string& use : uses) {
    absl::StrAppend(&text, &use == &uses.front() ? " " : "       ", info.name, " ", use, "\n");
  }
  std::map<std::string, std::string> of_topics;  // "" first
  for (const absl::CommandLineFlag* flag : ProgramFlags()) {
    const std::string value = flag->DefaultValue();
    absl::StrAppend(&of_topics[TopicOf(*flag)], "  --", flag->Name(), ": ", flag->Help(),
                    value.empty() ? "" : absl::StrCat(" (", value, ")"), "\n");
  }
  for (const auto& [topic, flags] : of_topics) {
    absl::StrAppend(&text, topic.empty() ? "\nFlags" : absl::StrCat("\nFlags of ", topic), ":\n",
                    flags);
  }
  absl::StrAppend(&text, "\n");
  const std::vector<CommonFlag>& common = CommonFlags();
  absl::StrAppend(&text, "Of every program: ",
                  absl::StrJoin(common, "; ",
                                [](std::string* out, const CommonFlag& flag) {
                                  absl::StrAppend(out, "--", flag.name,
                                                  flag.value.empty() ? "" : "=", flag.value, " (",
                                                  absl::StrReplaceAll(flag.help, {{"; ", ", "}}),
                                                  ")");
                                }),
                  "\n\nExample:\n  ", info.example, "\n");
  return text;
}

std::string ManualPage(const ProgramInfo& info) {
  std::string version;
  for (const auto& [name, value] : info.version) {
    if (name == "version") version = value;
  }
  std::string page =
      absl::StrCat(".TH ", absl::AsciiStrToUpper(Roff(info.name)), " 1 \"\" \"Isomer ", version,
                   "\" \"Isomer\"\n.SH NAME\n", Roff(info.name), " \\- ");
  // "Finds .., and writes .." in the list of whatis(1).
  std::string purpose = info.purpose;
  purpose[0] = absl::ascii_tolower(purpose[0]);
  absl::StrAppend(&page, Roff(absl::StripSuffix(purpose, ".")), "\n.SH SYNOPSIS\n", UsageOf(info),
                  ".SH DESCRIPTION\n", Roff(info.purpose), "\n");
  if (!info.commands.empty()) absl::StrAppend(&page, ".SH COMMANDS\n");
  for (const ProgramCommand& command : info.commands) {
    const std::string flags = FlagsOf(command);
    AddItem(absl::StrCat(Bold(command.name), " ", Roff(command.usage)),
            absl::StrCat(command.purpose, flags.empty() ? "" : " Flags: ", flags), &page);
  }
  absl::StrAppend(&page, ".SH OPTIONS\n");
  for (const absl::CommandLineFlag* flag : ProgramFlags()) {
    AddItem(FlagHead(*flag), FlagText(*flag), &page);
  }
  for (const CommonFlag& flag : CommonFlags()) {
    AddItem(FlagHead(flag.name, flag.value), flag.help, &page);
  }
  absl::StrAppend(&page, ".SH EXAMPLES\n");
  AddExample(info.example, &page);
  for (const std::string& example : info.more_examples) {
    absl::StrAppend(&page, ".PP\n");
    AddExample(example, &page);
  }
  absl::StrAppend(&page, ".SH EXIT STATUS\n");
  for (const auto& [code, meaning] : kExitCodes) AddItem(Bold(code), meaning, &page);
  absl::StrAppend(&page, ".SH FILES\n");
  for (const auto& [path, what] : kFiles) {
    AddItem(absl::StrCat("\\fI", Roff(path), "\\fR"), what, &page);
  }
  absl::StrAppend(&page, ".SH ENVIRONMENT\n");
  for (const auto& [variable, what] : kEnvironment) AddItem(Bold(variable), what, &page);
  for (const auto& [variable, what] : info.environment) AddItem(Bold(variable), what, &page);
  std::vector<std::string> others;
  for (const char* other :
       {"isomer-generate", "isomer-optimize", "isomer-profile", "isomer-run", "isomer-verify"}) {
    if (info.name != other) others.push_back(absl::StrCat("\\fB", Roff(other), "\\fR(1)"));
  }
  absl::StrAppend(&page, ".SH SEE ALSO\n", absl::StrJoin(others, ",\n"), "\n");
  return page;
}

}  // namespace isomer
