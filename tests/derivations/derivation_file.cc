#include "tests/derivations/derivation_file.h"

#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// A graph in the making: leaves, then calls by name.
class StageBuilder {
 public:
  absl::Status AddLeaf(const std::string& name, absl::string_view definition) {
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(definition, absl::MaxSplits(' ', 1));
    ISOMER_ASSIGN_OR_RETURN(const TensorType type, ParseTensorType(parts.second));
    ISOMER_ASSIGN_OR_RETURN(const OpKind kind, ParseOpKind(parts.first));
    names_[name] = kind == OpKind::kInput    ? graph_.AddInput(name, type)
                   : kind == OpKind::kWeight ? graph_.AddWeight(name, type)
                                             : graph_.AddConstant(name, type);
    return absl::OkStatus();
  }

  // "h = matmul(x, w)" or "output y = gelu(h)".
  absl::Status AddCall(absl::string_view line) {
    const bool is_output = absl::ConsumePrefix(&line, "output ");
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    const std::string name(absl::StripAsciiWhitespace(parts.first));
    rest_ = parts.second;
    ISOMER_ASSIGN_OR_RETURN(const TensorRef tensor, Expression());
    if (!absl::StripAsciiWhitespace(rest_).empty()) {
      return absl::InvalidArgumentError(absl::StrCat("'", rest_, "' after the call"));
    }
    names_[name] = tensor;
    if (is_output) graph_.AddOutput(name, tensor);
    return absl::OkStatus();
  }

  absl::StatusOr<Graph> Take() const {
    ISOMER_RETURN_IF_ERROR(graph_.Validate());
    if (graph_.outputs().empty()) return absl::InvalidArgumentError("the stage has no output");
    return graph_.Canonical();
  }

 private:
  absl::StatusOr<TensorRef> Expression() {
    const std::string word = Word();
    TensorRef tensor;
    if (!Take('(')) {
      const auto known = names_.find(word);
      if (known == names_.end()) {
        return absl::InvalidArgumentError(absl::StrCat("'", word, "' has no definition"));
      }
      tensor = known->second;
    } else {
      std::vector<TensorRef> operands;
      do {
        ISOMER_ASSIGN_OR_RETURN(const TensorRef operand, Expression());
        operands.push_back(operand);
      } while (Take(','));
      std::string attributes;
      if (Take(';')) {
        const size_t end = rest_.find(')');
        attributes = std::string(rest_.substr(0, end));
        rest_.remove_prefix(std::min(end, rest_.size()));
      }
      if (!Take(')')) return absl::InvalidArgumentError(absl::StrCat("')' after ", word));
      ISOMER_ASSIGN_OR_RETURN(Operator op, ParseOperator(absl::StrCat(word, "(", attributes, ")")));
      // Rules count axes from the end, and so do the graphs that they make.
      const AttributeValue* axis = op.Find("axis");
      if (axis != nullptr && std::get<int64_t>(*axis) >= 0 && op.kind() != OpKind::kOneHot) {
        op.Set("axis", std::get<int64_t>(*axis) - graph_.type(operands[0]).rank());
      }
      ISOMER_ASSIGN_OR_RETURN(tensor.node, graph_.Add(std::move(op), std::move(operands)));
    }
    if (Take('.') && !absl::SimpleAtoi(Word(), &tensor.output)) {
      return absl::InvalidArgumentError(absl::StrCat("an output's number after ", word, "."));
    }
    return tensor;
  }

  std::string Word() {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    size_t n = 0;
    while (n < rest_.size() && (absl::ascii_isalnum(rest_[n]) || rest_[n] == '_')) ++n;
    std::string word(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return word;
  }
  bool Take(char c) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  Graph graph_;
  std::map<std::string, TensorRef> names_;
  absl::string_view rest_;
};

class DerivationParser {
 public:
  // One line, or several where a call goes on.
  absl::Status Line(absl::string_view line, absl::string_view as_written) {
    if (absl::ConsumePrefix(&line, "#")) {
      AddProse(absl::StripAsciiWhitespace(line));
    } else if (absl::ConsumePrefix(&line, "needs:")) {
      derivation_.needs = std::string(absl::StripAsciiWhitespace(line));
    } else if (absl::StartsWith(line, "[")) {
      ISOMER_RETURN_IF_ERROR(EndStage());
      titles_.emplace_back(absl::StripSuffix(line.substr(1), "]"));
      stage_ = leaves_;
    } else if (titles_.empty()) {
      std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(line, absl::MaxSplits('=', 1));
      return leaves_.AddLeaf(std::string(absl::StripAsciiWhitespace(parts.first)),
                             absl::StripAsciiWhitespace(parts.second));
    } else {
      absl::StrAppend(&text_, as_written);
      return stage_.AddCall(line);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Derivation> Take() {
    ISOMER_RETURN_IF_ERROR(EndStage());
    if (derivation_.stages.size() < 2) return absl::InvalidArgumentError("no start and goal");
    return std::move(derivation_);
  }

 private:
  void AddProse(absl::string_view line) {
    if (derivation_.title.empty()) {
      derivation_.title = std::string(line);
    } else {
      absl::StrAppend(&derivation_.prose, line, "\n");
    }
  }
  absl::Status EndStage() {
    if (titles_.empty()) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Graph graph, stage_.Take());
    derivation_.stages.push_back({titles_.back(), std::move(text_), std::move(graph)});
    text_.clear();
    return absl::OkStatus();
  }

  Derivation derivation_;
  StageBuilder leaves_, stage_;
  std::vector<std::string> titles_;
  std::string text_;  // of the stage so far
};

}  // namespace

absl::StatusOr<Derivation> ParseDerivation(absl::string_view text) {
  DerivationParser parser;
  int number = 0;
  std::string line, as_written;
  for (absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    raw = absl::StripTrailingAsciiWhitespace(raw);
    absl::StrAppend(&line, absl::StripLeadingAsciiWhitespace(raw));
    absl::StrAppend(&as_written, raw, "\n");
    // A line that ends inside of a call goes on in the next.
    if (absl::EndsWith(line, ",") || absl::EndsWith(line, "(") || absl::EndsWith(line, ";")) {
      line += ' ';
      continue;
    }
    const absl::Status status = line.empty() ? absl::OkStatus() : parser.Line(line, as_written);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
    }
    line.clear();
    as_written.clear();
  }
  return parser.Take();
}

}  // namespace isomer
