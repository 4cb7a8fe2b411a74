#include "tests/generator/brute_force.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "generator/assignments/trial.h"
#include "pcg/support/check.h"

namespace isomer {

Terms::Terms(const Subset& subset) : subset_(subset) {
  AddInputs();
  for (int size = 1; size <= subset.max_operators; ++size) {
    by_size_.emplace_back();
    for (size_t op = 0; op < subset.operators[0].size(); ++op) Apply(static_cast<int>(op), size);
  }
}

void Terms::AddInputs() {
  by_size_.emplace_back();
  for (size_t i = 0; i < subset_.inputs[0].size(); ++i) {
    EnumeratedTerm term;
    term.output = static_cast<int>(i);
    for (int world = 0; world < kWorlds; ++world) {
      const auto type = ParseTensorType(subset_.inputs[world][i]);
      ISOMER_CHECK(type.ok());
      Random random(100 * world + i + 1);
      for (int set = 0; set < kInputSets; ++set) {
        term.field[world][set] = RandomValue<PrimeField>(*type, &random);
        term.real[world][set] = RandomValue<double>(*type, &random);
      }
    }
    Finish(&term);
    by_size_[0].push_back(size());
    terms_.push_back(std::move(term));
  }
}

void Terms::Apply(int op, int size) {
  const OpKind kind = subset_.operators[0][op].kind();
  const int operands = MinOperands(kind) <= 2 ? std::min(2, MaxOperands(kind)) : 3;
  std::vector<int> smaller;
  for (int s = 0; s < size; ++s) {
    smaller.insert(smaller.end(), by_size_[s].begin(), by_size_[s].end());
  }
  for (int a : smaller) {
    if (operands == 1) TryCall(op, {a}, size);
    for (int b : smaller) {
      if (operands == 2) TryCall(op, {a, b}, size);
      for (int c : smaller) {
        if (operands < 3) break;
        TryCall(op, {a, b, c}, size);
      }
    }
  }
}

template <typename T>
bool Terms::RunCall(const Operator& op, const std::vector<const Value<T>*>& operands,
                    std::vector<Value<T>>* outputs) const {
  Graph graph;
  std::vector<TensorRef> refs;
  std::map<NodeId, Value<T>> leaves;
  for (const Value<T>* operand : operands) {
    refs.push_back(graph.AddInput(absl::StrCat("x", refs.size()), operand->type));
    leaves[refs.back().node] = *operand;
  }
  const auto node = graph.Add(op, refs);
  if (!node.ok()) return false;
  for (size_t o = 0; o < graph.node(*node).outputs.size(); ++o) {
    graph.AddOutput(absl::StrCat("y", o), {*node, static_cast<int32_t>(o)});
  }
  auto values = EvaluateGraph<T>(graph, leaves);
  if (!values.ok()) return false;
  *outputs = std::move((*values)[node->value]);
  return true;
}

void Terms::TryCall(int op, const std::vector<int>& operands, int size) {
  std::set<int> calls;
  for (int operand : operands) {
    calls.insert(terms_[operand].calls.begin(), terms_[operand].calls.end());
  }
  if (static_cast<int>(calls.size()) != size - 1) return;
  std::vector<EnumeratedTerm> results;
  for (int world = 0; world < kWorlds; ++world) {
    for (int set = 0; set < kInputSets; ++set) {
      std::vector<const Value<PrimeField>*> field;
      std::vector<const Value<double>*> real;
      for (int operand : operands) {
        field.push_back(&terms_[operand].field[world][set]);
        real.push_back(&terms_[operand].real[world][set]);
      }
      std::vector<Value<PrimeField>> of_field;
      std::vector<Value<double>> of_real;
      if (!RunCall(subset_.operators[world][op], field, &of_field)) return;
      if (!RunCall(subset_.operators[world][op], real, &of_real)) return;
      results.resize(of_field.size());
      for (size_t o = 0; o < results.size(); ++o) {
        results[o].field[world][set] = std::move(of_field[o]);
        results[o].real[world][set] = std::move(of_real[o]);
      }
    }
  }
  const int call = static_cast<int>(calls_.size());
  calls_.push_back({op, operands});
  calls.insert(call);
  for (size_t o = 0; o < results.size(); ++o) {
    results[o].call = call;
    results[o].output = static_cast<int>(o);
    results[o].calls = calls;
    Finish(&results[o]);
    by_size_[size].push_back(this->size());
    terms_.push_back(std::move(results[o]));
  }
}

void Terms::Finish(EnumeratedTerm* term) {
  for (int world = 0; world < kWorlds; ++world) {
    for (int set = 0; set < kInputSets; ++set) {
      term->field_meaning[world][set] = Meaning(term->field[world][set])[0].data;
      term->real_meaning[world][set] = Meaning(term->real[world][set])[0].data;
    }
  }
}

bool Terms::SameTypes(const EnumeratedTerm& a, const EnumeratedTerm& b) const {
  for (int world = 0; world < kWorlds; ++world) {
    if (a.field[world][0].type != b.field[world][0].type) return false;
  }
  return true;
}

bool Terms::SameInField(const EnumeratedTerm& a, const EnumeratedTerm& b) {
  return a.field_meaning == b.field_meaning;
}

bool Terms::SameInDouble(const EnumeratedTerm& a, const EnumeratedTerm& b) {
  for (int world = 0; world < kWorlds; ++world) {
    for (int set = 0; set < kInputSets; ++set) {
      const std::vector<double>&x = a.real_meaning[world][set], &y = b.real_meaning[world][set];
      double scale = 1e-3;
      for (double element : x) scale = std::max(scale, std::abs(element));
      for (size_t i = 0; i < x.size(); ++i) {
        if (!(std::abs(x[i] - y[i]) <= 1e-9 * scale)) return false;
      }
    }
  }
  return true;
}

std::vector<std::pair<int, int>> Terms::EqualPairs() const {
  std::vector<std::pair<int, int>> pairs;
  for (int a = 0; a < size(); ++a) {
    for (int b = a + 1; b < size(); ++b) {
      if (SameTypes(terms_[a], terms_[b]) && SameInField(terms_[a], terms_[b]) &&
          SameInDouble(terms_[a], terms_[b])) {
        pairs.emplace_back(a, b);
      }
    }
  }
  return pairs;
}

std::vector<std::pair<int, int>> Terms::EqualInDoubleOnly() const {
  std::vector<std::pair<int, int>> pairs;
  for (int a = 0; a < size(); ++a) {
    for (int b = a + 1; b < size(); ++b) {
      if (SameTypes(terms_[a], terms_[b]) && !SameInField(terms_[a], terms_[b]) &&
          SameInDouble(terms_[a], terms_[b])) {
        pairs.emplace_back(a, b);
      }
    }
  }
  return pairs;
}

Graph Terms::GraphOf(int term) const {
  Graph graph;
  std::vector<TensorRef> inputs;
  for (const std::string& type : subset_.inputs[0]) {
    inputs.push_back(graph.AddInput(absl::StrCat("x", inputs.size()), *ParseTensorType(type)));
  }
  std::map<int, NodeId> built;
  graph.AddOutput("y0", Build(term, inputs, &built, &graph));
  return graph;
}

TensorRef Terms::Build(int term, const std::vector<TensorRef>& inputs, std::map<int, NodeId>* built,
                       Graph* graph) const {
  const EnumeratedTerm& t = terms_[term];
  if (t.call < 0) return inputs[t.output];
  if (const auto found = built->find(t.call); found != built->end()) {
    return {found->second, t.output};
  }
  std::vector<TensorRef> operands;
  for (int operand : calls_[t.call].operands) {
    operands.push_back(Build(operand, inputs, built, graph));
  }
  const auto node = graph->Add(subset_.operators[0][calls_[t.call].op], operands);
  ISOMER_CHECK(node.ok());
  (*built)[t.call] = *node;
  return {*node, t.output};
}

std::string Terms::Text(int term) const {
  const EnumeratedTerm& t = terms_[term];
  if (t.call < 0) return absl::StrCat("x", t.output);
  const Operator& op = subset_.operators[0][calls_[t.call].op];
  std::string text = absl::StrCat(op.ToString(), "(");
  for (size_t o = 0; o < calls_[t.call].operands.size(); ++o) {
    absl::StrAppend(&text, o > 0 ? ", " : "", Text(calls_[t.call].operands[o]));
  }
  absl::StrAppend(&text, ")");
  if (op.kind() == OpKind::kSplit) absl::StrAppend(&text, ".", t.output);
  return text;
}

}  // namespace isomer
