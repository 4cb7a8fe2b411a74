#include "optimizer/comparison/plan_difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "optimizer/machine/machine_units.h"
#include "pcg/support/bytes_text.h"

namespace isomer {
namespace {

// What fits on a screen.
constexpr int kMostBlocks = 12;
// Of the sum of all parts, of either sign: what is less is "the rest".
constexpr double kShownShare = 0.01;
// What adding up leaves.
constexpr double kRounding = 1e-9;
constexpr char kBubble[] = "pipeline bubble";
constexpr char kWaiting[] = "waiting for other devices";

// "+1.35 ms", "-12.0 us".
std::string SignedText(double us) { return (us < 0 ? "-" : "+") + TimeText(std::abs(us)); }

std::string SignedBytesText(int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + BytesText(std::abs(bytes));
}

std::string SentText(double bytes) {
  return bytes == 0 ? "nothing" : BytesText(std::llround(bytes));
}

template <typename Value>
Value ValueOf(const std::map<std::string, Value>& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? Value{} : found->second;
}

template <typename Value>
std::set<std::string> KeysOf(const std::map<std::string, Value>& a,
                             const std::map<std::string, Value>& b) {
  std::set<std::string> keys;
  for (const auto* map : {&a, &b}) {
    for (const auto& [key, value] : *map) keys.insert(key);
  }
  return keys;
}

// "48 more add, 48 fewer linear".
std::string CallsText(const BlockSummary& a, const BlockSummary& b) {
  std::vector<std::string> parts;
  for (const std::string& op : KeysOf(a.calls, b.calls)) {
    const int64_t more = ValueOf(b.calls, op) - ValueOf(a.calls, op);
    if (more == 0) continue;
    parts.push_back(absl::StrCat(std::abs(more), more > 0 ? " more " : " fewer ", op));
  }
  if (const int64_t more = b.recomputed - a.recomputed; more != 0) {
    parts.push_back(absl::StrCat(std::abs(more), more > 0 ? " more" : " fewer", " computed again"));
  }
  return absl::StrJoin(parts, ", ");
}

std::string SplitText(const PlanSummary& a, const BlockSummary& in_a, const PlanSummary& b,
                      const BlockSummary& in_b) {
  const std::string of_a = in_a.MainSplit(), of_b = in_b.MainSplit();
  if (of_a == of_b || of_a.empty() || of_b.empty()) return "";
  return absl::StrCat(a.name, ": ", of_a, "; ", b.name, ": ", of_b);
}

// The longest first.
template <typename T>
void SortByTime(std::vector<T>* all) {
  std::stable_sort(all->begin(), all->end(),
                   [](const T& x, const T& y) { return std::abs(x.us) > std::abs(y.us); });
}

PlanDifference::Block BlockOf(const std::string& name, const PlanSummary& a,
                              const BlockSummary& in_a, const PlanSummary& b,
                              const BlockSummary& in_b) {
  PlanDifference::Block block{.name = name, .split = SplitText(a, in_a, b, in_b), .parts = {}};
  const auto add = [&block](const std::string& what, double us, const std::string& cause) {
    if (us == 0) return;
    block.us += us;
    block.parts.push_back({what, us, cause});
  };
  add("computation", in_b.compute_us - in_a.compute_us, CallsText(in_a, in_b));
  for (const std::string& kind : KeysOf(in_a.exposed_us, in_b.exposed_us)) {
    const std::string sends_b = SentText(ValueOf(in_b.sent_bytes, kind));
    const std::string sends_a = SentText(ValueOf(in_a.sent_bytes, kind));
    const double us = ValueOf(in_b.exposed_us, kind) - ValueOf(in_a.exposed_us, kind);
    add(absl::StrCat(kind, ", exposed"), us,
        absl::StrCat("a device sends ", sends_b,
                     sends_a == sends_b ? " with both" : " instead of " + sends_a));
  }
  SortByTime(&block.parts);
  return block;
}

std::string BlocksText(const PlanDifference& difference) {
  double all_us = 0, rest_us = 0;
  for (const PlanDifference::Block& block : difference.blocks) {
    for (const PlanDifference::Part& part : block.parts) all_us += std::abs(part.us);
  }
  const double least_us = kShownShare * all_us;
  std::string text;
  for (const PlanDifference::Block& block : difference.blocks) {
    const bool is_shown = std::any_of(
        block.parts.begin(), block.parts.end(),
        [&](const PlanDifference::Part& part) { return std::abs(part.us) >= least_us; });
    if (!is_shown) {
      rest_us += block.us;
      continue;
    }
    absl::StrAppendFormat(&text, "%11s  %s\n", SignedText(block.us), block.name);
    if (!block.split.empty()) absl::StrAppendFormat(&text, "%11s  %s\n", "", block.split);
    double rest_of_block_us = 0;
    for (const PlanDifference::Part& part : block.parts) {
      if (part.what == block.name) continue;
      if (std::abs(part.us) < least_us) {
        rest_of_block_us += part.us;
        continue;
      }
      absl::StrAppendFormat(&text, "%11s  %10s  %s%s%s\n", "", SignedText(part.us), part.what,
                            part.cause.empty() ? "" : ": ", part.cause);
    }
    if (std::abs(rest_of_block_us) > kRounding * all_us) {
      absl::StrAppendFormat(&text, "%11s  %10s  the rest\n", "", SignedText(rest_of_block_us));
    }
  }
  if (std::abs(rest_us) > kRounding * all_us)
    absl::StrAppendFormat(&text, "%11s  the rest\n", SignedText(rest_us));
  return text;
}

// The two steps side by side.
class Table {
 public:
  Table(const PlanSummary& a, const PlanSummary& b)
      : width_(static_cast<int>(std::max({size_t{10}, a.name.size(), b.name.size()}))) {
    absl::StrAppendFormat(&text_, "  %-44s  %*s  %*s  %10s\n", "", width_, a.name, width_, b.name,
                          "difference");
  }
  void Row(const std::string& what, const std::string& a, const std::string& b,
           const std::string& difference) {
    absl::StrAppendFormat(&text_, "  %-44s  %*s  %*s  %10s\n", what, width_, a, width_, b,
                          difference);
  }
  void Times(const std::string& what, double a, double b) {
    if (a == 0 && b == 0) return;
    Row(what, TimeText(a), TimeText(b), SignedText(b - a));
  }
  void Bytes(const std::string& what, int64_t a, int64_t b) {
    if (a == 0 && b == 0) return;
    Row(what, BytesText(a), BytesText(b), SignedBytesText(b - a));
  }
  const std::string& text() const { return text_; }

