#include "generator/enumeration/enumerator.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "generator/assignments/trial.h"
#include "generator/enumeration/call_table.h"
#include "generator/enumeration/chance.h"
#include "generator/enumeration/found_equations.h"
#include "generator/enumeration/in_chunks.h"
#include "generator/enumeration/reducible_terms.h"
#include "generator/enumeration/term_batch.h"
#include "generator/enumeration/term_evaluator.h"
#include "generator/enumeration/term_store.h"
#include "generator/enumeration/work_items.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

bool IsConstant(const Configuration& configuration, size_t input) {
  return input < configuration.values.size() && !configuration.values[input].empty();
}

// Equal numbers for inputs that may be renamed to each other.
std::vector<int> ExchangeableInputs(const Configuration& configuration) {
  std::vector<int> numbers;
  for (size_t i = 0; i < configuration.inputs.size(); ++i) {
    size_t like = 0;
    while (like < i && (IsConstant(configuration, i) || IsConstant(configuration, like) ||
                        configuration.inputs[like] != configuration.inputs[i])) {
      ++like;
    }
    numbers.push_back(static_cast<int>(like));
  }
  return numbers;
}

class Enumerator {
 public:
  Enumerator(const Configuration& configuration, TypeOracle* oracle, Random* random,
             Statistics* statistics, int threads)
      : configuration_(configuration),
        oracle_(oracle),
        random_(random),
        statistics_(statistics),
        threads_(std::max(1, threads)),
        calls_(configuration.operators, oracle),
        store_(Namings(ExchangeableInputs(configuration)), configuration.max_operators),
        planner_(configuration, &calls_, &store_),
        evaluator_(&store_),
        reducible_(&store_) {
    ISOMER_CHECK(configuration.max_operators >= 1);
    // A constant stands for no other tensor.
    ISOMER_CHECK(!configuration.skips_instances || configuration.values.empty());
    AddInputs(random);
  }

  std::vector<Candidate> Run() {
    for (int size = 1; size <= configuration_.max_operators; ++size) {
      const bool last = size == configuration_.max_operators;
      for (const bool linear : {true, false}) {
        const std::vector<WorkItem> items = planner_.Plan(size, linear);
        if (last) {
          linear || configuration_.every_side ? KeepLast(items, linear) : LookUpAll(items);
        } else {
          for (const WorkItem& item : items) KeepOperands(item, size);
        }
      }
    }
    statistics_->tensors_kept += store_.num_tensors();
    statistics_->bytes_kept = std::max(statistics_->bytes_kept, store_.bytes());
    const auto start = std::chrono::steady_clock::now();
    std::vector<Candidate> candidates =
        CandidatesOf(equations_, store_.nodes(), configuration_, threads_, statistics_);
    if (configuration_.skips_instances) {
      std::erase_if(candidates, [&](const Candidate& c) { return IsByChance(c); });
    }
    statistics_->seconds["candidates"] +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return candidates;
  }

 private:
  void AddInputs(Random* random) {
    const std::vector<int> exchangeable = ExchangeableInputs(configuration_);
    std::map<int, int> orbits;
    for (size_t i = 0; i < configuration_.inputs.size(); ++i) {
      const TensorType& type = configuration_.inputs[i];
      const Value<PrimeField> value = RandomValue<PrimeField>(type, random);
      Array<PrimeField> meaning = Meaning(value)[0];
      if (IsConstant(configuration_, i)) {
        const std::vector<double>& elements = configuration_.values[i];
        ISOMER_CHECK(elements.size() == meaning.data.size());
        std::transform(elements.begin(), elements.end(), meaning.data.begin(),
                       PrimeField::FromDouble);
      }
      KeptTensor form;
      form.type = calls_.NumberOf(type);
      form.naming = store_.namings().Intern({static_cast<int>(i)});
      form.linear = true;
      const auto [orbit, fresh] = orbits.try_emplace(exchangeable[i], -1);
      if (fresh) orbit->second = store_.NewOrbit();
      form.orbit = orbit->second;
      const int tensor = store_.Add(PatternRef::Input(static_cast<int>(i)), form, meaning.data);
      const int added = store_.AddClass(FingerprintOf(meaning.data, form.type));
      store_.Class(added).linear = tensor;
      store_.Represent(tensor, added);
      store_.SetRenaming(form.orbit, form.naming, tensor);
    }
  }

