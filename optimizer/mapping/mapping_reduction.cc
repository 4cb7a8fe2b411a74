#include "optimizer/mapping/mapping_reduction.h"

#include <algorithm>
#include <utility>

#include "pcg/support/check.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

template <typename T>
uint64_t HashOf(const std::vector<T>& values, uint64_t seed) {
  return HashBytes(
      absl::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)),
      seed);
}

// Per share of `splits`: the shares that contain it, ascending, then itself.
std::vector<std::vector<int>> Containers(const std::vector<ShareSplit>& splits) {
  int shares = 1;
  for (const ShareSplit& split : splits) {
    shares =
        std::max({shares, static_cast<int>(split.first) + 1, static_cast<int>(split.second) + 1});
  }
  std::vector<std::vector<int>> contains(shares);
  for (int share = 0; share < shares; ++share) {
    std::vector<bool> in(shares, false);
    std::vector<int> open = {share};
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      for (const ShareSplit& split : splits) {
        if (static_cast<int>(split.first) != at && static_cast<int>(split.second) != at) continue;
        const int of = static_cast<int>(split.of);
        if (!in[of]) open.push_back(of);
        in[of] = true;
      }
    }
    for (int s = 0; s < shares; ++s) {
      if (in[s]) contains[share].push_back(s);
    }
    contains[share].push_back(share);
  }
  return contains;
}

}  // namespace

uint64_t CostTable::ContentKey() const {
  return HashCombine(HashOf(us, 0), static_cast<uint64_t>(rows), static_cast<uint64_t>(cols)) | 1;
}

MappingReduction::MappingReduction(const MappingProblem& problem, MappingMemo* memo,
                                   const MappingResources* resources, bool concurrent_branches)
    : terminals_(problem.terminals),
      splits_(problem.splits),
      contains_(Containers(problem.splits)),
      memo_(memo),
      concurrent_branches_(concurrent_branches) {
  std::vector<NodeChoices> choices;
  nodes_.reserve(problem.nodes.size());
  for (const auto& node : problem.nodes) {
    choices.push_back(ChoicesByShare(node));
    NodeState& state = nodes_.emplace_back();
    state.us = node.us;
    state.shares_key = HashCombine(HashOf(node.shares, 0), node.us.size());
    if (resources != nullptr) state.resources = (*resources)[nodes_.size() - 1];
  }
  choices_ = std::make_shared<const std::vector<NodeChoices>>(std::move(choices));
  live_.resize(nodes_.size());
  composites_.reserve(2 * problem.edges.size());
  for (const MappingProblem::Edge& edge : problem.edges) {
    ISOMER_CHECK(edge.from != edge.to);
    Composite c;
    c.a = c.from = edge.from;
    c.b = edge.to;
    c.edge = edge.table;
    const uint64_t key = edge.table->key != 0 ? edge.table->key : edge.table->ContentKey();
    c.key = HashCombine(key, EndsKey(c.a, c.b), resources != nullptr);
    if (resources != nullptr) c.resources.assign(NumShares(), 0);
    AddComposite(std::move(c));
  }
}

MappingReduction::NodeChoices MappingReduction::ChoicesByShare(
    const MappingProblem::MappingNode& node) const {
  NodeChoices choices;
  choices.own.resize(NumShares());
  for (int k = 0; k < static_cast<int>(node.us.size()); ++k) {
    const size_t share = node.shares.empty() ? 0 : static_cast<size_t>(node.shares[k]);
    ISOMER_CHECK(share < choices.own.size());
    choices.own[share].push_back(k);
  }
  choices.visible.resize(NumShares());
  for (int share = 0; share < NumShares(); ++share) {
    std::vector<int>& visible = choices.visible[share];
    for (int s : contains_[share]) {
      visible.insert(visible.end(), choices.own[s].begin(), choices.own[s].end());
    }
  }
  return choices;
}

bool MappingReduction::IsTerminal(int node) const {
  return std::find(terminals_.begin(), terminals_.end(), node) != terminals_.end();
}

int MappingReduction::ShareOf(int node, int choice) const {
  for (int share = 0; share < NumShares(); ++share) {
    const auto& own = ChoicesOf(node, share);
    if (std::binary_search(own.begin(), own.end(), choice)) return share;
  }
  ISOMER_CHECK(false);
  return 0;
}

void MappingReduction::AddUs(int node, int choice, float us) {
  nodes_[node].us[choice] += us;
  if (!nodes_[node].own_us.empty()) nodes_[node].own_us[choice] += us;
}

int MappingReduction::PlaceIn(int node, int choice, int share) const {
  const auto& visible = Visible(node, share);
  return static_cast<int>(std::find(visible.begin(), visible.end(), choice) - visible.begin());
}

uint64_t MappingReduction::NodeKey(int node) const {
  const NodeState& state = nodes_[node];
  return HashOf(state.resources, HashOf(state.us, state.shares_key));
}

uint64_t MappingReduction::EndsKey(int a, int b) const {
  return HashCombine(nodes_[a].shares_key, nodes_[b].shares_key);
}

