#include "generator/enumeration/derived_configurations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "generator/assignments/attribute_domains.h"
#include "generator/assignments/sample_calls.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/ir/type_inference.h"
#include "rules/language/rule.h"

namespace isomer {
namespace {

using Types = std::vector<TensorType>;

// Inputs of the main type: as many as two calls of a binary operator take.
constexpr int kMainInputs = 3;
constexpr int64_t kDegree = 2;
// Operators that a world is connected with are those of its types and of results of theirs.
constexpr int kStepsAround = 2;
// Operators of more operands are enumerated in worlds of their own alone: in others they would make
// most of the terms.
constexpr size_t kOperandsAnywhere = 2;

template <typename T>
void AddOnce(const T& item, std::vector<T>* list) {
  if (std::find(list->begin(), list->end(), item) == list->end()) list->push_back(item);
}

// Results of few values, truth values and indices, are equal by chance before they are by law.
bool HasFewValues(OpKind kind) {
  const OperatorTraits& traits = TraitsOf(kind);
  const auto few = [](ResultType result) {
    return result == ResultType::kBool || result == ResultType::kInt64;
  };
  return few(traits.result) || (traits.most_outputs > 1 && few(traits.other_results));
}

int HighestRank(const OperatorCall& call) {
  int rank = 0;
  for (const TensorType& type : call.operands) rank = std::max(rank, type.rank());
  return rank;
}

// Of a matrix.
constexpr int kRank = 2;

// Sample calls of a kind, and what they are on the last dims of operands, matrices, where the
// operator takes these.
std::vector<OperatorCall> CallsOfMatrices(OpKind kind) {
  std::vector<OperatorCall> calls = SampleCalls(kind);
  for (const OperatorCall& call : SampleCalls(kind)) {
    OperatorCall cut = call;
    for (TensorType& type : cut.operands) {
      if (type.rank() > kRank) type.dims.erase(type.dims.begin(), type.dims.end() - kRank);
    }
    AddOnce(cut, &calls);
  }
  return calls;
}

std::vector<OperatorCall> SquareCalls(OpKind kind) {
  std::vector<OperatorCall> calls;
  for (const OperatorCall& call : CallsOfMatrices(kind)) {
    for (const OperatorCall& square : CallsOverDomains(call)) AddOnce(square, &calls);
  }
  return calls;
}

// Those that make worlds: of the lowest rank from that of matrices on that the operator takes; and
// one of many operands, which it would broadcast in many ways.
std::vector<OperatorCall> CallsOfWorlds(const std::vector<OperatorCall>& calls) {
  int lowest = 0;
  for (const OperatorCall& call : calls) {
    const int rank = HighestRank(call);
    if (rank >= kRank && (lowest == 0 || rank < lowest)) lowest = rank;
  }
  std::vector<OperatorCall> chosen;
  bool has_many = false;
  for (const OperatorCall& call : calls) {
    if (HighestRank(call) != lowest) continue;
    const bool is_of_many = call.operands.size() > kOperandsAnywhere;
    if (!is_of_many || !has_many) chosen.push_back(call);
    has_many |= is_of_many;
  }
  return chosen;
}

// The calls of operators that enumeration can tell apart, by kind.
using CallsOfKinds = std::map<OpKind, std::vector<OperatorCall>>;
CallsOfKinds SquareCalls(const std::set<OpKind>& kinds) {
  CallsOfKinds calls;
  for (OpKind kind : kinds) {
    if (!IsLeaf(kind) && !IsParallel(kind) && !HasFewValues(kind)) calls[kind] = SquareCalls(kind);
  }
  return calls;
}

// The operands of a call with `dim` split, as the declaration asks for.
Types Split(const OperatorCall& call, const SplittableDim& dim) {
  Types types = call.operands;
  for (size_t o = 0; o < types.size(); ++o) {
    const std::optional<int64_t>& axis = dim.operand_axes[o];
    if (axis.has_value()) {
      types[o].dims[*axis < 0 ? *axis + types[o].rank() : *axis].degree = kDegree;
    } else {
      types[o].copies = kDegree;
    }
  }
  return types;
}

// What the operands of a call may be: sequential; where `parallel`, matrices also split in each of
// the dims of the call, or partial sums. (At higher ranks there are too many ways to hold them.)
std::vector<Types> HeldOperands(const OperatorCall& call, bool parallel) {
  std::vector<Types> held = {call.operands};
  if (!parallel || HighestRank(call) > kRank || call.operands.size() > kOperandsAnywhere) {
    return held;
  }
  for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
    held.push_back(Split(call, dim));
  }
  const absl::StatusOr<Declaration> declaration = DeclarationOf(call);
  for (const std::vector<int>& set : LinearOperandSets(*declaration)) {
    Types types = call.operands;
    for (int operand : set) types[operand].partials = kDegree;
    held.push_back(types);
  }
  std::erase_if(held, [&](const Types& types) { return !InferTypes(call.op, types).ok(); });
  return held;
}

// The types of the operands, and more of the main one, the first of the largest that hold numbers;
// sorted.
Types WorldOf(const OperatorCall& call, const Types& operands) {
  Types world = operands;
  const TensorType* main = nullptr;
  for (size_t o = 0; o < operands.size(); ++o) {
    if (!HoldsValues(call.op.kind(), static_cast<int>(o))) continue;
    if (main == nullptr || operands[o].rank() > main->rank()) main = &operands[o];
  }
  if (main != nullptr) {
    for (auto has = std::count(operands.begin(), operands.end(), *main); has < kMainInputs; ++has) {
      world.push_back(*main);
    }
  }
  std::sort(world.begin(), world.end(),
            [](const TensorType& a, const TensorType& b) { return a.ToString() < b.ToString(); });
  return world;
}

bool IsPartOf(const Types& part, const Types& world) {
  return std::all_of(part.begin(), part.end(), [&](const TensorType& type) {
    return std::count(part.begin(), part.end(), type) <=
           std::count(world.begin(), world.end(), type);
  });
}

// Worlds of all calls that are part of no other.
std::vector<Types> Worlds(const CallsOfKinds& calls, bool parallel) {
  std::vector<Types> worlds, largest;
  for (const auto& [kind, of_kind] : calls) {
    for (const OperatorCall& call : CallsOfWorlds(of_kind)) {
      for (const Types& operands : HeldOperands(call, parallel)) {
        AddOnce(WorldOf(call, operands), &worlds);
      }
    }
  }
  for (const Types& world : worlds) {
    if (std::none_of(worlds.begin(), worlds.end(), [&](const Types& other) {
          return other != world && IsPartOf(world, other);
        })) {
      largest.push_back(world);
    }
  }
  return largest;
}

std::vector<Operator> ParallelOperators(const std::set<OpKind>& kinds, const Types& world) {
  int rank = 0;
  for (const TensorType& type : world) rank = std::max(rank, type.rank());
  std::vector<Operator> all = {Replicate(kDegree), Reduce(kDegree),
                               Operator(OpKind::kConcatPartials)};
  for (int64_t axis = -1; axis >= -rank; --axis) {
    all.push_back(Partition(axis, kDegree));
    all.push_back(Combine(axis, kDegree));
  }
  std::erase_if(all, [&](const Operator& op) { return kinds.count(op.kind()) == 0; });
  return all;
}

// With the degrees that tensors are held in, dims alone are as they were.
Types Sequential(const Types& types) {
  Types sequential;
  for (const TensorType& type : types) {
    TensorType plain = SequentialType(type.Sizes());
    plain.dtype = type.dtype;
    sequential.push_back(plain);
  }
  return sequential;
}

bool HasTypesOf(const OperatorCall& call, const Types& world) {
  return std::all_of(world.begin(), world.end(), [&](const TensorType& type) {
    return std::find(call.operands.begin(), call.operands.end(), type) != call.operands.end();
  });
}

// Operators that have a call on tensors of the world, or on what operators make of them.
std::vector<Operator> OperatorsAround(const CallsOfKinds& calls, const Types& held, int steps) {
  const Types world = Sequential(held);
  Types types;
  for (const TensorType& type : world) AddOnce(type, &types);
  std::vector<Operator> operators;
  for (int step = 0; step < steps; ++step) {
    const Types before = types;
    for (const auto& [kind, of_kind] : calls) {
      for (const OperatorCall& call : of_kind) {
        if (!std::all_of(call.operands.begin(), call.operands.end(), [&](const TensorType& type) {
              return std::find(before.begin(), before.end(), type) != before.end();
            })) {
          continue;
        }
        if (call.operands.size() > kOperandsAnywhere && !HasTypesOf(call, world)) continue;
        AddOnce(call.op, &operators);
        const absl::StatusOr<Types> results = InferTypes(call.op, call.operands);
        for (const TensorType& type : *results) AddOnce(type, &types);
      }
    }
  }
  return operators;
}

// Of operators that the world was made for: a Linear with its bias.
int MostOperands(const CallsOfKinds& calls, const Types& held) {
  const Types world = Sequential(held);
  size_t most = kOperandsAnywhere;
  for (const auto& [kind, of_kind] : calls) {
    for (const OperatorCall& call : of_kind) {
      if (HasTypesOf(call, world) && call.operands.size() == kOperandsAnywhere + 1) {
        most = call.operands.size();
      }
    }
  }
  return static_cast<int>(most);
}

std::string NameOf(const Types& world) {
  return absl::StrJoin(world, ", ", [](std::string* text, const TensorType& type) {
    absl::StrAppend(text, type.ToString());
  });
}

}  // namespace

