#include "generator/enumeration/work_items.h"

#include <algorithm>
#include <functional>
#include <set>

#include "pcg/ir/operator_traits.h"

namespace isomer {
namespace {

// Operators that take more operands than this take those of the types of inputs: all lists of so
// many types are too many.
constexpr int kMostOperandsOfAnyType = 3;

}  // namespace

void WorkItem::ForEach(const TermStore& store,
                       absl::FunctionRef<void(const TensorList&)> visit) const {
  for (const TensorList& tuple : tuples) visit(tuple);
  if (first == nullptr) return;
  if (second == nullptr) {
    for (int a : *first) visit({a});
    return;
  }
  for (int a : *first) {
    for (int b : *second) {
      if (commutative) {
        const int order = store[a].orbit - store[b].orbit;
        if (order > 0 || (order == 0 && both_orders && a > b)) continue;
      }
      if (may_share && store.ShareNodes(a, b)) continue;
      visit({a, b});
    }
  }
}

std::vector<WorkItem> WorkPlanner::Plan(int size, bool linear) {
  std::vector<WorkItem> items;
  if (!linear) CollectSharingPairs(size);
  for (size_t o = 0; o < calls_->operators().size(); ++o) {
    const int op = static_cast<int>(o);
    const OpKind kind = calls_->operators()[o].kind();
    // A fusion of inputs: what is true of fusions of other terms follows by undoing them.
    if (kind == OpKind::kLinear && size > 1) continue;
    const int fewest = MinOperands(kind);
    const int most = std::min(MaxOperands(kind), std::max(fewest, configuration_.most_operands));
    for (int arity = fewest; arity <= most; ++arity) {
      if (arity == 1) PlanUnary(op, size, linear, &items);
      if (arity == 2) {
        PlanPairs(op, size, linear, &items);
        if (!linear) PlanSharingPairs(op, &items);
      }
      if (arity > 2) {
        PlanTuples(op, arity, size, linear, &items);
        if (!linear) PlanSharingTuples(op, arity, size, &items);
      }
    }
  }
  return items;
}

void WorkPlanner::PlanUnary(int op, int size, bool linear, std::vector<WorkItem>* items) {
  for (const auto& [type, groups] : store_->OfSize(size - 1)) {
    const EnumeratedCall* call = calls_->Find(op, {type});
    if (call == nullptr) continue;
    for (const auto& [key, tensors] : groups) {
      if (key.linear != linear || !store_->namings().IsCanonical(key.naming)) continue;
      WorkItem item;
      item.call = call;
      item.naming = key.naming;
      item.linear = linear;
      item.first = &tensors;
      items->push_back(std::move(item));
    }
  }
}

void WorkPlanner::PlanPairs(int op, int size, bool linear, std::vector<WorkItem>* items) {
  const bool commutative = IsCommutative(calls_->operators()[op].kind());
  Namings& namings = store_->namings();
  for (int a_size = 0; a_size < size; ++a_size) {
    const int b_size = size - 1 - a_size;
    if (commutative && a_size > b_size) continue;  // Orbits are numbered by size.
    for (const auto& [a_type, a_groups] : store_->OfSize(a_size)) {
      for (const auto& [b_type, b_groups] : store_->OfSize(b_size)) {
        const EnumeratedCall* call = calls_->Find(op, {a_type, b_type});
        if (call == nullptr) continue;
        for (const auto& [a_key, as] : a_groups) {
          if (!namings.IsCanonical(a_key.naming)) continue;
          for (const auto& [b_key, bs] : b_groups) {
            const bool disjoint = namings.AreDisjoint(a_key.naming, b_key.naming);
            if ((a_key.linear && b_key.linear && disjoint) != linear) continue;
            const NamingId naming = namings.Join(a_key.naming, b_key.naming);
            if (!namings.IsCanonical(naming)) continue;
            WorkItem item;
            item.call = call;
            item.naming = naming;
            item.linear = linear;
            item.first = &as;
            item.second = &bs;
            item.may_share = a_size > 0 && b_size > 0 && !disjoint;
            item.commutative = commutative;
            item.both_orders = namings.IsCanonical(b_key.naming) &&
                               namings.IsCanonical(namings.Join(b_key.naming, a_key.naming));
            items->push_back(std::move(item));
          }
        }
      }
    }
  }
}

void WorkPlanner::PlanSharingPairs(int op, std::vector<WorkItem>* items) {
  const bool commutative = IsCommutative(calls_->operators()[op].kind());
  for (const auto& [types, pairs] : sharing_) {
    const EnumeratedCall* call = calls_->Find(op, {types.first, types.second});
    if (call == nullptr) continue;
    WorkItem item;
    item.call = call;
    for (const TensorList& pair : pairs) {
      if (commutative) {
        const int a = pair[0], b = pair[1];
        const int order = (*store_)[a].orbit - (*store_)[b].orbit;
        if (order > 0) continue;
        Namings& namings = store_->namings();
        const NamingId exchanged = namings.Join((*store_)[b].naming, (*store_)[a].naming);
        const bool both =
            namings.IsCanonical((*store_)[b].naming) && namings.IsCanonical(exchanged);
        if (order == 0 && both && a > b) continue;
      }
      item.tuples.push_back(pair);
    }
    items->push_back(std::move(item));
  }
}

void WorkPlanner::AddSharingPair(int a, int b) {
  const KeptTensor &first = (*store_)[a], &second = (*store_)[b];
  Namings& namings = store_->namings();
  if (!namings.IsCanonical(first.naming)) return;
  if (!namings.IsCanonical(namings.Join(first.naming, second.naming))) return;
  sharing_[{first.type, second.type}].push_back({a, b});
}

void WorkPlanner::CollectSharingPairs(int size) {
  if (size == sharing_size_) return;
  sharing_size_ = size;
  sharing_.clear();
  if (size < 2) return;
  // One is part of the other.
  ForEachOfSize(size - 1, [&](int a) {
    for (int node : store_->NodesOf(a)) {
      const int outputs = static_cast<int>(store_->NumOutputs(node));
      for (int t = 0; t < outputs; ++t) {
        const int b = store_->OutputOf(node, t);
        if (b < 0) continue;
        AddSharingPair(a, b);
        // A tensor of the same size has its own turn.
        if (b != a && (*store_)[b].size < size - 1) AddSharingPair(b, a);
      }
    }
  });
  // Each has nodes that the other has not: they meet where what they may share is listed.
  for (int a_size = 2; a_size < size - 1; ++a_size) {
    for (int b_size = 2; b_size < size - 1; ++b_size) {
      const int shared = a_size + b_size - (size - 1);
      if (shared < 1) continue;
      const SharedParts as = PartsOfSize(a_size, shared);
      const SharedParts bs = a_size == b_size ? as : PartsOfSize(b_size, shared);
      for (const auto& [part, tensors] : as) {
        const auto others = bs.find(part);
        if (others == bs.end()) continue;
        for (int a : tensors) {
          if (!store_->namings().IsCanonical((*store_)[a].naming)) continue;
          for (int b : others->second) {
            if (NumCommonNodes(store_->NodesOf(a), store_->NodesOf(b)) == shared) {
              AddSharingPair(a, b);
            }
          }
        }
      }
    }
  }
}

void WorkPlanner::ForEachOfSize(int size, absl::FunctionRef<void(int)> visit) const {
  for (const auto& [type, groups] : store_->OfSize(size)) {
    for (const auto& [key, tensors] : groups) {
      for (int tensor : tensors) visit(tensor);
    }
  }
}

void WorkPlanner::CollectContaining(int size) {
  if (size == containing_size_) return;
  containing_size_ = size;
  containing_.clear();
  for (int smaller = 1; smaller < size; ++smaller) {
    ForEachOfSize(smaller, [&](int tensor) {
      for (int node : store_->NodesOf(tensor)) containing_[node].push_back(tensor);
    });
  }
}

WorkPlanner::TypeLists WorkPlanner::BeginningsOfCalls(int op, int arity, int size) const {
  std::set<int> known;
  const int sizes = arity > kMostOperandsOfAnyType ? 1 : size;
  for (int smaller = 0; smaller < sizes; ++smaller) {
    for (const auto& [type, unused] : store_->OfSize(smaller)) known.insert(type);
  }
  TypeLists beginnings;
  std::vector<int> types;
  std::function<bool()> extend = [&] {
    if (static_cast<int>(types.size()) == arity) return calls_->Find(op, types) != nullptr;
    bool any = false;
    for (int type : known) {
      types.push_back(type);
      if (extend()) {
        beginnings.insert(types);
        any = true;
      }
      types.pop_back();
    }
    return any;
  };
  extend();
  return beginnings;
}

WorkPlanner::SharedParts WorkPlanner::PartsOfSize(int size, int part_size) const {
  SharedParts parts;
  ForEachOfSize(size, [&](int tensor) {
    const absl::Span<const int> nodes = store_->NodesOf(tensor);
    std::vector<int> part;
    std::function<void(size_t)> extend = [&](size_t from) {
      if (static_cast<int>(part.size()) == part_size) {
        parts[part].push_back(tensor);
        return;
      }
      for (size_t i = from; i < nodes.size(); ++i) {
        if (!HasOperandsOf(nodes[i], part)) continue;
        part.push_back(nodes[i]);
        extend(i + 1);
        part.pop_back();
      }
    };
    extend(0);
  });
  return parts;
}

bool WorkPlanner::HasOperandsOf(int node, const std::vector<int>& nodes) const {
  const TensorList& operands = store_->nodes().nodes[node].operands;
  return std::all_of(operands.begin(), operands.end(), [&](int operand) {
    const PatternRef definition = store_->nodes().tensors[operand];
    return definition.node < 0 ||
           std::find(nodes.begin(), nodes.end(), definition.node) != nodes.end();
  });
}

void WorkPlanner::PlanTuples(int op, int arity, int size, bool linear,
                             std::vector<WorkItem>* items) {
  struct Choice {
    std::vector<int> types;
    std::vector<const std::vector<int>*> lists;
    NamingId naming = -1;
    bool linear = true;
  };
  Namings& namings = store_->namings();
  const TypeLists beginnings = BeginningsOfCalls(op, arity, size);
  auto expand = [&](const EnumeratedCall* call, const Choice& choice) {
    WorkItem item;
    item.call = call;
    item.naming = choice.naming;
    item.linear = linear;
    TensorList tuple;
    std::function<void(size_t)> extend = [&](size_t next) {
      if (next == choice.lists.size()) {
        item.tuples.push_back(tuple);
        return;
      }
      for (int tensor : *choice.lists[next]) {
        const bool shares = std::any_of(tuple.begin(), tuple.end(), [&](int other) {
          return store_->ShareNodes(tensor, other);
        });
        if (shares) continue;
        tuple.push_back(tensor);
        extend(next + 1);
        tuple.pop_back();
      }
    };
    extend(0);
    if (!item.tuples.empty()) items->push_back(std::move(item));
  };
  std::function<void(int, const Choice&)> choose = [&](int left, const Choice& choice) {
    if (static_cast<int>(choice.lists.size()) == arity) {
      if (left != 0 || choice.linear != linear) return;
      const EnumeratedCall* call = calls_->Find(op, choice.types);
      if (call != nullptr) expand(call, choice);
      return;
    }
    for (int operand_size = 0; operand_size <= left; ++operand_size) {
      for (const auto& [type, groups] : store_->OfSize(operand_size)) {
        for (const auto& [key, tensors] : groups) {
          Choice next = choice;
          next.types.push_back(type);
          next.lists.push_back(&tensors);
          const bool first = choice.naming < 0;
          next.linear &= key.linear && (first || namings.AreDisjoint(choice.naming, key.naming));
          next.naming = first ? key.naming : namings.Join(choice.naming, key.naming);
          if (!beginnings.contains(next.types)) break;
          if (namings.IsCanonical(next.naming)) choose(left - operand_size, next);
        }
      }
    }
  };
  choose(size - 1, {});
}

void WorkPlanner::PlanSharingTuples(int op, int arity, int size, std::vector<WorkItem>* items) {
  CollectContaining(size);
  Namings& namings = store_->namings();
  const TypeLists beginnings = BeginningsOfCalls(op, arity, size);
  std::map<std::vector<int>, WorkItem> by_types;
  std::vector<int> types;
  TensorList tuple;
  // `nodes`: those that the tuple so far needs.
  std::function<void(const std::vector<int>&, NamingId, bool)> extend;
  auto add = [&](int tensor, const std::vector<int>& nodes, NamingId naming, bool shares) {
    const KeptTensor& kept = (*store_)[tensor];
    const NamingId joined = naming < 0 ? kept.naming : namings.Join(naming, kept.naming);
    if (!namings.IsCanonical(joined)) return;
    types.push_back(kept.type);
    if (beginnings.contains(types)) {
      tuple.push_back(tensor);
      extend(UnionOfNodes(nodes, store_->NodesOf(tensor)), joined, shares);
      tuple.pop_back();
    }
    types.pop_back();
  };
  extend = [&](const std::vector<int>& nodes, NamingId naming, bool shares) {
    const int left = size - 1 - static_cast<int>(nodes.size());
    const bool complete = static_cast<int>(tuple.size()) == arity;
    if (complete && left == 0 && shares) {
      WorkItem& item = by_types[types];
      item.call = calls_->Find(op, types);
      item.tuples.push_back(tuple);
    }
    if (complete) return;
    const bool is_last = static_cast<int>(tuple.size()) + 1 == arity;
    for (int fresh = is_last ? left : 0; fresh <= left && (shares || !is_last); ++fresh) {
      ForEachOfSize(fresh, [&](int tensor) {
        if (NumCommonNodes(nodes, store_->NodesOf(tensor)) == 0) add(tensor, nodes, naming, shares);
      });
    }
    for (int node : nodes) {
      for (int tensor : containing_[node]) {
        const absl::Span<const int> others = store_->NodesOf(tensor);
        const int fresh = static_cast<int>(others.size()) - NumCommonNodes(nodes, others);
        if (fresh > left || (is_last && fresh < left)) continue;
        // Once: where its first common node has its turn.
        const int first = *std::find_if(others.begin(), others.end(), [&](int other) {
          return std::binary_search(nodes.begin(), nodes.end(), other);
        });
        if (first == node) add(tensor, nodes, naming, true);
      }
    }
  };
  extend({}, -1, false);
  for (auto& [unused, item] : by_types) items->push_back(std::move(item));
}

}  // namespace isomer
