#include "pcg/support/completion.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "pcg/support/program_flags.h"

namespace isomer {
namespace {

// What a shell offers for a flag, without what shells write differently.
struct OfferedFlag {
  std::string name;  // without "--"
  std::string text;  // what it says, short
  bool takes_value = false;
  bool is_file = false;                 // the value may be a file
  bool is_given_again = false;          // a list
  std::vector<std::string> words = {};  // that the value may be
};

struct Offered {
  std::vector<OfferedFlag> flags = {};
  std::vector<std::string> arguments;  // besides files
  std::vector<ProgramCommand> commands;
  bool needs_command = false;  // the first argument is one of them, and no other
};

// The beginning of a help text: lists of completions have one line for each.
std::string Shortened(absl::string_view text) {
  constexpr size_t kMost = 60;
  for (const absl::string_view end : {"; ", ": ", " (", ". "}) {
    const size_t at = text.find(end);
    if (at != text.npos && at > 8) text = text.substr(0, at);
  }
  if (text.size() > kMost) text = text.substr(0, text.rfind(' ', kMost));
  return std::string(text);
}

OfferedFlag OfferOf(const absl::CommandLineFlag& flag, const CompletionWords& words) {
  const FlagForm form = FormOf(flag);
  OfferedFlag offer{.name = std::string(flag.Name()), .text = Shortened(flag.Help())};
  if (form == FlagForm::kSwitch) {
    if (flag.DefaultValue() == "true") {
      offer.name.insert(0, "no");
      offer.text.insert(0, "not: ");
    }
    return offer;
  }
  offer.takes_value = true;
  offer.is_given_again = form == FlagForm::kList;
  if (const auto known = words.of_flags.find(offer.name); known != words.of_flags.end()) {
    offer.words = known->second;
  }
  // Flags of words alone say so; "FILE" among them is a file.
  const auto file = std::find(offer.words.begin(), offer.words.end(), "FILE");
  offer.is_file = form != FlagForm::kNumber && (offer.words.empty() || file != offer.words.end());
  if (file != offer.words.end()) offer.words.erase(file);
  return offer;
}

Offered OfferOf(const ProgramInfo& info) {
  const CompletionWords words = info.words == nullptr ? CompletionWords() : info.words();
  Offered offered{.arguments = words.arguments,
                  .commands = info.commands,
                  .needs_command = !info.commands.empty() && info.usage.empty()};
  for (const absl::CommandLineFlag* flag : ProgramFlags()) {
    offered.flags.push_back(OfferOf(*flag, words));
  }
  for (const CommonFlag& flag : CommonFlags()) {
    offered.flags.push_back({.name = std::string(flag.name),
                             .text = Shortened(flag.help),
                             .takes_value = !flag.value.empty(),
                             .is_file = !flag.value.empty()});
  }
  return offered;
}

// In single quotes of sh, bash, zsh.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string FunctionName(const ProgramInfo& info) {
  return absl::StrCat("_", absl::StrReplaceAll(info.name, {{"-", "_"}}));
}

std::string Header(const ProgramInfo& info, absl::string_view shell) {
  return absl::StrCat("# Made by ", info.name, " --help=", shell, ".\n");
}

// What the first argument may be, besides files.
std::vector<std::string> FirstWords(const Offered& offered) {
  std::vector<std::string> words;
  for (const ProgramCommand& command : offered.commands) words.emplace_back(command.name);
  if (!offered.needs_command) {
    words.insert(words.end(), offered.arguments.begin(), offered.arguments.end());
  }
  return words;
}

// The word at the cursor is taken from the line: bash cuts what it completes at "=" and ":", and
// replaces what is behind the last of them.
constexpr absl::string_view kBashBody = R"sh(
  local line=${COMP_LINE:0:COMP_POINT}
  local word=${line##*[[:blank:]]}
  local -a before
  read -ra before <<<"${line%"$word"}"
  local previous='' flag='' value=$word
  ((${#before[@]} > 1)) && previous=${before[-1]}
  if [[ $word == --*=* ]]; then
    flag=${word%%=*} value=${word#*=}
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
    return
  elif [[ " $flags " == *" $previous= "* ]]; then
    flag=$previous
  fi
)sh";

constexpr absl::string_view kBashEnd = R"sh(
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$value")
  local behind=${value%"${value##*:}"}
  if [[ $COMP_WORDBREAKS == *:* && -n $behind ]]; then
    COMPREPLY=("${COMPREPLY[@]#"$behind"}")
  elif [[ -n $files ]]; then
    compopt -o filenames
    local -a found
    mapfile -t found < <(compgen -f -- "$value")
    COMPREPLY+=("${found[@]}")
  fi
  if [[ $COMP_WORDBREAKS != *=* && $word == --*=* ]]; then
    COMPREPLY=("${COMPREPLY[@]/#/"$flag="}")
  fi
}
)sh";

// One of its alternatives: what follows a flag.
void AddBashCase(const OfferedFlag& flag, std::string* text) {
  if (!flag.takes_value || (flag.is_file && flag.words.empty())) return;
  absl::StrAppend(text, "    --", flag.name, ") ");
  if (flag.words.empty()) {
    absl::StrAppend(text, "return ;;\n");
    return;
  }
  absl::StrAppend(text, "words=", Quoted(absl::StrJoin(flag.words, " ")),
                  flag.is_file ? "" : " files=''", " ;;\n");
}

// _arguments' messages end at ":", and texts of flags at "]".
std::string ZshText(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {":", "\\:"}, {"[", "\\["}, {"]", "\\]"}});
}

}  // namespace

