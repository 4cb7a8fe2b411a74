#include "runtime/cuda/generated_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/support/check.h"
#include "runtime/cuda/replaced_elements.h"

namespace isomer {
namespace {

// What a value is computed in. A constant is in whatever its neighbour is.
enum class Domain { kConstant, kInteger, kFloat, kDouble };

struct Value {
  Domain domain = Domain::kFloat;
  std::string name = {};  // a variable
  double constant = 0;
  bool is_known = true;
};

const char* TypeOf(Domain domain) {
  return domain == Domain::kInteger ? "long long" : domain == Domain::kDouble ? "double" : "float";
}

const char* ElementName(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return "float";
    case DataType::kInt64:
      return "long long";
    case DataType::kBFloat16:
      return "bf16";
    case DataType::kFloat16:
      return "f16";
    case DataType::kInt32:
      return "int";
    case DataType::kBool:
      return "bool8";
  }
  return "";
}

Domain DomainOf(DataType dtype) { return IsFloat(dtype) ? Domain::kFloat : Domain::kInteger; }

// It is one of long long.
bool IsInteger(double value) { return std::floor(value) == value && std::abs(value) < 0x1p63; }

std::string Literal(double value, Domain domain) {
  if (domain == Domain::kInteger) return absl::StrCat(static_cast<int64_t>(value), "LL");
  // Compilers refuse what is out of a type's range.
  if (domain != Domain::kDouble) value = static_cast<double>(static_cast<float>(value));
  if (std::isnan(value)) return "FloatOfBits(0x7fc00000u)";
  if (std::isinf(value)) return value > 0 ? "FloatOfBits(0x7f800000u)" : "FloatOfBits(0xff800000u)";
  std::string digits = absl::StrFormat("%.17g", value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return absl::StrCat("(", digits, domain == Domain::kDouble ? ")" : "f)");
}

// The value as an expression of this domain.
std::string As(Domain domain, const Value& value) {
  if (value.domain == Domain::kConstant) return Literal(value.constant, domain);
  if (value.domain == domain) return value.name;
  return absl::StrCat("static_cast<", TypeOf(domain), ">(", value.name, ")");
}

// What two values are computed in. An integer may have more digits than a float: with a constant
// that is none it becomes a double. With a float it becomes one, whose digits are those of the
// result.
Domain Common(const Value& a, const Value& b) {
  if (a.domain != Domain::kConstant && b.domain != Domain::kConstant) {
    return std::max(a.domain, b.domain);
  }
  if (a.domain == b.domain) return Domain::kFloat;
  const Value &constant = a.domain == Domain::kConstant ? a : b, &other = &constant == &a ? b : a;
  if (other.domain != Domain::kInteger) return other.domain;
  return IsInteger(constant.constant) ? Domain::kInteger : Domain::kDouble;
}

// A piece of a tensor as it lies in memory, and how kernels name it.
struct Piece {
  std::vector<int64_t> origin, shape, strides;
  std::string data;  // "static_cast<const float*>(a.reads[0])"; empty: nobody has it
  Domain domain = Domain::kFloat;
  int64_t Volume() const {
    int64_t volume = 1;
    for (int64_t size : shape) volume *= size;
    return volume;
  }
};

Piece PieceOf(const Box& box, Layout layout) {
  Piece piece;
  piece.origin.assign(box.origin.begin(), box.origin.end());
  piece.shape.assign(box.shape.begin(), box.shape.end());
  const size_t rank = piece.shape.size();
  std::vector<size_t> order(rank);  // from the outermost
  for (size_t i = 0; i < rank; ++i) order[i] = i;
  if (layout == Layout::kChannelsLast)
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  piece.strides.assign(rank, 1);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    piece.strides[order[i]] = stride;
    stride *= piece.shape[order[i]];
  }
  return piece;
}

// How a block shares its threads: so many elements at a time, by so many threads each.
struct Lanes {
  int elements = GeneratedKernel::kBlock, lanes = 1;
};

// Of equal accesses of a statement, all loads.
struct Loads {
  int statement;
  const Access* access;
  std::vector<int> lines;
};

class Generator {
 public:
  Generator(const KernelCall& call, absl::string_view name, const SharingLimits& limits)
      : call_(call), declaration_(call.declaration), name_(name), limits_(limits) {
    for (size_t v = 0; v < declaration_.dims.size(); ++v) {
      variables_.push_back(absl::StrCat("v", v));
    }
    const size_t saved = call.saved.has_value() ? 1 : 0;
    const size_t operands = call.operands.size(), outputs = call.outputs.size();
    kernel_.reads = static_cast<int>(call.gradient ? operands + 2 * outputs + saved : operands);
    kernel_.writes = static_cast<int>(call.gradient ? operands : outputs + saved);
  }

  std::optional<GeneratedKernel> Forward() {
    AddOperands();
    if (const int64_t rows = RowsOfStatements(); rows > 0) BeginRows(rows);
    for (size_t s = 0; s < declaration_.statements.size(); ++s) {
      const int output = declaration_.statements[s].output;
      Piece piece = PieceOfStatement(s, output);
      if (output < 0) {
        PlaceInWorkspace(s, &piece);
      } else {
        piece.domain = DomainOf(call_.output_dtypes[output]);
        piece.data = Pointer(call_.output_dtypes[output], absl::StrCat("a.writes[", output, "]"));
      }
      tensors_.push_back(piece);
      RunStatement(static_cast<int>(s), /*places=*/nullptr);
    }
    rows_ = 0;
    CloseTo(0);
    return std::move(kernel_);
  }

  std::optional<GeneratedKernel> Gradient() {
    AddOperands();
    if (call_.op.kind() == OpKind::kSoftmax || call_.op.kind() == OpKind::kLogSoftmax) {
      return GradientOfSoftmax();
    }
    const int n = declaration_.num_operands();
    const int count = static_cast<int>(declaration_.statements.size());
    ChooseLive();
    const std::vector<bool> is_read = StatementsRead();
    for (int s = 0; s < count; ++s) {
      tensors_.push_back(PieceOfStatement(s, -1));
      places_.emplace_back();
      if (!is_read[s]) continue;
      const bool is_max = declaration_.statements[s].reduction == Reduction::kMax;
      if (!CanRun(s)) {  // Whoever needs its values will say so.
        if (is_max && is_live_[s]) return std::nullopt;
        continue;
      }
      PlaceInWorkspace(s, &tensors_.back());
      if (is_max) {
        places_.back() = tensors_.back();
        places_.back().domain = Domain::kInteger;
        places_.back().data = Workspace(places_.back());
      }
      RunStatement(s, places_.back().data.empty() ? nullptr : &places_.back());
    }
    adjoints_.resize(n + count);
    for (int s = count - 1; s >= 0; --s) {
      const Statement& statement = declaration_.statements[s];
      Piece& adjoint = adjoints_[n + s];
      if (statement.output >= 0) {
        adjoint = PieceOfStatement(s, statement.output);
        adjoint.data = ReadPointer(call_.output_dtypes[statement.output],
                                   n + call_.outputs.size() + statement.output);
      } else if (is_live_[s]) {
        adjoint = tensors_[n + s];
        adjoint.domain = Domain::kFloat;
        adjoint.data = Workspace(adjoint);
        if (!Differentiate(n + s, adjoint, DataType::kFloat32, /*adds=*/false)) return std::nullopt;
      }
    }
    for (int o = 0; o < n; ++o) {
      if (!call_.wanted[o]) continue;
      const DataType dtype = call_.SumDtype(o);
      Piece gradient = tensors_[o];
      gradient.data = Pointer(dtype, absl::StrCat("a.writes[", o, "]"));
      gradient.domain = Domain::kFloat;
      if (!Differentiate(o, gradient, dtype, call_.Adds(o))) return std::nullopt;
    }
    return std::move(kernel_);
  }

