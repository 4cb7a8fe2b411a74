#include "models/onnx/graph/constant_runs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "models/onnx/tensor.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

// 800 MB, which the masks of a million tokens take a quarter of.
constexpr int64_t kMostRuns = int64_t{1} << 25;
// Of a tensor that is written out to be arranged in another way.
constexpr int64_t kMostArranged = int64_t{1} << 22;

int64_t SizeProduct(const std::vector<int64_t>& sizes) {
  int64_t product = 1;  // Of sizes of a graph, whose product fits.
  for (int64_t size : sizes) product *= size;
  return product;
}

// Up to which integers a type holds all.
double ExactIntegers(DataType dtype) {
  if (dtype == DataType::kFloat16) return 0x1p11;
  if (dtype == DataType::kBFloat16) return 0x1p8;
  return dtype == DataType::kInt64 ? 0x1p53 : 0x1p24;
}

bool IsIntegerOf(DataType dtype, double value) {
  return std::abs(value) <= ExactIntegers(dtype) && std::floor(value) == value;
}

// Writes rows, each from its first run to its last.
class RunWriter {
 public:
  explicit RunWriter(std::vector<int64_t> sizes) { tensor_.sizes = std::move(sizes); }

  // The next `length` elements of the row: first, first + step, ..
  void Add(int64_t length, double first, double step) {
    if (length <= 0) return;
    if (length == 1) step = 0;
    const int64_t begin = at_;
    at_ += length;
    if (begin > 0) {
      ElementRun& last = tensor_.runs.back();
      if (last.step == 0 && step == 0 && last.first == first) {
        last.end = at_;
        return;
      }
    }
    tensor_.runs.push_back({at_, first, step});
  }

  void EndRow() {
    tensor_.rows.push_back(static_cast<int64_t>(tensor_.runs.size()));
    at_ = 0;
  }

  bool IsTooLong() const { return static_cast<int64_t>(tensor_.runs.size()) > kMostRuns; }
  TensorRuns Take() { return std::move(tensor_); }

 private:
  TensorRuns tensor_;
  int64_t at_ = 0;  // elements of the row
};

// The runs of one row, passed through from left to right.
class RowReader {
 public:
  RowReader(const TensorRuns& tensor, int64_t row, int64_t size)
      : run_(&tensor.runs[row == 0 ? 0 : tensor.rows[row - 1]]),
        repeats_(tensor.row_size() == 1),
        size_(size) {}

  int64_t RunEnd() const { return repeats_ ? size_ : run_->end; }
  double First() const { return repeats_ ? run_->first : run_->first + run_->step * offset_; }
  double Step() const { return repeats_ ? 0 : run_->step; }
  void Advance(int64_t to) {
    if (repeats_) return;
    offset_ += static_cast<double>(to - at_);
    at_ = to;
    if (at_ == run_->end && at_ < size_) ++run_, offset_ = 0;
  }

 private:
  const ElementRun* run_;
  bool repeats_;  // its row is one element
  int64_t size_, at_ = 0;
  double offset_ = 0;  // in the run
};

// An elementwise call, for one element at a time.
class ElementwiseCall {
 public:
  ElementwiseCall(const Graph& graph, const Node& node) : op_(node.op) {
    for (TensorRef input : node.inputs) dtypes_.push_back(graph.type(input).dtype);
    dtype_ = node.outputs[0].dtype;
  }

  OpKind kind() const { return op_.kind(); }
  DataType operand_type(int i) const { return dtypes_[i]; }
  DataType type() const { return dtype_; }
  bool failed() const { return failed_; }
  // Of integers that change by `steps`.
  bool IsLinear(const std::vector<double>& steps) const {
    switch (kind()) {
      case OpKind::kAdd:
      case OpKind::kSub:
        return true;
      case OpKind::kCast:
        return dtype_ != DataType::kBool;
      case OpKind::kMul:
        return steps[0] == 0 || steps[1] == 0;
      case OpKind::kScale:  // By a fraction, integers are rounded.
        return std::floor(op_.Number("factor")) == op_.Number("factor");
      default:
        return false;
    }
  }

  double Of(const std::vector<double>& operands) {
    const auto known = known_.find(operands);
    if (known != known_.end()) return known->second;
    const double computed = Computed(operands);
    const double value = IsFloat(dtype_) ? RoundedTo(dtype_, computed) : computed;
    // What is not a number is not equal to itself, as a key either.
    const bool is_key = std::none_of(operands.begin(), operands.end(),
                                     [](double operand) { return std::isnan(operand); });
    if (is_key && known_.size() < kMostKnown) known_[operands] = value;
    return value;
  }

