// A table of results: as Markdown for people, as JSON for programs.
#ifndef ISOMER_BENCH_SEARCH_TABLE_H_
#define ISOMER_BENCH_SEARCH_TABLE_H_

#include <string>
#include <vector>

#include "pcg/support/json.h"

namespace isomer {

class Table {
 public:
  // The first column is text, the others are numbers and stand to the right.
  Table(std::string name, std::vector<std::string> columns)
      : name_(std::move(name)), columns_(std::move(columns)) {}

  // One cell a column; also printed on stderr, as long tables take their time.
  // REQUIRES: as many cells as columns.
  void AddRow(std::vector<std::string> cells);
  void AddNote(std::string note) { notes_.push_back(std::move(note)); }

  const std::string& name() const { return name_; }
  std::string Markdown() const;
  // Numbers where cells are numbers.
  Json ToJson() const;

 private:
  std::string name_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> notes_;
};

}  // namespace isomer

#endif  // ISOMER_BENCH_SEARCH_TABLE_H_