 private:
  // --- Tensors.

  static std::string Pointer(DataType dtype, absl::string_view data) {
    return absl::StrCat("static_cast<", ElementName(dtype), "*>(", data, ")");
  }
  static std::string ReadPointer(DataType dtype, size_t place) {
    return absl::StrCat("static_cast<const ", ElementName(dtype), "*>(a.reads[", place, "])");
  }
  std::string Workspace(const Piece& piece) {
    const int64_t at = kernel_.workspace_bytes;
    kernel_.workspace_bytes += Aligned(piece.Volume() * (piece.domain == Domain::kFloat ? 4 : 8));
    return absl::StrCat("reinterpret_cast<", TypeOf(piece.domain), "*>(a.workspace + ", at, ")");
  }

  void AddOperands() {
    const GradientNeeds needs = call_.gradient ? NeedsOf(call_) : GradientNeeds();
    if (call_.gradient && needs.outputs[0] && call_.outputs.size() == 1) {
      result_ = PieceOf(call_.outputs[0], call_.layouts.OfOutput(0));
      result_.data = ReadPointer(call_.output_dtypes[0], call_.operands.size());
      result_.domain = DomainOf(call_.output_dtypes[0]);
    }
    for (size_t o = 0; o < call_.operands.size(); ++o) {
      Piece piece = PieceOf(call_.operands[o], call_.layouts.OfOperand(o));
      piece.domain = DomainOf(call_.dtypes[o]);
      if (!call_.gradient || needs.operands[o]) piece.data = ReadPointer(call_.dtypes[o], o);
      tensors_.push_back(std::move(piece));
    }
  }

  // As the evaluator has it, or as a buffer of the output does.
  Piece PieceOfStatement(int s, int output) const {
    Box box;
    for (const Index& index : declaration_.statements[s].indices) {
      int64_t low = 0, extent = 1;
      for (const auto& [dim, stride] : index.terms) {
        low += Begin(dim) * stride;
        extent += (End(dim) - Begin(dim) - 1) * stride;
      }
      box.origin.push_back(low);
      box.shape.push_back(extent);
    }
    return PieceOf(box, output < 0 ? Layout::kRowMajor : call_.layouts.OfOutput(output));
  }
  void PlaceInWorkspace(int s, Piece* piece) {
    piece->domain = DomainOfStatement(s);
    piece->data = Workspace(*piece);
  }

  int64_t Begin(int dim) const { return call_.iteration.begin[dim]; }
  int64_t End(int dim) const { return call_.iteration.end[dim]; }
  int64_t Extent(int dim) const { return End(dim) - Begin(dim); }
  int64_t PointsOf(const std::vector<int>& dims) const {
    int64_t points = 1;
    for (int dim : dims) points *= Extent(dim);
    return points;
  }
  int64_t SizeOf(int tensor, size_t i) const {
    const int n = declaration_.num_operands();
    return tensor < n ? declaration_.operands[tensor][i].value()
                      : declaration_.StatementShape(declaration_.statements[tensor - n])[i].value();
  }

  // --- Text.

  template <typename... Parts>
  void Line(const Parts&... parts) {
    absl::StrAppend(&kernel_.text, std::string(2 * depth_, ' '), parts..., "\n");
  }
  template <typename... Parts>
  void Open(const Parts&... parts) {
    Line(parts..., " {");
    ++depth_;
  }
  void CloseTo(int depth) {
    while (depth_ > depth) {
      --depth_;
      Line("}");
    }
  }
  std::string NewName() { return absl::StrCat("t", names_++); }

  // A tensor as kernels read it: the dims that index it, where it lies.
  struct Reading {
    const std::vector<Index>* indices;
    const Piece* piece;
  };
  // For elements of which each is a reduction over `loops`. `fastest`: the dim along which elements
  // lie side by side; -1: there is none.
  Lanes LanesOf(int64_t elements, int fastest, const std::vector<int>& loops,
                const std::vector<Reading>& readings) const {
    // So are the reductions of so many elements that a GPU has no more threads, if they read side
    // by side.
    constexpr int64_t kMany = int64_t{1} << 17, kFew = 4096;
    if (PointsOf(loops) < limits_.shortest_reduction) return {};  // A thread's.
    // What is read most: do neighbouring elements read neighbours, or neighbouring points?
    const Reading* most = nullptr;
    for (const Reading& reading : readings) {
      if (most == nullptr || reading.piece->Volume() > most->piece->Volume()) most = &reading;
    }
    bool is_by_element = fastest >= 0 && most != nullptr;
    if (is_by_element) {
      std::map<int, int64_t> step;
      for (size_t i = 0; i < most->indices->size(); ++i) {
        for (const auto& [dim, stride] : (*most->indices)[i].terms) {
          step[dim] += std::abs(stride) * most->piece->strides[i];
        }
      }
      const int64_t of_elements = step[fastest];
      is_by_element = of_elements > 0 && absl::c_none_of(loops, [&](int dim) {
                        return step[dim] > 0 && step[dim] < of_elements;
                      });
    }
    if (is_by_element) return elements >= kMany ? Lanes() : Lanes{32, 8};
    return elements >= kFew ? Lanes{8, 32} : Lanes{1, GeneratedKernel::kBlock};
  }

  // `joins`: the kernel before goes on, of which nothing is read here.
  void OpenKernel(int64_t elements, int elements_per_block, int64_t threads, bool joins) {
    const GeneratedKernel::Launch launch = {absl::StrCat(name_, "_", kernel_.launches.size()),
                                            elements, elements_per_block};
    if (joins) {
      kernel_.text.resize(kernel_.text.size() - absl::string_view("}\n").size());
      depth_ = 1;
      GeneratedKernel::Launch& before = kernel_.launches.back();
      if (launch.blocks() > before.blocks()) {
        before.elements = elements;
        before.elements_per_block = elements_per_block;
      }
    } else {
      kernel_.launches.push_back(launch);
      Open("ISOMER_KERNEL(", launch.name, ", Arguments<", std::max(kernel_.reads, 1), ", ",
           std::max(kernel_.writes, 1), ">)");
    }
    constexpr double kMostOfInt = 0x1p30;
    index_ = LargestIndex(threads) < kMostOfInt ? "int" : "long long";
  }

  // Dims of the elements that a statement defines, as they lie: the fastest last.
  std::vector<int> ElementDims(const Statement& statement, const Piece& piece) const {
    std::vector<int64_t> step(declaration_.dims.size(), 0);
    for (size_t i = 0; i < statement.indices.size(); ++i) {
      for (const auto& [dim, stride] : statement.indices[i].terms) {
        step[dim] += stride * piece.strides[i];
      }
    }
    std::vector<int> dims = IndexDims(statement);
    absl::c_stable_sort(dims, [&](int a, int b) { return step[a] > step[b]; });
    return dims;
  }

