#include "pcg/schedule/symmetry/symmetric_devices.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "pcg/support/hash.h"

namespace isomer {
namespace {

class SymmetricDeviceFilter {
 public:
  SymmetricDeviceFilter(const DeviceClasses& classes, Schedule* schedule)
      : classes_(classes),
        schedule_(*schedule),
        representative_(schedule->options.num_devices, -1),
        programs_(representative_.size()),
        bytes_(representative_.size(), 0) {}

  double Run() {
    FindPrograms();
    std::vector<bool> cut;
    for (size_t k = 0; k < classes_.alike.size(); ++k) {
      cut.push_back(classes_.reduced_radix[k] != classes_.radix[k]);
    }
    bool symmetric = Collapse(cut);
    const auto tasks_of_cut = static_cast<double>(symmetric ? TasksKept() : schedule_.tasks.size());
    if (classes_.alike != cut) {
      symmetric = Collapse(classes_.alike) || CollapseOneByOne(symmetric, std::move(cut));
    }
    if (!symmetric) return 1;
    std::vector<Task> tasks;
    std::vector<bool> used(schedule_.buffers.size(), false);
    for (Task& task : schedule_.tasks) {
      if (!Filter(&task)) continue;
      for (const BufferList* list : {&task.reads, &task.writes}) {
        for (BufferId id : *list) {
          if (id != kNoBuffer) used[id] = true;
        }
      }
      tasks.push_back(std::move(task));
    }
    schedule_.tasks = std::move(tasks);
    FilterBuffers(used);
    std::erase_if(schedule_.represented, [this](int32_t device) { return !IsKept(device); });
    schedule_.shards.clear();
    schedule_.output_copies.clear();
    return tasks_of_cut / static_cast<double>(std::max<size_t>(schedule_.tasks.size(), 1));
  }

 private:
  bool IsKept(int32_t device) const { return representative_[device] == device; }

  size_t TasksKept() const {
    return std::count_if(schedule_.tasks.begin(), schedule_.tasks.end(), [this](const Task& task) {
      return std::any_of(task.devices.begin(), task.devices.end(),
                         [this](int32_t device) { return IsKept(device); });
    });
  }

  // Finds representatives along some digits; false if there are as many as devices, or some are not
  // like those that they would stand for.
  bool Collapse(const std::vector<bool>& digits) {
    collapsed_ = digits;
    bool any = false;
    for (int32_t device : schedule_.represented) {
      representative_[device] = RepresentativeOf(device);
      any |= !IsKept(device);
    }
    return any && AreSymmetric();
  }

  // Along `digits`, if these are symmetric, and of those that are alike along each that is so with
  // those before it.
  bool CollapseOneByOne(bool symmetric, std::vector<bool> digits) {
    if (!symmetric) digits.assign(digits.size(), false);
    for (size_t k = 0; k < digits.size(); ++k) {
      if (!classes_.alike[k] || digits[k]) continue;
      digits[k] = true;
      digits[k] = Collapse(digits);
      symmetric |= digits[k];
    }
    return symmetric && Collapse(digits);
  }

  // The device with the first value of every digit that collapses.
  int32_t RepresentativeOf(int32_t device) const {
    int64_t representative = device, weight = 1;
    for (size_t k = 0; k < classes_.radix.size(); ++k) {
      const int64_t digit = device / weight % classes_.radix[k];
      if (collapsed_[k]) representative -= digit * weight;
      weight *= classes_.radix[k];
    }
    return static_cast<int32_t>(representative);
  }

  void FindPrograms() {
    for (const Buffer& buffer : schedule_.buffers) bytes_[buffer.device] += buffer.bytes();
    for (const Task& task : schedule_.tasks) {
      // The first of several copies is unloaded.
      if (task.kind != TaskKind::kUnload) AddToPrograms(task);
    }
  }

  // Whether each device that goes does what its representative does, or less: then it is done with
  // each task no later.
  bool AreSymmetric() const {
    for (const Task& task : schedule_.tasks) {
      if (!WaitsForSymmetricSenders(task)) return false;
    }
    return std::all_of(schedule_.represented.begin(), schedule_.represented.end(),
                       [&](int32_t device) {
                         const int32_t representative = representative_[device];
                         return bytes_[device] <= bytes_[representative] &&
                                IsPartOf(programs_[device], programs_[representative]);
                       });
  }

