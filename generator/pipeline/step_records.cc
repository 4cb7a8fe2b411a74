#include "generator/pipeline/step_records.h"

#include "generator/pipeline/memo.pb.h"
#include "pcg/support/status_macros.h"
#include "rules/language/rule_proto.h"

namespace isomer {
namespace {

using isomer::FromProto;
using isomer::ToProto;

template <typename Strings>
absl::StatusOr<std::vector<TensorType>> TypesOf(const Strings& texts) {
  std::vector<TensorType> types;
  types.reserve(texts.size());
  for (const std::string& text : texts) {
    ISOMER_ASSIGN_OR_RETURN(TensorType type, ParseTensorType(text));
    types.push_back(std::move(type));
  }
  return types;
}

proto::Candidate ToProto(const Candidate& candidate) {
  proto::Candidate out;
  *out.mutable_source() = ToProto(candidate.source);
  *out.mutable_target() = ToProto(candidate.target);
  for (const TensorType& type : candidate.inputs) out.add_inputs(type.ToString());
  out.set_origin(candidate.origin);
  return out;
}

absl::StatusOr<Candidate> FromProto(const proto::Candidate& in) {
  Candidate candidate;
  ISOMER_ASSIGN_OR_RETURN(candidate.source, FromProto(in.source()));
  ISOMER_ASSIGN_OR_RETURN(candidate.target, FromProto(in.target()));
  ISOMER_ASSIGN_OR_RETURN(candidate.inputs, TypesOf(in.inputs()));
  candidate.origin = in.origin();
  return candidate;
}

void ToProto(const AttributeValue& value, proto::Assignment::Attribute* out) {
  if (auto* integer = std::get_if<int64_t>(&value)) {
    out->set_integer(*integer);
  } else if (auto* number = std::get_if<double>(&value)) {
    out->set_number(*number);
  } else if (auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    for (int64_t item : *integers) out->mutable_list()->add_items(item);
    out->mutable_list()->set_extents(false);
  } else {
    // Where rules are found, sizes are known.
    for (const Extent& item : std::get<std::vector<Extent>>(value)) {
      out->mutable_list()->add_items(item.value());
    }
    out->mutable_list()->set_extents(true);
  }
}

AttributeValue FromProto(const proto::Assignment::Attribute& in) {
  if (in.value_case() == proto::Assignment::Attribute::kInteger) return int64_t{in.integer()};
  if (in.value_case() == proto::Assignment::Attribute::kNumber) return in.number();
  const auto& items = in.list().items();
  if (in.list().extents()) return std::vector<Extent>(items.begin(), items.end());
  return std::vector<int64_t>(items.begin(), items.end());
}

proto::Assignment ToProto(const Binding& binding) {
  proto::Assignment out;
  for (const TensorType& type : binding.inputs) out.add_inputs(type.ToString());
  for (const auto& [name, value] : binding.variables) {
    proto::Assignment::Integer* to = out.add_variables();
    to->set_name(name);
    to->set_value(value);
  }
  for (const auto& [name, value] : binding.numbers) {
    proto::Assignment::Number* to = out.add_numbers();
    to->set_name(name);
    to->set_value(value);
  }
  for (const auto& [name, value] : binding.attributes) {
    proto::Assignment::Attribute* to = out.add_attributes();
    to->set_name(name);
    ToProto(value, to);
  }
  return out;
}

absl::StatusOr<Binding> FromProto(const proto::Assignment& in) {
  Binding binding;
  ISOMER_ASSIGN_OR_RETURN(binding.inputs, TypesOf(in.inputs()));
  for (const auto& variable : in.variables()) binding.variables[variable.name()] = variable.value();
  for (const auto& number : in.numbers()) binding.numbers[number.name()] = number.value();
  for (const auto& attribute : in.attributes()) {
    binding.attributes[attribute.name()] = FromProto(attribute);
  }
  return binding;
}

proto::GeneralRule ToProto(const GeneralRule& rule) {
  proto::GeneralRule out;
  *out.mutable_rule() = ToProto(rule.rule, /*with_text=*/false);
  *out.mutable_found() = ToProto(rule.found);
  *out.mutable_candidate() = ToProto(rule.candidate);
  return out;
}

absl::StatusOr<GeneralRule> FromProto(const proto::GeneralRule& in) {
  GeneralRule rule;
  ISOMER_ASSIGN_OR_RETURN(rule.rule, FromProto(in.rule()));
  ISOMER_ASSIGN_OR_RETURN(rule.found, FromProto(in.found()));
  ISOMER_ASSIGN_OR_RETURN(rule.candidate, FromProto(in.candidate()));
  return rule;
}

proto::GenerationStatistics ToProto(const Statistics& statistics) {
  proto::GenerationStatistics out;
  out.set_graphs_enumerated(statistics.graphs_enumerated);
  out.set_tensors_kept(statistics.tensors_kept);
  out.set_bytes_kept(statistics.bytes_kept);
  out.set_candidates(statistics.candidates);
  for (const auto& [reason, count] : statistics.pruned) {
    proto::GenerationStatistics::Pruned* to = out.add_pruned();
    to->set_reason(reason);
    to->set_count(count);
    if (const auto examples = statistics.pruned_examples.find(reason);
        examples != statistics.pruned_examples.end()) {
      to->mutable_examples()->Add(examples->second.begin(), examples->second.end());
    }
  }
  return out;
}

Statistics FromProto(const proto::GenerationStatistics& in) {
  Statistics statistics;
  statistics.graphs_enumerated = in.graphs_enumerated();
  statistics.tensors_kept = in.tensors_kept();
  statistics.bytes_kept = in.bytes_kept();
  statistics.candidates = in.candidates();
  for (const auto& pruned : in.pruned()) {
    statistics.pruned[pruned.reason()] = pruned.count();
    statistics.pruned_examples[pruned.reason()] = {pruned.examples().begin(),
                                                   pruned.examples().end()};
  }
  return statistics;
}

using Ways = google::protobuf::RepeatedPtrField<proto::Derived::Way>;

void AddWays(const Derivations::Reached& reached, Ways* out) {
  for (const auto& [form, way] : reached) {
    proto::Derived::Way* to = out->Add();
    to->set_form(form);
    to->set_latest(way.latest);
    to->mutable_entries()->Add(way.entries.begin(), way.entries.end());
  }
}

Derivations::Reached WaysOf(const Ways& in) {
  Derivations::Reached reached;
  for (const proto::Derived::Way& way : in) {
    reached[way.form()] = {way.latest(), {way.entries().begin(), way.entries().end()}};
  }
  return reached;
}

template <typename Message>
absl::StatusOr<Message> Parse(const std::string& bytes) {
  Message message;
  if (message.ParseFromString(bytes)) return message;
  return absl::InvalidArgumentError("no record of this kind");
}

}  // namespace

std::string EncodeCandidate(const Candidate& candidate) {
  return ToProto(candidate).SerializeAsString();
}

absl::StatusOr<Candidate> DecodeCandidate(const std::string& bytes) {
  ISOMER_ASSIGN_OR_RETURN(const auto in, Parse<proto::Candidate>(bytes));
  return FromProto(in);
}

std::string EncodeGeneralRule(const GeneralRule& rule) { return ToProto(rule).SerializeAsString(); }

absl::StatusOr<GeneralRule> DecodeGeneralRule(const std::string& bytes) {
  ISOMER_ASSIGN_OR_RETURN(const auto in, Parse<proto::GeneralRule>(bytes));
  return FromProto(in);
}

std::string Encode(const EnumerationResult& enumerated) {
  proto::Enumerated out;
  for (const Candidate& candidate : enumerated.candidates) {
    *out.add_candidates() = ToProto(candidate);
  }
  *out.mutable_statistics() = ToProto(enumerated.statistics);
  return out.SerializeAsString();
}

absl::StatusOr<EnumerationResult> DecodeEnumeration(const std::string& bytes) {
  ISOMER_ASSIGN_OR_RETURN(const auto in, Parse<proto::Enumerated>(bytes));
  EnumerationResult enumerated;
  enumerated.candidates.reserve(in.candidates_size());
  for (const proto::Candidate& from : in.candidates()) {
    ISOMER_ASSIGN_OR_RETURN(Candidate candidate, FromProto(from));
    enumerated.candidates.push_back(std::move(candidate));
  }
  enumerated.statistics = FromProto(in.statistics());
  return enumerated;
}

std::string Encode(const Families& families) {
  proto::Families out;
  for (const GeneralRule& rule : families.rules) *out.add_rules() = ToProto(rule);
  *out.mutable_statistics() = ToProto(families.statistics);
  return out.SerializeAsString();
}

absl::StatusOr<Families> DecodeFamilies(const std::string& bytes) {
  ISOMER_ASSIGN_OR_RETURN(const auto in, Parse<proto::Families>(bytes));
  Families families;
  for (const proto::GeneralRule& from : in.rules()) {
    ISOMER_ASSIGN_OR_RETURN(GeneralRule rule, FromProto(from));
    families.rules.push_back(std::move(rule));
  }
  families.statistics = FromProto(in.statistics());
  return families;
}

std::string Encode(const Generalized& generalized) {
  proto::Generalized out;
  if (generalized.rule.has_value()) *out.mutable_rule() = ToProto(*generalized.rule);
  out.set_holds(generalized.holds);
  return out.SerializeAsString();
}

absl::StatusOr<Generalized> DecodeGeneralized(const std::string& bytes) {
  ISOMER_ASSIGN_OR_RETURN(const auto in, Parse<proto::Generalized>(bytes));
  Generalized generalized;
  if (in.has_rule()) {
    ISOMER_ASSIGN_OR_RETURN(generalized.rule, FromProto(in.rule()));
  }
  generalized.holds = in.holds();
  return generalized;
}

std::string Encode(const Derived& derived) {
  proto::Derived out;
  out.set_well_typed(derived.well_typed);
  out.set_commuted(derived.commuted);
  out.set_known(derived.known);
  out.set_known_source(derived.state.known_source);
  out.set_known_target(derived.state.known_target);
  AddWays(derived.state.from_source, out.mutable_from_source());
  AddWays(derived.state.from_target, out.mutable_from_target());
  return out.SerializeAsString();
}

absl::StatusOr<Derived> DecodeDerived(const std::string& bytes) {
  ISOMER_ASSIGN_OR_RETURN(const auto in, Parse<proto::Derived>(bytes));
  return Derived{
      in.well_typed(),
      in.commuted(),
      in.known(),
      {in.known_source(), in.known_target(), WaysOf(in.from_source()), WaysOf(in.from_target())}};
}

std::string Encode(const Decisions& decisions) {
  proto::Decisions out;
  for (const GeneralRule& rule : decisions.rules) *out.add_rules() = ToProto(rule);
  *out.mutable_statistics() = ToProto(decisions.statistics);
  for (const std::string& form : decisions.hopeless) out.add_hopeless(form);
  return out.SerializeAsString();
}

absl::StatusOr<Decisions> DecodeDecisions(const std::string& bytes) {
  ISOMER_ASSIGN_OR_RETURN(const auto in, Parse<proto::Decisions>(bytes));
  Decisions decisions;
  for (const proto::GeneralRule& from : in.rules()) {
    ISOMER_ASSIGN_OR_RETURN(GeneralRule rule, FromProto(from));
    decisions.rules.push_back(std::move(rule));
  }
  decisions.statistics = FromProto(in.statistics());
  decisions.hopeless = {in.hopeless().begin(), in.hopeless().end()};
  return decisions;
}

std::string EncodeJudged(const Rule& rule) {
  return ToProto(rule, /*with_text=*/false).SerializeAsString();
}

absl::StatusOr<Rule> DecodeJudged(const std::string& bytes) {
  ISOMER_ASSIGN_OR_RETURN(const auto in, Parse<proto::Rule>(bytes));
  return FromProto(in);
}

}  // namespace isomer
