// Constants held once against the same written out.
#include "models/onnx/graph/repeated_constant.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "models/onnx/import/onnx_import.h"
#include "tests/models/model_values.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using Dims = std::vector<int64_t>;

OnnxTensor Ints(Dims dims, std::vector<int64_t> values) {
  OnnxTensor tensor;
  tensor.dtype = DataType::kInt64;
  tensor.dims = std::move(dims);
  tensor.ints = std::move(values);
  tensor.is_literal = true;
  return tensor;
}

TEST(RepeatedConstant, SlicesCountWhatRepeats) {
  const RepeatedConstant x = {{100, 4}, {Ints({1, 4}, {1, 2, 3, 4})}};
  const RepeatedConstant rows = *SliceRepeated(x, 0, 10, 1000, 7);
  EXPECT_THAT(rows.dims, ElementsAre(13, 4));
  EXPECT_THAT(rows.parts[0].dims, ElementsAre(1, 4));
  const RepeatedConstant backwards = *SliceRepeated(x, 1, -1, INT64_MIN + 8, -2);
  EXPECT_THAT(backwards.dims, ElementsAre(100, 2));
  EXPECT_THAT(backwards.parts[0].ints, ElementsAre(4, 2));
  EXPECT_FALSE(SliceRepeated(x, 1, 2, 2, 1).has_value());  // empty
}

TEST(RepeatedConstant, ReshapesKeepWhatRepeats) {
  const RepeatedConstant x = {{6, 1, 4}, {Ints({1, 1, 4}, {1, 2, 3, 4})}};
  const RepeatedConstant apart = *ReshapeRepeated(x, {2, 3, 2, 1, 2});
  EXPECT_THAT(apart.dims, ElementsAre(2, 3, 2, 1, 2));
  EXPECT_THAT(apart.parts[0].dims, ElementsAre(1, 1, 2, 1, 2));
  // Rows of a sample and of the next are in one dim: all elements.
  const RepeatedConstant across = *ReshapeRepeated(x, {3, 8});
  EXPECT_THAT(across.parts[0].dims, ElementsAre(3, 8));
  EXPECT_THAT(across.parts[0].ints,
              ElementsAre(1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4));
}

// Indices (sample, position) into a table that is the same for all samples.
TEST(RepeatedConstant, IndicesIntoWhatRepeatsAreNotLookedAt) {
  const RepeatedConstant table = {{3, 4}, {Ints({1, 4}, {5, 6, 7, 8})}};
  const RepeatedConstant sample = {{3, 2, 1}, {Ints({3, 1, 1}, {0, 1, -1})}};
  const RepeatedConstant position = {{3, 2, 1}, {Ints({1, 2, 1}, {3, -4})}};
  const RepeatedConstant indices = *ConcatRepeated({sample, position}, 2);
  EXPECT_EQ(indices.parts.size(), 2u);
  const RepeatedConstant found = *GatherNDRepeated(table, indices);
  EXPECT_THAT(found.dims, ElementsAre(3, 2));
  EXPECT_THAT(found.parts[0].dims, ElementsAre(1, 2));
  EXPECT_THAT(found.parts[0].ints, ElementsAre(8, 5));
  // But they must be there.
  const RepeatedConstant outside = {{3, 2, 1}, {Ints({3, 1, 1}, {0, 3, 1})}};
  EXPECT_FALSE(GatherNDRepeated(table, *ConcatRepeated({outside, position}, 2)).has_value());
}

// A file of random operators on literals, in which what is repeated is either an Expand, or an
// initializer with all elements.
class RandomFile {
 public:
  RandomFile(int seed, bool is_written_out) : random_(seed), is_written_out_(is_written_out) {
    for (int i = 0; i < 3; ++i) AddLeaf();
    for (int i = 0; i < 12; ++i) AddNode();
    // To one of 2 * kRows * kColumns or less, of which the sum with an input is the output.
    const std::string last = names_.back();
    file_.Input("x", {1}, onnx::TensorProto::FLOAT);
    file_.Node("Cast", {last}, {"number"}).With("to", int64_t{onnx::TensorProto::FLOAT});
    file_.Node("Add", {"x", "number"}, {"y"}).Output("y", dims_[last]);
  }

  std::string Bytes() const { return file_.Bytes(); }

 private:
  static constexpr int64_t kRows = 72, kColumns = 60;

  int Below(int n) { return static_cast<int>(random_() % n); }
  std::string New(const Dims& dims) {
    names_.push_back("t" + std::to_string(names_.size()));
    dims_[names_.back()] = dims;
    return names_.back();
  }
  std::string Any() { return names_[Below(static_cast<int>(names_.size()))]; }
  std::string List(const Dims& values) {
    const std::string name = "list" + std::to_string(lists_++);
    file_.Ints(name, {static_cast<int64_t>(values.size())}, values);
    return name;
  }

