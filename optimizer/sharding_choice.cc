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
  int64_t degree;
  int64_t stride;
};

std::vector<PlacedAxis> PlaceAxes(const std::vector<Axis>& axes) {
  std::vector<PlacedAxis> placed;
  int64_t stride = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    placed.push_back({axis->dim, axis->degree, stride});
    stride *= axis->degree;
  }
  std::reverse(placed.begin(), placed.end());
  return placed;
}

int64_t StrideOf(const std::vector<PlacedAxis>& axes, int dim) {
  for (const PlacedAxis& axis : axes) {
    if (axis.dim == dim) return axis.stride;
  }
  return 0;
}

// The stride of one coordinate made of `axes` (slowest first), or an error.
absl::StatusOr<int64_t> MergedStride(const std::vector<PlacedAxis>& axes) {
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    if (axes[i].stride != axes[i + 1].stride * axes[i + 1].degree) {
      return absl::InvalidArgumentError("axes that make one coordinate are not neighbours");
    }
  }
  return axes.empty() ? 0 : axes.back().stride;
}

absl::StatusOr<MachineView> OperandView(const Declaration& d, int operand,
                                        const std::vector<PlacedAxis>& axes, int64_t start) {
  MachineView view{start, {}};
  std::vector<bool> indexed(d.dims.size(), false);
  for (int i = 0; i < static_cast<int>(d.operands[operand].size()); ++i) {
    const int lead = d.LeadOfOperandDim(operand, i);
    if (lead >= 0) indexed[lead] = true;
    view.strides.push_back(lead < 0 ? 0 : StrideOf(axes, lead));
  }
  std::vector<PlacedAxis> sharers;
  for (const PlacedAxis& axis : axes) {
    if (axis.dim >= 0 && !indexed[axis.dim]) sharers.push_back(axis);
  }
  ISOMER_ASSIGN_OR_RETURN(const int64_t copies_stride, MergedStride(sharers));
  view.strides.push_back(copies_stride);
  view.strides.push_back(0);
  return view;
}

absl::StatusOr<MachineView> OutputView(const Declaration& d, int output,
                                       const std::vector<PlacedAxis>& axes, int64_t start) {
  MachineView view{start, {}};
  for (int i = 0; i < static_cast<int>(d.outputs[output].size()); ++i) {
    const int lead = d.LeadOfOutputDim(output, i);
    view.strides.push_back(lead < 0 ? 0 : StrideOf(axes, lead));
  }
  view.strides.push_back(0);
  // The partial coordinate counts the sum dims in the order of their declaration.
  std::vector<PlacedAxis> sums;
  for (int v = 0; v < static_cast<int>(d.dims.size()); ++v) {
    if (d.dims[v].kind != DimKind::kSum) continue;
    for (const PlacedAxis& axis : axes) {
      if (axis.dim == v) sums.push_back(axis);
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const int64_t partials_stride, MergedStride(sums));
  view.strides.push_back(partials_stride);
  return view;
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
  choice.degrees.assign(d.dims.size(), 1);
  std::erase_if(axes, [](const Axis& axis) { return axis.degree == 1; });
  for (const Axis& axis : axes) {
    if (axis.dim >= 0) choice.degrees[axis.dim] = axis.degree;
    if (axis.dim >= 0 && space.expansions.SplitOf(axis.dim) == nullptr) {
      return absl::NotFoundError("no rule splits this dim");
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                          OperandTypesFor(space.op, space.operands, choice.degrees));
  ISOMER_ASSIGN_OR_RETURN(const Sharding sharding, InferSharding(space.op, types));
  const std::vector<PlacedAxis> placed = PlaceAxes(axes);
  for (int o = 0; o < static_cast<int>(types.size()); ++o) {
    ISOMER_ASSIGN_OR_RETURN(MachineView view, OperandView(d, o, placed, start));
    choice.operands.push_back({types[o], std::move(view)});
  }
  for (int o = 0; o < static_cast<int>(sharding.outputs.size()); ++o) {
    ISOMER_ASSIGN_OR_RETURN(MachineView view, OutputView(d, o, placed, start));
    choice.outputs.push_back({sharding.outputs[o], std::move(view)});
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
  for (const Axis& axis : choice.axes) {
    if (axis.dim == kIdleAxis) continue;
    const Expansion* split = space.expansions.SplitOf(axis.dim);
    if (split == nullptr) return absl::NotFoundError("no rule splits this dim");
    DerivationStep step = StepAt(*split, *graph, result.id, axis.degree, result.order);
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
  Enumerator(options, &space).Run();
  return space;
}

}  // namespace isomer
