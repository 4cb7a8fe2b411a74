// The lemmas. How they read, and for which shapes and axes they hold: lemma.h.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pcg/support/check.h"
#include "verifier/lemma.h"

namespace isomer {
namespace {

struct Row {
  const char* id;
  const char* text;
};

constexpr Row kRows[] = {
    // Parallel operators are identities on meanings; partials side by side mean their sum.
    {"partition_is_identity", "partition(x) = x"},
    {"combine_is_identity", "combine(x) = x"},
    {"replicate_is_identity", "replicate(x) = x"},
    {"reduce_is_identity", "reduce(x) = x"},
    {"partials_mean_their_sum", "concat_partials(x,y) = add(x,y)"},
    {"partials_mean_their_sum_3", "concat_partials(x,y,z) = add(add(x,y),z)"},

    // Elementwise algebra.
    {"add_commutes", "add(x,y) = add(y,x)"},
    {"add_associates", "add(add(x,y),z) = add(x,add(y,z))"},
    {"mul_commutes", "mul(x,y) = mul(y,x)"},
    {"mul_associates", "mul(mul(x,y),z) = mul(x,mul(y,z))"},
    {"mul_distributes_over_add", "mul(add(x,y),z) = add(mul(x,z),mul(y,z))"},
    {"mul_distributes_over_sub", "mul(sub(x,y),z) = sub(mul(x,z),mul(y,z))"},
    {"div_distributes_over_add", "div(add(x,y),z) = add(div(x,z),div(y,z))"},
    {"div_of_mul", "div(mul(x,y),z) = mul(x,div(y,z))"},
    {"sub_is_add_of_negation", "sub(x,y) = add(x,scale{-1}(y))"},
    {"scale_by_one", "scale{1}(x) = x"},
    {"scale_of_scale", "scale{f}(scale{g}(x)) = scale{fg}(x)"},
    {"scales_commute", "scale{f}(scale{g}(x)) = scale{g}(scale{f}(x))"},
    {"scale_distributes_over_add", "scale{f}(add(x,y)) = add(scale{f}(x),scale{f}(y))"},
    {"scale_distributes_over_sub", "scale{f}(sub(x,y)) = sub(scale{f}(x),scale{f}(y))"},
    {"scale_of_mul", "scale{f}(mul(x,y)) = mul(scale{f}(x),y)"},
    {"scale_of_div", "scale{f}(div(x,y)) = div(scale{f}(x),y)"},
    {"add_of_equals", "add(x,x) = scale{2}(x)"},
    {"add_of_scaled", "add(scale{f}(x),scale{g}(x)) = scale{f+g}(x)"},
    {"add_of_scaled_and_plain", "add(x,scale{f}(x)) = scale{f+1}(x)"},
    {"relu_is_idempotent", "relu(relu(x)) = relu(x)"},

    // MatMul.
    {"matmul_associates", "matmul(matmul(x,y),z) = matmul(x,matmul(y,z))"},
    {"matmul_distributes_left", "matmul(add(x,y),z) = add(matmul(x,z),matmul(y,z))"},
    {"matmul_distributes_right", "matmul(x,add(y,z)) = add(matmul(x,y),matmul(x,z))"},
    {"matmul_distributes_left_sub", "matmul(sub(x,y),z) = sub(matmul(x,z),matmul(y,z))"},
    {"matmul_distributes_right_sub", "matmul(x,sub(y,z)) = sub(matmul(x,y),matmul(x,z))"},
    {"scale_of_matmul_left", "scale{f}(matmul(x,y)) = matmul(scale{f}(x),y)"},
    {"scale_of_matmul_right", "scale{f}(matmul(x,y)) = matmul(x,scale{f}(y))"},
    {"transpose_of_matmul",
     "transpose{uv}(matmul(x,y)) = matmul(transpose{uv}(y),transpose{uv}(x))"},
    {"transpose_of_batched_matmul",
     "transpose{uv}(matmul(x,y)) = matmul(transpose{uv}(x),transpose{uv}(y))"},
    {"transpose_of_matmul_left", "transpose{uv}(matmul(x,y)) = matmul(transpose{uv}(x),y)"},
    {"transpose_of_matmul_right", "transpose{uv}(matmul(x,y)) = matmul(x,transpose{uv}(y))"},
    {"mul_of_matmul_left", "mul(matmul(x,y),z) = matmul(mul(x,z),y)"},
    {"mul_of_matmul_right", "mul(matmul(x,y),z) = matmul(x,mul(y,z))"},

    // Linear is a fusion.
    {"linear_of_two", "linear{0}(x,y) = matmul(x,y)"},
    {"linear_of_three", "linear{0}(x,y,z) = add(matmul(x,y),z)"},

    // Transpose.
    {"transpose_is_an_involution", "transpose{uv}(transpose{uv}(x)) = x"},
    {"transposes_commute",
     "transpose{uv}(transpose{ab}(x)) = transpose{ab}(transpose{u^ab,v^ab}(x))"},

    // Concat and Split.
    {"matmul_of_concat_left", "matmul(concat{a}(x,y),z) = concat{a}(matmul(x,z),matmul(y,z))"},
    {"matmul_of_concat_right", "matmul(x,concat{a}(y,z)) = concat{a}(matmul(x,y),matmul(x,z))"},
    {"matmul_of_concats",
     "matmul(concat{a}(x,y),concat{a}(z,w)) = concat{a}(matmul(x,z),matmul(y,w))"},
    {"contraction_of_concats",
     "matmul(concat{-1}(x,y),concat{-2}(z,w)) = add(matmul(x,z),matmul(y,w))"},
    {"transpose_of_concat",
     "transpose{uv}(concat{a}(x,y)) = concat{a^uv}(transpose{uv}(x),transpose{uv}(y))"},
    {"concat_associates", "concat{a}(concat{a}(x,y),z) = concat{a}(x,concat{a}(y,z))"},
    {"concat_of_three_left", "concat{a}(x,y,z) = concat{a}(concat{a}(x,y),z)"},
    {"concats_commute",
     "concat{a}(concat{b}(x,y),concat{b}(z,w)) = concat{b}(concat{a}(x,z),concat{a}(y,w))"},
    {"split_of_concat_first", "split{a,S}(concat{a}(x,y)).0 = x"},
    {"split_of_concat_second", "split{a,S}(concat{a}(x,y)).1 = y"},
    {"concat_of_split", "split{a,S}(x).0 => concat{a}(split{a,S}(x).0,split{a,S}(x).1) = x"},
};

// For the output $i of a Split in two parts.
constexpr Row kSplitRows[] = {
    {"split_of_matmul_left", "split{a,S}(matmul(x,y)).$i = matmul(split{a,S}(x).$i,y)"},
    {"split_of_matmul_right", "split{a,S}(matmul(x,y)).$i = matmul(x,split{a,S}(y).$i)"},
    {"split_of_batched_matmul",
     "split{a,S}(matmul(x,y)).$i = matmul(split{a,S}(x).$i,split{a,S}(y).$i)"},
    {"split_of_transpose", "split{a^uv,S}(transpose{uv}(x)).$i = transpose{uv}(split{a,S}(x).$i)"},
    {"split_of_concat",
     "split{a,S}(concat{b}(x,y)).$i = concat{b}(split{a,S}(x).$i,split{a,S}(y).$i)"},
    {"splits_commute_0", "split{a,S}(split{b,R}(x).0).$i = split{b,R}(split{a,S}(x).$i).0"},
    {"splits_commute_1", "split{a,S}(split{b,R}(x).1).$i = split{b,R}(split{a,S}(x).$i).1"},
};

// For every elementwise operator $f of one operand.
constexpr Row kUnaryRows[] = {
    {"$n_of_concat", "$f(concat{a}(x,y)) = concat{a}($f(x),$f(y))"},
    {"$n_of_transpose", "$f(transpose{uv}(x)) = transpose{uv}($f(x))"},
    {"$n_of_split_0", "$f(split{a,S}(x).0) = split{a,S}($f(x)).0"},
    {"$n_of_split_1", "$f(split{a,S}(x).1) = split{a,S}($f(x)).1"},
};

// For every activation $f of Linear, number $i.
constexpr Row kActivationRows[] = {
    {"linear_with_$f_of_two", "linear{$i}(x,y) = $f(linear{0}(x,y))"},
    {"linear_with_$f_of_three", "linear{$i}(x,y,z) = $f(linear{0}(x,y,z))"},
};

// For every elementwise operator $f of two operands.
constexpr Row kBinaryRows[] = {
    {"$f_of_concats", "$f(concat{a}(x,y),concat{a}(z,w)) = concat{a}($f(x,z),$f(y,w))"},
    {"$f_of_concat_left", "$f(concat{a}(x,y),z) = concat{a}($f(x,z),$f(y,z))"},
    {"$f_of_concat_right", "$f(z,concat{a}(x,y)) = concat{a}($f(z,x),$f(z,y))"},
    {"$f_of_transposes", "$f(transpose{uv}(x),transpose{uv}(y)) = transpose{uv}($f(x,y))"},
    {"$f_of_transpose_left", "$f(transpose{uv}(x),y) = transpose{uv}($f(x,y))"},
    {"$f_of_transpose_right", "$f(x,transpose{uv}(y)) = transpose{uv}($f(x,y))"},
    {"$f_of_splits_0", "$f(split{a,S}(x).0,split{a,S}(y).0) = split{a,S}($f(x,y)).0"},
    {"$f_of_splits_1", "$f(split{a,S}(x).1,split{a,S}(y).1) = split{a,S}($f(x,y)).1"},
    {"$f_of_split_left_0", "$f(split{a,S}(x).0,y) = split{a,S}($f(x,y)).0"},
    {"$f_of_split_left_1", "$f(split{a,S}(x).1,y) = split{a,S}($f(x,y)).1"},
    {"$f_of_split_right_0", "$f(x,split{a,S}(y).0) = split{a,S}($f(x,y)).0"},
    {"$f_of_split_right_1", "$f(x,split{a,S}(y).1) = split{a,S}($f(x,y)).1"},
};

void Append(const std::string& id, const std::string& text, std::vector<Lemma>* table) {
  absl::StatusOr<Lemma> lemma = ParseLemma(id, text);
  ISOMER_CHECK(lemma.ok());
  table->push_back(*std::move(lemma));
}

std::vector<Lemma> BuildTable() {
  std::vector<Lemma> table;
  for (const Row& row : kRows) Append(row.id, row.text, &table);
  for (const Row& row : kSplitRows) {
    for (const char* part : {"0", "1"}) {
      Append(absl::StrCat(row.id, "_", part), absl::StrReplaceAll(row.text, {{"$i", part}}),
             &table);
    }
  }
  for (const char* name : {"scale{f}", "relu", "gelu", "tanh", "sigmoid", "exp"}) {
    for (const Row& row : kUnaryRows) {
      const std::string plain = absl::StrReplaceAll(name, {{"{f}", ""}});
      Append(absl::StrReplaceAll(row.id, {{"$n", plain}}),
             absl::StrReplaceAll(row.text, {{"$f", name}}), &table);
    }
  }
  int activation = 0;
  for (const char* name : {"relu", "gelu", "tanh", "sigmoid", "swish"}) {
    const std::string number = absl::StrCat(++activation);
    for (const Row& row : kActivationRows) {
      Append(absl::StrReplaceAll(row.id, {{"$f", name}}),
             absl::StrReplaceAll(row.text, {{"$f", name}, {"$i", number}}), &table);
    }
  }
  for (const char* name : {"add", "sub", "mul", "div"}) {
    for (const Row& row : kBinaryRows) {
      Append(absl::StrReplaceAll(row.id, {{"$f", name}}),
             absl::StrReplaceAll(row.text, {{"$f", name}}), &table);
    }
  }
  return table;
}

}  // namespace

const std::vector<Lemma>& LemmaTable() {
  static const std::vector<Lemma>* table = new std::vector<Lemma>(BuildTable());
  return *table;
}

}  // namespace isomer
