#include "models/support/einsum.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// A letter, or kEllipsis + i for the i-th dim from the right of what "..." stands for.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

bool Has(const Labels& labels, Label label) {
  return std::count(labels.begin(), labels.end(), label) > 0;
}

std::string LabelText(Label label) {
  return label < kEllipsis ? std::string(1, static_cast<char>(label))
                           : absl::StrCat("dim ", label - kEllipsis, " from the right of ...");
}

struct Term {
  TensorRef tensor;
  Labels labels;
};

class Einsum {
 public:
  Einsum(Graph* graph, absl::string_view equation, const std::string& name)
      : graph_(*graph), equation_(equation), name_(name), first_new_node_(graph->num_nodes()) {}

  absl::StatusOr<TensorRef> Lower(const std::vector<TensorRef>& operands);

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat("einsum '", equation_, "': ", parts...));
  }
  int64_t Size(Label label) const { return sizes_.at(label); }
  int64_t Product(const Labels& labels) const {
    int64_t product = 1;
    for (Label label : labels) product *= Size(label);
    return product;
  }
  Labels AllEllipsis() const {
    Labels labels;
    for (int i = ellipsis_rank_ - 1; i >= 0; --i) labels.push_back(kEllipsis + i);
    return labels;
  }

  // The labels of one side; `rank` of the operand, or -1 for the output.
  absl::StatusOr<Labels> ParseLabels(absl::string_view text, int rank);
  absl::Status ReadTerms(absl::string_view text, const std::vector<TensorRef>& operands);
  absl::Status ReadOutput(bool is_explicit, absl::string_view text);
  absl::Status ReadSizes();

  absl::StatusOr<TensorRef> Call(Operator op, std::vector<TensorRef> operands) {
    return graph_.AddOp(std::move(op), std::move(operands),
                        absl::StrCat(name_, "/", graph_.num_nodes() - first_new_node_));
  }
  absl::StatusOr<TensorRef> Reshape(TensorRef x, std::vector<int64_t> shape);
  absl::Status DropBroadcast(Term* term);
  absl::Status TakeDiagonals(Term* term);
  absl::Status SumOut(const Labels& kept, Term* term);
  absl::Status Permute(const Labels& order, Term* term);
  absl::StatusOr<Term> Multiply(Term a, Term b, const Labels& kept);
  absl::StatusOr<Term> Contract(Term a, Term b, const Labels& batch, const Labels& summed);
  absl::StatusOr<Term> MultiplyElements(Term a, Term b);
  std::pair<size_t, size_t> CheapestPair() const;

  Graph& graph_;
  const std::string equation_;
  const std::string name_;
  const int first_new_node_;
  int ellipsis_rank_ = 0;
  std::map<Label, int64_t> sizes_;
  std::vector<Term> terms_;
  Labels output_;
};

absl::StatusOr<Labels> Einsum::ParseLabels(absl::string_view text, int rank) {
  Labels labels;
  int at = -1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (absl::StartsWith(text.substr(i), "...") && at < 0) {
      at = static_cast<int>(labels.size());
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
      labels.push_back(text[i]);
    } else {
      return Error("'", text.substr(i, 1), "' is not a label");
    }
  }
  const int covered = rank < 0 ? ellipsis_rank_ : rank - static_cast<int>(labels.size());
  if (rank >= 0 && (covered < 0 || (at < 0 && covered > 0))) {
    return Error("'", text, "' has ", labels.size(), " labels, and its operand has ", rank,
                 " dims");
  }
  if (at < 0) return labels;
  ellipsis_rank_ = std::max(ellipsis_rank_, covered);
  Labels further;
  for (int i = covered - 1; i >= 0; --i) further.push_back(kEllipsis + i);
  labels.insert(labels.begin() + at, further.begin(), further.end());
  return labels;
}

