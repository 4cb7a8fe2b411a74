#include "verifier/exhaustive/equation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Builds the graph of one side while it reads the text.
class SideReader {
 public:
  SideReader(absl::string_view text, const EquationBinding& binding,
             const std::map<char, TensorRef>& variables, Graph* graph)
      : rest_(text), binding_(binding), variables_(variables), graph_(*graph) {}

  absl::StatusOr<TensorRef> Read() {
    ISOMER_ASSIGN_OR_RETURN(const TensorRef term, Term());
    if (!rest_.empty()) return Error();
    return term;
  }

 private:
  absl::Status Error() const {
    return absl::InvalidArgumentError(absl::StrCat("equation: cannot read '", rest_, "'"));
  }

  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  absl::StatusOr<TensorRef> Term() {
    size_t length = 0;
    while (length < rest_.size() && (absl::ascii_isalnum(rest_[length]) || rest_[length] == '_')) {
      ++length;
    }
    const absl::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    if (word.size() == 1 && (rest_.empty() || rest_[0] != '(')) {
      const auto at = variables_.find(word[0]);
      if (at == variables_.end()) return Error();
      return at->second;
    }
    ISOMER_ASSIGN_OR_RETURN(const OpKind kind, ParseOpKind(word));
    std::vector<std::string> attributes;
    if (Take('{')) {
      const size_t close = rest_.find('}');
      if (close == rest_.npos) return Error();
      attributes = absl::StrSplit(rest_.substr(0, close), ',');
      rest_.remove_prefix(close + 1);
    }
    std::vector<TensorRef> arguments;
    if (!Take('(')) return Error();
    do {
      ISOMER_ASSIGN_OR_RETURN(const TensorRef argument, Term());
      arguments.push_back(argument);
    } while (Take(','));
    if (!Take(')')) return Error();
    int32_t output = 0;
    if (Take('.')) {
      output = rest_.empty() ? 0 : rest_[0] - '0';
      if (!Take('0') && !Take('1')) return Error();
    }
    return Apply(kind, attributes, arguments, output);
  }

  absl::StatusOr<TensorRef> Apply(OpKind kind, const std::vector<std::string>& attributes,
                                  const std::vector<TensorRef>& arguments, int32_t output) {
    if (IsParallel(kind)) {  // What they mean: the sum of their operands.
      TensorRef sum = arguments[0];
      for (size_t i = 1; i < arguments.size(); ++i) {
        ISOMER_ASSIGN_OR_RETURN(sum, graph_.AddOp(Operator(OpKind::kAdd), {sum, arguments[i]}));
      }
      return sum;
    }
    Operator op(kind);
    ISOMER_RETURN_IF_ERROR(SetAttributes(attributes, graph_.type(arguments[0]).rank(), &op));
    ISOMER_RETURN_IF_ERROR(NormalizeAttributes(&op));
    ISOMER_ASSIGN_OR_RETURN(const NodeId node, graph_.Add(std::move(op), arguments));
    return TensorRef{node, output};
  }

  absl::Status SetAttributes(std::vector<std::string> attributes, int rank, Operator* op) {
    switch (op->kind()) {
      case OpKind::kTranspose: {
        if (attributes.size() == 1) {
          attributes = {attributes[0].substr(0, 1), attributes[0].substr(1)};
        }
        std::vector<int64_t> perm(rank);
        for (int i = 0; i < rank; ++i) perm[i] = i;
        ISOMER_ASSIGN_OR_RETURN(const int64_t u, Axis(attributes[0]));
        ISOMER_ASSIGN_OR_RETURN(const int64_t v, Axis(attributes[1]));
        if (u + rank < 0 || v + rank < 0) return absl::InvalidArgumentError("no such axis");
        std::swap(perm[u + rank], perm[v + rank]);
        op->Set("perm", perm);
        return absl::OkStatus();
      }
      case OpKind::kConcat:
      case OpKind::kSplit: {
        ISOMER_ASSIGN_OR_RETURN(const int64_t axis, Axis(attributes[0]));
        op->Set("axis", axis);
        if (op->kind() == OpKind::kConcat) return absl::OkStatus();
        const auto sizes = binding_.sizes.find(attributes[1][0]);
        if (sizes == binding_.sizes.end()) return absl::InvalidArgumentError("sizes unbound");
        op->Set("sizes", std::vector<Extent>(sizes->second.begin(), sizes->second.end()));
        return absl::OkStatus();
      }
      case OpKind::kScale: {
        ISOMER_ASSIGN_OR_RETURN(const double factor, Factor(attributes[0]));
        op->Set("factor", factor);
        return absl::OkStatus();
      }
      case OpKind::kLinear: {
        int64_t activation;
        if (!absl::SimpleAtoi(attributes[0], &activation)) return Error();
        op->Set("activation", activation);
        return absl::OkStatus();
      }
      default:
        return attributes.empty() ? absl::OkStatus() : Error();
    }
  }