 private:
  static constexpr size_t kMostKnown = 1 << 16;

  double Computed(const std::vector<double>& operands) {
    Graph graph;
    std::map<NodeId, Value<double>> leaves;
    std::vector<TensorRef> inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      const TensorType type = SequentialType({1}, dtypes_[i]);
      inputs.push_back(graph.AddConstant(std::string(1, static_cast<char>('a' + i)), type));
      leaves[inputs.back().node] = {type, {Array<double>({1}, operands[i])}};
    }
    const absl::StatusOr<TensorRef> result = graph.AddOp(op_, inputs, "result");
    if (!result.ok()) return Failed();
    graph.AddOutput("result", *result);
    const auto values = EvaluateGraph(graph, leaves);
    if (!values.ok()) return Failed();
    return (*values)[result->node.value][0].part(0, 0).data[0];
  }

  double Failed() {
    failed_ = true;
    return 0;
  }

  const Operator op_;
  std::vector<DataType> dtypes_;
  DataType dtype_;
  std::map<std::vector<double>, double> known_;
  bool failed_ = false;
};

// One piece of a row in which every operand is one run.
struct RunPiece {
  int64_t length;
  std::vector<double> firsts, steps;
};

bool IsComparison(OpKind kind) {
  return kind == OpKind::kLess || kind == OpKind::kLessEqual || kind == OpKind::kEqual;
}

// Where a - b is negative, 0 and positive: a comparison is the same throughout each.
bool AddComparison(const RunPiece& piece, ElementwiseCall* call, RunWriter* out) {
  const double difference = piece.firsts[0] - piece.firsts[1];
  const double step = piece.steps[0] - piece.steps[1];
  for (int i : {0, 1}) {
    const double last = piece.firsts[i] + piece.steps[i] * static_cast<double>(piece.length - 1);
    const DataType dtype = call->operand_type(i);
    if (!IsIntegerOf(dtype, piece.firsts[i]) || !IsIntegerOf(dtype, last)) return false;
  }
  auto add = [&](int64_t length, double sign) { out->Add(length, call->Of({sign, 0}), 0); };
  auto sign_of = [](double number) { return number < 0 ? -1.0 : number > 0 ? 1.0 : 0.0; };
  if (step == 0) {
    add(piece.length, sign_of(difference));
    return true;
  }
  // It is 0 at element -difference / step, if that is one.
  const int64_t d = static_cast<int64_t>(difference), s = static_cast<int64_t>(step);
  const bool meets = d % s == 0 && -d / s >= 0 && -d / s < piece.length;
  const double zero = -difference / step;
  const int64_t before =
      std::clamp<int64_t>(meets ? -d / s : static_cast<int64_t>(std::ceil(zero)), 0, piece.length);
  add(before, -sign_of(step));
  if (meets) add(1, 0);
  add(piece.length - before - meets, sign_of(step));
  return true;
}

// Sums, integer multiples and casts of integers at equal distances are such integers.
bool AddLinear(const RunPiece& piece, ElementwiseCall* call, RunWriter* out) {
  if (!call->IsLinear(piece.steps)) return false;
  std::vector<double> lasts = piece.firsts;
  const double steps = static_cast<double>(piece.length - 1);
  for (size_t i = 0; i < lasts.size(); ++i) {
    lasts[i] += piece.steps[i] * steps;
    const DataType dtype = call->operand_type(static_cast<int>(i));
    if (!IsIntegerOf(dtype, piece.firsts[i]) || !IsIntegerOf(dtype, lasts[i])) return false;
  }
  const double first = call->Of(piece.firsts), last = call->Of(lasts);
  const double step = (last - first) / steps;
  if (!IsIntegerOf(call->type(), first) || !IsIntegerOf(call->type(), last)) return false;
  out->Add(piece.length, first, step);
  return true;
}