 private:
  const int width_;
  std::string text_;
};

// Of a, against b.
std::string VerdictText(const PlanSummary& a, const PlanSummary& b) {
  const double us = b.step_us - a.step_us;
  const std::string fits = a.fits && b.fits ? ""
                           : a.fits         ? ", which does not fit"
                           : b.fits         ? "; but it does not fit"
                                            : "; neither fits";
  // Less is rounding.
  constexpr double kAlike = 1e-6;
  if (std::abs(us) <= kAlike * a.step_us) return absl::StrCat("as fast as ", b.name, fits);
  return absl::StrFormat("%s a step (%.1f %%) %s than %s%s", TimeText(std::abs(us)),
                         100 * std::abs(us) / b.step_us, us > 0 ? "faster" : "slower", b.name,
                         fits);
}

}  // namespace

PlanDifference DifferenceOf(const PlanSummary& a, const PlanSummary& b) {
  const auto blocks = BlocksOf({&a, &b}, kMostBlocks);
  PlanDifference difference;
  for (const std::string& name : KeysOf(blocks[0], blocks[1])) {
    difference.blocks.push_back(
        BlockOf(name, a, ValueOf(blocks[0], name), b, ValueOf(blocks[1], name)));
  }
  for (const auto& [name, us] : {std::pair(kBubble, b.bubble_us - a.bubble_us),
                                 std::pair(kWaiting, b.idle_us - a.idle_us)}) {
    difference.blocks.push_back({.name = name, .us = us, .split = "", .parts = {{name, us, ""}}});
  }
  std::erase_if(difference.blocks,
                [](const PlanDifference::Block& block) { return block.us == 0; });
  SortByTime(&difference.blocks);
  return difference;
}

std::string DifferenceText(const PlanSummary& a, const PlanSummary& b) {
  std::string text = absl::StrCat(VerdictText(a, b), "\n");
  const std::string blocks = BlocksText(DifferenceOf(a, b));
  if (blocks.empty()) return text;
  return absl::StrCat(text, "What ", b.name,
                      " takes longer (+) or less (-), of the average device:\n", blocks);
}

std::string SideBySideText(const PlanSummary& a, const PlanSummary& b) {
  Table table(a, b);
  table.Times("a step", a.step_us, b.step_us);
  table.Times("  computation", a.compute_us, b.compute_us);
  for (const std::string& kind : KeysOf(a.exposed_us, b.exposed_us)) {
    table.Times(absl::StrCat("  ", kind, ", exposed"), ValueOf(a.exposed_us, kind),
                ValueOf(b.exposed_us, kind));
  }
  table.Times(absl::StrCat("  ", kBubble), a.bubble_us, b.bubble_us);
  table.Times(absl::StrCat("  ", kWaiting), a.idle_us, b.idle_us);
  table.Bytes("sent by a device in a step", std::llround(a.sent_bytes()),
              std::llround(b.sent_bytes()));
  table.Bytes("memory of the fullest device", a.peak_bytes, b.peak_bytes);
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    table.Bytes(absl::StrCat("  ", MemoryCategoryName(static_cast<MemoryCategory>(c))), a.memory[c],
                b.memory[c]);
  }
  for (size_t s = 0; s < a.settings.size(); ++s) {
    if (a.settings[s] == b.settings[s]) continue;
    table.Row(a.settings[s].first, a.settings[s].second, b.settings[s].second, "");
  }
  return table.text();
}

