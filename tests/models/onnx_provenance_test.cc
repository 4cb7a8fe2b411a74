// What exporters of PyTorch say of initializers beside their values.
#include "models/onnx/graph/provenance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/graph/exporter_notes.h"
#include "models/onnx/import/onnx_import.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// A file of the dynamo exporter: y = x * every initializer.
class Exported {
 public:
  Exported() { file_.Input("x", {2, 4}); }

  // Says of a value what it was, or what it was computed from.
  void Says(const std::string& name, const std::string& kind,
            const std::vector<std::string>& folded_from) {
    onnx::ValueInfoProto* value = file_.model().mutable_graph()->add_value_info();
    value->set_name(name);
    auto add = [&](const std::string& key, const std::string& text) {
      onnx::StringStringEntryProto* entry = value->add_metadata_props();
      entry->set_key(key);
      entry->set_value(text);
    };
    if (!kind.empty()) add("pkg.torch.export.graph_signature.InputSpec.kind", kind);
    if (folded_from.empty()) return;
    add("pkg.onnxscript.optimizer.folded_from",
        absl::StrCat("['", absl::StrJoin(folded_from, "', '"), "']"));
  }
  Exported& Tensor(const std::string& name, const std::vector<int64_t>& dims,
                   const std::vector<float>& values, const std::string& kind,
                   const std::vector<std::string>& folded_from = {}) {
    file_.Floats(name, dims, values);
    Says(name, kind, folded_from);
    return Use(name, "");
  }
  // x * name, in a module.
  Exported& Use(const std::string& name, const std::string& module) {
    const std::string next = absl::StrCat("product", ++products_);
    file_.Node("Mul", {last_, name}, {next});
    if (!module.empty()) {
      auto* nodes = file_.model().mutable_graph()->mutable_node();
      onnx::StringStringEntryProto* entry = nodes->Mutable(nodes->size() - 1)->add_metadata_props();
      entry->set_key("pkg.torch.onnx.name_scopes");
      entry->set_value(absl::StrCat("['', '", module, "', 'mul']"));
    }
    last_ = next;
    return *this;
  }
  // x * the maximum of name, which has any shape.
  Exported& UseMaximum(const std::string& name) {
    const std::string maximum = absl::StrCat("maximum", products_);
    file_.Node("ReduceMax", {name}, {maximum}).With("keepdims", int64_t{0});
    return Use(maximum, "");
  }
  OnnxFile& file() { return file_; }

  // Names of the leaves of a kind; `notes` gets what the user is told.
  std::vector<std::string> Leaves(OpKind kind) {
    file_.Node("Identity", {last_}, {"y"}).Output("y", {2, 4});
    notes_.clear();
    const absl::StatusOr<Model> model = ParseOnnx(file_.Bytes(), "net.onnx", {.notes = &notes_});
    EXPECT_TRUE(model.ok()) << model.status();
    std::vector<std::string> names;
    for (int id = 0; model.ok() && id < model->graph.num_nodes(); ++id) {
      const Node& node = model->graph.node(id);
      if (node.op.kind() != kind) continue;
      names.push_back(node.name);
      sizes_[node.name] = node.outputs[0].Sizes();
    }
    return names;
  }
  std::vector<std::string> Trained() { return Leaves(OpKind::kWeight); }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<int64_t>& sizes(const std::string& name) { return sizes_[name]; }

 private:
  OnnxFile file_;
  std::string last_ = "x";
  int products_ = 0;
  std::vector<std::string> notes_;
  std::map<std::string, std::vector<int64_t>> sizes_;
};

TEST(OnnxProvenance, ParametersAreTrainedAndBuffersAreNot) {
  Exported exported;
  exported.Tensor("net.weight", {4}, {1, 2, 3, 4}, "PARAMETER");
  exported.Tensor("net.positions", {4}, {1, 2, 3, 5}, "BUFFER");
  exported.Tensor("lifted", {4}, {1, 2, 3, 6}, "CONSTANT_TENSOR");
  exported.Tensor("net.unsaid", {4}, {1, 2, 3, 7}, "");
  EXPECT_THAT(exported.Trained(), UnorderedElementsAre("net.weight", "net.unsaid"));
  EXPECT_THAT(exported.notes(), IsEmpty());
}