absl::Status Einsum::ReadTerms(absl::string_view text, const std::vector<TensorRef>& operands) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (parts.size() != operands.size()) {
    return Error("it has ", parts.size(), " operands, not ", operands.size());
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    ISOMER_ASSIGN_OR_RETURN(Labels labels, ParseLabels(parts[i], graph_.type(operands[i]).rank()));
    terms_.push_back({operands[i], std::move(labels)});
  }
  return absl::OkStatus();
}

absl::Status Einsum::ReadSizes() {
  for (const Term& term : terms_) {
    const std::vector<int64_t> sizes = graph_.type(term.tensor).Sizes();
    for (size_t i = 0; i < sizes.size(); ++i) {
      int64_t& known = sizes_.try_emplace(term.labels[i], sizes[i]).first->second;
      if (known == sizes[i]) continue;
      const bool broadcasts = term.labels[i] >= kEllipsis && (known == 1 || sizes[i] == 1);
      if (!broadcasts) {
        return Error(LabelText(term.labels[i]), " is ", known, " and ", sizes[i]);
      }
      known = std::max(known, sizes[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status Einsum::ReadOutput(bool is_explicit, absl::string_view text) {
  if (is_explicit) {
    ISOMER_ASSIGN_OR_RETURN(output_, ParseLabels(text, -1));
    for (Label label : output_) {
      if (sizes_.count(label) == 0) return Error("no operand has ", LabelText(label));
      if (std::count(output_.begin(), output_.end(), label) > 1) {
        return Error(LabelText(label), " stands twice in the output");
      }
    }
    return absl::OkStatus();
  }
  output_ = AllEllipsis();
  std::map<Label, int> uses;
  for (const Term& term : terms_) {
    for (Label label : term.labels) ++uses[label];
  }
  for (const auto& [label, count] : uses) {
    if (label < kEllipsis && count == 1) output_.push_back(label);
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorRef> Einsum::Reshape(TensorRef x, std::vector<int64_t> shape) {
  if (graph_.type(x).Sizes() == shape) return x;
  return Call({OpKind::kReshape, {{"shape", std::move(shape)}}}, {x});
}

// A dim of size 1 that the others have larger does not index the operand.
absl::Status Einsum::DropBroadcast(Term* term) {
  const std::vector<int64_t> sizes = graph_.type(term->tensor).Sizes();
  Labels labels;
  std::vector<int64_t> kept;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != Size(term->labels[i])) continue;
    labels.push_back(term->labels[i]);
    kept.push_back(sizes[i]);
  }
  ISOMER_ASSIGN_OR_RETURN(term->tensor, Reshape(term->tensor, std::move(kept)));
  term->labels = std::move(labels);
  return absl::OkStatus();
}

// Of dims i, i of size n: every (n + 1)-th element of the n * n that they have together.
absl::Status Einsum::TakeDiagonals(Term* term) {
  for (size_t i = 0; i < term->labels.size(); ++i) {
    const Label label = term->labels[i];
    const auto again = std::find(term->labels.begin() + i + 1, term->labels.end(), label);
    if (again == term->labels.end()) continue;
    const int64_t j = again - term->labels.begin();
    std::vector<int64_t> perm, sizes;
    Labels rest;
    for (int64_t k = 0; k < static_cast<int64_t>(term->labels.size()); ++k) {
      if (k == static_cast<int64_t>(i) || k == j) continue;
      perm.push_back(k);
      rest.push_back(term->labels[k]);
      sizes.push_back(Size(term->labels[k]));
    }
    const int64_t n = Size(label);
    perm.insert(perm.end(), {static_cast<int64_t>(i), j});
    ISOMER_ASSIGN_OR_RETURN(TensorRef x,
                            Call({OpKind::kTranspose, {{"perm", perm}}}, {term->tensor}));
    sizes.push_back(n * n);
    ISOMER_ASSIGN_OR_RETURN(x, Reshape(x, sizes));
    std::vector<int64_t> starts(sizes.size(), 0), steps(sizes.size(), 1);
    sizes.back() = n;
    steps.back() = n + 1;
    ISOMER_ASSIGN_OR_RETURN(
        term->tensor,
        Call({OpKind::kSlice, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}}, {x}));
    rest.push_back(label);
    term->labels = std::move(rest);
    i = static_cast<size_t>(-1);  // Positions have changed.
  }
  return absl::OkStatus();
}

absl::Status Einsum::SumOut(const Labels& kept, Term* term) {
  std::vector<int64_t> axes;
  Labels rest;
  for (size_t i = 0; i < term->labels.size(); ++i) {
    if (Has(kept, term->labels[i])) {
      rest.push_back(term->labels[i]);
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (axes.empty()) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(
      term->tensor,
      Call({OpKind::kReduceSum, {{"axes", axes}, {"keepdims", int64_t{0}}}}, {term->tensor}));
  term->labels = std::move(rest);
  return absl::OkStatus();
}

// REQUIRES: `order` has the labels of the term.
absl::Status Einsum::Permute(const Labels& order, Term* term) {
  if (order == term->labels) return absl::OkStatus();
  std::vector<int64_t> perm;
  for (Label label : order) {
    perm.push_back(std::find(term->labels.begin(), term->labels.end(), label) -
                   term->labels.begin());
  }
  ISOMER_ASSIGN_OR_RETURN(term->tensor,
                          Call({OpKind::kTranspose, {{"perm", perm}}}, {term->tensor}));
  term->labels = order;
  return absl::OkStatus();
}

Labels Joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Those of `labels` that are not in `others`.
Labels Without(const Labels& labels, const Labels& others) {
  Labels result;
  for (Label label : labels) {
    if (!Has(others, label)) result.push_back(label);
  }
  return result;
}

absl::StatusOr<Term> Einsum::Multiply(Term a, Term b, const Labels& kept) {
  ISOMER_RETURN_IF_ERROR(SumOut(Joined(kept, b.labels), &a));
  ISOMER_RETURN_IF_ERROR(SumOut(Joined(kept, a.labels), &b));
  Labels batch, summed;
  for (Label label : a.labels) {
    if (Has(b.labels, label)) (Has(kept, label) ? batch : summed).push_back(label);
  }
  if (summed.empty()) return MultiplyElements(std::move(a), std::move(b));
  // The product has dims [batch.., those of the first, those of the second].
  const Labels of_a = Without(a.labels, b.labels), of_b = Without(b.labels, a.labels);
  if (Joined(Joined(batch, of_b), of_a) == output_ && !of_a.empty() && !of_b.empty()) {
    return Contract(std::move(b), std::move(a), batch, summed);
  }
  return Contract(std::move(a), std::move(b), batch, summed);
}

absl::StatusOr<Term> Einsum::Contract(Term a, Term b, const Labels& batch, const Labels& summed) {
  const Labels of_a = Without(a.labels, b.labels), of_b = Without(b.labels, a.labels);
  ISOMER_RETURN_IF_ERROR(Permute(Joined(Joined(batch, of_a), summed), &a));
  ISOMER_RETURN_IF_ERROR(Permute(Joined(Joined(batch, summed), of_b), &b));
  std::vector<int64_t> left, right, result;
  for (Label label : batch) left.push_back(Size(label));
  right = left;
  if (batch.empty() && !of_a.empty()) {  // Dims of the first stay apart: they can be partitioned.
    for (Label label : of_a) left.push_back(Size(label));
  } else {
    left.push_back(Product(of_a));
  }
  left.push_back(Product(summed));
  right.insert(right.end(), {Product(summed), Product(of_b)});
  ISOMER_ASSIGN_OR_RETURN(const TensorRef x, Reshape(a.tensor, std::move(left)));
  ISOMER_ASSIGN_OR_RETURN(const TensorRef y, Reshape(b.tensor, std::move(right)));
  ISOMER_ASSIGN_OR_RETURN(const TensorRef product, Call(OpKind::kMatMul, {x, y}));
  Term term = {product, Joined(Joined(batch, of_a), of_b)};
  for (Label label : term.labels) result.push_back(Size(label));
  ISOMER_ASSIGN_OR_RETURN(term.tensor, Reshape(product, std::move(result)));
  return term;
}

// Dims of one operand only broadcast the other.
absl::StatusOr<Term> Einsum::MultiplyElements(Term a, Term b) {
  const Labels of_b = Without(b.labels, a.labels);
  const Labels all = Joined(a.labels, of_b);
  for (Term* term : {&a, &b}) {
    Labels order;
    std::vector<int64_t> shape;
    for (Label label : all) {
      const bool has = Has(term->labels, label);
      if (has) order.push_back(label);
      if (has || !shape.empty()) shape.push_back(has ? Size(label) : 1);
    }
    ISOMER_RETURN_IF_ERROR(Permute(order, term));
    ISOMER_ASSIGN_OR_RETURN(term->tensor, Reshape(term->tensor, std::move(shape)));
  }
  ISOMER_ASSIGN_OR_RETURN(const TensorRef product, Call(OpKind::kMul, {a.tensor, b.tensor}));
  return Term{product, all};
}

std::pair<size_t, size_t> Einsum::CheapestPair() const {
  std::pair<size_t, size_t> best = {0, 1};
  double fewest = -1;
  for (size_t i = 0; i < terms_.size(); ++i) {
    for (size_t j = i + 1; j < terms_.size(); ++j) {
      double multiplications = 1;
      for (Label label : Joined(terms_[i].labels, Without(terms_[j].labels, terms_[i].labels))) {
        multiplications *= static_cast<double>(Size(label));
      }
      if (fewest >= 0 && multiplications >= fewest) continue;
      fewest = multiplications;
      best = {i, j};
    }
  }
  return best;
}

absl::StatusOr<TensorRef> Einsum::Lower(const std::vector<TensorRef>& operands) {
  const std::string text = absl::StrReplaceAll(equation_, {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() > 2) return Error("it has two arrows");
  constexpr size_t kMostOperands = 64;  // The cheapest pair is looked for among all, each time.
  if (operands.size() > kMostOperands) {
    return Error(operands.size(), " operands; at most ", kMostOperands);
  }
  ISOMER_RETURN_IF_ERROR(ReadTerms(sides[0], operands));
  ISOMER_RETURN_IF_ERROR(ReadSizes());
  ISOMER_RETURN_IF_ERROR(ReadOutput(sides.size() == 2, sides.back()));
  for (Term& term : terms_) {
    ISOMER_RETURN_IF_ERROR(DropBroadcast(&term));
    ISOMER_RETURN_IF_ERROR(TakeDiagonals(&term));
  }
  while (terms_.size() > 1) {
    const auto [i, j] = CheapestPair();
    Term a = terms_[i], b = terms_[j];
    terms_.erase(terms_.begin() + j);
    terms_.erase(terms_.begin() + i);
    Labels kept = output_;
    for (const Term& term : terms_) kept = Joined(std::move(kept), term.labels);
    ISOMER_ASSIGN_OR_RETURN(Term product, Multiply(std::move(a), std::move(b), kept));
    terms_.push_back(std::move(product));
  }
  ISOMER_RETURN_IF_ERROR(SumOut(output_, &terms_[0]));
  ISOMER_RETURN_IF_ERROR(Permute(output_, &terms_[0]));
  const TensorRef result = terms_[0].tensor;
  if (result.node.value >= first_new_node_) graph_.set_name(result.node, name_);
  return result;
}

}  // namespace

absl::StatusOr<TensorRef> AddEinsum(Graph* graph, absl::string_view equation,
                                    std::vector<TensorRef> operands, const std::string& name) {
  return Einsum(graph, equation, name).Lower(operands);
}

}  // namespace isomer