std::string BashCompletion(const ProgramInfo& info) {
  const Offered offered = OfferOf(info);
  std::vector<std::string> flags;
  for (const OfferedFlag& flag : offered.flags) {
    flags.push_back(absl::StrCat("--", flag.name, flag.takes_value ? "=" : ""));
  }
  std::string text = absl::StrCat(Header(info, "bash"), FunctionName(info),
                                  "() {\n  local flags=", Quoted(absl::StrJoin(flags, " ")),
                                  "\n  local words='' files=yes", kBashBody, "  case $flag in\n");
  for (const OfferedFlag& flag : offered.flags) AddBashCase(flag, &text);
  const std::string arguments = Quoted(absl::StrJoin(offered.arguments, " "));
  if (offered.commands.empty()) {
    absl::StrAppend(&text, "    '') words=", arguments, " ;;\n");
  } else {
    absl::StrAppend(
        &text, "    '')\n      words=", arguments,
        "\n      ((${#before[@]} == 1)) && words=", Quoted(absl::StrJoin(FirstWords(offered), " ")),
        offered.needs_command ? " files=''" : "", "\n      ;;\n");
  }
  return absl::StrCat(text, "  esac", kBashEnd, "complete -F ", FunctionName(info), " ", info.name,
                      "\n");
}

std::string ZshCompletion(const ProgramInfo& info) {
  const Offered offered = OfferOf(info);
  const std::string function = FunctionName(info);
  std::string functions, specs;
  // A function for words, which need no escapes then.
  const auto add_function = [&](absl::string_view name, const std::vector<std::string>& words,
                                bool is_file) {
    absl::StrAppend(&functions, function, "_", name, "() {\n");
    if (!words.empty()) {
      absl::StrAppend(&functions, "  compadd -- ",
                      absl::StrJoin(words, " ",
                                    [](std::string* out, const std::string& word) {
                                      absl::StrAppend(out, Quoted(word));
                                    }),
                      "\n");
    }
    absl::StrAppend(&functions, is_file ? "  _files\n" : "", "}\n");
  };
  for (const OfferedFlag& flag : offered.flags) {
    std::string spec = absl::StrCat(flag.is_given_again ? "*" : "", "--", flag.name,
                                    flag.takes_value ? "=" : "", "[", ZshText(flag.text), "]");
    if (flag.takes_value) {
      absl::StrAppend(&spec, ":", flag.name, ":");
      if (!flag.words.empty()) {
        add_function(flag.name, flag.words, flag.is_file);
        absl::StrAppend(&spec, function, "_", flag.name);
      } else {
        absl::StrAppend(&spec, flag.is_file ? "_files" : " ");
      }
    }
    absl::StrAppend(&specs, " \\\n  ", Quoted(spec));
  }
  add_function("ARGUMENT", offered.arguments, /*is_file=*/true);
  if (!offered.commands.empty()) {
    add_function("COMMAND", FirstWords(offered), /*is_file=*/!offered.needs_command);
    absl::StrAppend(&specs, " \\\n  ", Quoted(absl::StrCat("1:command:", function, "_COMMAND")));
  }
  absl::StrAppend(&specs, " \\\n  ", Quoted(absl::StrCat("*:argument:", function, "_ARGUMENT")));
  return absl::StrCat("#compdef ", info.name, "\n", Header(info, "zsh"), functions, "_arguments",
                      specs, "\n");
}

std::string FishCompletion(const ProgramInfo& info) {
  const Offered offered = OfferOf(info);
  // In fish a backslash escapes within single quotes.
  const auto quoted = [](absl::string_view text) {
    return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
  };
  std::string text = Header(info, "fish");
  const std::string complete = absl::StrCat("complete -c ", info.name);
  for (const ProgramCommand& command : offered.commands) {
    absl::StrAppend(&text, complete, " -n __fish_use_subcommand ",
                    offered.needs_command ? "-f " : "", "-a ", quoted(command.name), " -d ",
                    quoted(Shortened(command.purpose)), "\n");
  }
  if (!offered.arguments.empty()) {
    absl::StrAppend(&text, complete, " -a ", quoted(absl::StrJoin(offered.arguments, " ")), "\n");
  }
  for (const OfferedFlag& flag : offered.flags) {
    absl::StrAppend(&text, complete, " -l ", flag.name);
    if (flag.takes_value) absl::StrAppend(&text, flag.is_file ? " -r" : " -x");
    if (!flag.words.empty()) {
      absl::StrAppend(&text, " -a ", quoted(absl::StrJoin(flag.words, " ")));
    }
    absl::StrAppend(&text, " -d ", quoted(flag.text), "\n");
  }
  return text;
}

}  // namespace isomer