// An epsilon, the half of a Gelu: initializers without dims, where PyTorch's exporters write
// Constant nodes. TensorFlow's variables are read.
TEST(OnnxProvenance, NumbersOfFormulasOfOtherFrameworksAreNotTrained) {
  const char scalar[] = "net/scale/ReadVariableOp:0";
  const auto trained = [&](const std::string& producer) {
    Exported exported;
    exported.file().model().set_producer_name(producer);
    exported.Tensor("net/kernel", {4}, {1, 2, 3, 4}, "").Tensor("net/add/y:0", {}, {0.001F}, "");
    return exported.Tensor(scalar, {}, {2}, "").Trained();
  };
  EXPECT_THAT(trained("tf2onnx"), UnorderedElementsAre("net/kernel", scalar));
  EXPECT_THAT(trained("jax2onnx"), UnorderedElementsAre("net/kernel", scalar));
  EXPECT_THAT(trained("pytorch"), UnorderedElementsAre("net/kernel", "net/add/y:0", scalar));
}

TEST(OnnxProvenance, WhatIsFoldedIsTrainedIfAParameterIsInIt) {
  Exported exported;
  exported.Tensor("val_1", {4}, {1, 2, 3, 4}, "", {"net.linear.weight"});
  exported.Tensor("val_2", {4}, {1, 2, 3, 5}, "", {"arange", "unsqueeze_3", "val_7"});
  exported.Tensor("val_3", {4}, {1, 2, 3, 6}, "", {"val_8", "val_9"});
  exported.Tensor("val_4", {4}, {0, 0, 0, 3}, "",
                  {"fill", "shape", "slice_2", "val_41", "value_0"});
  exported.Tensor("unsqueeze_14", {4}, {1, 0, 1, 0}, "", {"cos", "net.rotary.inv_freq"});
  exported.Tensor("where", {4}, {0, -0x1.fffffep127f, 0, 0}, "", {"net.causal", "slice_2"});
  EXPECT_THAT(exported.Trained(), ElementsAre("val_1"));
  EXPECT_THAT(exported.notes(), IsEmpty());
}

// A name of the program is that of what a node of the file makes: its sizes alone went in.
// "int64_1" is a number that the exporter added.
TEST(OnnxProvenance, WhatIsFoldedFromSizesIsNotTrained) {
  Exported exported;
  exported.Tensor("tmp", {4}, {1, 1, 1, 1}, "", {"int64_1_1d", "val_10", "view"});
  exported.Tensor("scaled", {4}, {1, 1, 1, 2}, "", {"int64_1_1d", "val_11", "scale"});
  exported.file().Node("Identity", {"x"}, {"view"});
  EXPECT_THAT(exported.Trained(), ElementsAre("scaled"));
}

// What the exporter made of sizes and of numbers alone is no parameter, whatever took part: inputs,
// which have other names in the program, numbers in functions of the exporter, and tensors that the
// code of a module makes of numbers.
TEST(OnnxProvenance, WhatIsMadeOfNumbersIsNotTrained) {
  Exported exported;
  onnx::StringStringEntryProto* entry =
      exported.file().model().mutable_graph()->mutable_input(0)->add_metadata_props();
  entry->set_key("pkg.torch.onnx.original_node_name");
  entry->set_value("inputs_0");
  exported.Tensor("val_1", {4}, {1, 1, 1, 1}, "", {"inputs_0", "val_18"});
  exported.Tensor("zeros_like_1", {4}, {0, 0, 0, 0}, "", {"select", "val_10"});
  exported.Tensor("threshold_cast", {1}, {20}, "", {"threshold"});
  exported.Tensor("sqrt", {1}, {4.9f}, "", {"clone", "net.attention.lifted_tensor_0", "val_2"});
  exported.Tensor("val_3", {4}, {0, 1, 1, 0}, "", {"hann_window", "val_0"});
  exported.Tensor("gain", {4}, {2, 1, 1, 2}, "", {"scale", "val_0"});
  EXPECT_THAT(exported.Trained(), ElementsAre("gain"));
}

