// Who computes: items are bytes, and what a worker does with them is a function that has a name, so
// that an item is the same work in any process on any computer.
#ifndef ISOMER_GENERATOR_WORKERS_WORKERS_H_
#define ISOMER_GENERATOR_WORKERS_WORKERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "generator/workers/memo.h"

namespace isomer {

struct StepItem {
  std::string step;
  std::string input;
  MemoKey key{};      // what the result is kept under
  bool first = true;  // before items that are not, which wait until there is nothing else to do
  // How long it may take, beside others of its step: what is long is begun early. No result depends
  // on it.
  double cost = 0;
};

struct StepResult {
  std::string bytes;
  bool lasts = true;  // a function of the input alone: worth keeping
};
using Step = std::function<StepResult(const std::string& input)>;
// What a worker can do, by name. It does one thing at a time, in one thread.
using Steps = std::map<std::string, Step>;
using MakeSteps = std::function<Steps()>;

struct FinishedItem {
  uint64_t ticket = 0;
  StepResult result;
};

class Workers {
 public:
  virtual ~Workers() = default;

  // How many items are worked on at one time.
  virtual int count() const = 0;
  // An item to work on; `ticket` is given back with its result. Those that are `first` are begun in
  // the order in which they are given, and before the others.
  virtual void Start(uint64_t ticket, const StepItem& item) = 0;
  // Waits for a result, of whichever item is done. Errors: nobody can do an item; a worker cannot
  // be reached, or cannot keep what it finds. REQUIRES: some item is not done.
  virtual absl::StatusOr<FinishedItem> Next() = 0;
  // An item that every worker does before whatever it begins from now on, and that has no result:
  // what is known by now. `anew`: what was told before is of no use any more.
  virtual void Tell(const StepItem& item, bool anew) = 0;
  // Those of other ranks keep what lasts in logs of their own in a folder that all see, whose memo
  // this process has opened.
  virtual void KeepLogsIn(const std::string& /*folder*/) {}
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_WORKERS_WORKERS_H_
