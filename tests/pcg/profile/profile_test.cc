#include "pcg/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::string TemporaryFile(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/profile_test_", getpid(), "_", name);
}

Profile SmallProfile() {
  Profile profile;
  profile.device = {.backend = "cpu",
                    .processor = "some core",
                    .libraries = "oneDNN 2.6.3",
                    .busy_devices = 2,
                    .pinned = true};
  profile.models = {"mlp"};
  profile.task_overhead_us = 0.25;
  profile.kernels["relu f32[4]"] = {.median_us = 1.5,
                                    .lower_us = 1,
                                    .upper_us = 2,
                                    .repetitions = 7,
                                    .flops = 4,
                                    .bytes = 32,
                                    .workspace_bytes = 640,
                                    .library_bytes = 77,
                                    .family = "relu f32"};
  profile.tables["fill"] =
      SizeTable({{.bytes = 4, .median_us = 1}, {.bytes = 400, .median_us = 9}});
  return profile;
}

TEST(KernelKey, TellsWhatDiffers) {
  const TensorType x = SequentialType({8, 4}), w = SequentialType({4, 16});
  EXPECT_EQ(KernelKey(OpKind::kMatMul, {x, w}, {}), "matmul f32[8,4] f32[4,16]");
  EXPECT_EQ(KernelKey(OpKind::kMatMul, {x, w}, {false, true}),
            "matmul f32[8,4] f32[4,16] gradient -+");
  EXPECT_NE(KernelKey(OpKind::kMatMul, {x, w}, {true, true}),
            KernelKey(OpKind::kMatMul, {x, w}, {false, true}));
  TensorType half = x;
  half.dtype = DataType::kBFloat16;
  EXPECT_NE(KernelKey(OpKind::kRelu, {x}, {}), KernelKey(OpKind::kRelu, {half}, {}));
  EXPECT_EQ(KernelFamily(OpKind::kMatMul, {x, w}, true), "matmul f32 gradient");
  // Look-ups are of the type of their table, not of the indices.
  const TensorType indices = SequentialType({8}, DataType::kInt64);
  EXPECT_EQ(KernelFamily(OpKind::kEmbedding, {w, indices}, false), "embedding f32");
}

TEST(KernelKey, ShardsAreNamedByTheirLocalShapes) {
  TensorType x = SequentialType({8, 4}), w = SequentialType({4, 16});
  x.dims[0].degree = 2;
  w.copies = 2;
  EXPECT_EQ(KernelKey(OpKind::kMatMul, {x, w}, {}), "matmul f32[4,4] f32[4,16]");
}

TEST(KernelKey, WindowsThatReadAHaloAreNoWholeImages) {
  Operator pool(OpKind::kMaxPool);
  TensorType image = SequentialType({2, 3, 8, 8});
  image.dims[0].degree = 2;
  EXPECT_EQ(KernelKey(pool, {image}, {}), KernelKey(pool, {SequentialType({1, 3, 8, 8})}, {}));
  image.dims[2].degree = 2;
  EXPECT_EQ(KernelKey(pool, {image}, {}),
            KernelKey(pool, {SequentialType({1, 3, 4, 8})}, {}) + " split 2x1");
}

TEST(SizeTable, InterpolatesOnLogarithmicScales) {
  const SizeTable table({{.bytes = 100, .median_us = 2}, {.bytes = 10000, .median_us = 8}});
  EXPECT_DOUBLE_EQ(table.UsOf(0), 2);
  EXPECT_DOUBLE_EQ(table.UsOf(100), 2);
  EXPECT_DOUBLE_EQ(table.UsOf(1000), 4);
  EXPECT_DOUBLE_EQ(table.UsOf(10000), 8);
  EXPECT_DOUBLE_EQ(table.UsOf(30000), 24);
}

TEST(SizeTable, NoiseNeverMakesMoreBytesFaster) {
  const SizeTable table({{.bytes = 1, .median_us = 5},
                         {.bytes = 10, .median_us = 4},
                         {.bytes = 100, .median_us = 9},
                         {.bytes = 1000, .median_us = 3},
                         {.bytes = 10000, .median_us = 30}});
  double before = 0;
  for (int64_t bytes = 1; bytes < 100000; bytes += 1 + bytes / 7) {
    EXPECT_GE(table.UsOf(bytes), before) << bytes;
    before = table.UsOf(bytes) - 1e-9;
  }
}

