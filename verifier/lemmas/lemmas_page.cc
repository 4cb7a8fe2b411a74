#include "verifier/lemmas/lemmas_page.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "verifier/families/lemma_text.h"

namespace isomer {
namespace {

constexpr LemmaKind kKinds[] = {LemmaKind::kDefinition, LemmaKind::kPieces,   LemmaKind::kLinear,
                                LemmaKind::kStructure,  LemmaKind::kElements, LemmaKind::kUnknown};

// One row of the page: lemmas of one statement.
struct Row {
  std::string name, statement;
  std::set<const Rule*> rules;
  LemmaProof proof;
  std::optional<Tally> opinion;
  std::vector<std::string> dims;
  void Add(const LemmaEntry& lemma);
};

void Row::Add(const LemmaEntry& lemma) {
  rules.insert(lemma.rules.begin(), lemma.rules.end());
  if (proof.how.empty() || (proof.proved && !lemma.proof.proved)) {
    const int64_t cases = proof.cases;
    proof = lemma.proof;
    proof.cases += cases;
  } else {
    proof.cases += lemma.proof.cases;
  }
  if (!lemma.opinion) return;
  if (!opinion) opinion = Tally();
  opinion->Add(*lemma.opinion);
}

// "pieces_of_matmul" of "pieces_of_matmul_m", and "m".
std::pair<std::string, std::string> TakeDim(const LemmaEntry& lemma) {
  if (lemma.kind != LemmaKind::kPieces) return {lemma.id, ""};
  const std::string op(OpName(*OperatorOfLemma(lemma.id)));
  const size_t begin = lemma.id.find("pieces_of_") + std::string("pieces_of_").size();
  const size_t end = begin + op.size();
  if (end >= lemma.id.size()) return {lemma.id, ""};
  return {lemma.id.substr(0, end + 1), lemma.id.substr(end + 1)};
}

std::vector<Row> RowsOf(const std::vector<LemmaEntry>& lemmas, LemmaKind kind) {
  std::vector<Row> rows;
  std::string last;
  for (const LemmaEntry& lemma : lemmas) {
    if (lemma.kind != kind) continue;
    const auto [stem, dim] = TakeDim(lemma);
    if (rows.empty() || stem != last || dim.empty()) {
      rows.push_back({lemma.id, LemmaStatement(lemma.id), {}, {}, {}, {}});
      last = stem;
    }
    Row& row = rows.back();
    row.Add(lemma);
    if (!dim.empty()) row.dims.push_back(dim);
    if (row.dims.size() < 2) continue;
    row.name = absl::StrCat(stem, "{", absl::StrJoin(row.dims, ","), "}");
    row.statement = absl::StrReplaceAll(
        LemmaStatement(absl::StrCat(stem, "DIM")),
        {{"dim DIM", "each of these dims"}, {"that the dim leads", "that it leads"}});
  }
  return rows;
}

const char* AboutKind(LemmaKind kind) {
  switch (kind) {
    case LemmaKind::kDefinition:
      return "Parallel operators are identities on meanings: what they do, they do to types.";
    case LemmaKind::kPieces:
      return "That a call may be spread over tasks. The theorem *pieces* is proved in "
             "[proof.md](proof.md) for every declaration that meets its premise; *cases* are the "
             "calls (examples, representative calls, small calls of every rank) at which the "
             "premise "
             "was decided to hold. Whoever replays a plan decides it again at the plan's own "
             "calls.";
    case LemmaKind::kLinear:
      return "Sums and partial sums pass through these operators. The theorem *linear*, likewise.";
    case LemmaKind::kStructure:
      return "Theorems on what a declaration does with elements. *Cases* are the rules that were "
             "proved from it, again, by this run.";
    case LemmaKind::kElements:
      return "Equations of which both sides were written out, element by element, and brought into "
             "one normal form, for all sizes. *Cases* as above.";
    case LemmaKind::kUnknown:
      break;
  }
  return "Ids that this version does not know.";
}

std::string OpinionText(const std::optional<Tally>& opinion) {
  if (!opinion) return "";
  if (!opinion->disagreements.empty()) {
    return absl::StrCat("**disagrees**: ", opinion->disagreements[0]);
  }
  if (opinion->instances == 0) return "**none seen**";
  std::string text =
      absl::StrCat(opinion->instances, opinion->instances == 1 ? " agrees" : " agree");
  if (opinion->by_numbers > 0) absl::StrAppend(&text, " (", opinion->by_numbers, " by numbers)");
  return text;
}

std::string Cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

std::string Title(LemmaKind kind) {
  std::string name = LemmaKindName(kind);
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

struct Sums {
  int lemmas = 0, proved = 0;
  int64_t instances = 0, by_numbers = 0, disagree = 0;
  std::set<const Rule*> rules;
  void Add(const LemmaEntry& lemma) {
    ++lemmas;
    proved += lemma.proof.proved ? 1 : 0;
    rules.insert(lemma.rules.begin(), lemma.rules.end());
    if (!lemma.opinion) return;
    instances += lemma.opinion->instances;
    by_numbers += lemma.opinion->by_numbers;
    disagree += lemma.opinion->disagreements.empty() ? 0 : 1;
  }
};

std::string SummaryTable(const std::vector<LemmaEntry>& lemmas) {
  std::string table =
      "| kind | lemmas | rules that use them | proved | instances of the second opinion | "
      "disagreements |\n|---|--:|--:|--:|--:|--:|\n";
  Sums all;
  for (LemmaKind kind : kKinds) {
    Sums sums;
    for (const LemmaEntry& lemma : lemmas) {
      if (lemma.kind != kind) continue;
      sums.Add(lemma);
      all.Add(lemma);
    }
    if (sums.lemmas == 0) continue;
    absl::StrAppend(&table, "| ", LemmaKindName(kind), " | ", sums.lemmas, " | ", sums.rules.size(),
                    " | ", sums.proved, " | ", sums.instances, " | ", sums.disagree, " |\n");
  }
  absl::StrAppend(&table, "| all | ", all.lemmas, " | ", all.rules.size(), " | ", all.proved, " | ",
                  all.instances, " | ", all.disagree, " |\n");
  return table;
}

}  // namespace

std::string LemmasText(const std::vector<LemmaEntry>& lemmas) {
  std::string text;
  Sums all;
  for (const LemmaEntry& lemma : lemmas) {
    all.Add(lemma);
    if (!lemma.proof.proved) {
      absl::StrAppend(&text, "not proved: ", lemma.id, ": ", lemma.proof.how, "\n");
    }
    if (!lemma.opinion) continue;
    if (lemma.opinion->instances == 0) {
      absl::StrAppend(&text, "second opinion: no instance of ", lemma.id, "\n");
    }
    for (const std::string& line : lemma.opinion->disagreements) {
      absl::StrAppend(&text, "second opinion disagrees: ", lemma.id, ": ", line, "\n");
    }
  }
  absl::StrAppend(&text, all.lemmas, " lemmas of ", all.rules.size(), " rules: ", all.proved,
                  " proved; second opinion: ", all.instances, " instances (", all.by_numbers,
                  " by numbers), ", all.disagree, " lemmas disagreed with\n");
  return text;
}

std::string LemmasPage(const std::vector<LemmaEntry>& lemmas, uint64_t digest) {
  std::string page = absl::StrCat(
      "# The lemmas\n\n"
      "Every lemma that the proofs of `rules/default.rules` use (digest `",
      absl::StrFormat("%016x", digest),
      "`), with its status. Made by\n\n"
      "    isomer-verify lemmas rules/default.rules --exhaustive --markdown=docs/lemmas.md\n\n"
      "which proves them anew; a test compares the page with the file. None is trusted: what is "
      "not `proved` fails the run. What the words mean: [proof.md](proof.md).\n\n"
      "The *second opinion* shares no code with the proofs "
      "([verifier/exhaustive](../verifier/exhaustive)): an interpreter of the declarations whose "
      "numbers are polynomials in the elements of the operands, exp, max and the like left "
      "uninterpreted, compares both sides of the lemma at small shapes: dims, ranks and degrees up "
      "to 4, kernels up to 3, all of them as far as a bound on the work goes (300,000 points of "
      "iteration spaces per operator, 12 instances per rule), and spread over "
      "all of them where it does not. Where two polynomials differ and 12 draws of numbers do not "
      "tell the sides apart, the instance agrees *by numbers*.\n\n");
  absl::StrAppend(&page, SummaryTable(lemmas));
  for (LemmaKind kind : kKinds) {
    const std::vector<Row> rows = RowsOf(lemmas, kind);
    if (rows.empty()) continue;
    absl::StrAppend(&page, "\n## ", Title(kind), "\n\n", AboutKind(kind),
                    "\n\n| lemma | says | rules | status | by | cases | second opinion |\n"
                    "|---|---|--:|---|---|--:|---|\n");
    for (const Row& row : rows) {
      absl::StrAppend(&page, "| `", row.name, "` | ", Cell(row.statement), " | ", row.rules.size(),
                      " | ", row.proof.proved ? "proved" : "**not proved**", " | ",
                      Cell(row.proof.how), " | ", row.proof.cases, " | ",
                      Cell(OpinionText(row.opinion)), " |\n");
    }
  }
  return page;
}

std::string WithoutFindings(const std::string& page) {
  std::string result;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    const std::string plain = absl::StrReplaceAll(line, {{"\\|", "/"}});
    std::vector<absl::string_view> cells = absl::StrSplit(plain, '|');
    const size_t kept = cells.size() == 9 ? 4 : cells.size() == 8 ? 4 : cells.size();
    cells.resize(kept);
    absl::StrAppend(&result, absl::StrJoin(cells, "|"), "\n");
  }
  return result;
}

Json LemmasJson(const std::vector<LemmaEntry>& lemmas) {
  Json json;
  Json list = Json::EmptyArray();
  for (const LemmaEntry& lemma : lemmas) {
    Json entry;
    entry["id"] = lemma.id;
    entry["kind"] = LemmaKindName(lemma.kind);
    entry["statement"] = LemmaStatement(lemma.id);
    entry["rules"] = lemma.rules.size();
    entry["proved"] = lemma.proof.proved;
    entry["by"] = lemma.proof.how;
    entry["cases"] = lemma.proof.cases;
    if (lemma.opinion) {
      entry["instances"] = lemma.opinion->instances;
      entry["by_numbers"] = lemma.opinion->by_numbers;
      entry["disagreements"] = Json(lemma.opinion->disagreements);
    }
    list.Append(entry);
  }
  json["lemmas"] = list;
  json["all_hold"] = AllHold(lemmas);
  return json;
}

}  // namespace isomer