  // The statements' elements are rows, a block's work each: all begin with the same dims, and read
  // of each other what is of their row alone. How many rows there are; 0: they are none, or it does
  // not pay.
  int64_t RowsOfStatements() const {
    if (declaration_.statements.size() < 2) return 0;
    std::vector<std::vector<int>> dims;
    for (size_t s = 0; s < declaration_.statements.size(); ++s) {
      const Statement& statement = declaration_.statements[s];
      const Piece piece = PieceOfStatement(static_cast<int>(s), statement.output);
      dims.push_back(ElementDims(statement, piece));
    }
    std::vector<int> rows = dims[0];
    for (const std::vector<int>& of : dims) {
      size_t common = 0;
      while (common < std::min(rows.size(), of.size()) && rows[common] == of[common]) ++common;
      rows.resize(common);
    }
    const size_t n = declaration_.operands.size();
    for (const Access& access : declaration_.accesses) {
      if (access.tensor < static_cast<int>(n)) continue;
      const Statement& defines = declaration_.statements[access.tensor - n];
      const auto is_of_row = [&](int dim) {
        for (size_t i = 0; i < defines.indices.size(); ++i) {
          if (defines.indices[i] == Index(dim)) return access.indices[i] == Index(dim);
        }
        return false;
      };
      size_t of_row = 0;
      while (of_row < rows.size() && is_of_row(rows[of_row])) ++of_row;
      rows.resize(of_row);
    }
    // A number of each row that is found out together.
    bool has_reduction = false;
    for (size_t s = 0; s < dims.size(); ++s) {
      has_reduction |= dims[s] == rows && PointsOf(ReducedLoops(declaration_.statements[s])) >=
                                              limits_.shortest_reduction;
    }
    return has_reduction && PointsOf(rows) >= limits_.fewest_rows ? PointsOf(rows) : 0;
  }
  // What follows until rows_ is 0 is one kernel.
  void BeginRows(int64_t rows) {
    int64_t threads = rows * GeneratedKernel::kBlock;
    for (const Statement& statement : declaration_.statements) {
      threads = std::max(threads, PointsOf(IndexDims(statement)));
    }
    OpenKernel(rows, /*elements_per_block=*/1, threads, /*joins=*/false);
    Open("ISOMER_FOR_EACH_ROW(", index_, ", row, ", rows, ")");
    rows_ = rows;
  }

  void BeginKernel(int64_t elements, Lanes lanes = {}, bool joins = false) {
    if (rows_ > 0) {
      const int64_t of_row = elements / rows_;
      // All threads for the numbers of a row.
      lanes_ = lanes.lanes > 1 && of_row == 1 ? Lanes{1, GeneratedKernel::kBlock} : lanes;
      const std::string range = absl::StrCat("row * ", of_row, ", (row + 1) * ", of_row);
      if (lanes_.lanes == 1) {
        Open("ISOMER_IN_ROW(", index_, ", i, ", range, ")");
      } else {
        Open("ISOMER_IN_ROW_BY_LANES(", index_, ", i, ", range, ", ", lanes_.elements, ")");
      }
      Line(index_, " rest = i;");
      return;
    }
    lanes_ = lanes;
    OpenKernel(elements, lanes.elements, elements * lanes.lanes, joins);
    if (!joins) {
      in_kernel_.clear();
      gathers_operands_ = false;
    }
    if (lanes.lanes == 1) {
      Open("ISOMER_FOR_EACH(", index_, ", i, ", elements, ")");
    } else {
      Open("ISOMER_FOR_EACH_BY_LANES(", index_, ", i, ", elements, ", ", lanes.elements, ")");
    }
    Line(index_, " rest = i;");
  }
  // A reduction of the element: in between, `sum`, `place` and `is_first` are a lane's.
  void BeginReduction(const std::string& type) {
    type_ = type;
    if (lanes_.lanes > 1) {
      Open("const auto part = [&](", index_, " lane, ", index_, " lanes)");
    }
    Line(type, " sum = 0;");
    Line("long long place = -1;");
    Line("bool is_first = true;");
  }
  void EndReduction(Reduction reduction, int depth) {
    if (lanes_.lanes == 1) return;
    Line("return Part<", type_, ">{sum, place, is_first};");
    CloseTo(depth);
    kernel_.text.pop_back();  // The end of a lambda's line.
    kernel_.text += ";\n";
    const char* combine = reduction == Reduction::kMax       ? "MaximumOfPart"
                          : reduction == Reduction::kProduct ? "MultiplyPart"
                                                             : "AddPart";
    Line("const Part<", type_, "> all = Combine<", lanes_.elements, ", ", lanes_.lanes, ", ", type_,
         ">(part, ", combine, "<", type_, ">);");
    Line("if (!stores) continue;");
    Line(type_, " sum = all.sum;");
    Line("long long place = all.place;");
  }
  void EndKernel() {
    constexpr int kInRows = 2;
    CloseTo(rows_ > 0 ? kInRows : 0);
    if (rows_ > 0) Line("ISOMER_AFTER_STATEMENT;");
  }
  // Of all that kernels compute of indices, on the way too: coordinates are those of whole tensors,
  // so that a small piece may be far from the beginning.
  double LargestIndex(int64_t threads) const {
    double most = static_cast<double>(threads);
    for (const IterationDim& dim : declaration_.dims) {
      most = std::max(most, static_cast<double>(dim.size.value()));
    }
    const auto reach = [&](const std::vector<Index>& indices, const Piece& piece) {
      double offset = 0;
      for (size_t i = 0; i < indices.size(); ++i) {
        double coordinate = std::abs(static_cast<double>(indices[i].offset.value()));
        for (const auto& [dim, stride] : indices[i].terms) {
          coordinate += std::abs(static_cast<double>(stride)) * static_cast<double>(End(dim));
        }
        const double end = static_cast<double>(piece.origin[i] + piece.shape[i]);
        most = std::max({most, coordinate, end * static_cast<double>(indices[i].divide)});
        offset += (coordinate + end) * static_cast<double>(piece.strides[i]);
      }
      most = std::max(most, offset);
    };
    const size_t n = declaration_.operands.size();
    for (const Access& access : declaration_.accesses) {
      const size_t tensor = access.tensor;
      if (tensor < n) {
        reach(access.indices, tensors_[tensor]);
      } else {
        reach(access.indices, PieceOfStatement(static_cast<int>(tensor - n), -1));
      }
    }
    for (size_t s = 0; s < declaration_.statements.size(); ++s) {
      const Statement& statement = declaration_.statements[s];
      reach(statement.indices, PieceOfStatement(static_cast<int>(s), statement.output));
    }
    return most;
  }

  // Coordinates of a thread: `names` over [begin, begin + extent), the first the slowest.
  struct Coordinate {
    std::string name;
    int64_t begin, extent;
  };
  void Decode(const std::vector<Coordinate>& coordinates) {
    for (size_t i = coordinates.size(); i-- > 0;) {
      const Coordinate& c = coordinates[i];
      const std::string begin = c.begin == 0 ? "" : absl::StrCat(c.begin, " + ");
      Line("const ", index_, " ", c.name, " = ", begin, i > 0 ? "rest % " : "rest",
           i > 0 ? absl::StrCat(c.extent) : "", ";");
      if (i > 0) Line("rest /= ", c.extent, ";");
    }
  }

  // In a reduction that lanes share, each goes over every so many-th point.
  void OpenReduction(const std::vector<int>& dims) {
    if (lanes_.lanes == 1) return OpenLoops(dims);
    const int64_t points = PointsOf(dims);
    const std::string point = NewName(), rest = NewName();
    Open("for (", index_, " ", point, " = lane; ", point, " < ", points, "; ", point, " += lanes)");
    Line(index_, " ", rest, " = ", point, ";");
    for (size_t i = dims.size(); i-- > 0;) {
      const int dim = dims[i];
      Line("const ", index_, " ", variables_[dim], " = ", Begin(dim), " + ", rest,
           i > 0 ? absl::StrCat(" % ", Extent(dim)) : "", ";");
      if (i > 0) Line(rest, " /= ", Extent(dim), ";");
    }
  }
  void OpenLoops(const std::vector<int>& dims) {
    for (int dim : dims) {
      Open("for (", index_, " ", variables_[dim], " = ", Begin(dim), "; ", variables_[dim], " < ",
           End(dim), "; ++", variables_[dim], ")");
    }
  }
  // What leaves it out by `continue` goes on with the next point.
  void OpenPoint() { Open("for (int once = 0; once < 1; ++once)"); }

