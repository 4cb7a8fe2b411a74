#include "optimizer/sharding_choice.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"
#include "rules/rewrite.h"

namespace isomer {
namespace {

struct PlacedAxis {
  int dim;
  int64_t degree;  // over devices
  int64_t stride;
  int64_t moments;
};

// The axes of a choice on the machine, outermost first. The moments of a dim that no axis splits
// are an axis of one device.
std::vector<PlacedAxis> PlaceAxes(const ChoiceSpace& space, const std::vector<Axis>& axes) {
  std::vector<PlacedAxis> placed;
  int64_t stride = 1;
  bool has_moments = false;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const bool here = space.moments > 1 && axis->dim == space.moment_dim;
    has_moments |= here;
    placed.push_back({axis->dim, axis->degree, stride, here ? space.moments : 1});
    stride *= axis->degree;
  }
  std::reverse(placed.begin(), placed.end());
  if (space.moment_dim >= 0 && space.moments > 1 && !has_moments) {
    placed.push_back({space.moment_dim, 1, 0, space.moments});
  }
  return placed;
}

struct Coordinate {
  int64_t stride = 0, moments = 1;
};

// One coordinate made of `axes` (slowest first), or an error. Its moments count fastest.
absl::StatusOr<Coordinate> Merged(const std::vector<PlacedAxis>& axes) {
  Coordinate merged;
  int64_t reach = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    merged.moments *= axis->moments;
    if (axis->degree == 1) continue;
    if (reach != 0 && axis->stride != reach) {
      return absl::InvalidArgumentError("axes that make one coordinate are not neighbours");
    }
    if (reach == 0) merged.stride = axis->stride;
    reach = axis->stride * axis->degree;
  }
  return merged;
}

class ViewBuilder {
 public:
  ViewBuilder(const std::vector<PlacedAxis>& axes, int64_t start) : axes_(axes), view_{start, {}} {}

  void AddDim(int lead) {
    for (const PlacedAxis& axis : axes_) {
      if (lead >= 0 && axis.dim == lead)
        return Add({axis.degree > 1 ? axis.stride : 0, axis.moments});
    }
    Add({});
  }
  void Add(const Coordinate& coordinate) {
    view_.strides.push_back(coordinate.stride);
    moments_.push_back(coordinate.moments);
    has_moments_ |= coordinate.moments > 1;
  }
  MachineView Build() {
    if (has_moments_) view_.moments = std::move(moments_);
    return std::move(view_);
  }

 private:
  const std::vector<PlacedAxis>& axes_;
  MachineView view_;
  std::vector<int64_t> moments_;
  bool has_moments_ = false;
};

bool Mentions(const std::vector<int>& leads, int dim) {
  return std::find(leads.begin(), leads.end(), dim) != leads.end();
}

absl::StatusOr<MachineView> OperandView(const std::vector<int>& leads,
                                        const std::vector<PlacedAxis>& axes, int64_t start) {
  ViewBuilder view(axes, start);
  for (int lead : leads) view.AddDim(lead);
  std::vector<PlacedAxis> sharers;
  for (const PlacedAxis& axis : axes) {
    if (axis.dim >= 0 && !Mentions(leads, axis.dim)) sharers.push_back(axis);
  }
  ISOMER_ASSIGN_OR_RETURN(const Coordinate copies, Merged(sharers));
  view.Add(copies);
  view.Add({});
  return view.Build();
}