Json DifferenceJson(const PlanSummary& a, const PlanSummary& b) {
  Json json;
  json["step_us"] = b.step_us - a.step_us;
  json["blocks"] = Json::EmptyArray();
  for (const PlanDifference::Block& block : DifferenceOf(a, b).blocks) {
    Json one;
    one["name"] = block.name;
    one["us"] = block.us;
    one["split"] = block.split;
    one["parts"] = Json::EmptyArray();
    for (const PlanDifference::Part& part : block.parts) {
      Json of_part;
      of_part["what"] = part.what;
      of_part["us"] = part.us;
      of_part["cause"] = part.cause;
      one["parts"].Append(std::move(of_part));
    }
    json["blocks"].Append(std::move(one));
  }
  json["plans"] = Json::EmptyArray();
  for (const PlanSummary* plan : {&a, &b}) {
    Json one;
    one["name"] = plan->name;
    one["headline"] = plan->headline;
    one["predicted_step_us"] = plan->step_us;
    one["predicted_peak_bytes"] = plan->peak_bytes;
    one["fits"] = plan->fits;
    one["computation_us"] = plan->compute_us;
    one["exposed_communication_us"] = Json::EmptyObject();
    for (const auto& [kind, us] : plan->exposed_us) one["exposed_communication_us"][kind] = us;
    one["bubble_us"] = plan->bubble_us;
    one["idle_us"] = plan->idle_us;
    one["sent_bytes_per_device"] = plan->sent_bytes();
    for (const auto& [setting, value] : plan->settings) one["settings"][setting] = value;
    json["plans"].Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