  // The sum of a constant and of dims, so many times each.
  std::string Sum(int64_t constant, absl::Span<const std::pair<int, int64_t>> terms) const {
    std::vector<std::string> parts;
    if (constant != 0 || terms.empty()) parts.push_back(absl::StrCat(constant));
    for (const auto& [dim, times] : terms) {
      parts.push_back(absl::StrCat(times == 1 ? "" : absl::StrCat(times, " * "), variables_[dim]));
    }
    return absl::StrJoin(parts, " + ");
  }

  // Where an access reads: an expression, and the name of a bool that it is inside, or none.
  struct Place {
    std::string offset, inside;
  };
  static bool IsAffine(const Access& access) {
    return access.outside == Outside::kNever &&
           absl::c_all_of(access.indices, [](const Index& index) {
             return index.divide == 1 && index.modulo == 0;
           });
  }
  Place PlaceOf(const Access& access, const Piece& piece) {
    if (IsAffine(access)) {
      int64_t constant = 0;
      std::map<int, int64_t> step;
      for (size_t i = 0; i < access.indices.size(); ++i) {
        constant += (access.indices[i].offset.value() - piece.origin[i]) * piece.strides[i];
        for (const auto& [dim, stride] : access.indices[i].terms) {
          step[dim] += stride * piece.strides[i];
        }
      }
      return {Sum(constant, std::vector<std::pair<int, int64_t>>(step.begin(), step.end())), ""};
    }
    const std::string offset = NewName(), inside = NewName();
    Line(index_, " ", offset, " = 0;");
    Line("bool ", inside, " = true;");
    for (size_t i = 0; i < access.indices.size(); ++i) {
      const Index& index = access.indices[i];
      const std::string c = NewName();
      Line(index_, " ", c, " = ", Sum(index.offset.value(), index.terms), ";");
      if (index.divide != 1) {
        if (index.exact) Line(inside, " = ", inside, " && ", c, " % ", index.divide, " == 0;");
        Line(c, " /= ", index.divide, ";");
      }
      if (index.modulo != 0) Line(c, " %= ", index.modulo, ";");
      Line(inside, " = ", inside, " && ", c, " >= 0 && ", c, " < ", SizeOf(access.tensor, i), ";");
      Line(offset, " += (", c, " - ", piece.origin[i], ") * ", piece.strides[i], ";");
    }
    return {offset, inside};
  }
  // Where the statement defines: no access.
  std::string OffsetOf(const Statement& statement, const Piece& piece) {
    return PlaceOf({.tensor = 0, .indices = statement.indices}, piece).offset;
  }

  // --- The body of a statement.

  std::vector<std::array<int, 3>> OperandsOfLines(const Statement& statement) const {
    std::vector<std::array<int, 3>> operands;
    std::vector<int> stack;
    for (const Instruction& instruction : statement.body) {
      std::array<int, 3> of = {-1, -1, -1};
      for (int i = Arity(instruction.op) - 1; i >= 0; --i) {
        of[i] = stack.back();
        stack.pop_back();
      }
      stack.push_back(static_cast<int>(operands.size()));
      operands.push_back(of);
    }
    return operands;
  }

  Domain DomainOfStatement(int s) const {
    const Statement& statement = declaration_.statements[s];
    const auto operands = OperandsOfLines(statement);
    std::vector<Value> values;
    for (size_t i = 0; i < statement.body.size(); ++i) {
      values.push_back(ValueOf(statement.body[i], operands[i], values));
    }
    const Domain domain = values.back().domain;
    if (domain == Domain::kConstant) return Domain::kFloat;
    // A product of integers is soon beyond them.
    const bool is_product = statement.reduction == Reduction::kProduct;
    return domain == Domain::kInteger && is_product ? Domain::kDouble : domain;
  }

  // The domain of a line, by those of its operands.
  Value ValueOf(const Instruction& instruction, const std::array<int, 3>& of,
                const std::vector<Value>& values) const {
    switch (instruction.op) {
      case ScalarOp::kLoad:
        return {.domain = tensors_[declaration_.accesses[instruction.access].tensor].domain};
      case ScalarOp::kConstant:
        return {.domain = Domain::kConstant, .constant = instruction.constant};
      case ScalarOp::kInside:
      case ScalarOp::kIndex:
      case ScalarOp::kLess:
      case ScalarOp::kEqual:
        return {.domain = Domain::kInteger};
      case ScalarOp::kAdd:
      case ScalarOp::kSub:
      case ScalarOp::kMul:
      case ScalarOp::kMax:
        return {.domain = Common(values[of[0]], values[of[1]])};
      case ScalarOp::kWhere:
        return {.domain = Common(values[of[1]], values[of[2]])};
      case ScalarOp::kDiv:  // Of integers, exact enough to be rounded.
      case ScalarOp::kPow:
        return {.domain = Common(values[of[0]], values[of[1]]) == Domain::kFloat ? Domain::kFloat
                                                                                 : Domain::kDouble};
      case ScalarOp::kFloor:
      case ScalarOp::kRound:
        return {.domain = values[of[0]].domain == Domain::kConstant ? Domain::kFloat
                                                                    : values[of[0]].domain};
      default:
        return {.domain = Domain::kFloat};
    }
  }

  // The expression of an arithmetic line.
  static std::string Expression(ScalarOp op, Domain domain, const Value& a, const Value& b,
                                const Value& c) {
    const auto infix = [&](const char* sign) {
      return absl::StrCat(As(domain, a), " ", sign, " ", As(domain, b));
    };
    const auto compared = [&](const char* sign) {
      const Domain common = Common(a, b);
      return absl::StrCat(As(common, a), " ", sign, " ", As(common, b), " ? 1 : 0");
    };
    const auto function = [&](const char* of) {
      return absl::StrCat(of, "(", As(Domain::kFloat, a), ")");
    };
    switch (op) {
      case ScalarOp::kAdd:
        return infix("+");
      case ScalarOp::kSub:
        return infix("-");
      case ScalarOp::kMul:
        return infix("*");
      case ScalarOp::kDiv:
        return infix("/");
      case ScalarOp::kMax:
        return absl::StrCat("Maximum<", TypeOf(domain), ">(", As(domain, a), ", ", As(domain, b),
                            ")");
      case ScalarOp::kPow:
        return absl::StrCat(domain == Domain::kDouble ? "pow(" : "powf(", As(domain, a), ", ",
                            As(domain, b), ")");
      case ScalarOp::kLess:
        return compared("<");
      case ScalarOp::kEqual:
        return compared("==");
      case ScalarOp::kRandom:
        return absl::StrCat("Random(", As(Domain::kInteger, a), ", ", As(Domain::kInteger, b), ")");
      case ScalarOp::kWhere: {
        const Domain of_condition = a.domain == Domain::kConstant ? Domain::kFloat : a.domain;
        return absl::StrCat(As(of_condition, a), " == 0 ? ", As(domain, c), " : ", As(domain, b));
      }
      case ScalarOp::kExp:
        return function("expf");
      case ScalarOp::kLog:
        return function("logf");
      case ScalarOp::kSqrt:
        return function("sqrtf");
      case ScalarOp::kTanh:
        return function("tanhf");
      case ScalarOp::kErf:
        return function("erff");
      case ScalarOp::kSin:
        return function("sinf");
      case ScalarOp::kCos:
        return function("cosf");
      case ScalarOp::kAtan:
        return function("atanf");
      case ScalarOp::kFloor:
        return absl::StrCat("Floor(", As(domain, a), ")");
      case ScalarOp::kRound:
        return absl::StrCat("Round(", As(domain, a), ")");
      default:
        ISOMER_CHECK(false);
        return "";
    }
  }