// The table itself is not in the file any more.
TEST(OnnxProvenance, ANoteNamesWhatIsTrainedInPlaceOfAParameter) {
  Exported exported;
  exported.Tensor("embedding_1", {1, 4}, {1, 2, 3, 4}, "", {"arange", "net.wpe.weight", "val_3"});
  EXPECT_THAT(exported.Trained(), ElementsAre("embedding_1"));
  ASSERT_THAT(exported.notes(), SizeIs(1));
  EXPECT_THAT(exported.notes()[0], HasSubstr("'embedding_1' for net.wpe.weight"));
  EXPECT_THAT(exported.notes()[0], HasSubstr("optimize=False"));
}

// A class token that was repeated for the example's samples is one parameter.
TEST(OnnxProvenance, RepetitionsForABatchAreUndone) {
  Exported exported;
  exported.Tensor("expand", {2, 4}, {1, 2, 3, 4, 1, 2, 3, 4}, "", {"class_token", "val_1"});
  EXPECT_THAT(exported.Trained(), ElementsAre("class_token"));
  EXPECT_THAT(exported.sizes("class_token"), ElementsAre(1, 4));
  EXPECT_THAT(exported.notes(), IsEmpty());
  Exported differs;
  differs.Tensor("expand", {2, 4}, {1, 2, 3, 4, 1, 2, 3, 5}, "", {"class_token", "val_1"});
  EXPECT_THAT(differs.Trained(), ElementsAre("expand"));
  Exported initialised;
  initialised.Tensor("expand", {2, 4}, std::vector<float>(8, 0), "", {"class_token", "val_1"});
  EXPECT_THAT(initialised.Trained(), ElementsAre("class_token"));
  EXPECT_THAT(initialised.sizes("class_token"), ElementsAre(1, 4));
}

// The row of a table that all tokens of the example have, or a number of each head for all queries.
TEST(OnnxProvenance, RepetitionsAlongAllDimsAreUndone) {
  Exported exported;
  exported.file().Floats("embedding_1", {2, 2, 2}, {1, 2, 1, 2, 1, 2, 1, 2});
  exported.Says("embedding_1", "", {"net.types.weight", "val_4", "zeros"});
  exported.file().Floats("expand", {2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2});
  exported.Says("expand", "", {"net.sinks", "val_1"});
  exported.UseMaximum("embedding_1").UseMaximum("expand");
  EXPECT_THAT(exported.Trained(), UnorderedElementsAre("net.types.weight", "net.sinks"));
  EXPECT_THAT(exported.sizes("net.types.weight"), ElementsAre(1, 1, 2));
  EXPECT_THAT(exported.sizes("net.sinks"), ElementsAre(1, 2, 1));
}

// Rows that are equal in the beginning, as nothing repeated them.
TEST(OnnxProvenance, ParametersOfEqualRowsStayAsTheyAre) {
  Exported exported;
  exported.Tensor("neg", {2, 4}, {-1, -2, -3, -4, -1, -2, -3, -4}, "", {"exp", "net.A_log"});
  EXPECT_THAT(exported.Trained(), ElementsAre("neg"));
  EXPECT_THAT(exported.sizes("neg"), ElementsAre(2, 4));
}

// A bias of which the exporter knew that a product with zeros is added to it.
TEST(OnnxProvenance, WhatIsAParameterOfTheFileIsThatParameter) {
  Exported exported;
  exported.Tensor("net.bias", {4}, {1, 2, 3, 4}, "PARAMETER");
  exported.Tensor("linear", {2, 4}, {1, 2, 3, 4, 1, 2, 3, 4}, "",
                  {"net.bias", "net.weight", "val_2"});
  exported.Tensor("unsqueeze", {1, 4}, {1, 2, 3, 4}, "", {"net.bias", "val_2"});
  exported.Tensor("add", {1, 4}, {1, 2, 3, 5}, "", {"net.bias", "val_2"});
  EXPECT_THAT(exported.Trained(), UnorderedElementsAre("net.bias", "add"));
}

