#include "verifier/judge_rules.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "pcg/support/progress.h"
#include "verifier/prover.h"

namespace isomer {
namespace {

ProofRecord JudgeOne(Prover* prover, const Rule& rule, const std::string& counterexample_dir) {
  Judgement judgement = prover->Judge(rule);
  if (judgement.counterexample && !counterexample_dir.empty()) {
    const absl::Status saved = SaveCounterexample(absl::StrCat(counterexample_dir, "/", rule.id),
                                                  rule, *judgement.counterexample);
    if (!saved.ok()) absl::StrAppend(&judgement.record.note, " (", saved.message(), ")");
  }
  return std::move(judgement.record);
}

// A record as one line: index, verdict, seconds, solver, lemmas, note, separated by tabs.
std::string ToLine(size_t index, const ProofRecord& record) {
  auto field = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"\t", " "}, {"\n", " "}});
  };
  return absl::StrCat(index, "\t", static_cast<int>(record.verdict), "\t", record.seconds, "\t",
                      field(record.solver), "\t", absl::StrJoin(record.lemmas, ","), "\t",
                      field(record.note), "\n");
}

bool FromLine(absl::string_view line, std::vector<ProofRecord>* records) {
  const std::vector<std::string> fields = absl::StrSplit(line, '\t');
  size_t index;
  int verdict;
  if (fields.size() != 6 || !absl::SimpleAtoi(fields[0], &index) || index >= records->size() ||
      !absl::SimpleAtoi(fields[1], &verdict)) {
    return false;
  }
  ProofRecord& record = (*records)[index];
  record.verdict = static_cast<ProofRecord::Verdict>(verdict);
  if (!absl::SimpleAtod(fields[2], &record.seconds)) return false;
  record.solver = fields[3];
  record.lemmas = absl::StrSplit(fields[4], ',', absl::SkipEmpty());
  record.note = fields[5];
  return true;
}

void WriteAll(int file, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written <= 0) _exit(1);
    done += static_cast<size_t>(written);
  }
}

// Takes rules until none are left. Lines of up to PIPE_BUF bytes are written whole; longer notes
// are cut, so that lines of several processes never mix.
[[noreturn]] void Work(const std::vector<Rule>& rules, std::atomic<size_t>* next, int out,
                       const std::string& counterexample_dir) {
  Prover prover;
  for (size_t i = (*next)++; i < rules.size(); i = (*next)++) {
    ProofRecord record = JudgeOne(&prover, rules[i], counterexample_dir);
    if (record.note.size() > 1500) record.note = record.note.substr(0, 1500) + "...";
    WriteAll(out, ToLine(i, record));
  }
  _exit(0);
}

}  // namespace

absl::StatusOr<std::vector<ProofRecord>> JudgeRules(const std::vector<Rule>& rules, int jobs,
                                                    const std::string& counterexample_dir) {
  std::vector<ProofRecord> records(rules.size());
  Progress progress("prove", static_cast<int64_t>(rules.size()));
  if (jobs <= 1) {
    Prover prover;
    for (size_t i = 0; i < rules.size(); ++i) {
      records[i] = JudgeOne(&prover, rules[i], counterexample_dir);
      progress.Advance();
    }
    return records;
  }
  int ends[2];
  void* shared = mmap(nullptr, sizeof(std::atomic<size_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || pipe(ends) != 0) {
    return absl::InternalError(absl::StrCat("cannot start processes: ", std::strerror(errno)));
  }
  auto* next = new (shared) std::atomic<size_t>(0);
  std::vector<pid_t> children;
  for (int job = 0; job < jobs; ++job) {
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      Work(rules, next, ends[1], counterexample_dir);
    }
    if (child > 0) children.push_back(child);
  }
  close(ends[1]);
  std::string buffer;
  char bytes[4096];
  for (ssize_t count; (count = read(ends[0], bytes, sizeof bytes)) > 0;) {
    buffer.append(bytes, static_cast<size_t>(count));
    for (size_t end; (end = buffer.find('\n')) != buffer.npos; buffer.erase(0, end + 1)) {
      if (FromLine(absl::string_view(buffer).substr(0, end), &records)) progress.Advance();
    }
  }
  close(ends[0]);
  bool died = children.empty();
  for (pid_t child : children) {
    int status = 0;
    died |= waitpid(child, &status, 0) != child || status != 0;
  }
  munmap(shared, sizeof(std::atomic<size_t>));
  if (died) return absl::InternalError("a process that proves rules died");
  return records;
}

}  // namespace isomer