  // The values of all lines at a point. What is outside of a kSkip leaves the point. `places`, if
  // not null, gets for each line where it reads, empty where it does not.
  std::vector<Value> Body(const Statement& statement, std::vector<Place>* places = nullptr) {
    const auto operands = OperandsOfLines(statement);
    std::vector<Value> values;
    for (size_t i = 0; i < statement.body.size(); ++i) {
      const Instruction& instruction = statement.body[i];
      Value value = ValueOf(instruction, operands[i], values);
      Place at;
      std::string text;
      switch (instruction.op) {
        case ScalarOp::kConstant:
          break;
        case ScalarOp::kIndex:
          text = variables_[instruction.dim];
          break;
        case ScalarOp::kLoad:
        case ScalarOp::kInside: {
          const Access& access = declaration_.accesses[instruction.access];
          const Piece& piece = tensors_[access.tensor];
          at = PlaceOf(access, piece);
          if (instruction.op == ScalarOp::kInside) {
            text = at.inside.empty() ? "1" : at.inside;
            break;
          }
          if (access.outside == Outside::kSkip) Line("if (!", at.inside, ") continue;");
          value.is_known = !piece.data.empty();
          text = absl::StrCat("Load(", piece.data, ", ", at.offset, ")");
          if (!at.inside.empty()) text = absl::StrCat(at.inside, " ? ", text, " : 0");
          break;
        }
        default: {
          for (int operand : operands[i]) {
            value.is_known = value.is_known && (operand < 0 || values[operand].is_known);
          }
          const auto of = [&](int k) {
            return operands[i][k] < 0 ? Value() : values[operands[i][k]];
          };
          if (value.is_known) {
            text = Expression(instruction.op, value.domain, of(0), of(1), of(2));
          }
        }
      }
      if (places != nullptr) places->push_back(at);
      if (value.domain != Domain::kConstant && value.is_known) {
        value.name = NewName();
        Line("const ", TypeOf(value.domain), " ", value.name, " = ", text, ";");
      }
      values.push_back(std::move(value));
    }
    return values;
  }

  // Finds what can be known of unknown values from the result, last line first.
  void Undo(const Statement& statement, std::vector<Value>* values) {
    if (values->back().is_known || result_.data.empty()) return;
    if (statement.output != 0 || !statement.reduced.empty()) return;
    const auto know = [&](int line, const std::string& text) {
      Value& value = (*values)[line];
      if (value.is_known) return;
      value = {.domain = Domain::kFloat, .name = NewName()};
      Line("const float ", value.name, " = ", text, ";");
    };
    const auto operands = OperandsOfLines(statement);
    const int last = static_cast<int>(values->size()) - 1;
    know(last, absl::StrCat("Load(", result_.data, ", ", OffsetOf(statement, result_), ")"));
    for (int i = last; i >= 0; --i) {
      const auto [a, b, c] = operands[i];
      if (!(*values)[i].is_known || a < 0 || b < 0 || c >= 0) continue;
      const std::string y = As(Domain::kFloat, (*values)[i]);
      const bool knows_a = (*values)[a].is_known, knows_b = (*values)[b].is_known;
      if (knows_a == knows_b) continue;
      const std::string other = As(Domain::kFloat, (*values)[knows_a ? a : b]);
      const int unknown = knows_a ? b : a;
      switch (statement.body[i].op) {
        case ScalarOp::kAdd:
          know(unknown, absl::StrCat(y, " - ", other));
          break;
        case ScalarOp::kSub:
          know(unknown, knows_a ? absl::StrCat(other, " - ", y) : absl::StrCat(y, " + ", other));
          break;
        case ScalarOp::kMul:
          if ((*values)[knows_a ? a : b].domain == Domain::kConstant) {
            know(unknown, absl::StrCat(y, " / ", other));
          }
          break;
        case ScalarOp::kDiv:
          know(unknown, knows_a ? absl::StrCat(other, " / ", y) : absl::StrCat(y, " * ", other));
          break;
        default:
          break;
      }
    }
  }

  // Has the looked-up dim of a statement at the selected value; leaves points of other shards.
  void Select(const Statement& statement) {
    const Access& access = declaration_.accesses[statement.select];
    const Piece& piece = tensors_[access.tensor];
    const Place at = PlaceOf(access, piece);
    const int dim = statement.select_dim;
    const std::string value = NewName();
    Line("const long long ", value, " = static_cast<long long>(Load(", piece.data, ", ", at.offset,
         "));");
    Open("if (", value, " < 0 || ", value, " >= ", declaration_.dims[dim].size.value(), ")");
    Line("ReportIndex(a.error, a.kernel, ", value, ");");
    Line("continue;");
    CloseTo(depth_ - 1);
    Line("if (", value, " < ", Begin(dim), " || ", value, " >= ", End(dim), ") continue;");
    Line("const ", index_, " ", variables_[dim], " = static_cast<", index_, ">(", value, ");");
  }

  // --- Statements.

  std::vector<int> IndexDims(const Statement& statement) const {
    std::vector<int> dims;
    for (const Index& index : statement.indices) {
      for (const auto& [dim, stride] : index.terms) dims.push_back(dim);
    }
    return dims;
  }
  std::vector<int> ReducedLoops(const Statement& statement) const {
    std::vector<int> dims;
    for (int dim : statement.reduced) {
      if (dim != statement.select_dim) dims.push_back(dim);
    }
    return dims;
  }
  // Which point of a reduction it is, in the order of loops.
  std::string NumberOfPoint(const Statement& statement) const {
    std::string number = "0";
    for (int dim : ReducedLoops(statement)) {
      number = absl::StrCat("(", number, ") * ", Extent(dim), " + (", variables_[dim], " - ",
                            Begin(dim), ")");
    }
    return absl::StrCat("static_cast<long long>(", number, ")");
  }

  // Threads go over what the statement defines, as it lies in memory.
  // `is_shared`: lanes may share what is reduced.
  void BeginOverIndices(const Statement& statement, const Piece& piece, bool is_shared,
                        bool joins = false) {
    const std::vector<int> dims = ElementDims(statement, piece);
    const int64_t threads = PointsOf(dims);
    std::vector<Coordinate> coordinates;
    for (int dim : dims) {
      coordinates.push_back({variables_[dim], Begin(dim), Extent(dim)});
    }
    const Lanes lanes = is_shared ? LanesOf(threads, dims.empty() ? -1 : dims.back(),
                                            ReducedLoops(statement), ReadingsOf(statement))
                                  : Lanes();
    BeginKernel(threads, lanes, joins);
    Decode(coordinates);
  }
  std::vector<Reading> ReadingsOf(const Statement& statement) const {
    std::vector<Reading> readings;
    for (const Instruction& instruction : statement.body) {
      if (instruction.op != ScalarOp::kLoad) continue;
      const Access& access = declaration_.accesses[instruction.access];
      readings.push_back({&access.indices, &tensors_[access.tensor]});
    }
    return readings;
  }

  // The kernel before is of statements that it does not read.
  bool JoinsStatements(const Statement& statement) const {
    const auto reads = [this](int access) {
      return in_kernel_.contains(declaration_.accesses[access].tensor);
    };
    if (in_kernel_.empty() || (statement.select >= 0 && reads(statement.select))) return false;
    return absl::c_none_of(statement.body, [&](const Instruction& instruction) {
      return instruction.op == ScalarOp::kLoad && reads(instruction.access);
    });
  }