// A layer that is called twice, of which the exporter turned the matrix for each call.
TEST(OnnxProvenance, WhatIsComputedTwiceOfAParameterIsOne) {
  Exported exported;
  exported.Tensor("val_124", {1, 4}, {1, 2, 3, 4}, "", {"net.ffn.weight"});
  exported.Tensor("val_198", {1, 4}, {1, 2, 3, 4}, "", {"net.ffn.weight", "val_9"});
  exported.Tensor("val_199", {1, 4}, {1, 2, 3, 4}, "", {"net.other.weight"});
  exported.Tensor("val_200", {1, 4}, {1, 2, 3, 5}, "", {"net.ffn.weight"});
  exported.Tensor("val_201", {1, 4}, {0, 0, 0, 0}, "", {"net.ffn.weight"});
  exported.Tensor("val_202", {1, 4}, {0, 0, 0, 0}, "", {"net.ffn.weight"});
  EXPECT_THAT(exported.Trained(),
              UnorderedElementsAre("val_124", "val_199", "val_200", "val_201", "val_202"));
  EXPECT_THAT(exported.notes(), Contains(HasSubstr("one, as in PyTorch: 'val_198' ('val_124')")));
}

// Metadata is anybody's text; a file is not refused for it.
TEST(OnnxProvenance, EmptyNamesAreNoOrigins) {
  Exported exported;
  exported.Tensor("expand", {2, 4}, {1, 2, 3, 4, 1, 2, 3, 4}, "", {""});
  EXPECT_THAT(exported.Trained(), ElementsAre("expand"));
}

// A table of tokens that is the last layer's matrix, which the exporter turned.
TEST(OnnxProvenance, TiedParametersAreOne) {
  const std::vector<float> table = {1, 2, 3, 4, 5, 6, 7, 8}, turned = {1, 5, 2, 6, 3, 7, 4, 8};
  for (const bool legacy : {false, true}) {
    Exported exported;
    exported.file().Floats("net.table.weight", {2, 4}, table);
    const std::string name = legacy ? "onnx::MatMul_31" : "val_1";
    exported.file().Floats(name, {4, 2}, turned);
    if (!legacy) exported.Says(name, "", {"net.table.weight", "t_3"});
    exported.UseMaximum("net.table.weight").UseMaximum(name);
    EXPECT_THAT(exported.Trained(), ElementsAre("net.table.weight"));
    ASSERT_THAT(exported.notes(), SizeIs(1));
    EXPECT_THAT(exported.notes()[0], HasSubstr("share it; it is one, as in PyTorch: 'net.table"));
  }
}

TEST(OnnxProvenance, OthersAreNotTied) {
  struct Other {
    const char* name;
    std::vector<int64_t> dims;
    std::vector<float> matrix, other;
  };
  for (const Other& tensors :
       {Other{"val_1", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 5, 2, 6, 3, 7, 4, 9}},
        Other{"net.other", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 5, 2, 6, 3, 7, 4, 8}},
        Other{"val_1", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 5, 2, 6, 3, 7, 4, 8}},
        Other{"val_1", {4, 2}, std::vector<float>(8, 0), std::vector<float>(8, 0)}}) {
    Exported exported;
    exported.file().Floats("net.table.weight", {2, 4}, tensors.matrix);
    exported.file().Floats(tensors.name, tensors.dims, tensors.other);
    exported.UseMaximum("net.table.weight").UseMaximum(tensors.name);
    EXPECT_THAT(exported.Trained(), UnorderedElementsAre("net.table.weight", tensors.name));
  }
  Exported symmetric;
  symmetric.file().Floats("net.gate", {2, 2}, {1, 0, 0, 1}).Floats("val_2", {2, 2}, {1, 0, 0, 1});
  symmetric.UseMaximum("net.gate").UseMaximum("val_2");
  EXPECT_THAT(symmetric.Trained(), UnorderedElementsAre("net.gate", "val_2"));
  Exported from_another;
  from_another.file().Floats("net.gate", {1, 2}, {1, 2}).Floats("val_2", {2, 1}, {1, 2});
  from_another.Says("val_2", "", {"net.up"});
  from_another.UseMaximum("net.gate").UseMaximum("val_2");
  EXPECT_THAT(from_another.Trained(), UnorderedElementsAre("net.gate", "val_2"));
}

TEST(OnnxProvenance, MergedParametersOfSeveralModulesAreApart) {
  Exported exported;
  exported.file().Floats("net.norm1.weight", {4}, {1, 1, 1, 1});
  exported.Says("net.norm1.weight", "PARAMETER", {});
  exported.Use("net.norm1.weight", "net.norm1").Use("net.norm1.weight", "net.norm2");
  exported.Use("net.norm1.weight", "net.norm2");  // A module that is called twice has one.
  EXPECT_THAT(exported.Trained(), UnorderedElementsAre("net.norm1.weight", "net.norm2.weight"));
  ASSERT_THAT(exported.notes(), SizeIs(1));
  EXPECT_THAT(exported.notes()[0], HasSubstr("'net.norm1.weight' of 2 modules"));
}