bool AddPiece(const RunPiece& piece, ElementwiseCall* call, RunWriter* out) {
  const bool is_constant = piece.length == 1 || std::all_of(piece.steps.begin(), piece.steps.end(),
                                                            [](double step) { return step == 0; });
  if (is_constant) {
    out->Add(piece.length, call->Of(piece.firsts), 0);
    return true;
  }
  if (call->kind() == OpKind::kWhere && piece.steps[0] == 0) {
    const int chosen = piece.firsts[0] != 0 ? 1 : 2;
    out->Add(piece.length, piece.firsts[chosen], piece.steps[chosen]);
    return true;
  }
  return IsComparison(call->kind()) ? AddComparison(piece, call, out) : AddLinear(piece, call, out);
}

// The row of `sizes` with that number, of an operand that is broadcast to them.
int64_t OperandRow(int64_t row, const std::vector<int64_t>& sizes,
                   const std::vector<int64_t>& operand) {
  int64_t result = 0, stride = 1;
  for (size_t i = 2; i <= sizes.size(); ++i) {
    const int64_t size = sizes[sizes.size() - i], at = row % size;
    row /= size;
    if (i > operand.size()) continue;
    const int64_t of = operand[operand.size() - i];
    if (of != 1) result += at * stride;
    stride *= of;
  }
  return result;
}

std::optional<TensorRuns> ElementByElement(const std::vector<const TensorRuns*>& operands,
                                           ElementwiseCall* call, size_t rank) {
  std::vector<int64_t> sizes(rank, 1);
  for (const TensorRuns* operand : operands) {
    for (size_t i = 1; i <= operand->sizes.size(); ++i) {
      int64_t& size = sizes[rank - i];
      size = std::max(size, operand->sizes[operand->sizes.size() - i]);
    }
  }
  const int64_t row_size = rank == 0 ? 1 : sizes.back();
  const int64_t rows = SizeProduct(sizes) / row_size;
  if (rows > kMostRuns) return std::nullopt;
  RunWriter out(sizes);
  RunPiece piece;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<RowReader> readers;
    for (const TensorRuns* operand : operands) {
      readers.emplace_back(*operand, OperandRow(row, sizes, operand->sizes), row_size);
    }
    for (int64_t at = 0; at < row_size; at += piece.length) {
      int64_t end = row_size;
      piece.firsts.clear(), piece.steps.clear();
      for (const RowReader& reader : readers) {
        end = std::min(end, reader.RunEnd());
        piece.firsts.push_back(reader.First());
        piece.steps.push_back(reader.Step());
      }
      piece.length = end - at;
      if (!AddPiece(piece, call, &out) || call->failed() || out.IsTooLong()) return std::nullopt;
      for (RowReader& reader : readers) reader.Advance(end);
    }
    out.EndRow();
  }
  return out.Take();
}

// Elements above (below) diagonal k of the last two dims, `whole`, stay; the others are 0.
std::optional<TensorRuns> Triangle(const TensorRuns& x, const std::vector<int64_t>& whole,
                                   bool upper, int64_t k) {
  const size_t rank = whole.size();
  std::vector<int64_t> sizes = x.sizes;
  for (size_t i : {rank - 2, rank - 1}) sizes[i] = whole[i];
  const int64_t columns = sizes[rank - 1];
  const int64_t rows = SizeProduct(sizes) / std::max<int64_t>(columns, 1);
  if (rows > kMostRuns) return std::nullopt;
  RunWriter out(sizes);
  for (int64_t row = 0; row < rows; ++row) {
    RowReader reader(x, OperandRow(row, sizes, x.sizes), columns);
    // Row i keeps the columns from i + k on, or those up to it.
    const int64_t diagonal = row % sizes[rank - 2] + k;
    const int64_t cut = std::clamp<int64_t>(upper ? diagonal : diagonal + 1, 0, columns);
    for (int64_t at = 0; at < columns;) {
      const int64_t end = std::min(reader.RunEnd(), at < cut ? cut : columns);
      const bool stays = upper ? at >= cut : at < cut;
      out.Add(end - at, stays ? reader.First() : 0, stays ? reader.Step() : 0);
      reader.Advance(end);
      at = end;
    }
    if (out.IsTooLong()) return std::nullopt;
    out.EndRow();
  }
  return out.Take();
}

std::vector<int64_t> WithoutOnes(std::vector<int64_t> sizes) {
  std::erase(sizes, 1);
  return sizes;
}