  // Stores what it defines and, of a maximum, which point it is at.
  void RunStatement(int s, const Piece* places) {
    const Statement& statement = declaration_.statements[s];
    const Piece& piece = tensors_[declaration_.num_operands() + s];
    BeginOverIndices(statement, piece, /*is_shared=*/true, JoinsStatements(statement));
    in_kernel_.insert(declaration_.num_operands() + s);
    const std::string type = TypeOf(DomainOfStatement(s));
    const int outside = depth_;
    BeginReduction(type);
    const int depth = depth_;
    OpenReduction(ReducedLoops(statement));
    OpenPoint();
    if (statement.select >= 0) Select(statement);
    const std::vector<Value> values = Body(statement);
    const std::string value = As(DomainOfStatement(s), values.back());
    const bool is_max = statement.reduction == Reduction::kMax;
    if (places != nullptr) {
      Line("if (is_first || !(Maximum<", type, ">(sum, ", value,
           ") == sum)) place = ", NumberOfPoint(statement), ";");
    }
    Line("sum = is_first ? ", value, " : ",
         is_max ? absl::StrCat("Maximum<", type, ">(sum, ", value, ")")
                : absl::StrCat("sum ", statement.reduction == Reduction::kProduct ? "*" : "+", " ",
                               value),
         ";");
    Line("is_first = false;");
    CloseTo(depth);
    EndReduction(statement.reduction, outside);
    const std::string offset = OffsetOf(statement, piece);
    if (places != nullptr)
      Line("if (sum != sum) place = -1;");  // Nobody attains what is no number.
    Line("Store(", piece.data, ", ", offset, ", sum);");
    if (places != nullptr) Line("Store(", places->data, ", ", offset, ", place);");
    EndKernel();
  }

  // --- Gradients.

  // dx_j = y_j (g_j - sum_i g_i y_i), and of the logarithm g_j - exp(y_j) sum_i g_i. A thread a
  // line.
  std::optional<GeneratedKernel> GradientOfSoftmax() {
    const Piece& result = result_;
    const int64_t axis = call_.op.Int("axis");
    const size_t along = axis < 0 ? axis + result.shape.size() : axis;
    Piece lines = result;
    lines.shape[along] = 1;
    const int64_t size = result.shape[along], stride = result.strides[along];
    const std::string seeds = ReadPointer(call_.output_dtypes[0], 2);
    const DataType dtype = call_.SumDtype(0);
    const std::string gradient = Pointer(dtype, "a.writes[0]");
    const bool is_log = call_.op.kind() == OpKind::kLogSoftmax;
    BeginKernel(lines.Volume());
    Decode(ElementsInMemory(lines));
    std::string begin = "0";
    for (size_t i = 0; i < result.shape.size(); ++i) {
      if (i == along) continue;
      absl::StrAppend(&begin, " + ", result.strides[i], " * (c", i, " - ", result.origin[i], ")");
    }
    Line("const ", index_, " begin = ", begin, ";");
    const std::string loop = absl::StrCat("for (", index_, " j = begin; j < begin + ",
                                          size * stride, "; j += ", stride, ")");
    Line("float sum = 0;");
    Line(loop, " sum += Load(", seeds, ", j)",
         is_log ? "" : absl::StrCat(" * Load(", result.data, ", j)"), ";");
    Open(loop);
    Line("const float y = Load(", result.data, ", j), g = Load(", seeds, ", j);");
    StoreGradient(gradient, "j", call_.Adds(0), is_log ? "(g - expf(y) * sum)" : "y * (g - sum)");
    EndKernel();
    return std::move(kernel_);
  }

  // Statements that what is wanted depends on, and through which the outputs do.
  void ChooseLive() {
    std::vector<bool> depends(call_.wanted.begin(), call_.wanted.end());
    for (const Statement& statement : declaration_.statements) {
      bool any = false;
      for (const Instruction& instruction : statement.body) {
        any |= instruction.op == ScalarOp::kLoad &&
               depends[declaration_.accesses[instruction.access].tensor];
      }
      depends.push_back(any);
      is_live_.push_back(any);
    }
  }
  // Statements whose results gradients read: of maxima, for where they are, and of others that are
  // loaded by what is live or read.
  std::vector<bool> StatementsRead() const {
    const int n = declaration_.num_operands();
    std::vector<bool> is_read(declaration_.statements.size(), false);
    for (size_t s = is_read.size(); s-- > 0;) {
      const Statement& statement = declaration_.statements[s];
      is_read[s] = is_read[s] || (is_live_[s] && statement.reduction == Reduction::kMax);
      if (!is_read[s] && !is_live_[s]) continue;
      for (const Instruction& instruction : statement.body) {
        if (instruction.op != ScalarOp::kLoad) continue;
        const int tensor = declaration_.accesses[instruction.access].tensor;
        if (tensor >= n) is_read[tensor - n] = true;
      }
    }
    return is_read;
  }
  bool CanRun(int s) const {
    for (const Instruction& instruction : declaration_.statements[s].body) {
      if (instruction.op != ScalarOp::kLoad) continue;
      if (tensors_[declaration_.accesses[instruction.access].tensor].data.empty()) return false;
    }
    return true;
  }

  // Of a tensor, by live statements.
  std::vector<Loads> LoadsOf(int tensor) const {
    std::vector<Loads> all;
    const int count = static_cast<int>(declaration_.statements.size());
    for (int s = std::max(0, tensor - declaration_.num_operands() + 1); s < count; ++s) {
      if (!is_live_[s]) continue;
      for (Loads& loads : LoadsOf(s, tensor)) all.push_back(std::move(loads));
    }
    return all;
  }
  std::vector<Loads> LoadsOf(int s, int tensor) const {
    const Statement& statement = declaration_.statements[s];
    std::vector<Loads> all;
    for (size_t i = 0; i < statement.body.size(); ++i) {
      if (statement.body[i].op != ScalarOp::kLoad) continue;
      const Access& access = declaration_.accesses[statement.body[i].access];
      if (access.tensor != tensor) continue;
      const auto same = absl::c_find_if(all, [&](const Loads& loads) {
        return loads.access->indices == access.indices && loads.access->outside == access.outside;
      });
      if (same == all.end()) {
        all.push_back({s, &access, {static_cast<int>(i)}});
      } else {
        same->lines.push_back(static_cast<int>(i));
      }
    }
    return all;
  }

  // Whether the points that load an element are found from its coordinates.
  bool IsSolvable(const Statement& statement, const Access& access) const {
    for (const Index& index : access.indices) {
      if (index.modulo != 0 || (index.divide != 1 && !index.exact)) return false;
      for (const auto& [dim, stride] : index.terms) {
        if (dim == statement.select_dim) return false;
      }
    }
    return true;
  }

  // The gradient with respect to a tensor, in full. False: a value that it needs is not to be had.
  bool Differentiate(int tensor, const Piece& gradient, DataType dtype, bool adds) {
    const bool is_solvable = absl::c_all_of(LoadsOf(tensor), [this](const Loads& loads) {
      return IsSolvable(declaration_.statements[loads.statement], *loads.access);
    });
    return is_solvable ? Gather(tensor, gradient, adds) : Scatter(tensor, gradient, dtype, adds);
  }

  void StoreGradient(absl::string_view data, absl::string_view at, bool adds,
                     absl::string_view value) {
    const std::string there = adds ? absl::StrCat("Load(", data, ", ", at, ") + ") : "";
    Line("Store(", data, ", ", at, ", ", there, value, ");");
  }

  std::vector<Coordinate> ElementsInMemory(const Piece& piece) const {
    std::vector<size_t> order;
    for (size_t i = 0; i < piece.shape.size(); ++i) order.push_back(i);
    absl::c_stable_sort(order,
                        [&](size_t a, size_t b) { return piece.strides[a] > piece.strides[b]; });
    std::vector<Coordinate> coordinates;
    for (size_t i : order) {
      coordinates.push_back({absl::StrCat("c", i), piece.origin[i], piece.shape[i]});
    }
    return coordinates;
  }

