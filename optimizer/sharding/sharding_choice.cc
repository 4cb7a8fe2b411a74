#include "optimizer/sharding/sharding_choice.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"
#include "rules/matching/rewrite.h"

namespace isomer {
namespace {

struct PlacedAxis {
  int dim;
  int64_t degree;  // over devices
  int64_t stride;
  int64_t moments;
};

// A choice's axes on the machine, outermost first. Micro-batches of a dim that no axis splits are
// an axis of one device.
std::vector<PlacedAxis> PlaceAxes(const ChoiceSpace& space, const std::vector<Axis>& axes) {
  std::vector<PlacedAxis> placed;
  int64_t stride = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    placed.push_back({axis->dim, axis->degree, stride, 1});
    stride *= axis->degree;
  }
  std::reverse(placed.begin(), placed.end());
  // The outermost axis of a dim that has two counts them.
  bool has_moments = false;
  for (PlacedAxis& axis : placed) {
    if (has_moments || space.moments == 1 || axis.dim != space.moment_dim) continue;
    axis.moments = space.moments;
    has_moments = true;
  }
  if (space.moment_dim >= 0 && space.moments > 1 && !has_moments) {
    placed.push_back({space.moment_dim, 1, 0, space.moments});
  }
  return placed;
}

struct Coordinate {
  absl::InlinedVector<ViewDigit, 2> digits = {};  // innermost first
  int64_t moments = 1;
};

// Merges `axes` (slowest first) into one coordinate of at most so many strides, or an error.
// Micro-batches vary slowest.
absl::StatusOr<Coordinate> Merged(const std::vector<PlacedAxis>& axes, size_t most_strides) {
  Coordinate merged;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    merged.moments *= axis->moments;
    if (axis->degree == 1) continue;
    if (!merged.digits.empty()) {
      ViewDigit& last = merged.digits.back();
      if (axis->stride == last.stride * last.extent) {
        last.extent *= axis->degree;
        continue;
      }
      if (axis->stride < last.stride * last.extent) {
        return absl::InvalidArgumentError("axes that make one coordinate are not in order");
      }
    }
    if (merged.digits.size() == most_strides) {
      return absl::InvalidArgumentError("axes that make one coordinate are not neighbours");
    }
    merged.digits.push_back({axis->stride, axis->degree});
  }
  return merged;
}

class ViewBuilder {
 public:
  ViewBuilder(const std::vector<PlacedAxis>& axes, int64_t start) : axes_(axes), view_{start, {}} {}

