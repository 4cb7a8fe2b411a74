// How the numbers of a rules file are shown.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "generator/inspect/counts.h"

namespace isomer {
namespace {

struct Row {
  std::string name;
  std::string meaning;
  RuleCount count;
};

std::vector<Row> KindRows(const RuleCounts& c) {
  return {{"all", "", c.all},
          {"algebra", "no parallel operators", c.algebra},
          {"parallel", "with parallel operators", c.parallel},
          {"mixing", "parallel: with operators that compute, too", c.mixing},
          {"moving", "parallel: with parallel operators alone", c.moving},
          {"joint", "parallel: differ also without their parallel operators", c.joint},
          {"reversible", "proved in both directions", c.reversible}};
}

std::vector<Row> ProofRows(const RuleCounts& c) {
  std::vector<Row> rows = {
      {"proved", "from lemmas that are proved for all sizes", c.proved},
      {"proved, checked", "from lemmas some of which are checked at small sizes", c.checked}};
  if (c.unproved.rules > 0) rows.push_back({"not proved", "", c.unproved});
  return rows;
}

std::vector<Row> OriginRows(const RuleCounts& c) {
  std::vector<Row> rows;
  for (const auto& [name, count] : c.origins) rows.push_back({name, "", count});
  return rows;
}

std::vector<Row> SizeRows(const RuleCounts& c) {
  std::vector<Row> rows;
  for (const auto& [size, count] : c.sizes) rows.push_back({absl::StrCat(size), "", count});
  return rows;
}

std::vector<Row> OperatorRows(const RuleCounts& c) {
  std::vector<Row> rows;
  for (const auto& [name, count] : c.operators) rows.push_back({name, "", count});
  return rows;
}

struct Table {
  const char* title;
  std::vector<Row> (*rows)(const RuleCounts&);
};
constexpr Table kTables[] = {{"By kind", KindRows},
                             {"By proof", ProofRows},
                             {"By origin", OriginRows},
                             {"By operators of the larger side", SizeRows},
                             {"By operator (a rule counts with each that it has)", OperatorRows}};

Json ToJson(const RuleCount& count) {
  Json json;
  json["rules"] = count.rules;
  json["instances"] = count.instances;
  return json;
}

}  // namespace

std::string CountsText(const RuleCounts& counts) {
  std::string text;
  if (!counts.generator.empty()) absl::StrAppend(&text, "made by ", counts.generator, "\n");
  absl::StrAppend(&text, "digest ", counts.digest, "\n");
  for (const Table& table : kTables) {
    absl::StrAppendFormat(&text, "\n%-70s %7s %23s\n", table.title, "rules",
                          "instances at degree 2");
    for (const Row& row : table.rows(counts)) {
      const std::string name =
          row.meaning.empty() ? row.name : absl::StrCat(row.name, " (", row.meaning, ")");
      absl::StrAppendFormat(&text, "  %-68s %7d %23d\n", name, row.count.rules,
                            row.count.instances);
    }
  }
  absl::StrAppend(&text, "\nConditions (a rule counts with each kind that it has)\n");
  for (const auto& [name, count] : counts.conditions) {
    absl::StrAppendFormat(&text, "  %-68s %7d\n", name, count);
  }
  return text;
}

std::string CountsPage(const RuleCounts& counts) {
  std::string page = absl::StrCat(R"(# The rules

Rules are equations between small parallel computation graphs, found by `isomer-generate` and proved
by the prover of `verifier/`: whenever the source type-checks, so does the target, with equal types,
and the values are equal; for every size, degree and axis that the rule's conditions admit. The
optimizer rewrites graphs with nothing else.

- `default.rules`: the rules that `isomer-optimize` uses, in binary form; `default.txt`: the same as
  text. [docs/file-formats.md](../docs/file-formats.md) says what is in them.
- `isomer-generate show rules/default.rules --id=r...` draws a rule and runs it on numbers;
  `isomer-generate diff A B` compares two files; `isomer-generate stats rules/default.rules` prints
  the tables below.
- `scripts/regenerate_rules.sh` makes both files and this page, which a test compares with the file:
  `isomer-generate stats rules/default.rules --markdown=rules/README.md` makes the page alone.

The file was made by

    )",
                                  counts.generator, "\n\nand its digest is `", counts.digest, R"(`.

*Instances at degree 2* are the rules of fixed axes, degrees (2) and attributes that a rule stands
for, at ranks up to 4: what a generator that does not generalise would have counted. Each is counted
once, with the first rule that has it; how, and why it is a lower bound, is said in
[generator/inspect/instances.h](../generator/inspect/instances.h).
)");
  for (const Table& table : kTables) {
    absl::StrAppend(&page, "\n## ", table.title,
                    "\n\n| | rules | instances at degree 2 |\n|---|--:|--:|\n");
    for (const Row& row : table.rows(counts)) {
      absl::StrAppend(&page, "| ", row.name, row.meaning.empty() ? "" : ": ", row.meaning, " | ",
                      row.count.rules, " | ", row.count.instances, " |\n");
    }
  }
  absl::StrAppend(&page, "\n## By condition (a rule counts with each kind that it has)\n\n",
                  "| | rules |\n|---|--:|\n");
  for (const auto& [name, count] : counts.conditions) {
    absl::StrAppend(&page, "| ", name, " | ", count, " |\n");
  }
  return page;
}

Json CountsJson(const RuleCounts& counts) {
  Json json;
  json["generator"] = counts.generator;
  json["digest"] = counts.digest;
  for (const Row& row : KindRows(counts)) json["kinds"][row.name] = ToJson(row.count);
  for (const Row& row : ProofRows(counts)) json["proofs"][row.name] = ToJson(row.count);
  for (const Row& row : OriginRows(counts)) json["origins"][row.name] = ToJson(row.count);
  for (const Row& row : SizeRows(counts)) json["sizes"][row.name] = ToJson(row.count);
  for (const Row& row : OperatorRows(counts)) json["operators"][row.name] = ToJson(row.count);
  for (const auto& [name, count] : counts.conditions) json["conditions"][name] = count;
  return json;
}

}  // namespace isomer