TEST(Profile, FilesReadBackWhatWasWritten) {
  for (const char* name : {"good.bin", "good.txt"}) {
    const std::string path = TemporaryFile(name);
    ASSERT_EQ(SaveProfile(path, SmallProfile()), absl::OkStatus());
    const auto read = LoadProfile(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->device, SmallProfile().device);
    EXPECT_EQ(read->models, SmallProfile().models);
    EXPECT_EQ(read->task_overhead_us, 0.25);
    const KernelTime& relu = read->kernels.at("relu f32[4]");
    EXPECT_EQ(relu.upper_us, 2);
    EXPECT_EQ(relu.bytes, 32);
    EXPECT_EQ(relu.workspace_bytes, 640);
    EXPECT_EQ(relu.library_bytes, 77);
    EXPECT_EQ(relu.family, "relu f32");
    ASSERT_NE(read->FindTable("fill"), nullptr);
    EXPECT_EQ(read->FindTable("fill")->UsOf(400), 9);
    EXPECT_EQ(read->FindTable("update"), nullptr);
  }
}

// The message for a text file of the small profile with `from` replaced.
std::string ErrorAfter(const std::string& from, const std::string& to) {
  const std::string path = TemporaryFile("bad.txt");
  EXPECT_EQ(SaveProfile(path, SmallProfile()), absl::OkStatus());
  const auto text = ReadFile(path);
  const std::string changed = absl::StrReplaceAll(*text, {{from, to}});
  EXPECT_NE(changed, *text) << *text;
  EXPECT_EQ(WriteFileAtomically(path, changed), absl::OkStatus());
  const std::string message(LoadProfile(path).status().message());
  EXPECT_THAT(message, testing::StartsWith(path));
  EXPECT_THAT(message, testing::Not(HasSubstr("\n")));
  return message;
}

TEST(DamagedProfiles, AreRefusedInOneLine) {
  EXPECT_THAT(ErrorAfter("lower_us: 1\n", "lower_us: -1\n"),
              HasSubstr("kernel 'relu f32[4]': -1 is not a time"));
  EXPECT_THAT(ErrorAfter("median_us: 9", "median_us: nan"),
              HasSubstr("table 'fill': 400 bytes: nan is not a time"));
  EXPECT_THAT(ErrorAfter("bytes: 400", "bytes: 3"), HasSubstr("sizes must ascend"));
  EXPECT_THAT(ErrorAfter("flops: 4", "flops: -4"), HasSubstr("FLOPs or bytes"));
  EXPECT_THAT(ErrorAfter("workspace_bytes: 640", "workspace_bytes: -1"),
              HasSubstr("kernel 'relu f32[4]': its FLOPs or bytes are no numbers"));
  // Sums of them would be below zero.
  EXPECT_THAT(ErrorAfter("workspace_bytes: 640", "workspace_bytes: 9223372036854775807"),
              HasSubstr("kernel 'relu f32[4]': its FLOPs or bytes are no numbers"));
  EXPECT_THAT(ErrorAfter("library_bytes: 77", "library_bytes: 1125899906842625"),
              HasSubstr("kernel 'relu f32[4]': its FLOPs or bytes are no numbers"));
  EXPECT_THAT(ErrorAfter("task_overhead_us: 0.25", "task_overhead_us: inf"), HasSubstr("overhead"));
  EXPECT_THAT(ErrorAfter("processor: \"some core\"", ""), HasSubstr("of which device"));
  EXPECT_THAT(ErrorAfter("median_us: 9", "median_uz: 9"), HasSubstr("median_uz"));
  EXPECT_THAT(ErrorAfter("# end", ""), HasSubstr("bad.txt"));
}

TEST(HostProcessor, IsTheSameEveryTime) {
  EXPECT_FALSE(HostProcessor().empty());
  EXPECT_EQ(HostProcessor(), HostProcessor());
}

}  // namespace
}  // namespace isomer
