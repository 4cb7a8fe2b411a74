// The operators of a framework: the functions of its file (torch_operators.py),
// which are compiled into the programs, and calls of them as text.
#ifndef ISOMER_MODELS_FRAMEWORKS_OPERATOR_TEXT_H_
#define ISOMER_MODELS_FRAMEWORKS_OPERATOR_TEXT_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

class OperatorText {
 public:
  // `source`: functions at the left margin, two empty lines between them.
  explicit OperatorText(absl::string_view source);

  bool Has(const std::string& function) const { return functions_.contains(function); }

  // The call as an expression: the body of a function of one `return`, with the operands and
  // attributes in place of its parameters; else a call of the function, which is then used.
  // Operands are names of variables; attributes (name, Python text). Errors: there is no such
  // function, or it lacks an attribute.
  absl::StatusOr<std::string> Call(
      const std::string& function, const std::vector<std::string>& operands,
      const std::vector<std::pair<std::string, std::string>>& attributes);

  // A helper that is called by who writes the file.
  void Use(const std::string& function) { used_.insert(function); }
  // The text of all functions that are used, and of those that these call.
  std::string UsedFunctions() const;
  // Names that no variable may have.
  std::set<std::string> Names() const;

 private:
  struct Function {
    std::string text;                     // with `def`
    std::vector<std::string> parameters;  // "x", "*parts"
    std::string expression;               // of one `return`; else empty
  };
  std::map<std::string, Function> functions_;
  std::vector<std::string> order_;
  std::set<std::string> used_;
};

// The identifiers of `code` that are variables, and not attributes (after a dot) or the names of
// keywords (before an =), are replaced.
std::string ReplaceNames(absl::string_view code, const std::map<std::string, std::string>& names);

// `text` as a literal of Python, whatever it has in it.
std::string PythonString(absl::string_view text);
// The same as part of a string of three quotes.
std::string InDocstring(absl::string_view text);
// A file's text behind the comment and the imports that it begins with.
std::string WithoutHead(absl::string_view text);
// A number that Python reads as the same double: "0.1", "float('inf')".
std::string PythonNumber(double value);
// "[1, 2]" and "(1, 2)".
std::string PythonList(const std::vector<int64_t>& values);
std::string PythonTuple(const std::vector<int64_t>& values);

// Names of variables, each once: what `wanted` has of letters, digits and underscores.
class PythonNames {
 public:
  explicit PythonNames(std::set<std::string> taken) : taken_(std::move(taken)) {}
  std::string Make(absl::string_view wanted);

 private:
  std::set<std::string> taken_;
};

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_OPERATOR_TEXT_H_