// Of a Reshape from sizes `from` to `to`.
std::optional<TensorRuns> Reshaped(const TensorRuns& x, const std::vector<int64_t>& from,
                                   const std::vector<int64_t>& to) {
  if (WithoutOnes(from) == WithoutOnes(to)) {
    // Dims of size 1 come and go: which of the others only repeat stays known.
    std::vector<int64_t> once;
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] != 1) once.push_back(x.sizes[i]);
    }
    std::vector<int64_t> sizes;
    size_t next = 0;
    for (int64_t size : to) sizes.push_back(size == 1 ? 1 : once[next++]);
    const int64_t row_size = sizes.empty() ? 1 : sizes.back();
    if (row_size == x.row_size()) {
      TensorRuns result = x;
      result.sizes = std::move(sizes);
      return result;
    }
    if (SizeProduct(sizes) > kMostArranged) return std::nullopt;
    return RunsOf(std::move(sizes), x.Written());
  }
  const int64_t elements = SizeProduct(x.sizes);
  if (elements == 1) {
    TensorRuns result = x;
    result.sizes.assign(to.size(), 1);
    return result;
  }
  if (x.sizes != from || elements > kMostArranged) return std::nullopt;
  return RunsOf(to, x.Written());
}

std::optional<TensorRuns> Transposed(const TensorRuns& x, const Operator& op) {
  const std::vector<int64_t>& perm = op.Ints("perm");
  const size_t rank = perm.size();
  std::vector<int64_t> sizes;
  for (int64_t dim : perm) sizes.push_back(x.sizes[dim]);
  if (KeepsOrder(op, x.sizes) && sizes.back() == x.sizes.back()) {
    TensorRuns result = x;
    result.sizes = std::move(sizes);
    return result;
  }
  const int64_t elements = SizeProduct(sizes);
  if (elements > kMostArranged) return std::nullopt;
  std::vector<int64_t> strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * x.sizes[i];
  const std::vector<double> from = x.Written();
  std::vector<double> to(elements);
  for (int64_t n = 0; n < elements; ++n) {
    int64_t rest = n, at = 0;
    for (size_t i = rank; i-- > 0;) {
      at += rest % sizes[i] * strides[perm[i]];
      rest /= sizes[i];
    }
    to[n] = from[at];
  }
  return RunsOf(std::move(sizes), to);
}

// Whether two rows are of the same runs.
bool AreEqualRows(const TensorRuns& x, int64_t a, int64_t b) {
  const auto begin = [&](int64_t row) { return x.runs.begin() + (row == 0 ? 0 : x.rows[row - 1]); };
  return std::equal(begin(a), begin(a + 1), begin(b), begin(b + 1));
}

// Makes dims along which nothing changes of size 1.
TensorRuns OncePerDim(TensorRuns x) {
  if (x.row_size() > 1 && x.runs.size() == x.rows.size() &&
      std::all_of(x.runs.begin(), x.runs.end(),
                  [](const ElementRun& run) { return run.step == 0; })) {
    for (ElementRun& run : x.runs) run.end = 1;
    x.sizes.back() = 1;
  }
  int64_t inner = 1;  // rows
  for (size_t d = x.sizes.size(); d-- > 1;) {
    const int64_t size = x.sizes[d - 1];
    const int64_t slice = inner * size;
    bool repeats = size > 1;
    for (int64_t row = 0; repeats && row < x.num_rows(); ++row) {
      repeats = row % slice < inner || AreEqualRows(x, row, row - inner);
    }
    if (!repeats) {
      inner = slice;
      continue;
    }
    TensorRuns once{x.sizes, {}, {}};
    once.sizes[d - 1] = 1;
    for (int64_t row = 0; row < x.num_rows(); ++row) {
      if (row % slice >= inner) continue;
      once.runs.insert(once.runs.end(), x.runs.begin() + (row == 0 ? 0 : x.rows[row - 1]),
                       x.runs.begin() + x.rows[row]);
      once.rows.push_back(static_cast<int64_t>(once.runs.size()));
    }
    x = std::move(once);
  }
  return x;
}

}  // namespace

std::vector<double> TensorRuns::Written() const {
  std::vector<double> elements;
  int64_t run = 0;
  for (int64_t row_end : rows) {
    for (int64_t at = 0; run < row_end; ++run) {
      for (int64_t i = 0; at < runs[run].end; ++at, ++i) {
        elements.push_back(runs[run].first + runs[run].step * static_cast<double>(i));
      }
    }
  }
  return elements;
}