// The legacy exporter says which they were: by an Identity for each.
TEST(OnnxProvenance, MergedParametersWithNamesOfTheirOwnAreApart) {
  Exported exported;
  exported.file().Floats("conv.bias", {4}, {0, 0, 0, 0}).Floats("table", {4}, {1, 2, 1, 1});
  exported.file().Node("Identity", {"conv.bias"}, {"net.linear.bias"}, "Identity_7");
  exported.file().Node("Identity", {"table"}, {"net.logits"}, "Identity_8");
  exported.Use("conv.bias", "").Use("net.linear.bias", "").Use("table", "").Use("net.logits", "");
  EXPECT_THAT(exported.Trained(), UnorderedElementsAre("conv.bias", "net.linear.bias", "table"));
  ASSERT_THAT(exported.notes(), SizeIs(2));
  EXPECT_THAT(exported.notes()[0], HasSubstr("trained as one"));
  EXPECT_THAT(exported.notes()[0], HasSubstr("'net.logits' ('table')"));
  EXPECT_THAT(exported.notes()[1], HasSubstr("'conv.bias' of 2 names"));
}

// A product that the dynamo exporter's optimizer changed by `rules`; it took `arguments` before.
void Rewritten(const std::string& rules, const std::string& arguments, OnnxFile* file) {
  auto* nodes = file->model().mutable_graph()->mutable_node();
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"pkg.onnxscript.rewriter.rule_name", rules},
           {"pkg.torch.onnx.fx_node",
            absl::StrCat("%linear : [num_users=1] = call_function[target=torch.ops.aten.linear."
                         "default](args = (%x, ",
                         arguments, "), kwargs = {})")}}) {
    onnx::StringStringEntryProto* entry = nodes->Mutable(nodes->size() - 1)->add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
}

TEST(OnnxProvenance, BiasesThatTheExporterDroppedAreThere) {
  for (const bool has_bias : {true, false}) {
    OnnxFile file;
    file.Input("x", {2, 4})
        .Output("y", {2, 4})
        .Floats("net.fc.weight", {4, 4}, std::vector<float>(16, 0.5f));
    file.Node("Gemm", {"x", "net.fc.weight"}, {"h"}).With("transB", int64_t{1});
    Rewritten("RemoveOptionalBiasFromGemm",
              has_bias ? "%p_net_fc_weight, %p_net_fc_bias" : "%p_net_fc_weight", &file);
    // Called again: it has the same bias.
    file.Node("Gemm", {"h", "net.fc.weight"}, {"y"}).With("transB", int64_t{1});
    Rewritten("RemoveOptionalBiasFromGemm",
              has_bias ? "%p_net_fc_weight, %p_net_fc_bias" : "%p_net_fc_weight", &file);
    std::vector<std::string> notes;
    const absl::StatusOr<Model> model = ParseOnnx(file.Bytes(), "net.onnx", {.notes = &notes});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->weights.contains("net.fc.bias"), has_bias);
    if (!has_bias) {
      EXPECT_THAT(notes, IsEmpty());
      continue;
    }
    EXPECT_THAT(model->weights.at("net.fc.bias"), ElementsAre(0, 0, 0, 0));
    ASSERT_THAT(notes, SizeIs(1));
    EXPECT_THAT(notes[0], HasSubstr("left out 1 bias of zeros"));
    EXPECT_THAT(notes[0], HasSubstr("'net.fc.bias'"));
  }
}

TEST(OnnxProvenance, ANoteSaysThatBatchNormsAreFolded) {
  OnnxFile file;
  file.Input("x", {1, 2, 4, 4})
      .Output("y", {1, 3, 4, 4})
      .Floats("conv.weight", {3, 2, 1, 1}, {1, 2, 3, 4, 5, 6});
  file.Node("Conv", {"x", "conv.weight"}, {"y"});
  Rewritten("FuseBatchNormIntoConv, RemoveOptionalBiasFromConv",
            "%p_bn_weight, %p_bn_bias, %b_bn_running_mean, %b_bn_running_var, 0.1, 1e-05", &file);
  std::vector<std::string> notes;
  const absl::StatusOr<Model> model = ParseOnnx(file.Bytes(), "net.onnx", {.notes = &notes});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->weights.at("conv.bias").size(), 3u);
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_THAT(notes[1], HasSubstr("folded 1 BatchNorm into weights"));
}

