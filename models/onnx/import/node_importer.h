#ifndef ISOMER_MODELS_ONNX_IMPORT_NODE_IMPORTER_H_
#define ISOMER_MODELS_ONNX_IMPORT_NODE_IMPORTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/onnx/graph/attributes.h"
#include "models/onnx/graph/graph.h"
#include "models/onnx/graph/repeated_constant.h"
#include "models/onnx/import/leaves.h"
#include "pcg/ir/plan.h"

namespace isomer {

// What is known of the tensors of a file while its nodes are imported one after the other.
struct ImportState {
  OnnxGraph onnx;
  OnnxLeaves leaves;
  Model model;
  std::map<std::string, TensorRef> tensors;                   // those that are in the graph
  std::map<std::string, RepeatedConstant> repeated;           // literals, of many elements
  std::set<std::string> asked_for_sizes;                      // and for nothing else
  std::map<std::string, std::vector<int64_t>> sizes;          // of such, which are not computed
  std::map<std::string, std::vector<std::string>> sequences;  // the names of their tensors
  std::vector<bool> depends_on_data;                          // per node of the graph
  std::set<std::string> untrained;  // floats that are constants: running statistics
  std::vector<std::string> notes;
  std::string batch_fixed_by;  // the first node that states the batch that the file fixes
  // What the import may yet compute by itself. A file of a few bytes can ask for any amount.
  int64_t fold_budget = int64_t{1} << 27;          // elements read and written by FoldNode
  int64_t literal_budget = int64_t{1} << 26;       // elements of tables in formulas
  double work_budget = 1 << 26;                    // points of iteration spaces of constants
  int64_t unrolled_bytes_left = int64_t{1} << 28;  // of the bodies of loops, an iteration each
};

// What an error about one adds.
inline constexpr char kNoEmptyTensors[] =
    "tensors without elements are not supported: leave them out of the model";

// The tensor of that name in the graph. A parameter enters it as a Weight at its first use, other
// values as a Constant.
absl::StatusOr<TensorRef> TensorNamed(const std::string& name, ImportState* state);

// What calls are named after: "model.layers.3.mlp.up_proj/linear_21". The dynamo exporter says the
// module of a node, but its names do not.
std::string CallName(const OnnxNode& node, int output = 0);

// One node being imported. The first error is kept; after it, calls return empty values and add
// nothing, so that the importers of single operators read as the formulas they stand for. Where
// they look into a value that an error would have left empty, they ask ok() first.
class NodeImporter {
 public:
  NodeImporter(const OnnxNode& node, ImportState* state)
      : attributes(node), node_(node), state_(state) {}

  OnnxAttributes attributes;

  const std::string& op() const { return node_.op; }
  int64_t opset() const { return state_->onnx.OpsetOf(node_); }
  int num_inputs() const { return static_cast<int>(node_.inputs.size()); }
  int num_outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool HasInput(int i) const { return i < num_inputs() && !node_.inputs[i].empty(); }

  bool ok() const { return status_.ok() && attributes.status().ok(); }
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    status_.Update(absl::InvalidArgumentError(absl::StrCat(parts...)));
  }
  // For what the standard allows and Isomer does not express.
  template <typename... Parts>
  void Refuse(const Parts&... parts) {
    status_.Update(absl::UnimplementedError(absl::StrCat(parts...)));
  }
  // Fails unless `condition` holds. Returns ok().
  template <typename... Parts>
  bool Expect(bool condition, const Parts&... parts) {
    if (!condition) Fail(parts...);
    return ok();
  }

  TensorRef Operand(int i);
  // The operand's value when the file states it or it follows from shapes; otherwise null.
  const OnnxTensor* Constant(int i) const;
  // The value of a constant with one element that has no more dims than `other`; null for others.
  const OnnxTensor* Scalar(int i, TensorRef other) const;
  // The sizes of the operand if it is a constant, not trained, that is `value` everywhere.
  std::optional<std::vector<int64_t>> SizesIfEverywhere(int i, double value) const;
  // Integers that the operand must hold as a constant; `absent` where it is left out.
  std::vector<int64_t> ConstantInts(int i, std::vector<int64_t> absent = {});

  std::vector<int64_t> Sizes(TensorRef tensor) const;
  int Rank(TensorRef tensor) const { return static_cast<int>(Sizes(tensor).size()); }
  DataType Type(TensorRef tensor) const;
  // `axis` counted from the front.
  int Axis(int64_t axis, int rank);

  // Adds a call. Its name is CallName(node()) plus `suffix`.
  TensorRef Call(Operator op, std::vector<TensorRef> operands, absl::string_view suffix = "");
  TensorRef Reshape(TensorRef x, std::vector<int64_t> shape, absl::string_view suffix = "");
  // Reshape whose shape the file gives: refused where it fixes a batch that was to be changed.
  TensorRef ReshapeAsStated(TensorRef x, const std::vector<int64_t>& stated, bool allow_zero);

  void Define(int output, TensorRef tensor);

  // What models/onnx/import/formulas.h builds on.
  const OnnxNode& node() const { return node_; }
  ImportState& state() { return *state_; }

  // The first error, or that of an attribute that nothing asked for.
  absl::Status Finish();

 private:
  const OnnxNode& node_;
  ImportState* const state_;
  absl::Status status_;
};

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_NODE_IMPORTER_H_
