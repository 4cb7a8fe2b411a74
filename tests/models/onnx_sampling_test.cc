// ONNX operators that look between elements, and those that transform spectra. What is expected
// of more than a few elements is PyTorch's.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "runtime/data/input_binding.h"
#include "tests/models/onnx_node.h"

namespace isomer {
namespace {

using testing::HasSubstr;

TEST(OnnxGridSample, ModesPaddingAndCorners) {
  const std::vector<double> image = {1, 4, 2, 3, 0, 5};
  const std::vector<double> grid = {-1, -1, 0.25, 0.5, 1.4, -0.3, -1.7, 0.9, 0, 0, 0.6, 1.9};
  const struct {
    const char* mode;
    const char* padding;
    int64_t aligned;
    std::vector<double> expected;
  } cases[] = {
      {"linear", "zeros", 0, {0.25, 1.875, 0, 0, 2, 0}},
      {"linear", "zeros", 1, {1, 1.8125, 1.83, 0.8699998, 2, 1.65}},
      {"linear", "border", 0, {1, 1.875, 2.6, 3, 2, 4.5}},
      {"linear", "border", 1, {1, 1.8125, 3.05, 2.9, 2, 3}},
      {"linear", "reflection", 0, {1, 1.875, 2.66, 1.35, 2, 3.58}},
      {"linear", "reflection", 1, {1, 1.8125, 2.87, 1.01, 2, 2.91}},
      {"nearest", "zeros", 0, {1, 0, 0, 0, 4, 0}},
      {"nearest", "zeros", 1, {1, 0, 2, 0, 4, 5}},
      {"nearest", "border", 0, {1, 0, 2, 3, 4, 5}},
      {"nearest", "reflection", 0, {1, 0, 2, 0, 4, 5}},
      {"cubic", "zeros", 0, {-0.03710938, 1.801758, -0.17253, -0.1714054, 2.375, -0.5263394}},
      {"cubic", "border", 1, {1, 1.506714, 3.034514, 3.051981, 2, 2.828889}},
      {"cubic", "reflection", 0, {-0.1484375, 1.472168, 2.604099, 0.4516469, 2, 3.644175}},
      {"cubic", "reflection", 1, {1, 1.42981, 2.947304, 0.4479048, 2, 3.125447}},
  };
  for (const auto& c : cases) {
    OnnxNodeRun run("GridSample", 20);
    run.X({1, 1, 2, 3}, image).X({1, 2, 3, 2}, grid).With("mode", c.mode);
    run.With("padding_mode", c.padding).With("align_corners", c.aligned);
    ExpectValues(run.Run()[0], {1, 1, 2, 3}, c.expected,
                 std::string(c.mode) + " " + c.padding + " " + std::to_string(c.aligned));
  }
}

TEST(OnnxGridSample, VolumesAndChannels) {
  OnnxNodeRun volume("GridSample", 20);
  volume.X({1, 1, 2, 2, 2}, {0, 1, 4, 9, 16, 25, 36, 49});
  volume.X({1, 1, 1, 2, 3}, {0, 0, 0, 0.5, -0.5, 1}).With("align_corners", 1);
  ExpectValues(volume.Run()[0], {1, 1, 1, 1, 2}, {17.5, 28.5});
  // Of two samples of two channels the middle, and the left of the upper row (opset 16's name).
  OnnxNodeRun channels("GridSample", 16);
  channels.X({2, 2, 1, 2}, {1, 3, 10, 30, 5, 7, 50, 70}).With("mode", "bilinear");
  channels.X({2, 1, 2, 2}, {0, 0, -0.5, 0, 0, 0, -0.5, 0});
  ExpectValues(channels.Run()[0], {2, 2, 1, 2}, {2, 1, 20, 10, 6, 5, 60, 50});
}

TEST(OnnxGridSample, GridOfAnotherImage) {
  OnnxNodeRun run("GridSample", 20);
  run.Open({2, 3, 4, 4}).Open({1, 4, 4, 2});
  EXPECT_THAT(std::string(run.Import().status().message()),
              HasSubstr("the grid is not [2, .., 2] of rank 4"));
}

TEST(OnnxAffineGrid, CornersAndBorders) {
  for (int64_t aligned : {0, 1}) {
    OnnxNodeRun run("AffineGrid", 20);
    run.X({1, 2, 3}, {1, 0.5, -0.25, 0, 2, 1}).Ints({4}, {1, 1, 2, 3});
    const std::vector<double> borders = {-1.1666667, 0, -0.5, 0, 0.1666667, 0,
                                         -0.6666667, 2, 0,    2, 0.6666667, 2};
    const std::vector<double> corners = {-1.75, -1, -0.75, -1, 0.25, -1,
                                         -0.75, 3,  0.25,  3,  1.25, 3};
    ExpectValues(run.With("align_corners", aligned).Run()[0], {1, 2, 3, 2},
                 aligned == 1 ? corners : borders);
  }
}

TEST(OnnxDeformConv, OffsetsMaskAndBias) {
  std::vector<double> image, offsets, mask;
  for (int i = 0; i < 18; ++i) image.push_back(i % 7 - 2);
  for (int i = 0; i < 32; ++i) offsets.push_back(i % 5 * 0.3 - 0.6);
  for (int i = 0; i < 16; ++i) mask.push_back(i % 3 * 0.5);
  const std::vector<double> w = {1, -1, 0.5, 2, 0.25, 1, -0.5, 1};
  OnnxNodeRun plain("DeformConv", 19);
  plain.X({1, 2, 3, 3}, image).X({1, 2, 2, 2}, w).X({1, 8, 2, 2}, offsets);
  ExpectValues(plain.Run()[0], {1, 1, 2, 2}, {1.96, -2.47, 6.975, -0.76});
  OnnxNodeRun masked("DeformConv", 19);
  masked.X({1, 2, 3, 3}, image).X({1, 2, 2, 2}, w).X({1, 8, 2, 2}, offsets);
  masked.X({1}, {0.5}).X({1, 4, 2, 2}, mask);
  ExpectValues(masked.Run()[0], {1, 1, 2, 2}, {1.1, -1.005, 6.28, 0.12});
}

TEST(OnnxDeformConv, GroupsWithoutOffsetsAreThoseOfAConvolution) {
  std::vector<double> image, filters;
  for (int i = 0; i < 64; ++i) image.push_back(i * i % 11 - 4);
  for (int i = 0; i < 32; ++i) filters.push_back(i * 5 % 7 - 3);
  auto with = [&](OnnxNodeRun run, bool deformed) {
    run.X({1, 4, 4, 4}, image).X({4, 2, 2, 2}, filters);
    if (deformed) run.X({1, 16, 3, 3}, std::vector<double>(144, 0)).With("offset_group", 2);
    run.With("group", 2).With("strides", std::vector<int64_t>{2, 2});
    run.With("pads", std::vector<int64_t>{1, 1, 1, 1});
    return run.Run()[0];
  };
  const Array<double> expected = with(OnnxNodeRun("Conv"), false);
  ExpectValues(with(OnnxNodeRun("DeformConv", 19), true), {1, 4, 3, 3}, expected.data);
}

TEST(OnnxRoiAlign, AveragesOfPointsInCells) {
  std::vector<double> images;
  for (int i = 0; i < 64; ++i) images.push_back(i % 32 % 7 + (i < 32 ? 0 : 10));
  const std::vector<double> rois = {0.5, 0.25, 3, 2.75, -3, 1, 5.5, 4.5};
  const std::vector<double> half_pixel = {1.6625,   2.7875,  3.275,    4.4,      2.631094, 2.775,
                                          3.167344, 2.2875,  6.357813, 12.88438, 6.86875,  12.24054,
                                          7.357812, 12.7625, 5.473438, 13.2375};
  const std::vector<double> output_half_pixel = {
      3.921875, 3.993457, 2.853525, 3.178516, 1.566699, 2.015625, 3.157803, 4.109375,
      6.195312, 13.14177, 7.453125, 10.7375,  6.844561, 14.00625, 5.182813, 12.7375};
  for (const int64_t opset : {10, 16}) {
    OnnxNodeRun run("RoiAlign", opset);
    run.X({2, 2, 4, 4}, images).X({2, 4}, rois).X({2}, {0, 1}, onnx::TensorProto::INT64);
    run.With("output_height", 2).With("output_width", 2).With("sampling_ratio", 2);
    const Array<double> found = run.WithFloat("spatial_scale", 0.9F).Run()[0];
    ExpectValues(found, {2, 2, 2, 2}, opset == 16 ? half_pixel : output_half_pixel);
  }
  OnnxNodeRun open("RoiAlign", 16);
  open.Open({2, 2, 4, 4}).Open({2, 4}).Open({2}, onnx::TensorProto::INT64);
  EXPECT_THAT(std::string(open.Import().status().message()), HasSubstr("sampling_ratio 0"));
}

// What is drawn for the samples of rois is the number of one.
TEST(OnnxRoiAlign, SamplesAreNumbersOfSamples) {
  OnnxNodeRun run("RoiAlign", 16);
  run.Open({3, 2, 4, 4}).Open({5, 4}).Open({5}, onnx::TensorProto::INT64);
  const auto model = run.With("sampling_ratio", 2).Import();
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<ModelInput> inputs = InputsForData(model->graph);
  const auto samples = std::find_if(inputs.begin(), inputs.end(), [](const ModelInput& input) {
    return input.type.dtype == DataType::kInt64;
  });
  ASSERT_NE(samples, inputs.end());
  EXPECT_TRUE(samples->range.is_integer);
  EXPECT_EQ(samples->range.least, 0);
  EXPECT_EQ(samples->range.most, 2);
}

TEST(OnnxCol2Im, OverlappingWindowsAreAdded) {
  std::vector<double> columns;
  for (int i = 1; i <= 16; ++i) columns.push_back(i);
  OnnxNodeRun run("Col2Im", 18);
  run.X({1, 4, 4}, columns).Ints({2}, {3, 3}).Ints({2}, {2, 2});
  ExpectValues(run.Run()[0], {1, 1, 3, 3}, {1, 7, 6, 12, 34, 22, 11, 27, 16});
}

TEST(OnnxCol2Im, StridesDilationAndWhatNoWindowReaches) {
  OnnxNodeRun run("Col2Im", 18);
  run.X({1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}).Ints({2}, {3, 6}).Ints({2}, {2, 2});
  run.With("strides", std::vector<int64_t>{2, 2}).With("dilations", std::vector<int64_t>{2, 2});
  ExpectValues(run.Run()[0], {1, 1, 3, 6}, {1, 0, 5, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 13, 0, 8, 0});
  OnnxNodeRun wrong("Col2Im", 18);
  wrong.Open({1, 4, 5}).Ints({2}, {3, 3}).Ints({2}, {2, 2});
  EXPECT_THAT(std::string(wrong.Import().status().message()),
              HasSubstr("input 0 is not [n, c * 4, 4]"));
}

TEST(OnnxSampling, HostileSizesEndInALine) {
  constexpr int64_t kHuge = int64_t{1} << 62, kLarge = int64_t{1} << 24;
  const auto message = [](OnnxNodeRun& run) {
    return std::string(run.Import().status().message());
  };
  OnnxNodeRun image("Col2Im", 18);
  image.Open({1, 4, 4}).Ints({2}, {kHuge, kHuge}).Ints({2}, {2, 2});
  EXPECT_THAT(message(image), HasSubstr("a size of the image or of the kernel is not between 1"));
  OnnxNodeRun kernel("Col2Im", 18);
  kernel.Open({1, 4, 4}).Ints({3}, {kLarge, kLarge, kLarge}).Ints({3}, {kLarge, kLarge, kLarge});
  EXPECT_THAT(message(kernel), HasSubstr("too large to be computed"));
  OnnxNodeRun scalars("RoiAlign", 16);
  scalars.Open({2, 2, 4, 4}).Open({}).Open({}, onnx::TensorProto::INT64);
  scalars.With("sampling_ratio", 2);
  EXPECT_THAT(message(scalars), HasSubstr("the samples of the rois are not [r]"));
  OnnxNodeRun cells("RoiAlign", 16);
  cells.Open({2, 2, 4, 4}).Open({2, 4}).Open({2}, onnx::TensorProto::INT64);
  cells.With("sampling_ratio", 8).With("output_height", kHuge / 2);
  EXPECT_THAT(message(cells), HasSubstr("is not between 1 and 4096"));
}

TEST(OnnxDft, RealComplexAndHalfSpectra) {
  const std::vector<double> real = {1, 2, 0, -1, 3};
  OnnxNodeRun whole("DFT", 17);
  whole.X({1, 5, 1}, real).With("axis", 1);
  ExpectValues(
      whole.Run()[0], {1, 5, 2},
      {5, 0, 3.354102, 0.3632713, -3.354102, 1.538842, -3.354102, -1.538842, 3.354102, -0.3632713});
  auto half = [&](int64_t length, const std::vector<double>& expected) {
    OnnxNodeRun run("DFT", 20);
    run.X({1, 5, 1}, real).Ints({}, {length}).Ints({}, {-2}).With("onesided", 1);
    ExpectValues(run.Run()[0], {1, length / 2 + 1, 2}, expected);
  };
  half(8, {5, 0, 0.1213203, -0.7071068, 4, -3, -4.1213203, -0.7071068, 3, 0});
  half(4, {2, 0, 1, -3, 0, 0});
  const std::vector<double> spectrum = {1, 2, 0, -1, 3, 1};
  OnnxNodeRun inverse("DFT", 17);
  inverse.X({1, 3, 2}, spectrum).With("inverse", 1);
  ExpectValues(inverse.Run()[0], {1, 3, 2},
               {1.3333333, 0.6666667, 0.4106836, -0.1993587, -0.744017, 1.532692});
  OnnxNodeRun even("DFT", 20);
  even.X({1, 3, 2}, spectrum).With("inverse", 1).With("onesided", 1);
  ExpectValues(even.Run()[0], {1, 4, 1}, {1, 0, 1, -1});
  OnnxNodeRun odd("DFT", 20);
  odd.X({1, 3, 2}, spectrum).Ints({}, {5}).With("inverse", 1).With("onesided", 1);
  ExpectValues(odd.Run()[0], {1, 5, 1}, {1.4, -0.6255119, 1.186357, -0.0447163, -0.916129});
}

TEST(OnnxDft, AlongADimBeforeOthers) {
  // Of length 2: the sum and the difference, of both columns.
  OnnxNodeRun run("DFT", 20);
  run.X({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}).Absent().Ints({}, {0});
  ExpectValues(run.Run()[0], {2, 2, 2}, {6, 8, 10, 12, -4, -4, -4, -4});
}

TEST(OnnxStft, FramesTimesWindow) {
  OnnxNodeRun run("STFT", 17);
  run.X({1, 8, 1}, {1, 2, 0, -1, 3, 1, -2, 0}).Ints({}, {2}).Floats({4}, {0.5, 1, 1, 0.5});
  ExpectValues(run.Run()[0], {1, 3, 3, 2},
               {2, 0, 0.5, -2.5, -1, 0, 2.5, 0, -3, 1.5, 3.5, 0, 0.5, 0, 3.5, -1, -1.5, 0});
}

}  // namespace
}  // namespace isomer