// Values that differ are equal by no accident: embedding and logits share a table.
TEST(OnnxProvenance, TiedParametersStayTied) {
  Exported exported;
  exported.file().Floats("net.table", {4}, {1, 2, 1, 1});
  exported.Use("net.table", "net.embed").Use("net.table", "net.logits");
  EXPECT_THAT(exported.Trained(), ElementsAre("net.table"));
  EXPECT_THAT(exported.notes(), IsEmpty());
  Exported nowhere;
  nowhere.file().Floats("net.norm1.weight", {4}, {1, 1, 1, 1});
  nowhere.Use("net.norm1.weight", "net.norm1").Use("net.norm1.weight", "");
  EXPECT_THAT(nowhere.Trained(), ElementsAre("net.norm1.weight"));
}

TEST(OnnxProvenance, ModulesAreReadFromBothExporters) {
  onnx::NodeProto legacy;
  legacy.set_name("/encoder/layers.0/norm/Mul");
  EXPECT_EQ(ModuleOf(legacy), "encoder.layers.0.norm");
  legacy.set_name("node_mul");
  EXPECT_EQ(ModuleOf(legacy), "");
  onnx::NodeProto dynamo;
  onnx::StringStringEntryProto* entry = dynamo.add_metadata_props();
  entry->set_key("pkg.torch.onnx.name_scopes");
  entry->set_value("['', 'net', 'net.norm', 'mul_3']");
  EXPECT_EQ(ModuleOf(dynamo), "net.norm");
  entry->set_value("no list");
  EXPECT_EQ(ModuleOf(dynamo), "");
}

// Reports group calls by name: those of the dynamo exporter ("product1") say nothing of modules.
TEST(OnnxProvenance, CallsAreNamedAfterTheirModules) {
  Exported dynamo;
  dynamo.file().Floats("net.weight", {4}, {1, 2, 3, 4});
  dynamo.Use("net.weight", "net.layers.3.mlp").Use("net.weight", "");
  EXPECT_THAT(dynamo.Leaves(OpKind::kMul), ElementsAre("net.layers.3.mlp/product1", "product2"));

  OnnxFile legacy;
  legacy.Input("x", {2, 4}).Floats("net.weight", {4}, {1, 2, 3, 4});
  legacy.Node("Mul", {"x", "net.weight"}, {"/net/mlp/Mul_output_0"});
  legacy.Node("Mul", {"/net/mlp/Mul_output_0", "net.weight"}, {"y"}).Output("y", {2, 4});
  auto* nodes = legacy.model().mutable_graph()->mutable_node();
  nodes->Mutable(0)->set_name("/net/mlp/Mul");
  nodes->Mutable(1)->set_name("/net/Mul");
  const absl::StatusOr<Model> model = ParseOnnx(legacy.Bytes(), "net.onnx", {});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<std::string> names;
  for (int id = 0; id < model->graph.num_nodes(); ++id) {
    const Node& node = model->graph.node(id);
    if (node.op.kind() == OpKind::kMul) names.push_back(node.name);
  }
  EXPECT_THAT(names, ElementsAre("/net/mlp/Mul_output_0", "y"));
}

TEST(OnnxProvenance, FrozenParametersAreNotTrained) {
  Exported exported;
  exported.Tensor("net.weight", {4}, {1, 2, 3, 4}, "PARAMETER");
  exported.Tensor("net.frozen", {4}, {1, 2, 3, 5}, "PARAMETER");
  exported.Says("net.frozen", "FROZEN", {});  // as isomer.load adds it
  EXPECT_THAT(exported.Trained(), ElementsAre("net.weight"));
}

