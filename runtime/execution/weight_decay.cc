#include "runtime/execution/weight_decay.h"

#include <regex>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::StatusOr<std::regex> Expression(const std::string& text) {
  try {
    return std::regex(text, std::regex::ECMAScript | std::regex::nosubs | std::regex::optimize);
  } catch (const std::regex_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("--no_decay=", text, ": is no regular expression (", error.what(), ")"));
  }
}

}  // namespace

absl::StatusOr<std::set<TensorRef>> DecayingTensors(const Graph& graph, const Schedule& schedule,
                                                    const std::optional<std::string>& no_decay) {
  const bool by_name = no_decay.has_value() && !no_decay->empty();
  std::regex expression;
  if (by_name) {
    ISOMER_ASSIGN_OR_RETURN(expression, Expression(*no_decay));
  }
  bool matches = false;
  const auto decays = [&](const Node& leaf) {
    if (!no_decay.has_value()) return leaf.outputs[0].dims.size() > 1;
    const bool is_named = by_name && std::regex_search(leaf.name, expression);
    matches |= is_named;
    return !is_named;
  };
  std::set<TensorRef> decaying;
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (!parameter.trainable) continue;
    const Node& first = graph.node(parameter.leaves[0]);
    const bool first_decays = decays(first);
    for (NodeId id : parameter.leaves) {
      const Node& leaf = graph.node(id);
      if (decays(leaf) == first_decays) continue;
      const std::string &with = (first_decays ? first : leaf).name,
                        &without = (first_decays ? leaf : first).name;
      return absl::InvalidArgumentError(absl::StrCat(
          "--weight_decay: '", with, "' decays and '", without,
          "' does not, but the plan keeps them in one tensor; a --no_decay is expected that has "
          "both or none"));
    }
    if (first_decays) decaying.insert(parameter.tensor);
  }
  if (!by_name || matches) return decaying;
  return absl::InvalidArgumentError(
      absl::StrCat("--no_decay=", *no_decay, ": matches no weight that is trained"));
}

}  // namespace isomer
