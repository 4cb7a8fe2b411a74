#include "pcg/ir/stored_values.h"

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pcg/ir/plan.h"
#include "pcg/support/file.h"
#include "pcg/support/half.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Stored>
std::string WriteValues(const std::string& name, const std::vector<float>& values) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream file(path, std::ios::binary);
  file << "abc";  // What lies before them: values need not be aligned.
  for (float value : values) {
    const Stored stored(value);
    file.write(reinterpret_cast<const char*>(&stored), sizeof(Stored));
  }
  return path;
}

TEST(StoredValues, AreReadWhereTheyLie) {
  const std::vector<float> numbers = {0.5f, -2, 65504};
  const std::string path = WriteValues<float>("of_float.bin", numbers);
  const auto of_float = StoredValues::InFile({path, 15, 3, DataType::kFloat32, 3});
  ASSERT_TRUE(of_float.ok()) << of_float.status();
  EXPECT_THAT(*of_float, ElementsAre(0.5f, -2, 65504));
  EXPECT_EQ(of_float->file()->offset, 3);
  const auto of_half = StoredValues::InFile(
      {WriteValues<Float16>("of_half.bin", numbers), 9, 5, DataType::kFloat16, 2});
  ASSERT_TRUE(of_half.ok()) << of_half.status();
  EXPECT_THAT(*of_half, ElementsAre(-2, 65504));
  const auto of_bfloat = StoredValues::InFile(
      {WriteValues<BFloat16>("of_bfloat.bin", {0.5f, -2, 1}), 9, 3, DataType::kBFloat16, 3});
  ASSERT_TRUE(of_bfloat.ok()) << of_bfloat.status();
  EXPECT_THAT(*of_bfloat, ElementsAre(0.5f, -2, 1));
  of_float->LetGo();
  const StoredValues copy = *of_float;
  EXPECT_EQ(copy.ToVector(), numbers);
  EXPECT_EQ(copy, StoredValues(numbers));
  EXPECT_FALSE(copy == StoredValues({0.5f, -2, 1}));
  EXPECT_FALSE(copy == StoredValues({0.5f, -2}));
}

TEST(StoredValues, OutliveTheNameOfTheirFile) {
  const std::string path = WriteValues<float>("deleted.bin", {1, 2});
  const auto values = StoredValues::InFile({path, 11, 3, DataType::kFloat32, 2});
  ASSERT_TRUE(values.ok()) << values.status();
  std::remove(path.c_str());
  EXPECT_THAT(*values, ElementsAre(1, 2));
}

TEST(StoredValues, RefuseWhatIsNotThere) {
  const std::string path = WriteValues<float>("three.bin", {1, 2, 3});
  const auto error = [&](FileRange range) {
    return std::string(StoredValues::InFile(range).status().message());
  };
  EXPECT_THAT(error({path + "x", 15, 3, DataType::kFloat32, 3}), HasSubstr("No such file"));
  EXPECT_THAT(error({testing::TempDir(), 15, 3, DataType::kFloat32, 3}),
              HasSubstr("no regular file"));
  EXPECT_THAT(error({path, 16, 3, DataType::kFloat32, 3}),
              HasSubstr("has 15 bytes; the file that is meant has 16"));
  EXPECT_THAT(error({path, 15, 4, DataType::kFloat32, 3}),
              HasSubstr("has 15 bytes, not 3 elements of 4 from 4 on"));
  EXPECT_THAT(error({path, 15, 3, DataType::kFloat32, int64_t{1} << 62}), HasSubstr("not"));
  EXPECT_THAT(error({path, 15, int64_t{1} << 62, DataType::kFloat32, 1}), HasSubstr("not"));
  EXPECT_THAT(error({path, 15, -1, DataType::kFloat32, 1}), HasSubstr("no range"));
  EXPECT_THAT(error({path, 15, 3, DataType::kFloat32, -1}), HasSubstr("no range"));
  EXPECT_THAT(error({path, 15, 3, DataType::kInt64, 1}), HasSubstr("no range"));
}

// A model of one weight, or constant, of two values.
Model ModelOf(OpKind kind, StoredValues values) {
  Model model{.name = "small", .graph = {}, .weights = {{"w", std::move(values)}}, .loss = ""};
  const TensorType type = SequentialType({2}, DataType::kFloat32);
  const TensorRef w = kind == OpKind::kWeight ? model.graph.AddWeight("w", type)
                                              : model.graph.AddConstant("w", type);
  model.graph.AddOutput("y", *model.graph.AddOp(OpKind::kRelu, {w}));
  return model;
}

TEST(StoredValues, AModelsFileSaysWhereTheyLie) {
  const std::string data = WriteValues<float>("weights.bin", {1, 2, 3});
  const std::string path = testing::TempDir() + "/refers.model";
  const auto values = StoredValues::InFile({data, 15, 7, DataType::kFloat32, 2});
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_TRUE(SaveModel(path, ModelOf(OpKind::kWeight, *values)).ok());
  const auto model = LoadModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->weights.at("w"), ElementsAre(2, 3));
  EXPECT_NE(model->weights.at("w").file(), nullptr);

  // Rewrites may rest on what a constant is.
  ASSERT_TRUE(SaveModel(path, ModelOf(OpKind::kConstant, *values)).ok());
  EXPECT_THAT(std::string(LoadModel(path).status().message()),
              HasSubstr("weight 'w': only values of what is trained may lie in a file"));

  const auto fewer = StoredValues::InFile({data, 15, 7, DataType::kFloat32, 1});
  ASSERT_TRUE(SaveModel(path, ModelOf(OpKind::kWeight, *fewer)).ok());
  EXPECT_THAT(std::string(LoadModel(path).status().message()),
              HasSubstr("weight 'w' has 1 values, not 2"));

  ASSERT_TRUE(SaveModel(path, ModelOf(OpKind::kWeight, *values)).ok());
  std::remove(data.c_str());
  ASSERT_TRUE(WriteFileAtomically(data, "another").ok());
  EXPECT_THAT(std::string(LoadModel(path).status().message()),
              HasSubstr("weights.bin has 7 bytes; the file that is meant has 15"));
  std::remove(data.c_str());
  EXPECT_THAT(std::string(LoadModel(path).status().message()), HasSubstr("No such file"));
}

}  // namespace
}  // namespace isomer