// Adds an edge, in parallel with an existing one.
int MappingReduction::AddComposite(Composite composite) {
  composite.tables.resize(NumShares());
  composites_.push_back(std::move(composite));
  const int added = static_cast<int>(composites_.size()) - 1;
  const int a = composites_[added].a, b = composites_[added].b;
  for (int live : live_[a]) {
    const Composite& l = composites_[live];
    if (!(l.a == a && l.b == b) && !(l.a == b && l.b == a)) continue;
    Composite p;
    p.a = l.a;
    p.b = l.b;
    p.from = l.from == composites_[added].from ? l.from : -1;
    p.left = live;
    p.right = added;
    const uint64_t turned = l.a != a;
    p.key = HashCombine(1, l.key, composites_[added].key, turned, RunBeside(live, added));
    p.resources = l.resources;
    for (size_t share = 0; share < p.resources.size(); ++share) {
      p.resources[share] += composites_[added].resources[share];
    }
    RemoveLive(live);
    return AddComposite(std::move(p));
  }
  live_[a].push_back(added);
  live_[b].push_back(added);
  return added;
}

void MappingReduction::RemoveLive(int composite) {
  std::erase(live_[composites_[composite].a], composite);
  std::erase(live_[composites_[composite].b], composite);
}

// The source of data that flows over `m` from one composite into the other, or -1.
int MappingReduction::DirectedSource(int m, int left, int right) const {
  for (const auto& [in, out] : {std::pair(left, right), std::pair(right, left)}) {
    const Composite &i = composites_[in], &o = composites_[out];
    if (i.from >= 0 && i.from != m && o.from == m) return i.from;
  }
  return -1;
}

bool MappingReduction::RunBeside(int left, int right) const {
  const Composite &l = composites_[left], &r = composites_[right];
  const auto has_nodes = [](const Composite& c) { return c.left >= 0; };
  return has_nodes(l) && has_nodes(r) && l.from >= 0 && l.from == r.from;
}

MappingReduction::Composite MappingReduction::Joined(int m, int left, int right) const {
  // Rows are the source of the data, if known.
  if (DirectedSource(m, right, left) >= 0 && composites_[left].from == m) std::swap(left, right);
  const Composite &l = composites_[left], &r = composites_[right];
  Composite s;
  s.a = l.a == m ? l.b : l.a;
  s.b = r.a == m ? r.b : r.a;
  s.from = DirectedSource(m, left, right);
  s.inner = m;
  s.left = left;
  s.right = right;
  const uint64_t turned = 2 * (l.a == m) + (r.b == m);
  s.key = HashCombine(2, l.key, r.key, turned, NodeKey(m), EndsKey(s.a, s.b));
  s.resources = nodes_[m].resources;
  for (size_t share = 0; share < s.resources.size(); ++share) {
    s.resources[share] += l.resources[share] + r.resources[share];
  }
  return s;
}

void MappingReduction::Series(int m, int left, int right) {
  Composite joined = Joined(m, left, right);
  nodes_[m].gone = true;
  RemoveLive(left);
  RemoveLive(right);
  AddComposite(std::move(joined));
}

void MappingReduction::Relax(int node) {
  std::vector<int> outs = live_[node];
  const auto in =
      std::find_if(outs.begin(), outs.end(), [&](int c) { return composites_[c].from != node; });
  ISOMER_CHECK(in != outs.end());
  const int first = *in;
  outs.erase(in);
  std::vector<Composite> copies;
  for (int out : outs) {
    copies.push_back(Joined(node, first, out));
    if (copies.size() == 1) continue;
    Composite& copy = copies.back();
    copy.resources = composites_[out].resources;
    copy.key = HashCombine(copy.key, 3);
  }
  nodes_[node].gone = true;
  RemoveLive(first);
  for (int out : outs) RemoveLive(out);
  for (Composite& copy : copies) AddComposite(std::move(copy));
}

// Removes node m if it has at most two neighbours; between two, only if data flows over it from
// one to the other, unless `any`.
bool MappingReduction::ReduceNode(int m, bool any) {
  const std::vector<int>& at = live_[m];
  if (at.size() > 2) return false;
  if (at.size() == 2) {
    if (!any && DirectedSource(m, at[0], at[1]) < 0) return false;
    Series(m, at[0], at[1]);
  } else if (at.size() == 1) {
    FoldInto(m, at[0]);
  } else {
    folds_.push_back({m, -1, -1});
    nodes_[m].gone = true;
  }
  return true;
}

// Branches are reduced before the forks and joins at their ends, to be recognised as branches. In
// one sweep, no composite contains another of that sweep: a chain becomes a balanced tree, in which
// a change to one node affects one path only.
void MappingReduction::Reduce() {
  bool any = false;
  while (true) {
    bool changed = false, passed_over = false;
    const int before = static_cast<int>(composites_.size());
    for (int m = 0; m < static_cast<int>(nodes_.size()); ++m) {
      if (nodes_[m].gone || IsTerminal(m)) continue;
      if (std::any_of(live_[m].begin(), live_[m].end(), [&](int c) { return c >= before; })) {
        passed_over = true;
        continue;
      }
      if (!ReduceNode(m, any)) continue;
      changed = true;
      if (any) break;
    }
    if (!changed && !passed_over && any) return;
    any = !changed && !passed_over;
  }
}