absl::StatusOr<MachineView> OutputView(const Declaration& d, const std::vector<int>& leads,
                                       const std::vector<PlacedAxis>& axes, int64_t start) {
  ViewBuilder view(axes, start);
  for (int lead : leads) view.AddDim(lead);
  view.Add({});
  // The partial coordinate counts the sum dims in the order of their declaration.
  std::vector<PlacedAxis> sums;
  for (int v = 0; v < static_cast<int>(d.dims.size()); ++v) {
    if (d.dims[v].kind != DimKind::kSum) continue;
    for (const PlacedAxis& axis : axes) {
      if (axis.dim != v) continue;
      if (!sums.empty() && sums.back().moments > 1) {
        return absl::InvalidArgumentError("micro-batches do not count fastest");
      }
      sums.push_back(axis);
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const Coordinate partials, Merged(sums));
  view.Add(partials);
  return view.Build();
}

// Types of a call with these degrees of its iteration dims: what OperandTypesFor and InferSharding
// say, off the declaration at hand. Errors: a degree that does not divide.
absl::Status TypesOf(const ChoiceSpace& space, const std::vector<int64_t>& degrees,
                     ShardingChoice* choice) {
  const Declaration& d = space.sharding.declaration;
  const int dims = static_cast<int>(d.dims.size());
  for (int v = 0; v < dims; ++v) {
    if (degrees[v] > 1 && d.dims[v].size.value() % degrees[v] != 0) {
      return absl::InvalidArgumentError("a degree does not divide");
    }
  }
  auto split = [&](const std::vector<int>& leads, TensorType* type) {
    for (int i = 0; i < type->rank(); ++i) {
      type->dims[i].degree = leads[i] < 0 ? 1 : degrees[leads[i]];
    }
  };
  for (size_t o = 0; o < space.operands.size(); ++o) {
    TensorType type = SequentialType(space.operands[o].Sizes(), space.operands[o].dtype);
    split(space.operand_leads[o], &type);
    for (int v = 0; v < dims; ++v) {
      if (degrees[v] > 1 && !Mentions(space.operand_leads[o], v)) type.copies *= degrees[v];
    }
    ISOMER_RETURN_IF_ERROR(ValidateTensorType(type));
    choice->operands.push_back({std::move(type), {}});
  }
  for (size_t t = 0; t < space.sharding.outputs.size(); ++t) {
    TensorType type = space.sharding.outputs[t];
    split(space.output_leads[t], &type);
    for (int v = 0; v < dims; ++v) {
      if (d.dims[v].kind == DimKind::kSum) type.partials *= degrees[v];
    }
    ISOMER_RETURN_IF_ERROR(ValidateTensorType(type));
    choice->outputs.push_back({std::move(type), {}});
  }
  return absl::OkStatus();
}

// Applies the expansions of `choice` to a graph of the call alone: the rules' own conditions decide
// whether the choice can be derived.
absl::Status TryDerivation(const ChoiceSpace& space, const ShardingChoice& choice) {
  ISOMER_ASSIGN_OR_RETURN(Graph graph, GraphOfCall(space.op, space.operands));
  ISOMER_ASSIGN_OR_RETURN(
      const SplitCall call,
      SplitByRules(space, choice, NodeId{graph.num_nodes() - 1}, &graph, nullptr));
  for (size_t j = 0; j < call.order.size(); ++j) {
    if (graph.type(graph.node(call.id).inputs[j]) != choice.operands[call.order[j]].type) {
      return absl::InternalError("the rules split this otherwise");
    }
  }
  return absl::OkStatus();
}

// Divisors of n above 1.
std::vector<int64_t> Divisors(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 2; d <= n; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return divisors;
}

class Enumerator {
 public:
  Enumerator(const ChoiceOptions& options, ChoiceSpace* space) : options_(options), space_(*space) {
    for (const Expansion& split : space_.expansions.splits) kinds_.push_back(split.dim);
    kinds_.push_back(kIdleAxis);
  }

  void Run() {
    std::vector<Axis> axes;
    Extend(options_.num_devices, &axes);
    int64_t most = 1;
    for (const ShardingChoice& choice : space_.choices) most = std::max(most, Split(choice));
    std::erase_if(space_.choices, [&](const ShardingChoice& choice) {
      return choice.DegreeOf(kIdleAxis) > 1 && Split(choice) < most;
    });
  }

 private:
  static int64_t Split(const ShardingChoice& choice) {
    int64_t product = 1;
    for (int64_t degree : choice.degrees) product *= degree;
    return product;
  }

  void Extend(int64_t left, std::vector<Axis>* axes) {
    if (left == 1) {
      auto choice = MakeChoice(space_, *axes, options_.start);
      if (choice.ok() && TryDerivation(space_, *choice).ok()) {
        space_.choices.push_back(*std::move(choice));
      }
      return;
    }
    if (static_cast<int>(axes->size()) == options_.max_axes) return;
    for (int kind : kinds_) {
      const bool used = std::any_of(axes->begin(), axes->end(),
                                    [kind](const Axis& axis) { return axis.dim == kind; });
      if (used) continue;
      for (int64_t degree : Divisors(left)) {
        axes->push_back({kind, degree});
        Extend(left / degree, axes);
        axes->pop_back();
      }
    }
  }

  const ChoiceOptions& options_;
  ChoiceSpace& space_;
  std::vector<int> kinds_;
};

}  // namespace

int64_t ShardingChoice::DegreeOf(int axis) const {
  for (const Axis& a : axes) {
    if (a.dim == axis) return a.degree;
  }
  return 1;
}

