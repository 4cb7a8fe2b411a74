// A derivation as people read it.
#ifndef ISOMER_TESTS_DERIVATIONS_DERIVATION_PAGE_H_
#define ISOMER_TESTS_DERIVATIONS_DERIVATION_PAGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"
#include "tests/derivations/derivation_file.h"

namespace isomer {

// The steps from each stage to the next: as many entries as stages, less one.
using Chain = std::vector<std::vector<DerivationStep>>;

// The equation that a step is an instance of, at the graph that it is applied to, its operands
// named or, if they are calls, by their operator: "relu(add(..)) -> combine(relu(partition(add(..);
// ..".
absl::StatusOr<std::string> StepText(const Graph& graph, const Rule& rule,
                                     const DerivationStep& step);

// The derivations in a table: steps, and how many rules they use.
std::string RowText(const Derivation& derivation, const Chain& chain);

// The section of docs/derivations.md: the graphs, and between them the steps.
absl::StatusOr<std::string> SectionText(const RuleSet& rules, const Derivation& derivation,
                                        const Chain& chain);

}  // namespace isomer

#endif  // ISOMER_TESTS_DERIVATIONS_DERIVATION_PAGE_H_