  absl::Status AddDim(int lead) {
    std::vector<PlacedAxis> of_dim;
    for (const PlacedAxis& axis : axes_) {
      if (lead >= 0 && axis.dim == lead) of_dim.push_back(axis);
    }
    ISOMER_ASSIGN_OR_RETURN(const Coordinate coordinate, Merged(of_dim, 2));
    Add(coordinate);
    return absl::OkStatus();
  }
  void Add(const Coordinate& coordinate) {
    const auto& digits = coordinate.digits;
    const auto axis = static_cast<int>(view_.strides.size());
    view_.strides.push_back(digits.empty() ? 0 : digits[0].stride);
    if (digits.size() == 2) view_.outer.push_back({axis, digits[0].extent, digits[1].stride});
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
  for (int lead : leads) ISOMER_RETURN_IF_ERROR(view.AddDim(lead));
  std::vector<PlacedAxis> sharers;
  for (const PlacedAxis& axis : axes) {
    if (axis.dim != kIdleAxis && !Mentions(leads, axis.dim)) sharers.push_back(axis);
  }
  ISOMER_ASSIGN_OR_RETURN(const Coordinate copies, Merged(sharers, 2));
  view.Add(copies);
  view.Add({});
  return view.Build();
}

absl::StatusOr<MachineView> OutputView(const Declaration& d, const std::vector<int>& leads,
                                       const std::vector<PlacedAxis>& axes, int64_t start) {
  ViewBuilder view(axes, start);
  for (int lead : leads) ISOMER_RETURN_IF_ERROR(view.AddDim(lead));
  std::vector<PlacedAxis> copying;
  for (const PlacedAxis& axis : axes) {
    if (axis.dim == kCopyAxis) copying.push_back(axis);
  }
  ISOMER_ASSIGN_OR_RETURN(const Coordinate copies, Merged(copying, 2));
  view.Add(copies);
  // The partial coordinate enumerates the sum dims in declaration order.
  std::vector<PlacedAxis> sums;
  for (int v = 0; v < static_cast<int>(d.dims.size()); ++v) {
    if (d.dims[v].kind != DimKind::kSum) continue;
    for (const PlacedAxis& axis : axes) {
      if (axis.dim != v) continue;
      if (!sums.empty() && axis.moments > 1) {
        return absl::InvalidArgumentError("micro-batches do not count slowest");
      }
      sums.push_back(axis);
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const Coordinate partials, Merged(sums, 1));
  view.Add(partials);
  return view.Build();
}

// Sets the types of the call under these degrees of iteration dims, as OperandTypesFor and
// InferSharding would, from the given declaration, with so many copies of it all. Errors: a degree
// that does not divide.
absl::Status TypesOf(const ChoiceSpace& space, const std::vector<int64_t>& degrees, int64_t copies,
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
    type.copies = copies;
    for (int v = 0; v < dims; ++v) {
      if (degrees[v] > 1 && !Mentions(space.operand_leads[o], v)) type.copies *= degrees[v];
    }
    ISOMER_RETURN_IF_ERROR(ValidateTensorType(type));
    choice->operands.push_back({std::move(type), {}});
  }
  for (size_t t = 0; t < space.sharding.outputs.size(); ++t) {
    TensorType type = space.sharding.outputs[t];
    split(space.output_leads[t], &type);
    type.copies = copies;
    for (int v = 0; v < dims; ++v) {
      if (d.dims[v].kind == DimKind::kSum) type.partials *= degrees[v];
    }
    ISOMER_RETURN_IF_ERROR(ValidateTensorType(type));
    choice->outputs.push_back({std::move(type), {}});
  }
  return absl::OkStatus();
}

// Applies the expansions of `dims`, in this order, to the last call of `graph`.
absl::StatusOr<SplitCall> ApplySplits(const ChoiceSpace& space, const std::vector<int>& dims,
                                      const std::vector<int64_t>& degrees, Graph* graph,
                                      RecordedSteps* steps) {
  SplitCall result{NodeId{graph->num_nodes() - 1}, {}};
  result.order.resize(space.operands.size());
  std::iota(result.order.begin(), result.order.end(), 0);
  for (int dim : dims) {
    const Expansion* split = space.expansions.SplitOf(dim);
    if (split == nullptr) return absl::NotFoundError("no rule splits this dim");
    DerivationStep step = StepAt(*split, *graph, result.id, degrees[dim], result.order);
    const int first = graph->num_nodes();
    ISOMER_RETURN_IF_ERROR(steps->Apply(*split->rule, std::move(step), graph));
    result = {NodeId{first + split->inner}, split->order};
  }
  return result;
}

// A choice's split dims, outermost first; a dim split only into micro-batches is last.
std::vector<int> DimsToSplit(const ShardingChoice& choice) {
  std::vector<int> dims;
  for (const Axis& axis : choice.axes) {
    const bool is_new = std::find(dims.begin(), dims.end(), axis.dim) == dims.end();
    if (axis.dim >= 0 && is_new) dims.push_back(axis.dim);
  }
  if (choice.moments > 1 && std::find(dims.begin(), dims.end(), choice.moment_dim) == dims.end()) {
    dims.push_back(choice.moment_dim);
  }
  return dims;
}

// Tests whether two dims can be split together by applying both expansions to the call alone: the
// rules' own conditions decide.
absl::Status TryPair(const ChoiceSpace& space, const ShardingChoice& choice, int a, int b) {
  std::vector<int64_t> degrees(choice.degrees.size(), 1);
  degrees[a] = choice.degrees[a];
  degrees[b] = choice.degrees[b];
  ShardingChoice pair;
  ISOMER_RETURN_IF_ERROR(TypesOf(space, degrees, 1, &pair));
  ISOMER_ASSIGN_OR_RETURN(Graph graph, GraphOfCall(space.op, space.operands));
  RecordedSteps steps;
  ISOMER_ASSIGN_OR_RETURN(const SplitCall call,
                          ApplySplits(space, {a, b}, degrees, &graph, &steps));
  for (size_t j = 0; j < call.order.size(); ++j) {
    if (graph.type(graph.node(call.id).inputs[j]) != pair.operands[call.order[j]].type) {
      return absl::InternalError("the rules split this otherwise");
    }
  }
  return absl::OkStatus();
}

bool CanBeDerived(const ChoiceSpace& space, const ShardingChoice& choice, SplitPairs* pairs) {
  const std::vector<int> dims = DimsToSplit(choice);
  for (size_t i = 0; i < dims.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      std::optional<bool>& together = pairs->Of(space.call_class, dims[j], dims[i]);
      if (!together.has_value()) together = TryPair(space, choice, dims[j], dims[i]).ok();
      if (!*together) return false;
    }
  }
  return true;
}

// Which only grids ask for (grid_mapping.h): a search over them all gains little where an order of
// the axes does without them, and each makes tables larger.
bool HasOuterStrides(const ShardingChoice& choice) {
  const auto has = [](const Placement& placement) { return !placement.view.outer.empty(); };
  return std::any_of(choice.operands.begin(), choice.operands.end(), has) ||
         std::any_of(choice.outputs.begin(), choice.outputs.end(), has);
}

std::string ClassOf(const ChoiceSpace& space) {
  std::string text = absl::StrCat(OpName(space.op.kind()));
  for (const TensorType& type : space.operands) {
    absl::StrAppend(&text, " ", DataTypeName(type.dtype), type.rank());
  }
  for (const Expansion& split : space.expansions.splits) {
    absl::StrAppend(&text, " ", split.dim, split.rule->id, absl::StrJoin(split.order, ","));
    for (const auto& [name, value] : split.step.variables) {
      if (name != split.degree) absl::StrAppend(&text, name, value);
    }
  }
  return text;
}

}  // namespace

