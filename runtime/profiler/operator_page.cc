#include "runtime/profiler/operator_page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/ir/type_inference.h"
#include "pcg/profile/work.h"
#include "pcg/support/status_macros.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/backend.h"

namespace isomer {
namespace {

constexpr char kHead[] = R"(# Operators

What every operator computes and what of it may be split, as its declaration (`pcg/operators/`) says.
Made from the declarations by `isomer-profile --list_operators > docs/operators.md`; a test fails when
this page is not what that prints.

**How to read it.** An equation defines the outputs `Y0`, `Y1`, .. by the operands `X0`, `X1`, ..
and by intermediates, for all values of the index dims; it is that of the call given beside it, the
first example in the traits of the operator (`pcg/operators`). The dims of the equation are the iteration space. Each is
of one class, after the SOAP dims of FlexFlow:

| class | split into d pieces |
|---|---|
| sample | every task does its part of the batch: the data in pieces, weights in d copies |
| attribute | the same along another dim of the data: positions, channels, heads |
| parameter | every task has its part of the weights: weights in pieces, the data in d copies |
| spatial | an attribute of which a task also reads its neighbours' edges (a halo exchange) |
| reduction | every task has a partial sum: the output has d partials, to be reduced |
| whole | not split: a task needs all of it |

"d copies" is what the other operands must hold, and an operand that a dim does not index must hold
as many copies as the dim has pieces. "Partials pass" names the operands that may be partial sums
not reduced yet: the output is then partial too. `X0+X1` means both at once; `X0` or `X1` one of them
while the other holds copies.

The gradient of every operator is derived from its equation; "by" names the operands that have one.
Integers, bools and conditions have none, and what jumps between constants has a gradient of zero.
FLOPs are those of one call of the example, forward. A kernel runs a call fast; without one, the
reference evaluator runs the equation itself: right, and slow.
)";

std::string OperandName(int operand) { return absl::StrCat("X", operand); }

std::string Joined(const std::vector<std::string>& words, const char* none) {
  return words.empty() ? none : absl::StrJoin(words, ", ");
}

// One operator's first example, with all that is said of it.
struct Entry {
  ExampleCall example;
  Sharding sharding;
  const Declaration& declaration() const { return sharding.declaration; }
};

std::string DimNames(const Entry& entry, std::vector<SoapClass> classes) {
  std::vector<std::string> names;
  for (size_t v = 0; v < entry.declaration().dims.size(); ++v) {
    const SoapClass soap =
        SoapClassOf(entry.example.op.kind(), entry.declaration(), static_cast<int>(v));
    if (std::find(classes.begin(), classes.end(), soap) != classes.end()) {
      names.push_back(entry.declaration().dims[v].name);
    }
  }
  return absl::StrJoin(names, " ");
}

std::string PartialsText(const Entry& entry) {
  std::vector<std::string> sets;
  for (const std::vector<int>& set : LinearOperandSets(entry.declaration())) {
    sets.push_back(absl::StrJoin(set, "+", [](std::string* out, int operand) {
      absl::StrAppend(out, OperandName(operand));
    }));
  }
  return absl::StrJoin(sets, " or ");
}

std::vector<bool> GradientOperands(const Entry& entry) {
  std::vector<bool> wanted = DifferentiableOperands(entry.declaration());
  bool float_output = false;
  for (const TensorType& output : entry.sharding.outputs) float_output |= IsFloat(output.dtype);
  for (size_t o = 0; o < wanted.size(); ++o) {
    wanted[o] = wanted[o] && float_output && IsFloat(entry.example.operands[o].dtype);
  }
  return wanted;
}

std::string GradientText(const Entry& entry) {
  const std::vector<bool> wanted = GradientOperands(entry);
  std::vector<std::string> names;
  for (size_t o = 0; o < wanted.size(); ++o) {
    if (wanted[o]) names.push_back(OperandName(static_cast<int>(o)));
  }
  return absl::StrJoin(names, " ");
}

bool HasKernel(const Entry& entry, bool gradient) {
  return HasCpuKernel(MakeKernelCall(entry.example.op, entry.sharding, entry.example.operands, 0,
                                     gradient,
                                     gradient ? GradientOperands(entry) : std::vector<bool>()));
}

std::string KernelText(const Entry& entry) {
  if (!HasKernel(entry, false)) return "reference";
  if (GradientText(entry).empty() || HasKernel(entry, true)) return "cpu";
  return "cpu, gradient by reference";
}

// What a degree d of dim `v` makes of operands and outputs.
std::string SplitText(const Entry& entry, int v) {
  const Declaration& d = entry.declaration();
  std::vector<std::string> pieces, copies;
  for (int o = 0; o < d.num_operands(); ++o) {
    bool led = false;
    for (size_t i = 0; i < d.operands[o].size(); ++i) {
      if (d.LeadOfOperandDim(o, static_cast<int>(i)) != v) continue;
      led = true;
      pieces.push_back(absl::StrCat("`", OperandName(o), "` along dim ", i,
                                    d.HasHalo(o, static_cast<int>(i)) ? " with a halo" : ""));
    }
    if (!led) copies.push_back(absl::StrCat("`", OperandName(o), "`"));
  }
  std::vector<std::string> parts;
  if (!pieces.empty()) parts.push_back(absl::StrCat("pieces of ", Joined(pieces, "")));
  if (!copies.empty()) parts.push_back(absl::StrCat("d copies of ", Joined(copies, "")));
  std::vector<std::string> outputs;
  for (size_t t = 0; t < d.outputs.size(); ++t) {
    for (size_t i = 0; i < d.outputs[t].size(); ++i) {
      if (d.LeadOfOutputDim(static_cast<int>(t), static_cast<int>(i)) == v) {
        outputs.push_back(absl::StrCat("pieces of `Y", t, "` along dim ", i));
      }
    }
  }
  return absl::StrCat(absl::StrJoin(parts, "; "), " → ",
                      outputs.empty() ? "d partials" : absl::StrJoin(outputs, ", "));
}

std::string OperandCounts(OpKind kind) {
  const int least = MinOperands(kind), most = MaxOperands(kind);
  if (least == most) return absl::StrCat(least, least == 1 ? " operand" : " operands");
  return absl::StrCat(least, " to ", most, " operands");
}

std::string AttributesText(OpKind kind) {
  const std::string list = AttributeList(kind);
  const std::vector<std::string> names = absl::StrSplit(list, ' ', absl::SkipEmpty());
  if (names.empty()) return "no attributes";
  return absl::StrCat("attributes ",
                      absl::StrJoin(names, ", ", [](std::string* out, const std::string& name) {
                        absl::StrAppend(out, "`", name, "`");
                      }));
}

std::string TypesText(const Entry& entry) {
  std::vector<std::string> names;
  for (DataType dtype : ValueTypes(entry.example.op, entry.example.operands)) {
    names.emplace_back(DataTypeName(dtype));
  }
  std::vector<std::string> indices;
  for (int o = 0; o < entry.declaration().num_operands(); ++o) {
    if (IsIndexOperand(entry.example.op.kind(), o)) indices.push_back(OperandName(o));
  }
  std::string text = names.empty() ? "" : absl::StrCat("values ", absl::StrJoin(names, " "));
  if (!indices.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "indices (", absl::StrJoin(indices, ", "),
                    ") i64 i32");
  }
  const int condition = TraitsOf(entry.example.op.kind()).condition_operand;
  if (condition >= 0) {
    absl::StrAppend(&text, "; condition (", OperandName(condition), ") bool");
  }
  return text;
}

