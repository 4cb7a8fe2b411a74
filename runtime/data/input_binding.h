// Which file feeds which input of a model, and whether it can.
#ifndef ISOMER_RUNTIME_DATA_INPUT_BINDING_H_
#define ISOMER_RUNTIME_DATA_INPUT_BINDING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "runtime/data/element_type.h"
#include "runtime/data/records.h"

namespace isomer {

// The numbers that an input takes.
struct ValueRange {
  bool is_integer = false;
  double least = 0, most = 0;  // both included
};

// An input that rows of data may feed: no single number, and no seed of random numbers.
struct ModelInput {
  std::string name;
  TensorType type;
  bool is_label = false;  // what a loss compares with
  bool is_class = false;  // and that is a class
  ValueRange range;
};
std::vector<ModelInput> InputsForData(const Graph& graph);

// Rows of a batch: dim 0 of the first input that has dims and is no label, if there is one.
std::optional<int64_t> RowsOfBatch(const Graph& graph);

struct BoundInput {
  ModelInput input;
  std::shared_ptr<const Records> records;
  double factor = 1;  // of its values
  // The rows of the other input, of one file, one token on.
  bool is_next_token = false;

  std::string name() const { return input.name; }
};

struct BoundData {
  int64_t batch = 1;
  int64_t rows = 0;                     // of each input
  std::vector<BoundInput> inputs = {};  // all that data may feed, in the model's order
};

struct OpenOptions {
  // Of files that do not say it (.bin); empty: from the name and the contents.
  std::optional<ElementType> raw_type = std::nullopt;
  std::string label_column = "";  // of CSV; "": by the usual names, or the last
};

// `files`: FILE, or INPUT=FILE for the input of this name.
// - .npz feeds the inputs that its arrays are named after; of a named input, its only array or the
//   one of that name.
// - CSV feeds the one input that is no label, and the label by a column; a named input by all
//   columns.
// - Other files feed the one input that is no label; MNIST's images bring the labels that lie
//   beside them.
// - A stream of integers feeds an integer input [batch, sequence] with its sequences; if nothing
//   feeds the model's one label of that size, these are the next tokens.
// Of several files for one input the rows follow each other.
// A row is an element of dim 0; shapes must be alike but for dims of 1, or the row flat.
// Errors name the file, and the input and its dim: all that there is but the values.
absl::StatusOr<BoundData> BindData(const Graph& graph, const std::vector<std::string>& files,
                                   const OpenOptions& options);

// That these are values for the input, those of rows [first, ..) of its records; `values` are not
// yet multiplied by the factor. Errors: "x.npy: row 3 is 12, and input 'labels' takes integers from
// 0 to 9".
absl::Status CheckValues(const BoundInput& bound, int64_t first_row,
                         const std::vector<double>& values);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_INPUT_BINDING_H_
