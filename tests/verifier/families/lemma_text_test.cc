#include "verifier/families/lemma_text.h"

#include <gtest/gtest.h>

#include "rules/language/rule.h"

namespace isomer {
namespace {

TEST(LemmaText, OfDefinitions) {
  EXPECT_EQ(LemmaText("partition_is_identity"), "partition(x) = x (proved for all sizes)");
  EXPECT_EQ(LemmaText("partials_mean_their_sum"),
            "concat_partials(x, y) = add(x, y) (proved for all sizes)");
}

TEST(LemmaText, OfDeclarations) {
  EXPECT_EQ(
      LemmaText("pieces_of_reduce_sum_i0"),
      "a piece of reduce_sum along dim i0 = reduce_sum of the pieces of the operands that the "
      "dim leads (proved for all sizes)");
  EXPECT_EQ(LemmaText("sum_of_pieces_of_matmul_k"),
            "matmul of operands cut along sum dim k = the sum of matmul of the pieces (proved for "
            "all sizes)");
  EXPECT_EQ(LemmaText("add_is_linear_in_0_1"),
            "add of a sum in operand 0 and 1 = the sum of adds (proved for all sizes)");
}

TEST(LemmaText, OfDefinitionsWrittenOut) {
  EXPECT_EQ(LemmaText("elements_of_add_reduce_sum_split"),
            "both sides, written out by the definitions of add, reduce_sum, split, have the same "
            "elements (proved for all sizes)");
}

TEST(LemmaText, OfStructure) {
  EXPECT_EQ(LemmaText("transpose_moves_elements"),
            "transpose(f(x)) = f(transpose(x)) for elementwise f, since it moves elements whatever "
            "they are (proved for all sizes)");
  EXPECT_EQ(LemmaText("conv2d_skips_zeros"),
            "conv2d(x, w) = conv2d(x, pad(w)) with a padding that is larger by as much (proved for "
            "all sizes)");
  EXPECT_EQ(LemmaText("attention_takes_factor_of_1"),
            "a factor of operand 1 of attention is one of its scale (proved for all sizes)");
}

TEST(LemmaText, SaysWhatIsOnlyChecked) {
  EXPECT_NE(LemmaText("checked:pieces_of_conv2d").find("not proved"), std::string::npos);
}

TEST(LemmaText, OfWhatIsNoLemma) {
  for (const char* id : {"", "nonsense", "pieces_of_", "pieces_of_nonsense", "elements_of_",
                         "elements_of_add_nonsense", "checked:", "matmul_"}) {
    EXPECT_EQ(LemmaText(id), "not a lemma of this version") << id;
  }
}

TEST(LemmaText, EveryLemmaOfTheShippedRulesHasOne) {
  const auto rules = LoadRules(std::string(ISOMER_SOURCE_DIR) + "/rules/default.rules");
  ASSERT_TRUE(rules.ok()) << rules.status();
  for (const Rule& rule : rules->rules) {
    for (const std::string& lemma : rule.proof.lemmas) {
      EXPECT_NE(LemmaText(lemma), "not a lemma of this version") << lemma;
    }
  }
}

}  // namespace
}  // namespace isomer
