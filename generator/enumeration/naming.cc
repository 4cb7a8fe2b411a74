#include "generator/enumeration/naming.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "pcg/support/check.h"

namespace isomer {

Namings::Namings(std::vector<int> type_of_input) : type_of_(std::move(type_of_input)) {
  ISOMER_CHECK(type_of_.size() <= 64);
}

NamingId Namings::Intern(const std::vector<int>& inputs) {
  const auto [entry, fresh] = ids_.emplace(inputs, static_cast<NamingId>(namings_.size()));
  if (!fresh) return entry->second;
  bool canonical = true;
  uint64_t mask = 0;
  for (int input : inputs) {
    for (int earlier = 0; earlier < input; ++earlier) {
      canonical &= type_of_[earlier] != type_of_[input] || (mask >> earlier & 1) != 0;
    }
    mask |= uint64_t{1} << input;
  }
  namings_.push_back(inputs);
  canonical_.push_back(canonical);
  masks_.push_back(mask);
  return entry->second;
}

NamingId Namings::Join(NamingId first, NamingId second) {
  const auto found = joins_.find({first, second});
  if (found != joins_.end()) return found->second;
  std::vector<int> joined = namings_[first];
  for (int input : namings_[second]) {
    if ((masks_[first] >> input & 1) == 0) joined.push_back(input);
  }
  return joins_[{first, second}] = Intern(joined);
}

const std::vector<NamingId>& Namings::Renamings(NamingId id) {
  const auto [entry, fresh] = renamings_.try_emplace(id);
  if (!fresh) return entry->second;
  const std::vector<int> from = namings_[id];
  std::vector<int> to;
  std::function<void()> extend = [&] {
    if (to.size() == from.size()) {
      entry->second.push_back(Intern(to));
      return;
    }
    for (size_t input = 0; input < type_of_.size(); ++input) {
      if (type_of_[input] != type_of_[from[to.size()]]) continue;
      if (std::find(to.begin(), to.end(), static_cast<int>(input)) != to.end()) continue;
      to.push_back(static_cast<int>(input));
      extend();
      to.pop_back();
    }
  };
  extend();
  return entry->second;
}

NamingId Namings::Renamed(NamingId part, NamingId from, NamingId to) {
  std::vector<int> renamed;
  for (int input : namings_[part]) {
    const std::vector<int>& inputs = namings_[from];
    const size_t at = std::find(inputs.begin(), inputs.end(), input) - inputs.begin();
    renamed.push_back(namings_[to][at]);
  }
  return Intern(renamed);
}

}  // namespace isomer
