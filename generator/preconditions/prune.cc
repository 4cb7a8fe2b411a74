#include "generator/preconditions/prune.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

OpKindSet SetOf(OpKind kind) { return OpKindSet().set(static_cast<size_t>(kind)); }

// Assignments of the degrees that a rule introduces: those that generation uses.
std::vector<Binding> GivenDegrees(const Rule& rule) {
  Binding two, four;
  std::set<std::string> bound;
  for (const PatternNode& node : rule.source.nodes) {
    for (const AttributePattern& attribute : node.attributes) {
      const auto* expr = std::get_if<IntExpr>(&attribute.value);
      if (expr != nullptr) bound.insert({expr->variable, expr->factor});
    }
  }
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kDegree && bound.count(variable.name) == 0) {
      two.variables[variable.name] = 2;
      four.variables[variable.name] = 4;
    }
  }
  if (two.variables.empty()) return {two};
  return {two, four};
}

int CountOperators(const Graph& graph) {
  int count = 0;
  for (NodeId id : graph.TopologicalOrder()) count += !IsLeaf(graph.node(id).op.kind());
  return count;
}

}  // namespace

uint64_t FormHash(const Graph& graph) {
  std::vector<uint64_t> hashes(graph.num_nodes());
  auto hash_of = [&](TensorRef ref) {
    return HashCombine(hashes[ref.node.value], static_cast<uint64_t>(ref.output));
  };
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    uint64_t hash = node.op.Hash();
    if (IsLeaf(node.op.kind())) hash = HashCombine(hash, HashBytes(node.name));
    std::vector<uint64_t> operands;
    for (TensorRef input : node.inputs) operands.push_back(hash_of(input));
    if (IsCommutative(node.op.kind())) std::sort(operands.begin(), operands.end());
    for (uint64_t operand : operands) hash = HashCombine(hash, operand);
    hashes[id.value] = hash;
  }
  uint64_t hash = graph.outputs().size();
  for (const Graph::NamedOutput& output : graph.outputs()) {
    hash = HashCombine(hash, hash_of(output.tensor));
  }
  return hash;
}

absl::StatusOr<CandidateGraphs> GraphsOf(const Candidate& candidate) {
  Binding binding;
  binding.inputs = candidate.inputs;
  CandidateGraphs graphs;
  ISOMER_ASSIGN_OR_RETURN(graphs.source, InstantiatePattern(candidate.source, binding));
  ISOMER_ASSIGN_OR_RETURN(graphs.target, InstantiatePattern(candidate.target, binding));
  graphs.source = graphs.source.Canonical();
  graphs.target = graphs.target.Canonical();
  return graphs;
}

void RuleBook::AddEntry(const Rule& rule) {
  OpKindSet kinds;
  for (const PatternNode& node : rule.source.nodes) kinds |= SetOf(node.kind);
  std::optional<RootShape> root = RootShapeOf(rule.source);
  std::vector<int>& alike = root ? by_root_[static_cast<size_t>(root->kind)] : rootless_;
  alike.push_back(num_entries());
  entries_.push_back({rule, std::move(root), kinds, GivenDegrees(rule)});
}

void RuleBook::Add(const Rule& rule) {
  AddEntry(rule);
  if (rule.reversible) AddEntry(Inverse(rule));
}

