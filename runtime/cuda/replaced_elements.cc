#include "runtime/cuda/replaced_elements.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

// What moves so many bytes.
const char* UnitOf(int64_t bytes) {
  switch (bytes) {
    case 1:
      return "unsigned char";
    case 2:
      return "unsigned short";
    case 4:
      return "unsigned";
    default:
      return "unsigned long long";
  }
}

std::vector<int64_t> StridesOfPiece(const Box& box) {
  std::vector<int64_t> strides(box.shape.size(), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * box.shape[i];
  return strides;
}

}  // namespace

std::optional<GeneratedKernel> ReplacingKernels(const KernelCall& call, absl::string_view name) {
  const bool replaces =
      call.op.kind() == OpKind::kScatterElements && call.op.Int("reduction") == 0 && !call.gradient;
  if (!replaces || call.layouts.OfOutput(0) != Layout::kRowMajor) return std::nullopt;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    if (call.layouts.OfOperand(o) != Layout::kRowMajor) return std::nullopt;
  }
  const Box &x = call.operands[0], &indices = call.operands[1];
  const int rank = static_cast<int>(x.shape.size());
  const auto normalized = NormalizeAxis(call.op.Int("axis"), rank);
  if (!normalized.ok()) return std::nullopt;
  const int axis = *normalized;
  const std::string unit = UnitOf(BytesPerElement(call.dtypes[0]));
  const char* const index = call.dtypes[1] == DataType::kInt32 ? "int" : "long long";
  const std::vector<int64_t> of_x = StridesOfPiece(x), of_indices = StridesOfPiece(indices);

  GeneratedKernel kernel;
  kernel.reads = 3;
  kernel.writes = 1;
  const std::string copy = absl::StrCat(name, "_copy"), replace = absl::StrCat(name, "_replace");
  std::string& text = kernel.text;
  const auto line = [&](const auto&... parts) { absl::StrAppend(&text, parts..., "\n"); };
  const std::string result = absl::StrCat(unit, "* y = static_cast<", unit, "*>(a.writes[0]);");
  line("ISOMER_KERNEL(", copy, ", Arguments<3, 1>) {");
  line("  if (a.reads[0] == a.writes[0]) return;");
  line("  const ", unit, "* x = static_cast<const ", unit, "*>(a.reads[0]);");
  line("  ", result);
  line("  ISOMER_FOR_EACH(long long, i, ", x.Volume(), "LL) y[i] = x[i];");
  line("}");
  kernel.launches.push_back({copy, x.Volume()});

  const int64_t lines = indices.Volume() / std::max<int64_t>(indices.shape[axis], 1);
  line("ISOMER_KERNEL(", replace, ", Arguments<3, 1>) {");
  line("  const ", index, "* indices = static_cast<const ", index, "*>(a.reads[1]);");
  line("  const ", unit, "* updates = static_cast<const ", unit, "*>(a.reads[2]);");
  line("  ", result);
  line("  ISOMER_FOR_EACH(long long, line, ", lines, "LL) {");
  line("    long long rest = line, from = 0, to = 0;");
  for (int i = rank; i-- > 0;) {
    if (i == axis) continue;
    line("    from += rest % ", indices.shape[i], "LL * ", of_indices[i], "LL;");
    line("    to += (rest % ", indices.shape[i], "LL + ", indices.origin[i] - x.origin[i], "LL) * ",
         of_x[i], "LL;");
    line("    rest /= ", indices.shape[i], "LL;");
  }
  line("    for (long long u = 0; u < ", indices.shape[axis], "LL; ++u) {");
  line("      const long long place = indices[from + u * ", of_indices[axis], "LL];");
  line("      if (place < 0 || place >= ", call.declaration.operands[0][axis].value(), "LL) {");
  line("        ReportIndex(a.error, a.kernel, place);");
  line("        continue;");
  line("      }");
  line("      const long long at = place - ", x.origin[axis], "LL;");
  line("      if (at < 0 || at >= ", x.shape[axis], "LL) continue;");
  line("      y[to + at * ", of_x[axis], "LL] = updates[from + u * ", of_indices[axis], "LL];");
  line("    }");
  line("  }");
  line("}");
  kernel.launches.push_back({replace, lines});
  return kernel;
}

}  // namespace isomer
