#ifndef ISOMER_TESTS_MODELS_TEXT_MODEL_H_
#define ISOMER_TESTS_MODELS_TEXT_MODEL_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "pcg/ir/plan.h"

namespace isomer {

// A model named "net" of this graph, without values.
inline Model TextModel(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  Model model;
  model.name = "net";
  if (graph.ok()) model.graph = *std::move(graph);
  return model;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_MODELS_TEXT_MODEL_H_
