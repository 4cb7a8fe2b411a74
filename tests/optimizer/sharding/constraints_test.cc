#include "optimizer/sharding/constraints.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

TEST(ConstraintsFile, OfTheStepWhatIsNotNamedIsFree) {
  const auto parsed =
      ParseConstraints("\nstep {\n  micro_batches: 8\n  recompute: \"selective\"\n}\n", "mine.txt");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Constraints::OfStep& step = parsed->step;
  EXPECT_EQ(step.source, "mine.txt:2");
  EXPECT_EQ(step.micro_batches, 8);
  EXPECT_EQ(step.recompute, RecomputeMode::kSelective);
  EXPECT_FALSE(step.stages || step.chunks || step.update);
  EXPECT_FALSE(parsed->empty());
  EXPECT_EQ(step.ToString(), "micro_batches: 8, recompute: selective");
}

TEST(ConstraintsFile, RefusesStepsThatThereAreNot) {
  for (const auto& [step, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "say of the step its stages, chunks, micro_batches, update or recompute"},
           {"stages: 0", "stages: 0: it is a number from 1 to 1048576"},
           {"stages: -4", "stages: -4: it is a number from 1 to 1048576"},
           {"chunks: 0", "chunks: 0: it is a number from 1 to 1048576"},
           {"micro_batches: -1", "micro_batches: -1: it is a number from 1 to 1048576"},
           {"micro_batches: 4611686018427387904",
            "micro_batches: 4611686018427387904: it is a number from 1 to 1048576"},
           {"update: \"zero\"",
            "update 'zero': there are all_reduce, sharded, sharded_gradients, sharded_weights and "
            "owner"},
           {"update: \"\"",
            "update '': there are all_reduce, sharded, sharded_gradients, sharded_weights and "
            "owner"},
           {"recompute: \"some\"", "recompute 'some': there are none, selective, full"},
           {"recompute: \"\"", "recompute '': there are none, selective, full"},
           {"chunks: 2 stages: 1", "chunks: 2: they take turns on several stages, and stages: 1"},
           {"stages: 4 micro_batches: 1", "micro_batches: 1: a pipeline of stages: 4 has several"},
           {"chunks: 2 micro_batches: 1",
            "micro_batches: 1: a pipeline of chunks: 2 has several"}}) {
    EXPECT_EQ(ErrorOf("step { " + step + " }"), "mine.txt:1: " + why);
  }
  for (const char* step : {"stages: 2.5", "stages: \"two\"", "stages: 9223372036854775808",
                           "stages: 2 stages: 4", "update: full", "zero: 3"}) {
    const std::string error = ErrorOf(std::string("step { ") + step + " }");
    EXPECT_EQ(error.rfind("mine.txt:1:", 0), 0u) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  const std::string twice = ErrorOf("step { stages: 2 }\nstep { micro_batches: 4 }");
  EXPECT_EQ(twice.rfind("mine.txt:2:", 0), 0u) << twice;
}

TEST(ConstraintsFile, RefusesNodesThatDoNotSuitTheStep) {
  EXPECT_EQ(ErrorOf("step { stages: 2 }\nnode { name: \"x\" stage: 2 }"),
            "mine.txt:2: stage 2: they are 0 to 1 (mine.txt:1: stages: 2)");
  EXPECT_EQ(ErrorOf("step { chunks: 2 }\nnode { name: \"x\" stage: 1 }"),
            "mine.txt:2: stage 1: nodes are bound to those of one chunk (mine.txt:1: chunks: 2)");
  EXPECT_EQ(ErrorOf("node { name: \"x\" stage: 1 }\nstep { micro_batches: 1 }"),
            "mine.txt:1: stage 1: a pipeline has micro-batches (mine.txt:2: micro_batches: 1)");
  EXPECT_EQ(ErrorOf("node { name: \"x\" devices { first: 0 count: 2 } }\nstep { stages: 2 }"),
            "mine.txt:1: a stage has devices of its own (mine.txt:2: stages: 2)");
  EXPECT_EQ(ErrorOf("step { stages: 2 }\ncolocate { node: \"x\" node: \"y\" }"),
            "mine.txt:2: the cut into stages does not know of colocation (mine.txt:1: stages: 2); "
            "bind nodes to a stage");
  EXPECT_EQ(ErrorOf("step { stages: 3 }\nnode { name: \"x\" stage: 2 }"), "");
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