  // [2, 72, 60], of which some dims repeat.
  void AddLeaf() {
    Dims once = {Below(4) == 0 ? 2 : 1, Below(2) == 0 ? kRows : 1, Below(3) != 0 ? kColumns : 1};
    std::vector<int64_t> values;
    const int step = Below(3), first = Below(5) - 2;
    for (int64_t i = 0; i < once[0] * once[1] * once[2]; ++i) {
      values.push_back(Below(20) == 0 ? Below(9) : first + step * i % 50);
    }
    const Dims dims = {2, kRows, kColumns};
    const std::string name = New(dims);
    if (!is_written_out_) {
      file_.Ints(name + "_once", once, values);
      file_.Node("Expand", {name + "_once", List(dims)}, {name});
      return;
    }
    std::vector<int64_t> all;
    for (int64_t n = 0; n < 2 * kRows * kColumns; ++n) {
      const Dims at = {n / (kRows * kColumns), n / kColumns % kRows, n % kColumns};
      int64_t from = 0;
      for (int i = 0; i < 3; ++i) from = from * once[i] + (once[i] == 1 ? 0 : at[i]);
      all.push_back(values[from]);
    }
    file_.Ints(name, dims, all);
  }

  void AddNode() {
    const std::string x = Any();
    const Dims dims = dims_[x];
    const size_t axis = Below(static_cast<int>(dims.size()));
    switch (Below(8)) {
      case 0: {
        const int64_t begin = Below(2), step = 1 + Below(2);
        if (dims[axis] < 4) return;
        Dims sliced = dims;
        sliced[axis] = (dims[axis] - begin - 1) / step + 1;
        const std::string starts = List({begin}), ends = List({int64_t{1} << 40});
        const std::string axes = List({static_cast<int64_t>(axis)}), steps = List({step});
        file_.Node("Slice", {x, starts, ends, axes, steps}, {New(sliced)});
        return;
      }
      case 1: {
        Dims turned = dims, perm(dims.size());
        for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
        std::shuffle(perm.begin(), perm.end(), random_);
        for (size_t i = 0; i < perm.size(); ++i) turned[i] = dims[perm[i]];
        file_.Node("Transpose", {x}, {New(turned)}).With("perm", perm);
        return;
      }
      case 2: {
        const std::string other = Any();
        Dims joined = dims;
        if (dims_[other].size() != dims.size() || dims[axis] > 200) return;
        joined[axis] += dims_[other][axis];
        Dims rest = dims, of_other = dims_[other];
        rest[axis] = of_other[axis] = 0;
        if (rest != of_other) return;
        file_.Node("Concat", {x, other}, {New(joined)}).With("axis", static_cast<int64_t>(axis));
        return;
      }
      case 3: {
        if (dims.size() != 3) return;
        const bool first = Below(2) == 0;
        const Dims flat =
            first ? Dims{dims[0] * dims[1], dims[2]} : Dims{dims[0], dims[1] * dims[2]};
        const std::string shape = List(flat);
        file_.Node("Reshape", {x, shape}, {New(flat)});
        return;
      }
      case 4: {
        const std::string along = List({static_cast<int64_t>(axis)});
        file_.Node("CumSum", {x, along}, {New(dims)});
        return;
      }
      case 5: {
        const std::string other = Any();
        if (dims_[other] != dims) return;
        file_.Node("Less", {x, other}, {x + "_less_" + std::to_string(lists_)});
        const std::string less = x + "_less_" + std::to_string(lists_++);
        file_.Node("Where", {less, other, x}, {New(dims)});
        return;
      }
      case 6: {
        const std::string other = Any();
        if (dims_[other] != dims) return;
        file_.Node(Below(2) == 0 ? "Sub" : "Add", {x, other}, {New(dims)});
        return;
      }
      default: {
        Dims wide = dims;
        wide.insert(wide.begin() + axis, 1);
        if (dims.size() > 3) return;
        const std::string axes = List({static_cast<int64_t>(axis)});
        file_.Node("Unsqueeze", {x, axes}, {New(wide)});
        return;
      }
    }
  }

  std::mt19937 random_;
  const bool is_written_out_;
  OnnxFile file_;
  std::vector<std::string> names_;
  std::map<std::string, Dims> dims_;
  int lists_ = 0;
};

std::vector<double> ValuesOfOutput(const std::string& bytes) {
  const absl::StatusOr<Model> model = ParseOnnx(bytes, "net.onnx");
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  const auto values = EvaluateModel(*model, [](const Node&, Array<double>*) {});
  EXPECT_TRUE(values.ok()) << values.status();
  if (!values.ok()) return {};
  const TensorRef y = model->graph.outputs()[0].tensor;
  return (*values)[y.node.value][y.output].part(0, 0).data;
}

TEST(RepeatedConstant, GivesWhatAllElementsGive) {
  for (int seed = 0; seed < 120; ++seed) {
    const std::vector<double> once = ValuesOfOutput(RandomFile(seed, false).Bytes());
    EXPECT_FALSE(once.empty());
    EXPECT_EQ(once, ValuesOfOutput(RandomFile(seed, true).Bytes())) << "seed " << seed;
  }
}

}  // namespace
}  // namespace isomer