  bool IsByChance(const Candidate& candidate) const {
    const std::optional<std::string> why = FailsElsewhere(candidate, oracle_, random_);
    if (why) statistics_->Prune(*why, ConstantRule(candidate).ToString());
    return why.has_value();
  }

  bool IsFocused(const EnumeratedCall& call, const TensorList& operands) const {
    if (configuration_.focus.count(call.op.kind()) > 0) return true;
    return std::any_of(operands.begin(), operands.end(),
                       [&](int tensor) { return store_[tensor].focused; });
  }

  bool IsSkipped(const EnumeratedTerm& term) const {
    return configuration_.skips_instances && reducible_.HasInstance(term);
  }

  // The number of the class of a term's output, or -1. The term is evaluated as a whole only if
  // there is one with its sample.
  int Locate(const EnumeratedTerm& term, int output, Fingerprint* fingerprint,
             TermEvaluator* evaluator) const {
    int number = store_.FirstWithSample(fingerprint->sample);
    if (number >= 0 && fingerprint->whole == Fingerprint::kUnknown) {
      fingerprint->whole = evaluator->WholeOf(term, output);
    }
    while (number >= 0 && evaluator->WholeOf(store_.Class(number)) != fingerprint->whole) {
      number = store_.Class(number).next;
    }
    return number;
  }

  // Terms of the last size that are not linear.
  void LookUpAll(const std::vector<WorkItem>& items) {
    constexpr size_t kChunk = 64;
    std::vector<std::vector<FoundEquation>> found((items.size() + kChunk - 1) / kChunk);
    std::vector<TermEvaluator> evaluators(threads_, TermEvaluator(&store_));
    std::atomic<int64_t> counted = 0, dropped = 0;
    InChunks(threads_, items.size(), kChunk, [&](int thread, size_t begin, size_t end) {
      int64_t count = 0, drop = 0;
      for (size_t i = begin; i < end; ++i) {
        items[i].ForEach(store_, [&](const TensorList& operands) {
          if (IsSkipped({items[i].call, operands})) return;
          ++count;
          drop += LookUp(*items[i].call, operands, &evaluators[thread], &found[begin / kChunk]);
        });
      }
      counted += count;
      dropped += drop;
    });
    statistics_->graphs_enumerated += counted;
    if (dropped > 0) statistics_->pruned["no side uses each input once"] += dropped;
    for (std::vector<FoundEquation>& part : found) {
      std::move(part.begin(), part.end(), std::back_inserter(equations_));
    }
  }

  // Returns how many of the outputs are equal to tensors none of which is linear.
  int LookUp(const EnumeratedCall& call, const TensorList& operands, TermEvaluator* evaluator,
             std::vector<FoundEquation>* found) const {
    const EnumeratedTerm term{&call, operands};
    Fingerprints fingerprints;
    if (!evaluator->Sample(term, &fingerprints)) return 0;
    int dropped = 0;
    for (size_t t = 0; t < call.output_types.size(); ++t) {
      const int output = static_cast<int>(t);
      const int number = Locate(term, output, &fingerprints[t], evaluator);
      if (number < 0) continue;
      const TensorClass& known = store_.Class(number);
      const int other = store_[known.representative].linear ? known.representative : known.linear;
      if (other < 0) {
        ++dropped;
      } else if (InFocus(call, operands, {other})) {
        found->emplace_back(term, output, TensorList{other});
      }
    }
    return dropped;
  }

  bool InFocus(const EnumeratedCall& call, const TensorList& operands,
               const TensorList& others) const {
    if (configuration_.focus.empty() || IsFocused(call, operands)) return true;
    return std::any_of(others.begin(), others.end(),
                       [&](int tensor) { return store_[tensor].focused; });
  }

