#include "optimizer/sharding/constraints.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

std::string ErrorOf(absl::string_view contents) {
  return std::string(ParseConstraints(contents, "mine.txt").status().message());
}

TEST(ConstraintsFile, KnowsWhereConstraintsStand) {
  const auto parsed = ParseConstraints(
      "# What I want.\n"
      "tensor { name: \"x\" split { dim: 0 degree: 2 } split { dim: -1 degree: 4 } }\n"
      "node {\n  name: \"a/*\"\n  devices { first: 2 count: 2 }\n}\n"
      "tensor { name: \"y\" replicate: true }\n"
      "colocate { node: \"a\" node: \"b\" }\n",
      "mine.txt");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->tensors.size(), 2u);
  EXPECT_EQ(parsed->tensors[0].source, "mine.txt:2");
  EXPECT_EQ(parsed->tensors[0].splits[1].dim, -1);
  EXPECT_EQ(parsed->tensors[1].source, "mine.txt:7");
  EXPECT_TRUE(parsed->tensors[1].replicate);
  EXPECT_EQ(parsed->nodes[0].source, "mine.txt:3");
  EXPECT_EQ(parsed->nodes[0].devices, (DeviceRange{2, 2}));
  EXPECT_EQ(parsed->colocations[0].source, "mine.txt:8");
}

TEST(ConstraintsFile, RefusesWhatSaysNothing) {
  EXPECT_EQ(ErrorOf("tensor { name: \"x\" }"),
            "mine.txt:1: say of a tensor either how it is split or that it is replicated");
  EXPECT_EQ(ErrorOf("\nnode { name: \"x\" }"),
            "mine.txt:2: say of a node its devices or its stage");
  EXPECT_EQ(ErrorOf("tensor { name: \"x\" split { dim: 0 degree: 0 } }"),
            "mine.txt:1: the degree of a split is at least 1");
  EXPECT_EQ(ErrorOf("node { name: \"x\" devices { first: 0 } }"),
            "mine.txt:1: devices are a first one, from 0, and a count of at least 1");
  EXPECT_NE(ErrorOf("tensr { }").find("mine.txt:1:"), std::string::npos);
}

TEST(ConstraintsFile, RefusesTwoThingsAtOnce) {
  EXPECT_EQ(ErrorOf("tensor { name: \"x\" replicate: true split { dim: 0 degree: 2 } }"),
            "mine.txt:1: say of a tensor either how it is split or that it is replicated");
  EXPECT_EQ(ErrorOf("tensor { name: \"x\" split { degree: 2 } split { dim: 0 degree: 4 } }"),
            "mine.txt:1: dim 0 is named twice");
}

TEST(ConstraintNames, Globs) {
  EXPECT_TRUE(MatchesGlob("layer*/up", "layer12/ffn/up"));
  EXPECT_FALSE(MatchesGlob("layer*/up", "layer12/ffn/upper"));
  EXPECT_TRUE(MatchesGlob("layer?/*", "layer1/q"));
  EXPECT_FALSE(MatchesGlob("layer?/*", "layer12/q"));
  EXPECT_TRUE(MatchesGlob("*a*b", "xaxbab"));
  EXPECT_TRUE(MatchesGlob("**", ""));
  EXPECT_FALSE(MatchesGlob("", "x"));
}

TEST(ConstraintNames, NearestIsByCharactersToChange) {
  EXPECT_EQ(NearestName("dense1", {"conv1", "dense2/relu", "dense2"}), "dense2");
  EXPECT_EQ(NearestName("x", {}), "");
}

}  // namespace
}  // namespace isomer
