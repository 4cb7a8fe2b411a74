#include "models/onnx/graph/initializers.h"

#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/onnx/graph/provenance.h"

namespace isomer {
namespace {

// Of two names "threshold" and "threshold_cast" both: a number in a function of the exporter, which
// is cast to the type of what it meets there.
std::set<std::string> NumbersOfFunctions(const std::string& name,
                                         const std::vector<std::string>& folded_from) {
  std::set<std::string> names(folded_from.begin(), folded_from.end()), numbers;
  names.insert(name);
  for (const std::string& cast : names) {
    const std::string number(absl::StripSuffix(cast, "_cast"));
    if (number == cast || absl::StrContains(cast, '.') || !names.contains(number)) continue;
    numbers.insert({number, cast});
  }
  return numbers;
}

// A tensor that the code of a module makes of numbers: "model.layers.0.lifted_tensor_2".
bool IsLifted(absl::string_view name) {
  const size_t dot = name.rfind('.');
  return absl::StartsWith(dot == absl::string_view::npos ? name : name.substr(dot + 1),
                          "lifted_tensor");
}

bool IsInput(const std::string& name, const OnnxGraph& graph) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const auto& input) {
    return input.name() == name || ProgramNameOf(input) == name;
  });
}

}  // namespace

absl::string_view StemOf(absl::string_view name) {
  const size_t last = name.rfind('_');
  int number;
  if (last != absl::string_view::npos && absl::SimpleAtoi(name.substr(last + 1), &number)) {
    name = name.substr(0, last);
  }
  return name;
}

bool IsOfExporter(absl::string_view name) {
  return (name != "val" && StemOf(name) == "val") || absl::StartsWith(name, "int64_");
}

bool MakesTensors(absl::string_view stem) {
  for (const char* maker : {"arange", "zeros", "ones", "full", "empty", "eye", "fill", "linspace",
                            "lift_fresh", "tril_indices", "triu_indices"}) {
    if (stem == maker) return true;
  }
  return absl::StartsWith(stem, "new_") || absl::EndsWith(stem, "_like") ||
         absl::EndsWith(stem, "_window") || absl::StrContains(stem, "scalar_tensor");
}

// Tensors of modules are called by their place, with dots; those of the outermost module have none,
// like the nodes of the program. Where nothing else makes a tensor, it is one of these, unless it
// is an input, or the file still has what makes a tensor of that name: then no more than its sizes
// went in.
std::vector<std::string> ModuleTensorsOf(const std::string& name, const OnnxGraph& graph) {
  const auto known = graph.provenance.find(name);
  if (known == graph.provenance.end()) return {};
  const std::vector<std::string>& folded_from = known->second.folded_from;
  const std::set<std::string> numbers = NumbersOfFunctions(name, folded_from);
  std::vector<std::string> of_modules, others;
  bool is_made = MakesTensors(StemOf(name));
  for (const std::string& from : folded_from) {
    if (IsOfExporter(from) || numbers.contains(from)) continue;
    is_made |= IsLifted(from) || MakesTensors(StemOf(from));
    if (IsLifted(from)) continue;
    if (absl::StrContains(from, '.')) {
      of_modules.push_back(from);
    } else if (graph.Producer(from) == nullptr && !IsInput(from, graph)) {
      others.push_back(from);
    }
  }
  return !of_modules.empty() || is_made ? of_modules : others;
}

bool IsTrained(const OnnxTensor& tensor) { return tensor.is_float() && !tensor.is_literal; }

bool AllEqual(const OnnxTensor& tensor) {
  return std::adjacent_find(tensor.floats.begin(), tensor.floats.end(),
                            std::not_equal_to<float>()) == tensor.floats.end();
}

std::string UnusedName(const std::string& name, OnnxGraph* graph) {
  std::string unused = name;
  for (int number = 2; !graph->names.insert(unused).second; ++number) {
    unused = absl::StrCat(name, "_", number);
  }
  return unused;
}

}  // namespace isomer
