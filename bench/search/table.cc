#include "bench/search/table.h"

#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "pcg/support/check.h"

namespace isomer {

void Table::AddRow(std::vector<std::string> cells) {
  ISOMER_CHECK(cells.size() == columns_.size());
  std::fprintf(stderr, "%s: %s\n", name_.c_str(), absl::StrJoin(cells, " | ").c_str());
  rows_.push_back(std::move(cells));
}

std::string Table::Markdown() const {
  const auto line = [](const std::vector<std::string>& cells) {
    return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
  };
  std::string text = line(columns_);
  for (size_t c = 0; c < columns_.size(); ++c) absl::StrAppend(&text, c == 0 ? "|---" : "|--:");
  absl::StrAppend(&text, "|\n");
  for (const auto& row : rows_) absl::StrAppend(&text, line(row));
  if (!notes_.empty()) absl::StrAppend(&text, "\n");
  for (const std::string& note : notes_) absl::StrAppend(&text, "- ", note, "\n");
  return text;
}

Json Table::ToJson() const {
  Json rows = Json::EmptyArray();
  for (const auto& row : rows_) {
    Json entry;
    for (size_t c = 0; c < row.size(); ++c) {
      double number = 0;
      const std::string plain = absl::StrReplaceAll(row[c], {{",", ""}});
      entry[columns_[c]] = absl::SimpleAtod(plain, &number) ? Json(number) : Json(row[c]);
    }
    rows.Append(std::move(entry));
  }
  Json json;
  json["table"] = name_;
  json["rows"] = std::move(rows);
  json["notes"] = Json(notes_);
  return json;
}

}  // namespace isomer