  absl::StatusOr<int64_t> Axis(const std::string& text) const {
    int64_t number;
    if (absl::SimpleAtoi(text, &number)) return number;
    const auto at = binding_.axes.find(text[0]);
    if (at == binding_.axes.end()) return absl::InvalidArgumentError("an axis is unbound");
    if (text.size() == 1) return at->second;
    if (text.size() != 4 || text[1] != '^') return Error();
    ISOMER_ASSIGN_OR_RETURN(const int64_t u, Axis(text.substr(2, 1)));
    ISOMER_ASSIGN_OR_RETURN(const int64_t v, Axis(text.substr(3, 1)));
    return at->second == u ? v : at->second == v ? u : at->second;
  }

  // A sum of a product of letters and numbers.
  absl::StatusOr<double> Factor(const std::string& text) const {
    double sum = 0;
    for (const std::string& term : std::vector<std::string>(absl::StrSplit(text, '+'))) {
      double number = 1;
      if (!absl::SimpleAtod(term, &number)) {
        number = 1;
        for (char letter : term) {
          const auto at = binding_.factors.find(letter);
          if (at == binding_.factors.end()) return absl::InvalidArgumentError("factor unbound");
          number *= at->second;
        }
      }
      sum += number;
    }
    return sum;
  }

  absl::string_view rest_;
  const EquationBinding& binding_;
  const std::map<char, TensorRef>& variables_;
  Graph& graph_;
};

absl::StatusOr<Graph> GraphOf(absl::string_view side, const EquationBinding& binding) {
  Graph graph;
  std::map<char, TensorRef> variables;
  for (const auto& [letter, shape] : binding.shapes) {
    variables[letter] = graph.AddInput(std::string(1, letter), SequentialType(shape));
  }
  ISOMER_ASSIGN_OR_RETURN(const TensorRef output,
                          SideReader(side, binding, variables, &graph).Read());
  graph.AddOutput("y", output);
  return graph;
}

}  // namespace

std::string EquationBinding::ToString() const {
  std::vector<std::string> words;
  for (const auto& [letter, shape] : shapes) {
    words.push_back(absl::StrCat(std::string(1, letter), "[", absl::StrJoin(shape, ","), "]"));
  }
  for (const auto& [letter, axis] : axes) {
    words.push_back(absl::StrCat(std::string(1, letter), "=", axis));
  }
  for (const auto& [letter, parts] : sizes) {
    words.push_back(absl::StrCat(std::string(1, letter), "=[", absl::StrJoin(parts, ","), "]"));
  }
  for (const auto& [letter, factor] : factors) {
    words.push_back(absl::StrCat(std::string(1, letter), "=", factor));
  }
  return absl::StrJoin(words, " ");
}

absl::StatusOr<Comparison> CompareEquation(absl::string_view text, const EquationBinding& binding) {
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), ' '), plain.end());
  absl::string_view equation = plain;
  const size_t arrow = equation.find("=>");
  if (arrow != equation.npos) equation.remove_prefix(arrow + 2);
  const size_t equals = equation.find('=');
  if (equals == equation.npos) return absl::InvalidArgumentError("no equation");
  ISOMER_ASSIGN_OR_RETURN(const Graph left, GraphOf(equation.substr(0, equals), binding));
  ISOMER_ASSIGN_OR_RETURN(const Graph right, GraphOf(equation.substr(equals + 1), binding));
  return CompareGraphs(left, right);
}

}  // namespace isomer
