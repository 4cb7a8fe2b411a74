#include "optimizer/page/traffic_json.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "optimizer/cost/traffic.h"
#include "optimizer/report/shown_devices.h"

namespace isomer {
namespace {

// Into what rows and columns fall.
class TrafficUnits {
 public:
  TrafficUnits(const Machine& machine, const Schedule& schedule)
      : devices_per_node_(machine.devices_per_node()) {
    const std::vector<StageDevices> stages = StageDevicesOf(schedule);
    const auto num_stages = static_cast<int64_t>(stages.size());
    const int64_t devices = schedule.options.num_devices;
    const int64_t nodes = (devices + devices_per_node_ - 1) / devices_per_node_;
    int64_t units = devices;
    if (devices <= kMostColumns / 2) {
      unit_ = "device";
    } else if (num_stages > 1 && num_stages <= kMostColumns) {
      unit_ = "stage";
      units = num_stages;
    } else {
      unit_ = "node";
      units = nodes;
      is_relative_ = nodes > kMostColumns;
    }
    for (int64_t device = 0; device < devices; ++device) {
      rows_.push_back(unit_ == "device"  ? device
                      : unit_ == "stage" ? StageOf(stages, device)
                                         : device / devices_per_node_);
    }
    for (int64_t u = 0; u < units && !is_relative_; ++u) columns_.push_back(NameOfRow(u));
    if (is_relative_) columns_ = {"own node", "other nodes"};
  }

  const std::string& unit() const { return unit_; }
  const std::vector<std::string>& columns() const { return columns_; }
  // People count stages from 1, and devices and nodes as the machine does.
  std::string NameOfRow(int64_t row) const {
    return absl::StrCat(unit_, " ", unit_ == "stage" ? row + 1 : row);
  }
  int64_t RowOf(int64_t device) const { return rows_[device]; }
  int64_t ColumnOf(int64_t from, int64_t to) const {
    if (is_relative_) return RowOf(from) == RowOf(to) ? 0 : 1;
    return RowOf(to);
  }
  bool AreOnOneNode(int64_t a, int64_t b) const {
    return a / devices_per_node_ == b / devices_per_node_;
  }

 private:
  static int64_t StageOf(const std::vector<StageDevices>& stages, int64_t device) {
    const auto holds = [&](const StageDevices& stage) {
      return stage.first <= device && device <= stage.last;
    };
    return std::find_if(stages.begin(), stages.end(), holds) - stages.begin();
  }

  const int64_t devices_per_node_;
  std::string unit_;
  bool is_relative_ = false;  // columns are the own node and others
  std::vector<std::string> columns_;
  std::vector<int64_t> rows_;  // per device of the machine
};

// Of a collective, devices that are not simulated send what simulated ones of their row do, though
// to others: in a ring the last of a node sends to the next node. Each simulated member counts as
// the average of the members in its row.
class CollectiveWeights {
 public:
  CollectiveWeights(const TrafficUnits& units, const Schedule& schedule, const Task& task)
      : units_(units) {
    if (task.kind == TaskKind::kSendReceive || task.whole < 0) return;
    for (int32_t device : schedule.GroupOf(task)) ++counts_[units.RowOf(device)].all;
    for (int32_t device : task.devices) ++counts_[units.RowOf(device)].simulated;
  }
  double Of(int64_t from) const {
    const auto counts = counts_.find(units_.RowOf(from));
    return counts == counts_.end() ? 1 : counts->second.simulated / counts->second.all;
  }
  // Whether all members send, or those that are simulated.
  bool AreOfAll() const { return !counts_.empty(); }

 private:
  struct Counts {
    double all = 0, simulated = 0;
  };
  const TrafficUnits& units_;
  absl::flat_hash_map<int64_t, Counts> counts_;
};

struct SentBytes {
  std::vector<double> to;  // per column
  double within_node = 0, between_nodes = 0;
  int64_t devices = 0;
};

}  // namespace

Json TrafficJson(const CostModel& cost, const Schedule& schedule, const Simulation& simulation) {
  const TrafficUnits units(cost.machine(), schedule);
  std::map<int64_t, SentBytes> rows;
  absl::flat_hash_set<int64_t> simulated;
  for (int32_t device : SimulatedDevices(schedule)) {
    SentBytes& row = rows[units.RowOf(device)];
    row.to.resize(units.columns().size());
    ++row.devices;
    simulated.insert(device);
  }
  const double steps = schedule.num_steps();
  for (const Task& task : schedule.tasks) {
    const double often = simulation.Times(task.moment) / steps;
    if (!IsCommunication(task.kind)) continue;
    const CollectiveWeights weights(units, schedule, task);
    ForEachMessage(cost, schedule, task, [&](const Message& message) {
      if (message.from == message.to) return;
      if (!weights.AreOfAll() && !simulated.contains(message.from)) return;
      const double weight = weights.Of(message.from);
      if (weight == 0) return;
      SentBytes& row = rows.at(units.RowOf(message.from));
      const double bytes = weight * often * message.bytes *
                           static_cast<double>(message.count.sent) /
                           static_cast<double>(row.devices);
      row.to[units.ColumnOf(message.from, message.to)] += bytes;
      (units.AreOnOneNode(message.from, message.to) ? row.within_node : row.between_nodes) += bytes;
    });
  }
  Json json;
  json["unit"] = units.unit();
  json["columns"] = units.columns();
  json["rows"] = Json::EmptyArray();
  for (const auto& [number, row] : rows) {
    Json one;
    one["name"] = units.NameOfRow(number);
    one["bytes"] = row.to;
    one["within_node"] = row.within_node;
    one["between_nodes"] = row.between_nodes;
    json["rows"].Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