std::string Section(const Entry& entry) {
  const OpKind kind = entry.example.op.kind();
  const Declaration& d = entry.declaration();
  std::string text =
      absl::StrCat("\n### ", OpName(kind), "\n\n", OperandCounts(kind), "; ", AttributesText(kind),
                   "; ", TypesText(entry), ".\n\n`", entry.example.op.ToString());
  for (const TensorType& operand : entry.example.operands) {
    absl::StrAppend(&text, " ", operand.ToString());
  }
  absl::StrAppend(&text, "`\n\n");
  for (absl::string_view line : absl::StrSplit(d.ToString(), '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, "    ", line, "\n");
  }
  absl::StrAppend(&text, "\n| dim | size | class | split into d |\n|---|---|---|---|\n");
  for (size_t v = 0; v < d.dims.size(); ++v) {
    const int dim = static_cast<int>(v);
    const SoapClass soap = SoapClassOf(kind, d, dim);
    absl::StrAppend(&text, "| ", d.dims[v].name, " | ", d.dims[v].size.ToString(), " | ",
                    SoapClassName(soap), " | ",
                    soap == SoapClass::kWhole ? "" : SplitText(entry, dim), " |\n");
  }
  const std::string partials = PartialsText(entry), gradient = GradientText(entry);
  std::string saves;
  if (const auto saved =
          SavedBy(entry.example.op, d, entry.example.operands[0], entry.sharding.outputs[0])) {
    saves = absl::StrCat(", which finds ", saved->elements, " numbers saved");
  }
  const double flops = ForwardWork(entry.example.op, entry.sharding, entry.example.operands).flops;
  absl::StrAppend(&text,
                  "\nPartials pass: ", partials.empty() ? "no" : absl::StrCat("of ", partials),
                  ". Gradient: ", gradient.empty() ? "none" : absl::StrCat("by ", gradient, saves),
                  ". FLOPs: ", static_cast<int64_t>(flops), ". Kernel: ", KernelText(entry), ".\n");
  return text;
}

std::string Row(const Entry& entry) {
  const absl::string_view name = OpName(entry.example.op.kind());
  const std::vector<std::string> cells = {
      absl::StrCat("[", name, "](#", name, ")"),
      DimNames(entry, {SoapClass::kSample, SoapClass::kAttribute}),
      DimNames(entry, {SoapClass::kParameter}),
      DimNames(entry, {SoapClass::kSpatial}),
      DimNames(entry, {SoapClass::kReduction}),
      DimNames(entry, {SoapClass::kWhole}),
      PartialsText(entry),
      GradientText(entry),
      KernelText(entry)};
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}

}  // namespace

absl::StatusOr<std::string> OperatorPage() {
  std::vector<Entry> entries;
  for (OpKind kind : AllOpKinds()) {
    if (IsLeaf(kind) || IsParallel(kind)) continue;
    const std::vector<ExampleCall> examples = ExamplesOf(kind);
    if (examples.empty()) {
      return absl::InternalError(absl::StrCat(OpName(kind), " has no example"));
    }
    Entry entry{examples[0], {}};
    ISOMER_ASSIGN_OR_RETURN(entry.sharding,
                            InferSharding(entry.example.op, entry.example.operands));
    entries.push_back(std::move(entry));
  }
  std::string page = kHead;
  absl::StrAppend(&page,
                  "\n## What may be split\n\n"
                  "| operator | sample, attribute | parameter | spatial | reduction | whole | "
                  "partials pass | gradient by | kernel |\n"
                  "|---|---|---|---|---|---|---|---|---|\n");
  for (const Entry& entry : entries) absl::StrAppend(&page, Row(entry));
  absl::StrAppend(&page, "\n## One by one\n");
  for (const Entry& entry : entries) absl::StrAppend(&page, Section(entry));
  return page;
}

}  // namespace isomer
