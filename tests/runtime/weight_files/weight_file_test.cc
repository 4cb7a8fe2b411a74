#include "runtime/weight_files/weight_file.h"

#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "pcg/support/file.h"
#include "runtime/weight_files/write_weights.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::string ScratchWeights(const std::string& name) { return testing::TempDir() + "/" + name; }

// Not synced, as it is done hundreds of times.
void Overwrite(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

std::vector<NamedWeight> OddlyNamedWeights() {
  std::vector<NamedWeight> weights;
  float next = 0.5;
  for (const std::string& name :
       {std::string("layer.0/weight"), std::string("\"quoted\" \\ it's"), std::string("line\nend"),
        std::string("\xc3\xbc\xe2\x98\x83"), std::string("a.npy"), std::string("a"),
        std::string(3000, 'x'), std::string("../up")}) {
    weights.push_back({name, {2, 3}, {next, -next, 1 / next, 3, 4, next * 7}});
    next *= 3;
  }
  weights.push_back({"scalar", {}, {2}});
  weights.push_back({"none", {0, 4}, {}});
  return weights;
}

absl::StatusOr<std::optional<WeightFile>> Opened(const std::string& path) {
  std::vector<std::string> notes;
  return OpenWeightFile(path, nullptr, &notes);
}

void ExpectHas(const WeightFile& file, const std::vector<NamedWeight>& weights) {
  ASSERT_EQ(file.tensors.size(), weights.size());
  std::map<std::string, const WeightTensor*> by_name;
  for (const WeightTensor& tensor : file.tensors) by_name[tensor.name] = &tensor;
  for (const NamedWeight& weight : weights) {
    ASSERT_TRUE(by_name.contains(weight.name)) << weight.name;
    EXPECT_EQ(by_name[weight.name]->dims, weight.dims);
    EXPECT_EQ(by_name[weight.name]->values().value(), weight.values) << weight.name;
  }
}

TEST(WeightFile, WhatIsWrittenIsReadWhateverTheNames) {
  const std::vector<NamedWeight> weights = OddlyNamedWeights();
  const std::string safetensors = ScratchWeights("odd.safetensors"),
                    npz = ScratchWeights("odd.npz");
  ASSERT_EQ(WriteSafetensors(safetensors, weights), absl::OkStatus());
  ASSERT_EQ(WriteNpz(npz, weights), absl::OkStatus());
  for (const std::string& path : {safetensors, npz}) {
    const auto file = Opened(path);
    ASSERT_TRUE(file.ok() && file->has_value()) << file.status();
    ExpectHas(**file, weights);
  }
  // Equal weights are equal files.
  const std::string again = ScratchWeights("again.npz");
  ASSERT_EQ(WriteNpz(again, weights), absl::OkStatus());
  EXPECT_EQ(ReadFile(again).value(), ReadFile(npz).value());
}

TEST(WeightFile, NamesThatAFormatCannotSayAreRefused) {
  EXPECT_EQ(CheckSafetensorsNames("w", {"a", "metadata"}), absl::OkStatus());
  EXPECT_EQ(CheckSafetensorsNames("w", {"a", "__metadata__"}).message(),
            "w: a weight cannot be called '__metadata__' there");
  EXPECT_EQ(CheckNpzNames("w", {"caf\xe9"}).message(),
            "w: weight 'caf\\351': its name is not UTF-8");
  EXPECT_FALSE(CheckSafetensorsNames("w", {"caf\xe9"}).ok());
  EXPECT_EQ(CheckNpzNames("w", {"a", std::string(65531, 'x')}), absl::OkStatus());
  EXPECT_THAT(std::string(CheckNpzNames("w", {"a", std::string(65532, 'x')}).message()),
              HasSubstr("has 65532 bytes, too many for a ZIP archive"));
}

// Of a file of safetensors each byte of the header is changed, and each length tried.
TEST(WeightFile, DamagedHeadersAreErrorsOrOtherNames) {
  const std::string path = ScratchWeights("damaged.safetensors");
  ASSERT_EQ(WriteSafetensors(path, {{"w", {2, 2}, {1, 2, 3, 4}}, {"b", {2}, {1, 2}}}),
            absl::OkStatus());
  const std::string whole = ReadFile(path).value();
  for (size_t at = 0; at < whole.size() - 24; ++at) {
    for (const char bit : {'\x01', '\x10', '\x40'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      Overwrite(path, damaged);
      const auto file = Opened(path);
      if (file.ok()) {
        ASSERT_TRUE(file->has_value());
        for (const WeightTensor& tensor : (*file)->tensors) tensor.values().IgnoreError();
      } else {
        EXPECT_THAT(std::string(file.status().message()), HasSubstr("damaged.safetensors"));
      }
    }
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    Overwrite(path, whole.substr(0, size));
    EXPECT_FALSE(Opened(path).ok()) << size;
  }
}

TEST(WeightFile, OthersAreNone) {
  const std::string path = ScratchWeights("text");
  ASSERT_TRUE(WriteFileAtomically(path, "name: \"a text that is long enough\"").ok());
  const auto file = Opened(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->has_value());
  EXPECT_THAT(std::string(Opened(path + ".none").status().message()), HasSubstr("no such file"));
}

}  // namespace
}  // namespace isomer
