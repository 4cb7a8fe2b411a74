// How long the search takes, and what it finds: each table of bench/README.md on searching.
//
//   build/release/bench/search TABLE..     (--help lists them)
//
// Every row is a run of isomer-optimize from its start to its end, its memory that of the process.
// Writes TABLE.md and TABLE.json into --out.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench/search/tables.h"
#include "pcg/support/file.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"

ABSL_FLAG(std::string, bin, ISOMER_BIN_DIR, "folder of the programs");
ABSL_FLAG(std::string, before, "", "folder of other programs: what `changes` compares with");
ABSL_FLAG(std::string, out, "", "folder for TABLE.md and TABLE.json; empty: print only");
ABSL_FLAG(std::string, model, "", "only networks whose names contain this");
ABSL_FLAG(std::vector<std::string>, proposers, {},
          "that `proposers` switches off, separated by commas; empty: all");
ABSL_FLAG(double, limit_s, 600, "a run is ended after so many seconds");

namespace isomer {
namespace {

absl::StatusOr<int> Run(const std::vector<std::string>& names) {
  std::vector<const NamedTable*> wanted;
  for (const std::string& name : names) {
    for (const NamedTable& table : AllTables()) {
      if (name == table.name) wanted.push_back(&table);
    }
  }
  if (names.empty() || wanted.size() != names.size()) {
    std::string known;
    for (const NamedTable& table : AllTables()) {
      absl::StrAppend(&known, known.empty() ? "" : "; ", table.name, " (", table.about, ")");
    }
    return absl::InvalidArgumentError(absl::StrCat("expected names of tables: ", known));
  }
  const std::filesystem::path work =
      std::filesystem::temp_directory_path() / absl::StrCat("isomer_search_", getpid());
  std::filesystem::create_directories(work);
  TableContext context{.runner = OptimizerRunner(absl::GetFlag(FLAGS_bin), work.string()),
                       .filter = absl::GetFlag(FLAGS_model),
                       .limit_s = absl::GetFlag(FLAGS_limit_s)};
  for (const std::string& name : absl::GetFlag(FLAGS_proposers)) context.proposers.insert(name);
  if (const std::string before = absl::GetFlag(FLAGS_before); !before.empty()) {
    context.before.emplace(before, work.string());
  }
  const std::string out = absl::GetFlag(FLAGS_out);
  for (const NamedTable* named : wanted) {
    ISOMER_ASSIGN_OR_RETURN(const Table table, named->make(context));
    std::printf("%s\n%s\n", table.name().c_str(), table.Markdown().c_str());
    if (out.empty()) continue;
    const std::string stem = absl::StrCat(out, "/", table.name());
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(stem, ".md"), table.Markdown()));
    ISOMER_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(stem, ".json"), table.ToJson().Print()));
  }
  std::filesystem::remove_all(work);
  return kExitDone;
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram({.name = "search",
                             .purpose = "Measures the searches of isomer-optimize.",
                             .usage = "TABLE..",
                             .example = "search ablation models --out=bench/results"},
                            argc, argv, isomer::Run);
}
