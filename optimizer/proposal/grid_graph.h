// The form of a model's graph that a grid maps, where the model's own cannot be split as the grid
// asks. Each change is a step of the plan that is proved.
//
// Attention whose query heads share keys: no rule splits the query heads of one key head. With keys
// and values repeated for each of them heads are a dim like any other, and the sequence can be
// exchanged for heads over more devices than there are key heads.
//
// A loss of rows, batch times sequence: no rule splits the sequence within rows. Of as many dims as
// the tensor that rows were made of, it is split like all that leads to it.
//
// Causal attention on a sequence that is split: striped_order.h.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_GRID_GRAPH_H_
#define ISOMER_OPTIMIZER_PROPOSAL_GRID_GRAPH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/canonical/canonical_form.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/grid_mapping.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A model's graph after steps. Replaced nodes stay, unused.
struct RewrittenGraph {
  Graph graph;
  std::vector<DerivationStep> steps;
};

// What the form depends on, for grids whose degrees have a context. Of an attention whose query
// heads `head_degree` splits into more parts than its key heads, these and its values are repeated.
// With more than one stripe, sequences that attention splits are in their order.
struct ContextForm {
  int64_t head_degree = 1, stripes = 1;
  friend auto operator<=>(const ContextForm&, const ContextForm&) = default;
};
// What `equal` does not show stays as it is. nullopt: all does.
std::optional<RewrittenGraph> RewriteForContext(const Model& model, const ContextForm& form,
                                                const AreEqual& equal);

class GridGraph {
 public:
  // `model` outlives this.
  explicit GridGraph(const Model& model, AreEqual equal = nullptr)
      : model_(model), equal_(std::move(equal)) {}
  const Model& model() const { return model_; }
  const Graph& Of(const GridDegrees& degrees);
  // MapGrid of it, from the model.
  absl::StatusOr<MappedModel> Map(const GridDegrees& degrees, CostTables* tables,
                                  std::string* misfit = nullptr);

 private:
  // nullptr: the model's own.
  const RewrittenGraph* RewrittenFor(const GridDegrees& degrees);

  const Model& model_;
  const AreEqual equal_;
  std::map<ContextForm, std::optional<RewrittenGraph>> rewritten_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_GRID_GRAPH_H_