TEST(OnnxProvenance, WhatTheTorchScriptExporterFoldedIsTold) {
  Exported exported;
  exported.file().Floats("onnx::Mul_33", {4}, {1, 2, 3, 4});
  exported.Use("onnx::Mul_33", "");
  EXPECT_THAT(exported.Trained(), ElementsAre("onnx::Mul_33"));
  ASSERT_THAT(exported.notes(), SizeIs(1));
  EXPECT_THAT(exported.notes()[0], HasSubstr("1 tensor from parameters or buffers"));
  EXPECT_THAT(exported.notes()[0], HasSubstr("'onnx::Mul_33'"));

  Exported matrix;  // A transposed parameter, trained as it was.
  matrix.file().Floats("onnx::MatMul_7", {4}, {1, 2, 3, 4});
  matrix.Use("onnx::MatMul_7", "");
  EXPECT_THAT(matrix.Trained(), ElementsAre("onnx::MatMul_7"));
  EXPECT_THAT(matrix.notes(), IsEmpty());
}

// z + (q - z).detach(), by which a quantised code sends its gradient to what was quantised.
TEST(OnnxProvenance, ANoteTellsWhatIsDetached) {
  for (const auto& [arguments, is_told] : std::vector<std::pair<std::string, bool>>{
           {"%mul, %detach_2", true},
           {"%detach_2, %mul", false},  // The first operand is data.
           {"%mul, %detached", false},
           {"%mul, %detach_2, 1", false}}) {
    OnnxFile file;
    file.Input("x", {4}).Floats("net.weight", {4}, {1, 2, 3, 4});
    file.Node("Mul", {"x", "net.weight"}, {"sub"}).Node("Add", {"x", "sub"}, {"y"});
    file.Output("y", {4});
    onnx::StringStringEntryProto* entry = file.LastNode()->add_metadata_props();
    entry->set_key("pkg.torch.onnx.fx_node");
    entry->set_value(absl::StrCat("%add : [num_users=1] = call_function[target=torch.ops.aten.",
                                  "add.Tensor](args = (", arguments, "), kwargs = {})"));
    std::vector<std::string> notes;
    ASSERT_TRUE(ParseOnnx(file.Bytes(), "net.onnx", {.notes = &notes}).ok());
    const auto told = Contains(HasSubstr("than in PyTorch: 'sub'"));
    EXPECT_EQ(testing::Matches(told)(notes), is_told) << arguments;
  }
}

// A row of padding is a constant: y depends on the row that the table has, but not its gradient.
TEST(OnnxProvenance, RowsOfPaddingAreNotTrained) {
  for (const auto& [arguments, row] : std::vector<std::pair<std::string, std::optional<int64_t>>>{
           {"%p_e_weight, %tokens, 0", 0},
           {"%p_e_weight, %tokens, 1, False", 1},
           {"%p_e_weight, %tokens, -1", std::nullopt},
           {"%p_e_weight, %tokens", std::nullopt}}) {
    OnnxFile file;
    file.Input("tokens", {3}, onnx::TensorProto::INT64).Floats("e.weight", {2, 2}, {1, 2, 3, 4});
    file.Node("Gather", {"e.weight", "tokens"}, {"y"}).Output("y", {3, 2});
    onnx::NodeProto* node = file.model().mutable_graph()->mutable_node(0);
    onnx::StringStringEntryProto* entry = node->add_metadata_props();
    entry->set_key("pkg.torch.onnx.fx_node");
    entry->set_value(
        absl::StrCat("%embedding : [num_users=1] = call_function[target=torch.ops.aten.",
                     "embedding.default](args = (", arguments, "), kwargs = {})"));
    EXPECT_EQ(PaddingRowOf(*node), row) << arguments;
    const absl::StatusOr<Model> model = ParseOnnx(file.Bytes(), "net.onnx", {});
    ASSERT_TRUE(model.ok()) << model.status();
    const Node& last = model->graph.node(model->graph.outputs()[0].tensor.node);
    if (!row.has_value()) {
      EXPECT_EQ(last.op.kind(), OpKind::kEmbedding);
      continue;
    }
    EXPECT_EQ(last.name, "y");
    ASSERT_EQ(last.op.kind(), OpKind::kWhere);
    const Node& constant = model->graph.node(last.inputs[1].node);
    EXPECT_EQ(constant.op.kind(), OpKind::kConstant);
    EXPECT_THAT(model->weights.at(constant.name).ToVector(),
                *row == 0 ? ElementsAre(1, 2) : ElementsAre(3, 4));
  }
}

}  // namespace
}  // namespace isomer