  bool Gather(int tensor, const Piece& gradient, bool adds) {
    // Gradients of operands read nothing of each other.
    const bool is_of_operand = tensor < declaration_.num_operands();
    BeginKernel(gradient.Volume(), LanesOfGradient(tensor, gradient),
                is_of_operand && gathers_operands_);
    gathers_operands_ = is_of_operand;
    Decode(ElementsInMemory(gradient));
    const int outside = depth_;
    BeginReduction("float");
    Line("is_first = false;");
    for (const Loads& loads : LoadsOf(tensor)) {
      const Statement& statement = declaration_.statements[loads.statement];
      const int depth = depth_;
      Open("");  // A scope of its own.
      Solve(statement, *loads.access);
      if (statement.select >= 0) Select(statement);
      std::vector<std::string> adjoints;
      std::vector<Place> places;
      if (!Adjoints(loads.statement, loads.lines, &adjoints, &places)) return false;
      Line("sum += ", absl::StrJoin(adjoints, " + "), ";");
      CloseTo(depth);
    }
    EndReduction(Reduction::kSum, outside);
    // Threads go over the piece as it lies.
    StoreGradient(gradient.data, "i", adds, "sum");
    EndKernel();
    return true;
  }

  // By what reads most: where the longest of its loops goes.
  Lanes LanesOfGradient(int tensor, const Piece& gradient) const {
    size_t last = 0;  // the dim of the tensor whose elements lie side by side
    for (size_t i = 0; i < gradient.strides.size(); ++i) {
      if (gradient.strides[i] <= gradient.strides[last]) last = i;
    }
    Lanes found;
    int64_t longest = 0;
    for (const Loads& loads : LoadsOf(tensor)) {
      const Statement& statement = declaration_.statements[loads.statement];
      const Solution solution = SolutionOf(statement, *loads.access);
      const int64_t points = PointsOf(solution.loops);
      if (points <= longest) continue;
      longest = points;
      std::vector<Reading> readings = ReadingsOf(statement);
      readings.push_back(
          {&statement.indices, &adjoints_[declaration_.num_operands() + loads.statement]});
      const int fastest = solution.solved_of.empty() ? -1 : solution.solved_of[last];
      found = LanesOf(gradient.Volume(), fastest, solution.loops, readings);
    }
    return found;
  }

  // Which dims of a statement follow from the coordinates of an element that an access loads, and
  // which are free.
  struct Solution {
    std::vector<int> solved_of;  // per dim of the tensor; -1: none
    std::vector<int> loops;
  };
  Solution SolutionOf(const Statement& statement, const Access& access) const {
    std::set<int> looped, solved;
    std::vector<int> solved_of(access.indices.size(), -1);
    for (size_t i = 0; i < access.indices.size(); ++i) {
      int best = -1;
      for (const auto& [dim, stride] : access.indices[i].terms) {
        if (looped.contains(dim) || solved.contains(dim)) continue;
        if (best < 0 || Extent(dim) > Extent(best)) best = dim;
      }
      for (const auto& [dim, stride] : access.indices[i].terms) {
        if (dim != best && !solved.contains(dim)) looped.insert(dim);
      }
      if (best < 0) continue;
      solved.insert(best);
      solved_of[i] = best;
    }
    // The others are free. In the order of the evaluator's loops.
    std::vector<int> loops;
    for (int dim : IndexDims(statement)) {
      if (!solved.contains(dim)) loops.push_back(dim);
    }
    for (int dim : ReducedLoops(statement)) {
      if (!solved.contains(dim)) loops.push_back(dim);
    }
    return {std::move(solved_of), std::move(loops)};
  }

  // Opens loops over the points that load the element at c0, c1, ..
  void Solve(const Statement& statement, const Access& access) {
    const auto [solved_of, loops] = SolutionOf(statement, access);
    OpenReduction(loops);
    OpenPoint();
    for (size_t i = 0; i < access.indices.size(); ++i) {
      const Index& index = access.indices[i];
      const std::string c = absl::StrCat("c", i);
      std::string rest = absl::StrCat(index.divide == 1 ? "" : absl::StrCat(index.divide, " * "), c,
                                      " - (", index.offset.value(), ")");
      int64_t of_solved = 0;
      for (const auto& [dim, stride] : index.terms) {
        if (dim == solved_of[i]) {
          of_solved += stride;
        } else {
          absl::StrAppend(&rest, " - (", stride, ") * ", variables_[dim]);
        }
      }
      const int dim = solved_of[i];
      if (dim < 0) {
        Line("if (", rest, " != 0) continue;");
        continue;
      }
      if (of_solved == 1) {
        Line("const ", index_, " ", variables_[dim], " = ", rest, ";");
      } else {
        const std::string left = NewName();
        Line("const ", index_, " ", left, " = ", rest, ";");
        Line("if (", left, " % (", of_solved, ") != 0) continue;");
        Line("const ", index_, " ", variables_[dim], " = ", left, " / (", of_solved, ");");
      }
      Line("if (", variables_[dim], " < ", Begin(dim), " || ", variables_[dim], " >= ", End(dim),
           ") continue;");
    }
  }

  // Threads go over the points, and add to the elements.
  bool Scatter(int tensor, const Piece& gradient, DataType dtype, bool adds) {
    const int n = declaration_.num_operands();
    const bool is_float = dtype == DataType::kFloat32;
    Piece sums = gradient;
    if (!is_float) sums.data = Workspace(sums);
    if (!is_float || !adds) {
      BeginKernel(sums.Volume());
      Line("Store(", sums.data, ", rest, 0.0f);");
      EndKernel();
    }
    for (int s = std::max(0, tensor - n + 1); s < static_cast<int>(is_live_.size()); ++s) {
      const Statement& statement = declaration_.statements[s];
      const std::vector<Loads> all = is_live_[s] ? LoadsOf(s, tensor) : std::vector<Loads>();
      if (all.empty()) continue;
      BeginOverIndices(statement, tensors_[n + s], /*is_shared=*/false);
      OpenLoops(ReducedLoops(statement));
      OpenPoint();
      if (statement.select >= 0) Select(statement);
      std::vector<int> lines;
      for (const Loads& loads : all)
        lines.insert(lines.end(), loads.lines.begin(), loads.lines.end());
      std::vector<std::string> adjoints;
      std::vector<Place> places;
      if (!Adjoints(s, lines, &adjoints, &places)) return false;
      // Sums lie as the tensor does.
      for (size_t k = 0; k < lines.size(); ++k) {
        const Place& at = places[lines[k]];
        Line(at.inside.empty() ? "" : absl::StrCat("if (", at.inside, ") "), "AtomicAdd(",
             sums.data, ", ", at.offset, ", ", adjoints[k], ");");
      }
      EndKernel();
    }
    if (is_float) return true;
    BeginKernel(sums.Volume());
    StoreGradient(gradient.data, "rest", adds, absl::StrCat("Load(", sums.data, ", rest)"));
    EndKernel();
    return true;
  }

  // At a point: the adjoints of these lines of statement `s`; 0 where the point takes no part.
  bool Adjoints(int s, const std::vector<int>& lines, std::vector<std::string>* adjoints,
                std::vector<Place>* places) {
    const Statement& statement = declaration_.statements[s];
    const Piece& seeds = adjoints_[declaration_.num_operands() + s];
    std::vector<Value> values = Body(statement, places);
    Undo(statement, &values);
    if (statement.reduction == Reduction::kMax) {
      // A maximum passes its gradient to the first that attains it.
      Line("if (Load(", places_[s].data, ", ", OffsetOf(statement, places_[s]),
           ") != ", NumberOfPoint(statement), ") continue;");
    }
    std::string seed = NewName();
    Line("float ", seed, " = Load(", seeds.data, ", ", OffsetOf(statement, seeds), ");");
    if (statement.reduction == Reduction::kProduct) {
      if (!values.back().is_known) return false;
      MultiplyByOthers(statement, seed);
    }
    return Backward(statement, values, seed, lines, adjoints);
  }