  // Terms of a size before the last: they are operands.
  void KeepOperands(const WorkItem& item, int size) {
    item.ForEach(store_, [&](const TensorList& operands) {
      if (IsSkipped({item.call, operands})) return;
      ++statistics_->graphs_enumerated;
      const NamingId naming = item.naming < 0 ? store_.NamingOf(operands) : item.naming;
      FingerprintedTerm canonical;
      canonical.term = {item.call, operands};
      TensorList orbits;
      if (!evaluator_.Evaluate(canonical.term, &canonical.fingerprints)) return;
      if (!Keep(&canonical, item.linear, &orbits)) {
        if (configuration_.skips_instances) reducible_.Add(canonical.term, size);
        return;
      }
      KeptTensor form = FormOf(canonical.term, size, item.linear);
      for (NamingId renaming : std::vector<NamingId>(store_.namings().Renamings(naming))) {
        FingerprintedTerm renamed = canonical;
        bool has_operands = true;
        for (int& tensor : renamed.term.operands) {
          tensor = store_.Renamed(tensor, naming, renaming);
          has_operands &= tensor >= 0;
        }
        // The first is the term itself.
        if (renaming != naming &&
            (!has_operands || !evaluator_.Evaluate(renamed.term, &renamed.fingerprints))) {
          continue;
        }
        form.naming = renaming;
        KeepRenaming(&renamed, form, orbits, store_.namings().UseSameInputs(naming, renaming),
                     /*last=*/false);
      }
    });
  }

  // Terms of the last size that may be a side of an equation with any other.
  void KeepLast(const std::vector<WorkItem>& items, bool linear) {
    TermBatch batch(&store_, threads_);
    auto keep = [&] {
      batch.Evaluate();
      for (BatchTerm& term : batch.terms()) KeepLast(batch, linear, &term);
      batch.Clear();
    };
    for (const WorkItem& item : items) {
      item.ForEach(store_, [&](const TensorList& operands) {
        if (IsSkipped({item.call, operands})) return;
        batch.Add(item, operands);
        if (batch.full()) keep();
      });
    }
    keep();
  }

  // A term of the last size is only met by others of its inputs: renamings that permute them.
  void KeepLast(const TermBatch& batch, bool linear, BatchTerm* term) {
    ++statistics_->graphs_enumerated;
    FingerprintedTerm& canonical = term->canonical;
    TensorList orbits;
    if (canonical.fingerprints.empty() || !Keep(&canonical, linear, &orbits)) return;
    batch.SampleRenamings(term, &evaluator_);
    KeptTensor form = FormOf(canonical.term, configuration_.max_operators, linear);
    form.naming = term->naming;
    KeepRenaming(&canonical, form, orbits, /*permutes=*/true, /*last=*/true);
    for (size_t r = 0; r < term->renamed.size(); ++r) {
      if (term->renamed[r].fingerprints.empty()) continue;
      form.naming = (*term->renamings)[r].naming;
      KeepRenaming(&term->renamed[r], form, orbits, /*permutes=*/true, /*last=*/true);
    }
  }

  KeptTensor FormOf(const EnumeratedTerm& term, int size, bool linear) const {
    KeptTensor form;
    form.linear = linear;
    form.focused = IsFocused(*term.call, term.operands);
    form.size = static_cast<int16_t>(size);
    return form;
  }

  // A canonical term: an equation for each output that is known, a new orbit (in `orbits`, else -1)
  // for each that is not. Returns whether its renamings are to be kept.
  bool Keep(FingerprintedTerm* canonical, bool linear, TensorList* orbits) {
    const EnumeratedTerm& term = canonical->term;
    TensorList before;
    bool adds = false;
    for (size_t t = 0; t < canonical->fingerprints.size(); ++t) {
      const int output = static_cast<int>(t);
      const int number = Locate(term, output, &canonical->fingerprints[t], &evaluator_);
      before.push_back(number < 0 ? -1 : store_.Class(number).representative);
      orbits->push_back(number < 0 ? store_.NewOrbit() : -1);
      adds |= number < 0 || (linear && store_.Class(number).linear < 0);
      if (number >= 0) Pair(term, output, linear, number);
    }
    if (linear || configuration_.every_side) PairTogether(term, before);
    return adds;
  }

