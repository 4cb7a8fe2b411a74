#include "generator/enumerator.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "generator/equation.h"
#include "generator/trial.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

using Meanings = std::vector<Array<PrimeField>>;

class Enumerator {
 public:
  Enumerator(const Configuration& configuration, TypeOracle* oracle, Random* random,
             Statistics* statistics)
      : configuration_(configuration), oracle_(oracle), statistics_(statistics) {
    for (size_t i = 0; i < configuration.inputs.size(); ++i) {
      const TensorType& type = configuration.inputs[i];
      const Value<PrimeField> value = RandomValue<PrimeField>(type, random);
      AddTensor({-1, static_cast<int>(i)}, {}, type, Meaning(value)[0]);
    }
  }

  std::vector<Candidate> Run() {
    for (int size = 1; size <= configuration_.max_operators; ++size) {
      for (size_t o = 0; o < configuration_.operators.size(); ++o) Apply(static_cast<int>(o), size);
    }
    std::vector<Candidate> candidates;
    for (const auto& [tensor, representative] : equal_) {
      AddEquation({tensor}, {representative}, &candidates);
    }
    for (const EnumeratedNode& node : nodes_.nodes) {
      if (node.outputs.size() > 1) AddSplit(node, &candidates);
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      auto size = [](const Candidate& c) { return c.source.nodes.size() + c.target.nodes.size(); };
      return size(a) < size(b);
    });
    return candidates;
  }

 private:
  // One equation for the outputs of a Split together, from their representatives to them.
  void AddSplit(const EnumeratedNode& node, std::vector<Candidate>* candidates) {
    std::vector<int> representatives;
    for (int tensor : node.outputs) representatives.push_back(ClassOf(tensor));
    if (representatives[0] == representatives.back()) return;  // One tensor twice.
    // Parts that are inputs are found one by one: a rewrite of several outputs needs each computed.
    for (int tensor : representatives) {
      if (nodes_.tensors[tensor].definition.node < 0) return;
    }
    if (representatives != node.outputs) AddEquation(representatives, node.outputs, candidates);
  }

  void AddEquation(const std::vector<int>& source, const std::vector<int>& target,
                   std::vector<Candidate>* candidates) {
    ++statistics_->candidates;
    const std::optional<Candidate> candidate =
        MakeCandidate(nodes_, configuration_.inputs, source, target);
    if (!candidate.has_value()) {
      statistics_->Prune("each side has an input of its own", nodes_.Text(source, target));
    } else if (!seen_.insert(CanonicalName(*candidate)).second) {
      statistics_->Prune("renaming of inputs", nodes_.Text(source, target));
    } else {
      candidates->push_back(*candidate);
      candidates->back().origin = absl::StrCat("enumerated: ", configuration_.name);
    }
  }

  int ClassOf(int tensor) const {
    const auto found = equal_.find(tensor);
    return found == equal_.end() ? tensor : found->second;
  }

  // Applies an operator to representatives such that the graph has `size` operators.
  void Apply(int op, int size) {
    const OpKind kind = configuration_.operators[op].kind();
    // A fusion of inputs: what is true of fusions of other terms follows by undoing them.
    if (kind == OpKind::kLinear && size > 1) return;
    if (MaxOperands(kind) == 1) {
      // Copies: the lists grow meanwhile.
      const std::vector<int> operands = representatives_[size - 1];
      for (int a : operands) Call(op, {a}, size);
      return;
    }
    if (MinOperands(kind) <= 2) ApplyToPairs(op, size);
    if (MinOperands(kind) == 3 || MaxOperands(kind) == 3) ApplyToTriples(op, size);
  }

  // Operands that share nothing.
  void ApplyToTriples(int op, int size) {
    for (int a_size = 0; a_size < size; ++a_size) {
      for (int b_size = 0; a_size + b_size < size; ++b_size) {
        const int c_size = size - 1 - a_size - b_size;
        const std::vector<int> as = representatives_[a_size], bs = representatives_[b_size],
                               cs = representatives_[c_size];
        for (int a : as) {
          for (int b : bs) {
            for (int c : cs) Call(op, {a, b, c}, size);
          }
        }
      }
    }
  }

  void ApplyToPairs(int op, int size) {
    const OpKind kind = configuration_.operators[op].kind();
    const bool commutative = kind == OpKind::kAdd || kind == OpKind::kMul;
    for (int a_size = 0; a_size < size; ++a_size) {
      for (int b_size = 0; b_size < size; ++b_size) {
        // Graphs that share nothing have the sum of their sizes; those that share are found among
        // the parts of the larger one.
        const std::vector<int> as = representatives_[a_size], bs = representatives_[b_size];
        if (a_size + b_size == size - 1) {
          for (int a : as) {
            for (int b : bs) {
              if (!commutative || a <= b) Call(op, {a, b}, size);
            }
          }
        } else if (a_size == size - 1) {
          for (int a : as) {
            for (int b : nodes_.PartsOf(a)) {
              if (!representative_.contains(b)) continue;
              Call(op, {a, b}, size);
              if (!commutative && a != b) Call(op, {b, a}, size);
            }
          }
        }
      }
    }
  }

  void Call(int op, const std::vector<int>& operands, int size) {
    std::set<int> members;
    for (int tensor : operands) {
      const std::set<int>& parts = nodes_.tensors[tensor].nodes;
      members.insert(parts.begin(), parts.end());
    }
    if (static_cast<int>(members.size()) != size - 1) return;
    uint64_t key = op;
    for (int tensor : operands) key = HashCombine(key, tensor);
    if (!calls_.insert(key).second) return;
    std::vector<TensorType> types;
    for (int tensor : operands) types.push_back(nodes_.tensors[tensor].type);
    const Operator fitted = FitToRank(configuration_.operators[op], types[0].rank());
    const std::vector<TensorType>* outputs = oracle_->Infer(fitted, types);
    if (outputs == nullptr) return;
    const std::vector<TensorType> output_types = *outputs;
    std::optional<Meanings> meanings = Evaluate(fitted, operands);
    if (!meanings.has_value()) return;
    const int id = static_cast<int>(nodes_.nodes.size());
    members.insert(id);
    nodes_.nodes.push_back({fitted, operands, {}});
    for (size_t t = 0; t < output_types.size(); ++t) {
      const int tensor =
          AddTensor({id, static_cast<int>(t)}, members, output_types[t], std::move((*meanings)[t]));
      nodes_.nodes[id].outputs.push_back(tensor);
    }
    ++statistics_->graphs_enumerated;
  }

  int AddTensor(PatternRef definition, const std::set<int>& nodes, const TensorType& type,
                Array<PrimeField> meaning) {
    const int tensor = static_cast<int>(nodes_.tensors.size());
    uint64_t hash = HashBytes(type.ToString());
    for (PrimeField element : meaning.data) hash = HashCombine(hash, element.raw());
    nodes_.tensors.push_back({definition, nodes, type});
    const auto [entry, fresh] = classes_.emplace(hash, tensor);
    if (fresh) {
      representatives_.resize(std::max(representatives_.size(), nodes.size() + 1));
      representatives_[nodes.size()].push_back(tensor);
      representative_.insert(tensor);
      meanings_[tensor] = std::move(meaning);
    } else {
      equal_[tensor] = entry->second;
    }
    return tensor;
  }

  // Meanings of the outputs; parallel operators are identities on them.
  std::optional<Meanings> Evaluate(const Operator& op, const std::vector<int>& operands) {
    if (op.kind() == OpKind::kConcatPartials) {
      Array<PrimeField> sum = meanings_[operands[0]];
      for (size_t o = 1; o < operands.size(); ++o) {
        const Array<PrimeField>& other = meanings_[operands[o]];
        for (size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += other.data[i];
      }
      return Meanings{sum};
    }
    if (IsParallel(op.kind())) return Meanings{meanings_[operands[0]]};
    std::vector<Shape> shapes;
    std::vector<const Array<PrimeField>*> arrays;
    std::string key = op.ToString();
    for (int tensor : operands) {
      shapes.push_back(nodes_.tensors[tensor].type.GlobalShape());
      arrays.push_back(&meanings_[tensor]);
      for (const Extent& size : shapes.back()) absl::StrAppend(&key, ",", size.value());
      absl::StrAppend(&key, ";");
    }
    auto [entry, fresh] = declarations_.try_emplace(key);
    if (fresh) {
      absl::StatusOr<Declaration> declaration = Declare(op, shapes);
      if (!declaration.ok()) return std::nullopt;
      entry->second = *std::move(declaration);
    }
    absl::StatusOr<Meanings> outputs =
        isomer::Evaluate<PrimeField>(entry->second, FullBox(entry->second), arrays);
    return outputs.ok() ? std::optional(*std::move(outputs)) : std::nullopt;
  }

  const Configuration& configuration_;
  TypeOracle* const oracle_;
  Statistics* const statistics_;
  EnumeratedNodes nodes_;
  std::vector<std::vector<int>> representatives_ =
      std::vector<std::vector<int>>(8);  // by number of operators
  absl::flat_hash_set<int> representative_;
  absl::flat_hash_map<uint64_t, int> classes_;  // fingerprint -> first tensor
  std::map<int, int> equal_;                    // other tensor -> first of its class
  std::map<int, Array<PrimeField>> meanings_;   // of representatives
  absl::flat_hash_set<uint64_t> calls_;
  absl::flat_hash_map<std::string, Declaration> declarations_;
  absl::flat_hash_set<std::string> seen_;
};

}  // namespace

std::vector<Candidate> Enumerate(const Configuration& configuration, TypeOracle* oracle,
                                 Random* random, Statistics* statistics) {
  return Enumerator(configuration, oracle, random, statistics).Run();
}

}  // namespace isomer
