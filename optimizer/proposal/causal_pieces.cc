#include "optimizer/proposal/causal_pieces.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

// Elements [first, first + size) of a dim.
struct RowRange {
  int64_t first, size;
};

// Which queries a piece has, and which keys any of them sees. Queries and keys end together.
struct CausalPiece {
  RowRange queries, keys;
};

std::vector<CausalPiece> CausalPiecesOf(int64_t queries, int64_t keys, int64_t window,
                                        int64_t num_pieces) {
  const int64_t size = queries / num_pieces;
  std::vector<CausalPiece> pieces;
  for (int64_t first = 0; first < queries; first += size) {
    const int64_t of_first = first + keys - queries;  // the last key that its first query sees
    const int64_t first_key = window > 0 ? std::max<int64_t>(0, of_first - window + 1) : 0;
    pieces.push_back({{first, size}, {first_key, of_first + size - first_key}});
  }
  return pieces;
}

// The calls of one step, before they are in a graph.
class StatedCalls {
 public:
  StatedCalls(const Graph& graph, std::string name)
      : graph_(graph), name_(std::move(name)), first_{graph.num_nodes()} {}

  TensorRef Add(Operator op, std::vector<TensorRef> inputs, const std::string& what) {
    const TensorRef made{{first_.value + static_cast<int>(step_.calls.size())}, 0};
    step_.calls.push_back({std::move(op), std::move(inputs)});
    names_.push_back(what.empty() ? name_ : absl::StrCat(name_, "/", what));
    return made;
  }

  // A part of dims of a tensor of the graph, counted from its last. A dim that it does not have,
  // or of size 1, is broadcast.
  TensorRef Slice(TensorRef x, const std::map<int, RowRange>& rows_of_dims,
                  const std::string& what) {
    const std::vector<int64_t> whole = graph_.type(x).Sizes();
    std::vector<int64_t> sizes = whole, starts(whole.size(), 0), steps(whole.size(), 1);
    for (const auto& [dim, rows] : rows_of_dims) {
      const int axis = static_cast<int>(whole.size()) + dim;
      if (axis < 0 || whole[axis] == 1) continue;
      starts[axis] = rows.first;
      sizes[axis] = rows.size;
    }
    if (sizes == whole) return x;
    return Add(
        {OpKind::kSlice,
         {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}, {"steps", std::move(steps)}}},
        {x}, what);
  }

  DerivationStep& step() { return step_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  const Graph& graph_;
  const std::string name_;
  const NodeId first_;
  DerivationStep step_;
  std::vector<std::string> names_;
};

}  // namespace

CausalPieces CutCausalAttention(const Model& model, int64_t num_pieces, int64_t degree,
                                const AreEqual& equal,
                                const std::function<bool(const std::string& name)>& keeps) {
  StatedRewriter rewriter(model, model.graph, equal);
  CausalPieces result;
  for (NodeId id : model.graph.TopologicalOrder()) {
    const Graph& graph = rewriter.graph();
    const Node node = graph.node(id);
    if (!IsAttention(node.op.kind()) || node.op.Int("causal") == 0 || keeps(node.name)) continue;
    const int64_t queries = graph.type(node.inputs[0]).Sizes()[2],
                  keys = graph.type(node.inputs[1]).Sizes()[2];
    if (queries % (num_pieces * degree) != 0) continue;
    const bool has_sink = node.op.kind() == OpKind::kSinkAttention;
    StatedCalls calls(graph, node.name);
    std::vector<TensorRef> outputs;
    std::vector<NodeId> made;
    for (const CausalPiece& piece :
         CausalPiecesOf(queries, keys, has_sink ? node.op.Int("window") : 0, num_pieces)) {
      const std::string number = absl::StrCat(outputs.size());
      std::vector<TensorRef> operands = {
          calls.Slice(node.inputs[0], {{-2, piece.queries}}, "queries" + number),
          calls.Slice(node.inputs[1], {{-2, piece.keys}}, "keys" + number),
          calls.Slice(node.inputs[2], {{-2, piece.keys}}, "values" + number)};
      if (has_sink) {
        operands.push_back(node.inputs[3]);
      } else if (node.inputs.size() > 3) {
        operands.push_back(
            calls.Slice(node.inputs[3], {{-2, piece.queries}, {-1, piece.keys}}, "mask" + number));
      }
      outputs.push_back(calls.Add(node.op, std::move(operands), "piece" + number));
      made.push_back(outputs.back().node);
    }
    const TensorRef whole =
        calls.Add({OpKind::kConcat, {{"axis", int64_t{2}}}}, std::move(outputs), "");
    calls.step().nodes = {id};
    calls.step().replaced = {{{id, 0}, whole}};
    if (rewriter.Try(std::move(calls.step()), calls.names())) {
      result.pieces.push_back(std::move(made));
    }
  }
  result.graph = rewriter.graph();
  result.steps = rewriter.TakeSteps();
  return result;
}

}  // namespace isomer