TensorRuns RunsOf(std::vector<int64_t> sizes, const std::vector<double>& elements) {
  const int64_t size = sizes.empty() ? 1 : sizes.back();
  RunWriter out(std::move(sizes));
  const int64_t all = static_cast<int64_t>(elements.size());
  for (int64_t row = 0; row < all; row += size) {
    const int64_t end = row + size;
    for (int64_t at = row; at < end;) {
      int64_t next = at + 1;
      while (next < end && elements[next] == elements[at]) ++next;
      double step = 0;
      if (next == at + 1 && at + 2 < end) {
        step = elements[at + 1] - elements[at];
        while (next < end && elements[next] - elements[next - 1] == step) ++next;
        // Two numbers are at equal distances whatever they are.
        if (next < at + 3 || !std::isfinite(step)) next = at + 1;
      }
      out.Add(next - at, elements[at], step);
      at = next;
    }
    out.EndRow();
  }
  return OncePerDim(out.Take());
}

ConstantRuns::ConstantRuns(const Model* model)
    : model_(*model),
      order_(model->graph.TopologicalOrder()),
      position_(model->graph.num_nodes()),
      is_constant_(model->graph.num_nodes(), false) {
  for (size_t i = 0; i < order_.size(); ++i) {
    const Node& node = model_.graph.node(order_[i]);
    position_[order_[i].value] = static_cast<int>(i);
    is_constant_[order_[i].value] =
        IsLeaf(node.op.kind())
            ? node.op.kind() == OpKind::kConstant && model_.weights.count(node.name) > 0
            : std::all_of(node.inputs.begin(), node.inputs.end(),
                          [&](TensorRef input) { return is_constant_[input.node.value]; });
  }
}

const TensorRuns* ConstantRuns::Of(TensorRef x) {
  if (x.output != 0 || x.node.value >= static_cast<int>(is_constant_.size()) ||
      !is_constant_[x.node.value]) {
    return nullptr;
  }
  // What it needs and is not known yet, in order.
  std::set<int> needed;  // by position
  std::vector<NodeId> seen = {x.node};
  while (!seen.empty()) {
    const NodeId id = seen.back();
    seen.pop_back();
    if (known_.count(id) > 0 || !needed.insert(position_[id.value]).second) continue;
    for (TensorRef input : model_.graph.node(id).inputs) seen.push_back(input.node);
  }
  for (int position : needed) {
    const NodeId id = order_[position];
    std::optional<TensorRuns>& tensor = known_[id] = Computed(model_.graph.node(id));
    if (!tensor) continue;
    runs_ += static_cast<int64_t>(tensor->runs.size());
    if (runs_ > kMostRuns) tensor.reset();
  }
  const std::optional<TensorRuns>& tensor = known_[x.node];
  return tensor ? &*tensor : nullptr;
}

std::optional<TensorRuns> ConstantRuns::Computed(const Node& node) const {
  const std::vector<int64_t> sizes = node.outputs[0].Sizes();
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return std::nullopt;
  if (node.op.kind() == OpKind::kConstant) {
    const StoredValues& values = model_.weights.at(node.name);
    return RunsOf(sizes, std::vector<double>(values.begin(), values.end()));
  }
  std::vector<const TensorRuns*> operands;
  std::vector<Shape> shapes;
  for (TensorRef input : node.inputs) {
    const auto found = known_.find(input.node);
    if (input.output != 0 || found == known_.end() || !found->second) return std::nullopt;
    operands.push_back(&*found->second);
    shapes.push_back(model_.graph.type(input).GlobalShape());
  }
  switch (node.op.kind()) {
    case OpKind::kExpand: {
      TensorRuns result = *operands[0];
      result.sizes.insert(result.sizes.begin(), sizes.size() - result.sizes.size(), 1);
      return result;
    }
    case OpKind::kReshape:
      return Reshaped(*operands[0], model_.graph.type(node.inputs[0]).Sizes(), sizes);
    case OpKind::kTranspose:
      return Transposed(*operands[0], node.op);
    case OpKind::kTrilu:
      return Triangle(*operands[0], sizes, node.op.Int("upper") != 0, node.op.Int("k"));
    default:
      break;
  }
  const absl::StatusOr<Declaration> declaration = Declare(node.op, shapes);
  if (!declaration.ok() || !IsPointwise(*declaration)) return std::nullopt;
  ElementwiseCall call(model_.graph, node);
  return ElementByElement(operands, &call, sizes.size());
}

}  // namespace isomer