void MappingReduction::KeepToWhole(int node) {
  for (int share = 1; share < NumShares(); ++share) {
    for (int k : ChoicesOf(node, share)) AddUs(node, k, kImpossibleUs);
  }
}

void MappingReduction::Fix(int node, int choice) {
  const auto& whole = WholeChoices(node);
  const auto place = std::lower_bound(whole.begin(), whole.end(), choice) - whole.begin();
  ISOMER_CHECK(place < static_cast<std::ptrdiff_t>(whole.size()) && whole[place] == choice);
  const std::vector<int> composites = live_[node];
  for (int c : composites) {
    const int other = composites_[c].a == node ? composites_[c].b : composites_[c].a;
    for (int share = 0; share < NumShares(); ++share) {
      const auto& answers = ChoicesOf(other, share);
      if (answers.empty()) continue;
      const CostTable& table = Us(c, share);
      // The full machine contains every share, and comes first.
      const auto fixed = static_cast<int>(place);
      for (size_t n = 0; n < answers.size(); ++n) {
        const int at = OwnBegin(other, share) + static_cast<int>(n);
        AddUs(other, answers[n],
              composites_[c].b == node ? table.at(at, fixed) : table.at(fixed, at));
      }
    }
    folds_.push_back({-1, -1, c});
    RemoveLive(c);
  }
  for (int k = 0; k < static_cast<int>(nodes_[node].us.size()); ++k) {
    if (k != choice) nodes_[node].us[k] = kImpossibleUs;
  }
  folds_.push_back({node, -1, -1});
  fixed_.emplace_back(node, choice);
  nodes_[node].gone = true;
}

void MappingReduction::MakeTables() const {
  for (const std::vector<int>& composites : live_) {
    for (int c : composites) {
      for (int share = 0; share < NumShares(); ++share) Us(c, share);
    }
  }
}

std::vector<int> MappingReduction::Core() const {
  std::vector<int> core;
  for (int m = 0; m < static_cast<int>(nodes_.size()); ++m) {
    if (!nodes_[m].gone && !IsTerminal(m)) core.push_back(m);
  }
  return core;
}

int MappingReduction::Promising(int node) const {
  const std::vector<int>& whole = WholeChoices(node);
  std::vector<float> estimate;
  for (int k : whole) estimate.push_back(nodes_[node].us[k]);
  for (int c : live_[node]) {
    const TablePointer table = Towards(c, node, 0);
    for (int k = 0; k < table->cols; ++k) {
      float best = kImpossibleUs;
      for (int n = 0; n < table->rows; ++n) best = std::min(best, table->at(n, k));
      estimate[k] += best;
    }
  }
  return whole[std::min_element(estimate.begin(), estimate.end()) - estimate.begin()];
}

std::vector<MappingReduction::CoreEdge> MappingReduction::CoreEdges() const {
  std::vector<CoreEdge> edges;
  for (int m = 0; m < static_cast<int>(nodes_.size()); ++m) {
    for (int c : live_[m]) {
      if (composites_[c].a != m) continue;
      edges.push_back({m, composites_[c].b, &Us(c, 0)});
    }
  }
  return edges;
}

float MappingReduction::IsolatedUs() const {
  float sum = 0;
  for (const Fold& fold : folds_) {
    if (fold.node < 0 || fold.neighbour >= 0) continue;
    float best = kImpossibleUs;
    for (int k : WholeChoices(fold.node)) best = std::min(best, nodes_[fold.node].us[k]);
    sum += best;
  }
  return sum;
}

CostTable MappingReduction::Table() const {
  const auto& t = terminals_;
  const auto size = [&](size_t i) {
    return t.size() > i ? static_cast<int>(nodes_[t[i]].us.size()) : 1;
  };
  CostTable table(size(0), size(1), kImpossibleUs);
  const float isolated_us = IsolatedUs();
  if (t.empty()) {
    table.us[0] = isolated_us;
    return table;
  }
  const auto& rows = WholeChoices(t[0]);
  const std::vector<int> one = {0};
  const auto& cols = t.size() > 1 ? WholeChoices(t[1]) : one;
  TablePointer between;
  if (t.size() > 1 && !live_[t[0]].empty()) between = Towards(live_[t[0]][0], t[1], 0);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < cols.size(); ++c) {
      float us = isolated_us + nodes_[t[0]].us[rows[r]];
      if (t.size() > 1) us += nodes_[t[1]].us[cols[c]];
      if (between != nullptr) us += between->at(static_cast<int>(r), static_cast<int>(c));
      table.at(rows[r], cols[c]) = us;
    }
  }
  return table;
}

}  // namespace isomer