// Those whose operators the graph has, one of its nodes with operands as the root's among them.
std::vector<int> RuleBook::EntriesFor(const GraphIndex& index, int first) const {
  const Graph& graph = index.graph();
  OpKindSet present;
  for (OpKind kind : AllOpKinds()) {
    if (!index.NodesOf(kind).empty()) present |= SetOf(kind);
  }
  std::vector<int> entries;
  const auto add = [&](const std::vector<int>& alike, absl::Span<const NodeId> roots) {
    for (auto e = std::lower_bound(alike.begin(), alike.end(), first); e != alike.end(); ++e) {
      const Entry& entry = entries_[*e];
      if ((entry.kinds & ~present).any()) continue;
      const auto is_root = [&](NodeId id) { return HasShape(graph, id, *entry.root); };
      if (!entry.root || std::any_of(roots.begin(), roots.end(), is_root)) entries.push_back(*e);
    }
  };
  add(rootless_, {});
  for (OpKind kind : AllOpKinds()) {
    if (present.test(static_cast<size_t>(kind))) {
      add(by_root_[static_cast<size_t>(kind)], index.NodesOf(kind));
    }
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

void RuleBook::ForEachApplication(
    const Graph& graph, int first, bool reversible,
    absl::FunctionRef<void(int entry, const Graph& result)> visit) const {
  const GraphIndex index(graph);
  for (int e : EntriesFor(index, first)) {
    const Entry& entry = entries_[e];
    if (reversible && !entry.rule.reversible) continue;
    for (const Binding& given : entry.given) {
      for (const DerivationStep& step : FindMatches(index, entry.rule, given)) {
        Graph next = graph;
        if (ApplyStep(entry.rule, step, &next).ok()) visit(e, next);
      }
    }
  }
}

Derivations::Derivations(CandidateGraphs graphs, int steps, State state)
    : graphs_(std::move(graphs)),
      steps_(steps),
      largest_(std::max(CountOperators(graphs_.source), CountOperators(graphs_.target))),
      state_(std::move(state)) {}

void Derivations::Step(bool reversible, const RuleBook& book, int first, Front* front) const {
  std::vector<Reach> next;
  for (const auto& [graph, way] : front->latest) {
    const int from = way.latest < first ? first : 0;
    book.ForEachApplication(
        graph, from, reversible, [&, &way = way](int entry, const Graph& result) {
          const auto [place, fresh] = front->reached->try_emplace(FormHash(result));
          if (!fresh) return;
          place->second = way;
          place->second.entries.push_back(entry);
          place->second.latest = std::max(way.latest, entry);
          if (front->steps + 1 < steps_ && CountOperators(result) <= largest_) {
            next.push_back({result.Canonical(), place->second});
          }
        });
  }
  front->latest = std::move(next);
  ++front->steps;
}

Derivations::Front Derivations::Begin(const Graph& from, Reached* reached) {
  reached->try_emplace(FormHash(from));
  return {.latest = {{from, {}}}, .reached = reached};
}

// Adds what was reached besides.
void Derivations::Take(const Reached& by_new, Reached* reached) {
  for (const auto& [hash, way] : by_new) {
    const auto [place, fresh] = reached->try_emplace(hash, way);
    // One step is better than several.
    if (!fresh && place->second.entries.size() > way.entries.size()) place->second = way;
  }
}

void Derivations::StepOnce(const Graph& from, bool reversible, const RuleBook& book, int* known,
                           Reached* reached) const {
  if (*known == book.num_entries()) return;
  // What the entries before `known` give is there already.
  Reached by_new;
  Front front = Begin(from, &by_new);
  Step(reversible, book, *known, &front);
  *known = book.num_entries();
  Take(by_new, reached);
}

bool Derivations::IsInstance(const RuleBook& book) {
  StepOnce(graphs_.source, /*reversible=*/false, book, &state_.known_source, &state_.from_source);
  const auto found = state_.from_source.find(FormHash(graphs_.target));
  return found != state_.from_source.end() && found->second.entries.size() == 1;
}

Derivations::Result Derivations::Find(const RuleBook& book) {
  if (IsInstance(book)) {
    const Way& way = state_.from_source.at(FormHash(graphs_.target));
    return {Kind::kInstance, {book.IdOf(way.entries[0])}};
  }
  const bool has_news = state_.known_target < book.num_entries();
  if (steps_ == 1) {
    StepOnce(graphs_.target, /*reversible=*/true, book, &state_.known_target, &state_.from_target);
  } else if (has_news && Meeting(book).kind == Kind::kNone) {
    StepUntilTheyMeet(book);
  }
  return Meeting(book);
}

// A step from either side in turn: a second one takes as long as the graphs of the first are many,
// and most equations that rules derive need none. The last one, which takes nearly all of the time,
// is taken by rules that are new, or from where these led: what the others give is there already.
void Derivations::StepUntilTheyMeet(const RuleBook& book) {
  Reached by_source, by_target;
  Front source = Begin(graphs_.source, &by_source);
  Front target = Begin(graphs_.target, &by_target);
  for (int step = 0; step < steps_; ++step) {
    const int first = step + 1 < steps_ ? 0 : state_.known_target;
    Step(/*reversible=*/false, book, first, &source);
    Take(by_source, &state_.from_source);
    if (Meeting(book).kind != Kind::kNone) break;
    Step(/*reversible=*/true, book, first, &target);
    Take(by_target, &state_.from_target);
    if (Meeting(book).kind != Kind::kNone) break;
  }
  state_.known_source = state_.known_target = book.num_entries();
}

// Of several meetings, that of the earliest rules.
Derivations::Result Derivations::Meeting(const RuleBook& book) const {
  const Way *best_source = nullptr, *best_target = nullptr;
  auto rank = [](const Way& a, const Way& b) {
    return std::make_tuple(std::max(a.latest, b.latest), std::cref(a.entries),
                           std::cref(b.entries));
  };
  for (const auto& [hash, way] : state_.from_source) {
    const auto other = state_.from_target.find(hash);
    if (other == state_.from_target.end()) continue;
    if (best_source == nullptr || rank(way, other->second) < rank(*best_source, *best_target)) {
      best_source = &way;
      best_target = &other->second;
    }
  }
  if (best_source == nullptr) return {};
  Result result{Kind::kComposition, {}};
  for (int entry : best_source->entries) result.rules.push_back(book.IdOf(entry));
  for (size_t i = best_target->entries.size(); i > 0; --i) {
    // Found from the target, it leads the other way.
    absl::string_view id = book.IdOf(best_target->entries[i - 1]);
    const bool inverse = absl::ConsumeSuffix(&id, "^-1");
    result.rules.push_back(absl::StrCat(id, inverse ? "" : "^-1"));
  }
  return result;
}

}  // namespace isomer