  // What a task is to each of its devices.
  void AddToPrograms(const Task& task) {
    const uint64_t what =
        HashCombine(static_cast<uint64_t>(task.kind), static_cast<uint64_t>(task.phase),
                    static_cast<uint64_t>(task.node.value), static_cast<uint64_t>(task.moment),
                    static_cast<uint64_t>(task.bytes), std::bit_cast<uint64_t>(task.flops),
                    static_cast<uint64_t>(task.segments), schedule_.GroupOf(task).size(),
                    task.transfers.size());
    for (int32_t device : task.devices) programs_[device].push_back(what);
    if (task.kind == TaskKind::kSendReceive) return;
    for (const BufferList* list : {&task.reads, &task.writes}) {
      for (BufferId id : *list) {
        if (id == kNoBuffer) continue;
        uint64_t& last = programs_[schedule_.buffers[id].device].back();
        last = HashCombine(last, static_cast<uint64_t>(schedule_.buffers[id].bytes()));
      }
    }
  }

  // In the same order.
  static bool IsPartOf(const std::vector<uint64_t>& part, const std::vector<uint64_t>& whole) {
    auto at = whole.begin();
    for (uint64_t what : part) {
      at = std::find(at, whole.end(), what);
      if (at == whole.end()) return false;
      ++at;
    }
    return true;
  }

  // Whether every sender that goes stands beside its representative in a transfer to a device that
  // stays.
  bool WaitsForSymmetricSenders(const Task& task) const {
    if (task.kind != TaskKind::kSendReceive) return true;
    if (std::none_of(task.devices.begin(), task.devices.end(),
                     [this](int32_t device) { return IsKept(device); })) {
      return true;
    }
    return std::all_of(task.reads.begin(), task.reads.end(), [&](BufferId id) {
      const int32_t device = schedule_.buffers[id].device;
      return IsKept(device) ||
             std::any_of(task.reads.begin(), task.reads.end(), [&](BufferId other) {
               return schedule_.buffers[other].device == representative_[device];
             });
    });
  }

  void FilterBuffers(const std::vector<bool>& used) {
    std::vector<BufferId> renamed;
    std::vector<Buffer> buffers;
    for (size_t id = 0; id < used.size(); ++id) {
      Buffer& buffer = schedule_.buffers[id];
      const bool kept = used[id] || IsKept(buffer.device);
      renamed.push_back(kept ? static_cast<BufferId>(buffers.size()) : kNoBuffer);
      if (kept) buffers.push_back(std::move(buffer));
    }
    schedule_.buffers = std::move(buffers);
    const auto rename = [&](auto* list) {
      for (BufferId& id : *list) id = id == kNoBuffer ? id : renamed[id];
    };
    for (Task& task : schedule_.tasks) {
      rename(&task.reads);
      rename(&task.writes);
    }
    for (Schedule::HostTensor& parameter : schedule_.parameters) {
      rename(&parameter.stored);
      rename(&parameter.trained);
      rename(&parameter.gradients);
    }
  }

  // False if nothing of the task is kept.
  bool Filter(Task* task) {
    const size_t members = task->devices.size();
    const auto group = std::move(task->devices);
    task->devices.clear();
    for (int32_t device : group) {
      if (IsKept(device)) task->devices.push_back(device);
    }
    if (task->devices.empty()) return false;
    if (task->devices.size() == members) return true;
    if (task->whole < 0) {
      const auto [known, added] = wholes_.try_emplace(
          {group.begin(), group.end()}, static_cast<int32_t>(schedule_.wholes.size()));
      if (added) schedule_.wholes.push_back({.devices = known->first, .counts = {}});
      task->whole = known->second;
    }
    if (task->kind == TaskKind::kSendReceive) return true;
    for (BufferList* list : {&task->reads, &task->writes}) {
      BufferList kept;
      for (BufferId id : *list) {
        // What a call does not need has a place.
        if (id == kNoBuffer || IsKept(schedule_.buffers[id].device)) kept.push_back(id);
      }
      *list = std::move(kept);
    }
    return true;
  }

  const DeviceClasses& classes_;
  Schedule& schedule_;
  std::vector<int32_t> representative_;          // per device that is there
  std::vector<std::vector<uint64_t>> programs_;  // per device, as is the rest
  std::vector<int64_t> bytes_;
  std::vector<bool> collapsed_;  // per digit
  std::map<std::vector<int32_t>, int32_t> wholes_;
};

}  // namespace

double KeepOneOfSymmetricDevices(const DeviceClasses& classes, Schedule* schedule) {
  return SymmetricDeviceFilter(classes, schedule).Run();
}

}  // namespace isomer
