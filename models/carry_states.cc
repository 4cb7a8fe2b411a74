#include "models/carry_states.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/ir/states.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct Pair {
  std::string output, input;
};

class StateMaker {
 public:
  explicit StateMaker(const Model& model) : graph_(model.graph), outputs_(graph_.outputs()) {
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = graph_.node({id});
      if (node.op.kind() == OpKind::kInput) inputs_.emplace(node.name, NodeId{id});
    }
  }

  // By the names that exporters give.
  std::vector<Pair> Guess() const {
    std::vector<Pair> pairs;
    for (const Graph::NamedOutput& output : outputs_) {
      constexpr absl::string_view kPresent = "present";
      if (!absl::StartsWith(output.name, kPresent)) continue;
      for (const char* past : {"past_key_values", "past"}) {
        std::string input = absl::StrCat(past, output.name.substr(kPresent.size()));
        if (!inputs_.contains(input)) continue;
        if (!NextValue(output.tensor, input).ok()) break;
        pairs.push_back({output.name, std::move(input)});
        break;
      }
    }
    return pairs;
  }

  absl::Status Add(const Pair& pair) {
    Graph::NamedOutput* output = nullptr;
    for (Graph::NamedOutput& other : outputs_) {
      if (other.name == pair.output) output = &other;
    }
    if (output == nullptr) return Error(pair, absl::StrCat("no output is '", pair.output, "'"));
    if (!inputs_.contains(pair.input)) {
      return Error(pair, absl::StrCat("no input is '", pair.input, "'"));
    }
    if (!carried_.insert(pair.input).second) {
      return Error(pair, absl::StrCat("input '", pair.input, "' has two next values"));
    }
    const auto slice = NextValue(output->tensor, pair.input);
    if (!slice.ok()) return Error(pair, slice.status().message());
    if (slice->has_value()) {
      ISOMER_ASSIGN_OR_RETURN(output->tensor, graph_.AddOp(**slice, {output->tensor},
                                                           absl::StrCat(pair.output, "/carried")));
    }
    output->name = pair.input;
    return absl::OkStatus();
  }

  absl::StatusOr<Graph> Build() {
    std::vector<Node> nodes;
    for (int id = 0; id < graph_.num_nodes(); ++id) nodes.push_back(graph_.node({id}));
    return GraphFromParts(std::move(nodes), std::move(outputs_));
  }

 private:
  static absl::Status Error(const Pair& pair, absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("--carry=", pair.output, ":", pair.input, ": ", what));
  }

  // What an output goes through to be the input's next value; nothing if that is it.
  absl::StatusOr<std::optional<Operator>> NextValue(TensorRef output,
                                                    const std::string& input) const {
    const TensorType& from = graph_.type(output);
    const TensorType& to = graph_.type({inputs_.at(input), 0});
    if (from == to) return std::nullopt;
    std::vector<int64_t> starts(from.rank(), 0), steps(from.rank(), 1);
    int longer = 0;
    bool fits = from.dtype == to.dtype && from.rank() == to.rank();
    for (int i = 0; fits && i < from.rank(); ++i) {
      starts[i] = from.dims[i].size - to.dims[i].size;
      fits = starts[i] >= 0;
      longer += starts[i] > 0;
    }
    if (!fits || longer != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the output is ", from.ToString(), ", and the input ", to.ToString()));
    }
    return Operator(OpKind::kSlice, {{"starts", starts}, {"sizes", to.Sizes()}, {"steps", steps}});
  }

  Graph graph_;
  std::vector<Graph::NamedOutput> outputs_;
  std::map<std::string, NodeId> inputs_;
  std::set<std::string> carried_;
};

}  // namespace

absl::Status CarryStates(const std::vector<std::string>& carry, Model* model,
                         std::vector<std::string>* notes) {
  const bool is_guess = carry.empty();
  if (carry.size() == 1 && carry[0] == "none") return CheckStates(model->graph);
  StateMaker maker(*model);
  std::vector<Pair> pairs;
  if (is_guess) {
    pairs = maker.Guess();
    if (pairs.empty()) return CheckStates(model->graph);
    notes->push_back(absl::StrCat(pairs.size(),
                                  " outputs are inputs of the next step: ", pairs[0].output, " of ",
                                  pairs[0].input, pairs.size() > 1 ? ", .." : "", " (--carry)"));
  }
  for (const std::string& text : carry) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
    if (parts.first.empty() || parts.second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--carry=", text, ": OUTPUT:INPUT is expected, or none"));
    }
    pairs.push_back({parts.first, parts.second});
  }
  for (const Pair& pair : pairs) ISOMER_RETURN_IF_ERROR(maker.Add(pair));
  ISOMER_ASSIGN_OR_RETURN(model->graph, maker.Build());
  return CheckStates(model->graph);
}

}  // namespace isomer