std::vector<Configuration> DerivedConfigurations(const std::set<OpKind>& kinds, int max_operators) {
  const CallsOfKinds calls = SquareCalls(kinds);
  const bool parallel = std::any_of(kinds.begin(), kinds.end(), IsParallel);
  std::vector<Configuration> configurations;
  for (const Types& world : Worlds(calls, parallel)) {
    Configuration configuration;
    configuration.name = absl::StrCat("all on ", NameOf(world));
    configuration.inputs = world;
    configuration.operators = OperatorsAround(calls, world, kStepsAround);
    for (const Operator& op : ParallelOperators(kinds, world)) {
      configuration.operators.push_back(op);
    }
    configuration.max_operators = max_operators;
    configuration.most_operands = MostOperands(calls, world);
    configuration.skips_instances = true;
    configurations.push_back(std::move(configuration));
  }
  return configurations;
}

std::vector<Configuration> ChosenConfigurations(ConfigurationChoice choice,
                                                const std::set<OpKind>& kinds, int max_operators) {
  // Besides those that are written down, the derived ones say what these forgot: at the sizes at
  // which all operators can be taken together.
  constexpr int kOperatorsTogether = 2;
  std::vector<Configuration> chosen;
  if (choice != ConfigurationChoice::kDerived) chosen = Configurations(kinds, max_operators);
  if (choice == ConfigurationChoice::kWritten) return chosen;
  const int most = choice == ConfigurationChoice::kDerived
                       ? max_operators
                       : std::min(max_operators, kOperatorsTogether);
  for (Configuration& derived : DerivedConfigurations(kinds, most)) {
    chosen.push_back(std::move(derived));
  }
  return chosen;
}

}  // namespace isomer