  // A representative for each output that is not known. `permutes`: the inputs are those of the
  // canonical term. Before the last size: REQUIRES: it is what was evaluated last.
  void KeepRenaming(FingerprintedTerm* renamed, KeptTensor form, const TensorList& orbits,
                    bool permutes, bool last) {
    const EnumeratedTerm& term = renamed->term;
    const EnumeratedCall& call = *term.call;
    int node = -1;
    for (size_t t = 0; t < call.output_types.size(); ++t) {
      const int output = static_cast<int>(t);
      Fingerprint& fingerprint = renamed->fingerprints[t];
      int number = Locate(term, output, &fingerprint, &evaluator_);
      const bool fresh = number < 0;
      if (fresh) number = store_.AddClass(fingerprint);
      if (fresh || (form.linear && store_.Class(number).linear < 0)) {
        if (node < 0) {
          node = store_.AddNode(term);
          if (!last) form.nodes = store_.AddNodesOf(term.operands, node);
        }
        form.type = call.output_types[t];
        form.orbit = orbits[t];
        const bool is_operand = fresh && !last;
        const int tensor = store_.Add(
            PatternRef::Node(node, output), form,
            is_operand ? evaluator_.MeaningOf(call, output) : absl::Span<const PrimeField>());
        if (form.linear) SetLinear(tensor, number);
        if (fresh) store_.Represent(tensor, number);
      }
      if (orbits[t] < 0) continue;
      const int representative = store_.Class(number).representative;
      if (!last) store_.SetRenaming(orbits[t], form.naming, representative);
      const bool is_side = form.linear || configuration_.every_side;
      if (!fresh && is_side && permutes) PairSymmetric(term, output, representative);
    }
  }

  // A class has its first linear tensor: the terms that waited for one.
  void SetLinear(int tensor, int number) {
    store_.Class(number).linear = tensor;
    const auto waiting = waiting_.find(number);
    if (waiting == waiting_.end()) return;
    for (const FoundEquation& equation : waiting->second) {
      const EnumeratedTerm& term = equation.term;
      if (InFocus(*term.call, term.operands, {tensor})) {
        equations_.emplace_back(term, equation.output, TensorList{tensor});
      }
    }
    waiting_.erase(waiting);
  }

  void Pair(const EnumeratedTerm& term, int output, bool linear, int number) {
    const TensorClass& known = store_.Class(number);
    int other = known.representative;
    if (!linear && !store_[other].linear && !configuration_.every_side) {
      other = known.linear;
      if (other < 0) {
        statistics_->pruned["no side uses each input once"] += 1;
        waiting_[number].emplace_back(term, output, TensorList());
        return;
      }
    }
    if (InFocus(*term.call, term.operands, {other})) {
      equations_.emplace_back(term, output, TensorList{other});
    }
  }

  // A term whose inputs can be exchanged: one equation, unless its operator says so.
  void PairSymmetric(const EnumeratedTerm& term, int output, int representative) {
    const PatternRef definition = store_.nodes().tensors[representative];
    TensorList operands = term.operands, others;
    // By chance an exchange may give an input where the term gave none.
    if (definition.node >= 0) others = store_.nodes().nodes[definition.node].operands;
    if (IsCommutative(term.call->op.kind())) {
      std::sort(operands.begin(), operands.end());
      std::sort(others.begin(), others.end());
    }
    if (operands == others) return;
    if (InFocus(*term.call, term.operands, {}))
      equations_.emplace_back(term, output, TensorList{representative});
  }

  // The outputs of a Split together, and what they were known as before.
  void PairTogether(const EnumeratedTerm& term, const TensorList& before) {
    if (before.size() < 2 || before[0] == before.back()) return;
    for (int tensor : before) {
      // Parts that are inputs are found one by one: a rewrite of several outputs needs each
      // computed.
      if (tensor < 0 || store_.nodes().tensors[tensor].node < 0) return;
    }
    if (InFocus(*term.call, term.operands, before)) equations_.emplace_back(term, -1, before);
  }

  const Configuration& configuration_;
  TypeOracle* const oracle_;
  Random* const random_;
  Statistics* const statistics_;
  const int threads_;
  EnumeratedCalls calls_;
  TermStore store_;
  WorkPlanner planner_;
  TermEvaluator evaluator_;
  ReducibleTerms reducible_;  // below the last size
  // Terms that are not linear, of classes without a linear tensor.
  absl::flat_hash_map<int, std::vector<FoundEquation>> waiting_;
  std::vector<FoundEquation> equations_;
};

}  // namespace

std::vector<Candidate> Enumerate(const Configuration& configuration, TypeOracle* oracle,
                                 Random* random, Statistics* statistics, int threads) {
  return Enumerator(configuration, oracle, random, statistics, threads).Run();
}

}  // namespace isomer