  // Times the product over the other points.
  void MultiplyByOthers(const Statement& statement, const std::string& seed) {
    const std::vector<int> loops = ReducedLoops(statement);
    const std::vector<std::string> variables = variables_;
    std::vector<std::string> same;
    const int depth = depth_;
    Open("");
    for (int dim : loops) {
      variables_[dim] = NewName();
      same.push_back(absl::StrCat(variables_[dim], " == ", variables[dim]));
    }
    OpenLoops(loops);
    Line("if (", absl::StrJoin(same, " && "), ") continue;");
    const std::vector<Value> values = Body(statement);
    Line(seed, " *= ", As(Domain::kFloat, values.back()), ";");
    CloseTo(depth);
    variables_ = variables;
  }

  // LoopNest::RunBackward as text, of the lines that `wanted` go into alone.
  bool Backward(const Statement& statement, const std::vector<Value>& values,
                const std::string& seed, const std::vector<int>& wanted,
                std::vector<std::string>* adjoints) {
    const auto operands = OperandsOfLines(statement);
    const int count = static_cast<int>(values.size());
    std::vector<bool> depends(count, false);
    for (int line : wanted) depends[line] = true;
    for (int i = 0; i < count; ++i) {
      for (int operand : operands[i]) depends[i] = depends[i] || (operand >= 0 && depends[operand]);
    }
    std::vector<std::string> g(count), reached(count);
    for (int i = 0; i < count; ++i) {
      if (!depends[i]) continue;
      g[i] = NewName();
      reached[i] = NewName();
      const bool is_last = i == count - 1;
      Line("float ", g[i], " = ", is_last ? seed : "0", ";");
      Line("bool ", reached[i], " = ", is_last ? "true" : "false", ";");
    }
    bool has_all = true;
    const auto of = [&](int line) {
      has_all = has_all && values[line].is_known;
      return values[line].is_known ? As(Domain::kFloat, values[line]) : std::string("0");
    };
    const auto add = [&](int line, const std::string& share, const std::string& condition = "") {
      if (!depends[line]) return;
      if (condition.empty()) {
        Line(g[line], " += ", share, ";");
        Line(reached[line], " = true;");
        return;
      }
      Open("if (", condition, ")");
      Line(g[line], " += ", share, ";");
      Line(reached[line], " = true;");
      CloseTo(depth_ - 1);
    };
    for (int i = count - 1; i >= 0; --i) {
      if (!depends[i] || operands[i][0] < 0) continue;
      const auto [a, b, c] = operands[i];
      const std::string& y = g[i];
      Open("if (", reached[i], ")");
      switch (statement.body[i].op) {
        case ScalarOp::kAdd:
          add(a, y);
          add(b, y);
          break;
        case ScalarOp::kSub:
          add(a, y);
          add(b, absl::StrCat("-", y));
          break;
        case ScalarOp::kMul:
          if (depends[a]) add(a, absl::StrCat(y, " * ", of(b)));
          if (depends[b]) add(b, absl::StrCat(y, " * ", of(a)));
          break;
        case ScalarOp::kDiv:
          if (depends[a]) add(a, absl::StrCat(y, " / ", of(b)));
          if (depends[b]) add(b, absl::StrCat("-", y, " * ", of(i), " / ", of(b)));
          break;
        case ScalarOp::kMax: {
          // At a tie the second has it. What is not a number is the first's only if that is.
          if (!values[a].is_known) {
            const std::string first = absl::StrCat(of(i), " > ", of(b));
            add(a, y, first);
            add(b, y, absl::StrCat("!(", first, ")"));
            break;
          }
          const std::string first =
              absl::StrCat(of(i), " == ", of(a), " && !(", of(a), " == ", of(b), ")");
          add(a, y, first);
          add(b, y, absl::StrCat("!(", first, ")"));
          break;
        }
        case ScalarOp::kPow:
          if (depends[a]) {
            add(a, absl::StrCat(y, " * ", of(b), " * powf(", of(a), ", ", of(b), " - 1.0f)"));
          }
          if (depends[b]) add(b, absl::StrCat(y, " * ", of(i), " * logf(", of(a), ")"));
          break;
        case ScalarOp::kWhere: {
          const std::string no = absl::StrCat(of(a), " == 0");
          add(c, y, no);
          add(b, y, absl::StrCat("!(", no, ")"));
          break;
        }
        case ScalarOp::kExp:
          add(a, absl::StrCat(y, " * ", of(i)));
          break;
        case ScalarOp::kLog:
          add(a, absl::StrCat(y, " / ", of(a)));
          break;
        case ScalarOp::kSqrt:
          add(a, absl::StrCat(y, " / (2.0f * ", of(i), ")"));
          break;
        case ScalarOp::kTanh:
          add(a, absl::StrCat(y, " * (1.0f - ", of(i), " * ", of(i), ")"));
          break;
        case ScalarOp::kErf:
          add(a, absl::StrCat(y, " * 1.12837916709551257f * expf(-", of(a), " * ", of(a), ")"));
          break;
        case ScalarOp::kSin:
          add(a, absl::StrCat(y, " * cosf(", of(a), ")"));
          break;
        case ScalarOp::kCos:
          add(a, absl::StrCat("-", y, " * sinf(", of(a), ")"));
          break;
        case ScalarOp::kAtan:
          add(a, absl::StrCat(y, " / (1.0f + ", of(a), " * ", of(a), ")"));
          break;
        default:  // Constant between jumps.
          break;
      }
      CloseTo(depth_ - 1);
    }
    for (int line : wanted) adjoints->push_back(g[line]);
    return has_all;
  }

  const KernelCall& call_;
  const Declaration& declaration_;
  const std::string name_;
  const SharingLimits limits_;
  GeneratedKernel kernel_;
  std::vector<std::string> variables_;  // per iteration dim
  std::vector<Piece> tensors_;          // operands, then what statements define
  std::vector<Piece> adjoints_;         // of the same
  std::vector<Piece> places_;           // per statement: of a maximum, which point it is at
  std::vector<bool> is_live_;           // per statement
  Piece result_;                        // of a gradient that has it
  const char* index_ = "int";
  int64_t rows_ = 0;               // of the kernel that is written, if its statements are of rows
  Lanes lanes_;                    // of the kernel that is written
  std::string type_;               // of its reduction
  std::set<int> in_kernel_;        // tensors of the statements whose kernel is written
  bool gathers_operands_ = false;  // it is of gradients of operands
  int names_ = 0, depth_ = 0;
};

}  // namespace

std::vector<char> PackArguments(const GeneratedKernel& kernel, absl::Span<const void* const> reads,
                                absl::Span<void* const> writes, void* workspace, void* error,
                                int64_t number) {
  std::vector<const void*> words(std::max(kernel.reads, 1), nullptr);
  std::copy(reads.begin(), reads.end(), words.begin());
  const size_t end = words.size();
  words.resize(end + std::max(kernel.writes, 1), nullptr);
  std::copy(writes.begin(), writes.end(), words.begin() + static_cast<int64_t>(end));
  words.push_back(workspace);
  words.push_back(error);
  std::vector<char> packed(words.size() * sizeof(void*) + sizeof number);
  std::memcpy(packed.data(), words.data(), words.size() * sizeof(void*));
  std::memcpy(packed.data() + words.size() * sizeof(void*), &number, sizeof number);
  return packed;
}

std::optional<GeneratedKernel> GenerateKernel(const KernelCall& call, absl::string_view name,
                                              const SharingLimits& limits) {
  if (auto replacing = ReplacingKernels(call, name); replacing.has_value()) return replacing;
  Generator generator(call, name, limits);
  return call.gradient ? generator.Gradient() : generator.Forward();
}

}  // namespace isomer
