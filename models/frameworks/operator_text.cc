#include "models/frameworks/operator_text.h"

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace isomer {
namespace {

bool StartsName(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool InName(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Calls `visit` with each identifier of `code` and whether it is a variable, and with the text in
// between.
template <typename Name, typename Rest>
void WalkNames(absl::string_view code, Name name, Rest rest) {
  size_t i = 0;
  while (i < code.size()) {
    if (code[i] == '"') {  // a string
      size_t end = code.find('"', i + 1);
      end = end == code.npos ? code.size() : end + 1;
      rest(code.substr(i, end - i));
      i = end;
      continue;
    }
    if (!StartsName(code[i])) {
      size_t end = i + 1;
      if (absl::ascii_isdigit(code[i])) {
        while (end < code.size() && (InName(code[end]) || code[end] == '.')) ++end;  // 1e-5
      }
      rest(code.substr(i, end - i));
      i = end;
      continue;
    }
    size_t end = i;
    while (end < code.size() && InName(code[end])) ++end;
    const bool is_attribute = i > 0 && code[i - 1] == '.';
    const bool is_keyword = end + 1 < code.size() && code[end] == '=' && code[end + 1] != '=';
    name(code.substr(i, end - i), !is_attribute && !is_keyword);
    i = end;
  }
}

const std::set<std::string>& PythonWords() {
  static const auto* const words = new std::set<std::string>{
      "False",   "None",     "True",     "and",       "as",     "assert",  "async",      "await",
      "break",   "class",    "continue", "def",       "del",    "elif",    "else",       "except",
      "finally", "for",      "from",     "global",    "if",     "import",  "in",         "is",
      "lambda",  "nonlocal", "not",      "or",        "pass",   "raise",   "return",     "try",
      "while",   "with",     "yield",    "match",     "case",   "type",    "print",      "self",
      "range",   "len",      "zip",      "enumerate", "super",  "dict",    "list",       "tuple",
      "int",     "float",    "bool",     "str",       "any",    "all",     "isinstance", "reversed",
      "sorted",  "min",      "max",      "set",       "object", "property"};
  return *words;
}

}  // namespace

std::string ReplaceNames(absl::string_view code, const std::map<std::string, std::string>& names) {
  std::string replaced;
  WalkNames(
      code,
      [&](absl::string_view name, bool is_variable) {
        const auto found = names.find(std::string(name));
        absl::StrAppend(&replaced,
                        is_variable && found != names.end() ? found->second : std::string(name));
      },
      [&](absl::string_view rest) { absl::StrAppend(&replaced, rest); });
  return replaced;
}

OperatorText::OperatorText(absl::string_view source) {
  for (absl::string_view block : absl::StrSplit(source, "\n\n\n")) {
    const size_t begin = absl::StartsWith(block, "def ") ? 0 : block.find("\ndef ");
    if (begin == block.npos) continue;
    block.remove_prefix(begin == 0 ? 0 : begin + 1);
    Function function;
    function.text = std::string(absl::StripTrailingAsciiWhitespace(block));
    const size_t open = block.find('('), close = block.find("):\n");
    const std::string name(block.substr(4, open - 4));
    for (absl::string_view parameter :
         absl::StrSplit(block.substr(open + 1, close - open - 1), ", ", absl::SkipEmpty())) {
      function.parameters.emplace_back(parameter.substr(0, parameter.find('=')));
      if (parameter.find('(') != parameter.npos) break;  // a tuple is the last default
    }
    absl::string_view body = absl::StripAsciiWhitespace(block.substr(close + 2));
    if (absl::ConsumePrefix(&body, "return ") && body.find('\n') == body.npos) {
      function.expression = std::string(body);
    }
    order_.push_back(name);
    functions_.emplace(name, std::move(function));
  }
}

absl::StatusOr<std::string> OperatorText::Call(
    const std::string& name, const std::vector<std::string>& operands,
    const std::vector<std::pair<std::string, std::string>>& attributes) {
  const auto found = functions_.find(name);
  if (found == functions_.end()) {
    return absl::UnimplementedError("there is no form for this operator");
  }
  const Function& function = found->second;
  std::map<std::string, std::string> names;
  size_t given = 0;
  for (size_t i = 0; i < function.parameters.size() && given < operands.size(); ++i) {
    absl::string_view parameter = function.parameters[i];
    if (absl::ConsumePrefix(&parameter, "*")) {
      names[std::string(parameter)] = absl::StrCat("[", absl::StrJoin(operands, ", "), "]");
      given = operands.size();
    } else {
      names[std::string(parameter)] = operands[given++];
    }
  }
  std::vector<std::string> arguments = operands;
  for (const auto& [attribute, text] : attributes) {
    bool known = false;
    for (const std::string& parameter : function.parameters) known |= parameter == attribute;
    if (!known) {
      return absl::UnimplementedError(
          absl::StrCat("its form here has no attribute '", attribute, "'"));
    }
    names[attribute] = text;
    arguments.push_back(absl::StrCat(attribute, "=", text));
  }
  if (function.expression.empty() || names.size() < function.parameters.size()) {
    used_.insert(name);
    return absl::StrCat(name, "(", absl::StrJoin(arguments, ", "), ")");
  }
  WalkNames(
      function.expression,
      [&](absl::string_view callee, bool is_variable) {
        if (is_variable && functions_.contains(std::string(callee)) &&
            !names.contains(std::string(callee))) {
          used_.insert(std::string(callee));
        }
      },
      [](absl::string_view) {});
  return ReplaceNames(function.expression, names);
}

std::string OperatorText::UsedFunctions() const {
  std::set<std::string> needed;
  std::vector<std::string> left(used_.begin(), used_.end());
  while (!left.empty()) {
    const std::string name = left.back();
    left.pop_back();
    if (!needed.insert(name).second) continue;
    const Function& function = functions_.at(name);
    std::set<std::string> parameters(function.parameters.begin(), function.parameters.end());
    WalkNames(
        function.text,
        [&](absl::string_view callee, bool is_variable) {
          const std::string called(callee);
          if (is_variable && functions_.contains(called) && !parameters.contains(called)) {
            left.push_back(called);
          }
        },
        [](absl::string_view) {});
  }
  std::string text;
  for (const std::string& name : order_) {
    if (needed.contains(name)) absl::StrAppend(&text, "\n\n", functions_.at(name).text, "\n");
  }
  return text;
}

std::set<std::string> OperatorText::Names() const {
  std::set<std::string> names = PythonWords();
  names.insert(order_.begin(), order_.end());
  return names;
}

std::string PythonString(absl::string_view text) {
  // Escapes of C are those of Python's strings of bytes; what is not ASCII stays, as UTF-8.
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

std::string InDocstring(absl::string_view text) {
  const std::string quoted = PythonString(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string WithoutHead(absl::string_view text) {
  return std::string(text.substr(text.find("\n\n\n") + 3));
}

std::string PythonNumber(double value) {
  if (!std::isfinite(value)) {
    return std::isnan(value) ? "math.nan" : value > 0 ? "math.inf" : "-math.inf";
  }
  for (int digits = 6; digits < 17; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == value) {
      return text.find_first_of(".e") == text.npos ? absl::StrCat(text, ".0") : text;
    }
  }
  return absl::StrFormat("%.17g", value);
}

std::string PythonList(const std::vector<int64_t>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

std::string PythonTuple(const std::vector<int64_t>& values) {
  return absl::StrCat("(", absl::StrJoin(values, ", "), values.size() == 1 ? ",)" : ")");
}

std::string PythonNames::Make(absl::string_view wanted) {
  std::string name;
  for (char c : wanted) {
    if (InName(c)) {
      name.push_back(c);
    } else if (!name.empty() && name.back() != '_') {
      name.push_back('_');
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  while (!name.empty() && name.front() == '_') name.erase(0, 1);
  if (name.empty() || absl::ascii_isdigit(name.front())) name = absl::StrCat("x", name);
  std::string unique = name;
  for (int64_t i = 2; !taken_.insert(unique).second; ++i) unique = absl::StrCat(name, "_", i);
  return unique;
}

}  // namespace isomer