std::string ShardingChoice::ToString(const Declaration& declaration) const {
  if (axes.empty()) return "whole";
  return absl::StrJoin(axes, " x ", [&](std::string* out, const Axis& axis) {
    absl::StrAppend(out, axis.dim == kIdleAxis ? "idle" : declaration.dims[axis.dim].name, " ",
                    axis.degree);
  });
}

absl::StatusOr<ShardingChoice> MakeChoice(const ChoiceSpace& space, std::vector<Axis> axes,
                                          int64_t start) {
  const Declaration& d = space.sharding.declaration;
  ShardingChoice choice;
  choice.start = start;
  choice.moments = space.moments;
  choice.moment_dim = space.moment_dim;
  choice.degrees.assign(d.dims.size(), 1);
  std::erase_if(axes, [](const Axis& axis) { return axis.degree == 1; });
  for (const Axis& axis : axes) {
    if (axis.dim >= 0) choice.degrees[axis.dim] = axis.degree;
  }
  if (space.moment_dim >= 0) choice.degrees[space.moment_dim] *= space.moments;
  for (int v = 0; v < static_cast<int>(choice.degrees.size()); ++v) {
    if (choice.degrees[v] > 1 && space.expansions.SplitOf(v) == nullptr) {
      return absl::NotFoundError("no rule splits this dim");
    }
  }
  ISOMER_RETURN_IF_ERROR(TypesOf(space, choice.degrees, &choice));
  const std::vector<PlacedAxis> placed = PlaceAxes(space, axes);
  for (size_t o = 0; o < choice.operands.size(); ++o) {
    ISOMER_ASSIGN_OR_RETURN(choice.operands[o].view,
                            OperandView(space.operand_leads[o], placed, start));
  }
  for (size_t t = 0; t < choice.outputs.size(); ++t) {
    ISOMER_ASSIGN_OR_RETURN(choice.outputs[t].view,
                            OutputView(d, space.output_leads[t], placed, start));
  }
  choice.axes = std::move(axes);
  return choice;
}

absl::StatusOr<SplitCall> SplitByRules(const ChoiceSpace& space, const ShardingChoice& choice,
                                       NodeId call, Graph* graph,
                                       std::vector<DerivationStep>* steps) {
  SplitCall result{call, {}};
  result.order.resize(space.operands.size());
  std::iota(result.order.begin(), result.order.end(), 0);
  std::vector<int> dims;
  for (const Axis& axis : choice.axes) {
    if (axis.dim != kIdleAxis) dims.push_back(axis.dim);
  }
  if (choice.moments > 1 && std::find(dims.begin(), dims.end(), choice.moment_dim) == dims.end()) {
    dims.push_back(choice.moment_dim);
  }
  for (int dim : dims) {
    const Expansion* split = space.expansions.SplitOf(dim);
    if (split == nullptr) return absl::NotFoundError("no rule splits this dim");
    DerivationStep step = StepAt(*split, *graph, result.id, choice.degrees[dim], result.order);
    const int first = graph->num_nodes();
    ISOMER_RETURN_IF_ERROR(ApplyStep(*split->rule, step, graph));
    if (steps != nullptr) steps->push_back(std::move(step));
    result = {NodeId{first + split->inner}, split->order};
  }
  return result;
}

absl::StatusOr<ChoiceSpace> EnumerateChoices(const RuleIndex& rules, const Operator& op,
                                             absl::Span<const TensorType> operands,
                                             const ChoiceOptions& options) {
  ChoiceSpace space;
  space.op = op;
  space.operands.assign(operands.begin(), operands.end());
  ISOMER_ASSIGN_OR_RETURN(space.sharding, InferSharding(op, operands));
  space.expansions = FindExpansions(rules, op, operands);
  const Declaration& d = space.sharding.declaration;
  for (int o = 0; o < static_cast<int>(d.operands.size()); ++o) {
    std::vector<int>& leads = space.operand_leads.emplace_back();
    for (int i = 0; i < static_cast<int>(d.operands[o].size()); ++i) {
      leads.push_back(d.LeadOfOperandDim(o, i));
    }
  }
  for (int t = 0; t < static_cast<int>(d.outputs.size()); ++t) {
    std::vector<int>& leads = space.output_leads.emplace_back();
    for (int i = 0; i < static_cast<int>(d.outputs[t].size()); ++i) {
      leads.push_back(d.LeadOfOutputDim(t, i));
    }
  }
  if (options.moments > 1 && options.moment_dim >= 0 &&
      space.expansions.SplitOf(options.moment_dim) != nullptr) {
    space.moments = options.moments;
    space.moment_dim = options.moment_dim;
  }
  Enumerator(options, &space).Run();
  return space;
}

}  // namespace isomer