int64_t ShardingChoice::DegreeOf(int axis) const {
  int64_t degree = 1;
  for (const Axis& a : axes) {
    if (a.dim == axis) degree *= a.degree;
  }
  return degree;
}

std::string ShardingChoice::ToString(const Declaration& declaration) const {
  if (axes.empty()) return "whole";
  return absl::StrJoin(axes, " x ", [&](std::string* out, const Axis& axis) {
    absl::StrAppend(out,
                    axis.dim == kIdleAxis   ? "idle"
                    : axis.dim == kCopyAxis ? "copies"
                                            : declaration.dims[axis.dim].name,
                    " ", axis.degree);
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
  int64_t copies = 1;
  for (const Axis& axis : axes) {
    if (axis.dim >= 0) choice.degrees[axis.dim] *= axis.degree;
    if (axis.dim == kCopyAxis) copies *= axis.degree;
  }
  if (space.moment_dim >= 0) choice.degrees[space.moment_dim] *= space.moments;
  for (int v = 0; v < static_cast<int>(choice.degrees.size()); ++v) {
    if (choice.degrees[v] > 1 && space.expansions.SplitOf(v) == nullptr) {
      return absl::NotFoundError("no rule splits this dim");
    }
  }
  ISOMER_RETURN_IF_ERROR(TypesOf(space, choice.degrees, copies, &choice));
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

ShardingChoice WithoutCopies(const ShardingChoice& choice) {
  ShardingChoice plain = choice;
  for (Axis& axis : plain.axes) {
    if (axis.dim == kCopyAxis) axis.dim = kIdleAxis;
  }
  const int64_t copies = choice.copies();
  for (std::vector<Placement>* placements : {&plain.operands, &plain.outputs}) {
    for (auto& [type, view] : *placements) {
      // What calls share of an operand is copied more coarsely.
      CoarsenAxis(type.rank(), copies, &view);
      type.copies /= copies;
      if (type.copies == view.MomentsOfAxis(type.rank())) view.strides[type.rank()] = 0;
    }
  }
  return plain;
}

absl::Status SplitByRules(const ChoiceSpace& space, const ShardingChoice& choice,
                          RecordedSteps* steps, SplitCall* call) {
  ISOMER_ASSIGN_OR_RETURN(Graph graph, GraphOfCall(space.op, space.operands));
  ISOMER_ASSIGN_OR_RETURN(*call,
                          ApplySplits(space, DimsToSplit(choice), choice.degrees, &graph, steps));
  return absl::OkStatus();
}

absl::StatusOr<ChoiceSpace> SpaceOfCall(const RuleIndex& rules, const Operator& op,
                                        absl::Span<const TensorType> operands,
                                        ExpansionMemo* expansions) {
  ChoiceSpace space;
  space.op = op;
  space.operands.assign(operands.begin(), operands.end());
  ISOMER_ASSIGN_OR_RETURN(space.sharding, InferSharding(op, operands));
  space.expansions = expansions->Find(rules, op, operands, space.sharding);
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
  space.call_class = ClassOf(space);
  return space;
}

void AddChoices(const ChoiceOptions& options, SplitPairs* pairs, ChoiceSpace* space) {
  if (options.moments > 1 && options.moment_dim >= 0 &&
      space->expansions.SplitOf(options.moment_dim) != nullptr) {
    space->moments = options.moments;
    space->moment_dim = options.moment_dim;
  }
  std::vector<SplitDim> dims;
  for (const Expansion& split : space->expansions.splits) {
    const int64_t size = space->sharding.declaration.dims[split.dim].size.value();
    const int64_t moments = split.dim == space->moment_dim ? space->moments : 1;
    if (size % moments == 0) dims.push_back({split.dim, size / moments});
  }
  const std::vector<std::vector<Axis>> lists =
      EnumerateAxes(dims, {.num_devices = options.num_devices,
                           .max_axes = options.max_axes,
                           .limit = options.limit,
                           .units = options.units});
  for (const std::vector<Axis>& axes : lists) {
    auto choice = MakeChoice(*space, axes, options.start);
    if (choice.ok() && !HasOuterStrides(*choice) && CanBeDerived(*space, *choice, pairs)) {
      space->choices.push_back(*std::move(choice));
    }
  }
  if (!space->choices.empty() || space->moments == 1) return;
  // The batch has too few samples for the micro-batches: it is one.
  space->moments = 1;
  space->moment_dim = -1;
  ChoiceOptions at_once = options;
  at_once.moments = 1;
  AddChoices(at_once, pairs, space);
}

absl::StatusOr<ChoiceSpace> EnumerateChoices(const RuleIndex& rules, const Operator& op,
                                             absl::Span<const TensorType> operands,
                                             const ChoiceOptions& options) {
  ExpansionMemo expansions;
  ISOMER_ASSIGN_OR_RETURN(ChoiceSpace space, SpaceOfCall(rules, op, operands, &expansions));
  SplitPairs pairs;
  AddChoices(options, &pairs, &space);
  return space;
}

}  // namespace isomer
