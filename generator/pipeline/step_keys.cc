#include "generator/pipeline/step_keys.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "generator/assignments/sample_calls.h"
#include "generator/code_digest.h"
#include "generator/pipeline/step_records.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

void AppendShape(const Shape& shape, std::string* text) {
  absl::StrAppend(text, "[");
  for (const Extent& size : shape) absl::StrAppend(text, size.ToString(), ",");
  absl::StrAppend(text, "]");
}

void AppendCall(const OperatorCall& call, std::string* text) {
  absl::StrAppend(text, call.op.ToString(), "(");
  for (const TensorType& type : call.operands) absl::StrAppend(text, type.ToString(), ",");
  absl::StrAppend(text, ")\n");
  const absl::StatusOr<Declaration> declaration = DeclarationOf(call);
  if (!declaration.ok()) return;
  for (const IterationDim& dim : declaration->dims) {
    absl::StrAppend(text, dim.name, " ", DimKindName(dim.kind), " ", dim.size.ToString(), "\n");
  }
  absl::StrAppend(text, declaration->ToString());
  for (const Shape& shape : declaration->outputs) AppendShape(shape, text);
}

// Those that types and equations depend on; by name, so that a new member is not forgotten.
void AppendTraits(const OperatorTraits& traits, std::string* text) {
  const auto& [op_class, takes, index_operand, index_domain, condition_operand, axis_is_of_result,
               most_outputs, result, other_results, is_commutative, takes_positive_numbers,
               rounding, needs_float32, scales, salt, is_cheap, gradient_reads_result,
               saved_per_row, attributes_change_time, takes_channels_last, examples] = traits;
  absl::StrAppend(text, static_cast<int>(op_class), " ", static_cast<int>(takes), " ",
                  index_operand, " ", condition_operand, " ", axis_is_of_result, " ", most_outputs,
                  " ", static_cast<int>(result), " ", static_cast<int>(other_results), " ",
                  is_commutative, " ", static_cast<int>(rounding), "\n");
}

void AddKinds(const Pattern& pattern, std::set<OpKind>* kinds) {
  for (const PatternNode& node : pattern.nodes) kinds->insert(node.kind);
}

std::string TextOf(const Configuration& configuration) {
  // By name, so that a new member is not forgotten.
  const auto& [name, inputs, operators, max_operators, focus, values, most_operands,
               skips_instances, every_side] = configuration;
  std::string text = absl::StrCat(name, "\n", max_operators, "\n", most_operands, "\n",
                                  skips_instances, "\n", every_side, "\n");
  for (const TensorType& type : inputs) absl::StrAppend(&text, type.ToString(), ";");
  for (const Operator& op : operators) absl::StrAppend(&text, "\n", op.ToString());
  absl::StrAppend(&text, "\n");
  for (OpKind kind : focus) absl::StrAppend(&text, OpName(kind), ";");
  for (const std::vector<double>& elements : values) {
    absl::StrAppend(&text, "\n", absl::StrJoin(elements, ","));
  }
  return text;
}

}  // namespace

uint64_t MeaningDigest(OpKind kind) {
  std::string text = absl::StrCat(OpName(kind), " ", MinOperands(kind), " ", MaxOperands(kind), " ",
                                  AttributeList(kind), "\n");
  AppendTraits(TraitsOf(kind), &text);
  // Parallel operators have no declaration: what they do is part of the code.
  if (IsLeaf(kind) || IsParallel(kind)) return HashBytes(text);
  for (const OperatorCall& call : WithExamples(kind, SampleCalls(kind))) AppendCall(call, &text);
  return HashBytes(text);
}

StepKeys::StepKeys(uint64_t seed, std::map<OpKind, uint64_t> meanings)
    : seed_(seed), meanings_(std::move(meanings)) {
  for (OpKind kind : AllOpKinds()) {
    if (meanings_.count(kind) == 0) meanings_[kind] = MeaningDigest(kind);
  }
}

MemoKey StepKeys::KeyOf(const std::string& step, const std::set<OpKind>& kinds,
                        const std::string& input) const {
  std::string text = absl::StrCat(step, "\n", seed_, "\n");
  for (OpKind kind : kinds) {
    absl::StrAppend(&text, OpName(kind), " ", DigestString(meanings_.at(kind)), "\n");
  }
  return MemoKeyOf(text + input);
}

MemoKey StepKeys::OfEnumeration(const Configuration& configuration) const {
  std::set<OpKind> kinds;
  for (const Operator& op : configuration.operators) kinds.insert(op.kind());
  return KeyOf(absl::StrCat("enumerate ", kGeneratorCodeDigest), kinds, TextOf(configuration));
}

MemoKey StepKeys::OfFamilies(const std::string& form, OpKind kind,
                             const std::set<OpKind>& around) const {
  std::set<OpKind> kinds = around;
  kinds.insert(kind);
  const absl::string_view name = OpName(kind);
  return KeyOf(absl::StrCat(form, " ", kGeneratorCodeDigest), kinds,
               std::string(name.data(), name.size()));
}

MemoKey StepKeys::OfGeneralization(const Candidate& candidate) const {
  std::set<OpKind> kinds;
  AddKinds(candidate.source, &kinds);
  AddKinds(candidate.target, &kinds);
  return KeyOf(absl::StrCat("generalize ", kGeneratorCodeDigest), kinds,
               EncodeCandidate(candidate));
}

MemoKey StepKeys::OfDecisions(const std::string& before,
                              absl::Span<const Candidate> candidates) const {
  std::string text = absl::StrCat("decide\n", before, "\n");
  for (const Candidate& candidate : candidates) {
    for (uint64_t word : OfGeneralization(candidate)) absl::StrAppend(&text, DigestString(word));
  }
  return MemoKeyOf(text);
}

MemoKey StepKeys::OfProof(const GeneralRule& rule) const {
  std::set<OpKind> kinds;
  AddKinds(rule.rule.source, &kinds);
  AddKinds(rule.rule.target, &kinds);
  // A refuted rule is generalised again.
  return KeyOf(absl::StrCat("prove ", kGeneratorCodeDigest, " ", kVerifierCodeDigest), kinds,
               EncodeGeneralRule(rule));
}

}  // namespace isomer
