#include "verifier/families/lemma_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "verifier/families/family_proof.h"

namespace isomer {
namespace {

// Takes the longest operator name that `id` begins with, and the "_" after it, off `id`.
absl::string_view TakeOperator(absl::string_view* id) {
  absl::string_view longest;
  for (OpKind kind : AllOpKinds()) {
    const absl::string_view name = OpName(kind);
    absl::string_view rest = *id;
    if (name.size() <= longest.size() || !absl::ConsumePrefix(&rest, name)) continue;
    if (rest.empty() || rest[0] == '_') longest = name;
  }
  if (longest.empty()) return longest;
  id->remove_prefix(longest.size());
  absl::ConsumePrefix(id, "_");
  return longest;
}

// Lemmas about the declaration of one operator (piece_lemmas.h); empty if `id` names none.
std::string DeclarationText(absl::string_view id) {
  absl::string_view rest = id;
  if (absl::ConsumePrefix(&rest, "sum_of_pieces_of_")) {
    const absl::string_view op = TakeOperator(&rest);
    if (op.empty() || rest.empty()) return "";
    return absl::StrCat(op, " of operands cut along sum dim ", rest, " = the sum of ", op,
                        " of the pieces");
  }
  if (absl::ConsumePrefix(&rest, "elements_of_")) {
    std::vector<std::string> ops;
    while (!rest.empty()) {
      const absl::string_view op = TakeOperator(&rest);
      if (op.empty()) return "";
      ops.emplace_back(op);
    }
    if (ops.empty()) return "";
    return absl::StrCat("both sides, written out by the definitions of ", absl::StrJoin(ops, ", "),
                        ", have the same elements");
  }
  if (absl::ConsumePrefix(&rest, "pieces_of_")) {
    const absl::string_view op = TakeOperator(&rest);
    if (op.empty()) return "";
    return absl::StrCat("a piece of ", op, " along ",
                        rest.empty() ? "any partitionable dim" : absl::StrCat("dim ", rest), " = ",
                        op, " of the pieces of the operands that the dim leads");
  }
  const absl::string_view op = TakeOperator(&rest);
  if (!op.empty() && absl::ConsumePrefix(&rest, "is_linear_in_")) {
    const std::string operands = absl::StrReplaceAll(rest, {{"_", " and "}});
    return absl::StrCat(op, " of a sum in operand ", operands, " = the sum of ", op, "s");
  }
  if (!op.empty() && rest == "is_identity") return absl::StrCat(op, "(x) = x");
  if (!op.empty() && rest == "moves_elements") {
    return absl::StrCat(op, "(f(x)) = f(", op,
                        "(x)) for elementwise f, since it moves elements whatever they are");
  }
  if (!op.empty() && rest == "skips_zeros") {
    return absl::StrCat(op, "(x, w) = ", op,
                        "(x, pad(w)) with a padding that is larger by as much");
  }
  if (!op.empty() && absl::ConsumePrefix(&rest, "takes_factor_of_") && !rest.empty()) {
    return absl::StrCat("a factor of operand ", rest, " of ", op, " is one of its scale");
  }
  return "";
}

}  // namespace

std::string LemmaStatement(const std::string& id) {
  if (id == "partials_mean_their_sum") return "concat_partials(x, y) = add(x, y)";
  return DeclarationText(id);
}

std::string LemmaText(const std::string& id) {
  absl::string_view name = id;
  const bool checked = absl::ConsumePrefix(&name, kCheckedPrefix);
  const std::string text = LemmaStatement(std::string(name));
  if (text.empty()) return "not a lemma of this version";
  return absl::StrCat(text, checked ? " (checked by evaluation at example calls, not proved)"
                                    : " (proved for all sizes)");
}

}  // namespace isomer
