// ONNX operators that select, move, repeat or interpolate elements.
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/models/onnx_node.h"

namespace isomer {
namespace {

using testing::HasSubstr;

constexpr auto kInt64 = onnx::TensorProto::INT64;

std::vector<double> Count(int64_t n) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i));
  return values;
}

TEST(OnnxSlice, BackwardsAndInSteps) {
  auto slice = [](int64_t start, int64_t end, int64_t step) {
    OnnxNodeRun run("Slice");
    run.X({6}, Count(6)).Ints({1}, {start}).Ints({1}, {end}).Ints({1}, {0}).Ints({1}, {step});
    return run.Run()[0].data;
  };
  EXPECT_EQ(slice(1, 100, 2), (std::vector<double>{1, 3, 5}));
  EXPECT_EQ(slice(-1, -100, -2), (std::vector<double>{5, 3, 1}));
  EXPECT_EQ(slice(100, 1, -1), (std::vector<double>{5, 4, 3, 2}));
  EXPECT_EQ(slice(-4, -1, 1), (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(slice(4, INT64_MIN, -100), (std::vector<double>{4}));
  OnnxNodeRun none("Slice");
  none.X({6}, Count(6)).Ints({1}, {3}).Ints({1}, {3});
  EXPECT_THAT(std::string(none.Import().status().message()), HasSubstr("nothing of dim 0 remains"));
}

TEST(OnnxTranspose, DimsFromTheEnd) {
  OnnxNodeRun run("Transpose");
  run.X({1, 2, 3}, Count(6)).With("perm", std::vector<int64_t>{0, -1, -2});
  ExpectValues(run.Run()[0], {1, 3, 2}, {0, 3, 1, 4, 2, 5});
  OnnxNodeRun twice("Transpose");
  twice.X({2, 3}, Count(6)).With("perm", std::vector<int64_t>{1, -1});
  EXPECT_THAT(std::string(twice.Import().status().message()), HasSubstr("not a permutation"));
}

TEST(OnnxSplit, LastPartMayBeSmaller) {
  OnnxNodeRun run("Split", 18);
  const auto parts = run.X({7}, Count(7)).With("num_outputs", 3).Run(3);
  EXPECT_EQ(parts[0].data, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(parts[2].data, (std::vector<double>{6}));
}

TEST(OnnxPad, AllModes) {
  const struct {
    const char* mode;
    std::vector<double> expected;
  } cases[] = {{"constant", {9, 9, 1, 2, 3, 9}},
               {"reflect", {3, 2, 1, 2, 3, 2}},
               {"edge", {1, 1, 1, 2, 3, 3}},
               {"wrap", {2, 3, 1, 2, 3, 1}}};
  for (const auto& c : cases) {
    OnnxNodeRun run("Pad", 19);
    run.X({3}, {1, 2, 3}).Ints({2}, {2, 1}).Floats({}, {9}).With("mode", c.mode);
    ExpectValues(run.Run()[0], {6}, c.expected, c.mode);
  }
  ExpectValues(OnnxNodeRun("Pad").X({4}, Count(4)).Ints({2}, {-1, 2}).Run()[0], {5},
               {1, 2, 3, 0, 0});
}

TEST(OnnxTile, RepeatsWholeDims) {
  ExpectValues(OnnxNodeRun("Tile").X({1, 2}, {1, 2}).Ints({2}, {2, 2}).Run()[0], {2, 4},
               {1, 2, 1, 2, 1, 2, 1, 2});
  ExpectValues(OnnxNodeRun("Expand").X({2, 1}, {1, 2}).Ints({3}, {2, 1, 2}).Run()[0], {2, 2, 2},
               {1, 1, 2, 2, 1, 1, 2, 2});
}

TEST(OnnxDepthToSpace, InBothModesAndBack) {
  auto run = [](const char* mode) {
    OnnxNodeRun to_space("DepthToSpace");
    return to_space.X({1, 8, 1, 1}, Count(8)).With("blocksize", 2).With("mode", mode).Run()[0];
  };
  ExpectValues(run("DCR"), {1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7});
  ExpectValues(run("CRD"), {1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  OnnxNodeRun to_depth("SpaceToDepth");
  to_depth.X({1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7}).With("blocksize", 2);
  ExpectValues(to_depth.Run()[0], {1, 8, 1, 1}, Count(8));
}

TEST(OnnxGather, ConstantsCountFromTheEnd) {
  ExpectValues(OnnxNodeRun("Gather").X({4}, Count(4)).Ints({2}, {-1, 1}).Run()[0], {2}, {3, 1});
  OnnxNodeRun range("Gather");
  range.X({2, 4}, Count(8)).Ints({2}, {-2, -1}).With("axis", 1);
  ExpectValues(range.Run()[0], {2, 2}, {2, 3, 6, 7});
  EXPECT_THAT(
      std::string(OnnxNodeRun("Gather").X({4}, Count(4)).Ints({}, {4}).Import().status().message()),
      HasSubstr("index 4 is outside of dim 0 of size 4"));
}

TEST(OnnxGatherNd, ByConstantsByDataAndByBatch) {
  const std::vector<double> x = Count(8);
  ExpectValues(OnnxNodeRun("GatherND").X({2, 2, 2}, x).Ints({2, 2}, {0, 1, -1, 0}).Run()[0], {2, 2},
               {2, 3, 4, 5});
  ExpectValues(OnnxNodeRun("GatherND").X({2, 2, 2}, x).X({2, 2}, {0, 1, 1, 0}, kInt64).Run()[0],
               {2, 2}, {2, 3, 4, 5});
  OnnxNodeRun batch("GatherND");
  batch.X({2, 2, 2}, x).X({2, 1}, {1, 0}, kInt64).With("batch_dims", 1);
  ExpectValues(batch.Run()[0], {2, 2}, {2, 3, 4, 5});
}

TEST(OnnxScatterNd, ReplacesAndAdds) {
  auto run = [](const char* reduction) {
    OnnxNodeRun scatter("ScatterND", 16);
    scatter.X({3, 2}, Count(6)).X({2, 1}, {2, 0}, kInt64).X({2, 2}, {10, 20, 30, 40});
    return scatter.With("reduction", reduction).Run()[0];
  };
  ExpectValues(run("none"), {3, 2}, {30, 40, 2, 3, 10, 20});
  ExpectValues(run("add"), {3, 2}, {30, 41, 2, 3, 14, 25});
}

// As Swin's masks of shifted windows are made: a call would look at the whole table for each
// element.
TEST(OnnxScatterNd, ConstantsAreScatteredAtImport) {
  constexpr int64_t kRows = 1 << 16;
  const auto scattered = [](const std::vector<int64_t>& rows) {
    OnnxNodeRun scatter("ScatterND", 16);
    scatter.Ints({kRows, 2}, std::vector<int64_t>(2 * kRows, 7));
    return scatter.Ints({2, 1}, rows).Ints({2, 2}, {1, 2, 3, 4}).Import();
  };
  const absl::StatusOr<Model> model = scattered({2, -1});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->graph.num_nodes(), 1);
  const StoredValues& values = model->weights.at(model->graph.node(NodeId{0}).name);
  for (const auto& [at, value] : std::map<size_t, float>{
           {3, 7}, {4, 1}, {5, 2}, {6, 7}, {2 * kRows - 2, 3}, {2 * kRows - 1, 4}}) {
    EXPECT_EQ(values[at], value) << at;
  }
}

TEST(OnnxOneHot, NegativeAndOutsideIndices) {
  OnnxNodeRun run("OneHot");
  run.X({3}, {1, -1, 7}, kInt64).Ints({}, {3}).Floats({2}, {2, 5});
  ExpectValues(run.Run()[0], {3, 3}, {2, 5, 2, 2, 2, 5, 2, 2, 2});
}

TEST(OnnxReverseSequence, OnlyTheFirstElements) {
  OnnxNodeRun run("ReverseSequence");
  run.X({2, 4}, Count(8)).X({2}, {3, 1}, kInt64).With("batch_axis", 0).With("time_axis", 1);
  ExpectValues(run.Run()[0], {2, 4}, {2, 1, 0, 3, 4, 5, 6, 7});
}

TEST(OnnxTopK, WithIndices) {
  const auto y = OnnxNodeRun("TopK").X({4}, {3, 7, 1, 7}).Ints({1}, {3}).Run(2);
  ExpectValues(y[0], {3}, {7, 7, 3});
  ExpectValues(y[1], {3}, {1, 3, 0});
}

TEST(OnnxCumSum, ExclusiveBackwards) {
  OnnxNodeRun run("CumSum");
  run.X({4}, {1, 2, 3, 4}).Ints({}, {0}).With("exclusive", 1).With("reverse", 1);
  ExpectValues(run.Run()[0], {4}, {9, 7, 4, 0});
}

TEST(OnnxCenterCropPad, CutsOneAxisAndPadsTheOther) {
  ExpectValues(OnnxNodeRun("CenterCropPad", 18).X({4, 1}, Count(4)).Ints({2}, {2, 3}).Run()[0],
               {2, 3}, {0, 1, 0, 0, 2, 0});
}

OnnxNodeRun Resize(const std::string& mode, const std::string& coordinates,
                   const std::vector<float>& scales, int64_t opset = 13) {
  OnnxNodeRun run("Resize", opset);
  run.X({1, 1, 1, 4}, {1, 2, 3, 4}).Absent().Floats({4}, scales);
  run.With("mode", mode).With("coordinate_transformation_mode", coordinates);
  return run;
}

TEST(OnnxResize, EveryWayToPlacePixels) {
  const std::vector<float> twice = {1, 1, 1, 2};
  const struct {
    const char *mode, *coordinates;
    std::vector<double> expected;
  } cases[] = {
      {"linear", "half_pixel", {1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4}},
      {"linear", "pytorch_half_pixel", {1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4}},
      {"linear", "asymmetric", {1, 1.5, 2, 2.5, 3, 3.5, 4, 4}},
      {"linear",
       "align_corners",
       {1, 10 / 7.0, 13 / 7.0, 16 / 7.0, 19 / 7.0, 22 / 7.0, 25 / 7.0, 4}},
      {"nearest", "asymmetric", {1, 1, 2, 2, 3, 3, 4, 4}},
      // As torch has it (bicubic with a = -0.75).
      {"cubic",
       "half_pixel",
       {0.89453125, 1.19140625, 1.66796875, 2.296875, 2.703125, 3.33203125, 3.80859375,
        4.10546875}},
  };
  for (const auto& c : cases) {
    OnnxNodeRun run = Resize(c.mode, c.coordinates, twice);
    if (c.mode[0] == 'n') run.With("nearest_mode", "floor");
    ExpectValues(run.Run()[0], {1, 1, 1, 8}, c.expected, std::string(c.mode) + c.coordinates);
  }
}

TEST(OnnxResize, SmallerWithAntialias) {
  // A triangle as wide as two outputs, (1 3 3 1) / 8; beyond the edge lies the edge's element.
  OnnxNodeRun run = Resize("linear", "half_pixel", {1, 1, 1, 0.5}, 18);
  run.With("antialias", 1);
  ExpectValues(run.Run()[0], {1, 1, 1, 2}, {1.625, 3.375});
}

TEST(OnnxResize, RowsAndColumnsBySizes) {
  OnnxNodeRun run("Resize");
  run.X({1, 1, 2, 2}, {1, 2, 3, 4}).Absent().Absent().Ints({4}, {1, 1, 4, 2});
  run.With("mode", "linear").With("coordinate_transformation_mode", "align_corners");
  ExpectValues(run.Run()[0], {1, 1, 4, 2}, {1, 2, 5 / 3.0, 8 / 3.0, 7 / 3.0, 10 / 3.0, 3, 4});
}

TEST(OnnxResize, WhatIsNotKnownIsRefused) {
  EXPECT_THAT(std::string(Resize("linear", "sideways", {1, 1, 1, 2}).Import().status().message()),
              HasSubstr("coordinate_transformation_mode 'sideways' is not known"));
  EXPECT_THAT(
      std::string(Resize("lanczos", "half_pixel", {1, 1, 1, 2}).Import().status().message()),
      HasSubstr("mode 'lanczos' is not known"));
}

TEST(OnnxEinsum, ByItsEquation) {
  OnnxNodeRun run("Einsum");
  run.X({2, 2}, {1, 2, 3, 4}).X({2, 2}, {1, 10, 100, 1000}).With("equation", "ij,kj->ki");
  ExpectValues(run.Run()[0], {2, 2}, {21, 43, 2100, 4300});
}

}  // namespace
}  // namespace isomer
