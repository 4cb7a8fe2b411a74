#include "optimizer/sharding/choice_axes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace isomer {
namespace {

using AxisList = std::vector<Axis>;

constexpr int64_t kFewDevices = 16;
// Above kManyDevices, boundaries between nodes are kFarApart apart: otherwise plans would have too
// many digits for a few devices to represent all (pcg/schedule/symmetry/device_classes.h).
constexpr int64_t kManyDevices = 1024, kFarApart = 16;

// Boundaries of axes, strictly between 1 and n: all divisors for few devices; for more, a chain in
// which each divides the next, so that all choices have common digits and resharding is quick to
// price (reshard_by_digits.h). Includes `units`, ascending.
std::vector<int64_t> Borders(int64_t n, const std::vector<int64_t>& units) {
  std::vector<int64_t> borders;
  if (n <= kFewDevices) {
    for (int64_t d : DivisorsOf(n)) {
      if (d > 1 && d < n) borders.push_back(d);
    }
    return borders;
  }
  int64_t at = 1;
  auto climb = [&](int64_t to) {
    for (int64_t p = 2; at < to; ++p) {
      while (to % (at * p) == 0 && at * p <= to) borders.push_back(at *= p);
    }
  };
  for (int64_t unit : units) {
    if (unit % at == 0) climb(unit);
  }
  const size_t within = borders.size();
  int64_t last = at;
  climb(n);
  borders.pop_back();
  if (n <= kManyDevices) return borders;
  const auto is_near = [&](int64_t border) {
    if (border < last * kFarApart) return true;
    last = border;
    return false;
  };
  borders.erase(std::remove_if(borders.begin() + within, borders.end(), is_near), borders.end());
  return borders;
}

class AxisEnumerator {
 public:
  AxisEnumerator(const std::vector<SplitDim>& dims, const AxisOptions& options)
      : dims_(dims), options_(options), n_(options.num_devices) {
    for (int64_t unit : options.units) {
      if (unit > 1 && unit < n_ && n_ % unit == 0) units_.push_back(unit);
    }
    borders_ = Borders(n_, units_);
  }

  std::vector<AxisList> Run() {
    if (n_ == 1) return {{}};
    AddOneDim();
    const std::vector<int64_t>& divisors = borders_;
    if (options_.max_axes >= 2) AddTier(Pairs(units_), Pairs(divisors), divisors, 2);
    if (options_.max_axes >= 3) {
      AddTier(Triples(units_, divisors), {}, divisors, 3);
      if (units_.empty()) AddTier({}, Triples(divisors, divisors), divisors, 3);
    }
    AddIdleRemainder();
    return std::move(lists_);
  }

 private:
  static bool Divides(const SplitDim& dim, int64_t degree) { return dim.size % degree == 0; }

  void Add(AxisList axes) {
    std::erase_if(axes, [](const Axis& axis) { return axis.degree == 1; });
    if (seen_.insert(axes).second) lists_.push_back(std::move(axes));
  }

  void AddOneDim() {
    Add({{kIdleAxis, n_}});
    for (const SplitDim& dim : dims_) {
      if (Divides(dim, n_)) Add({{dim.dim, n_}});
      for (int64_t unit : units_) {
        if (Divides(dim, unit)) AddWithin(dim, unit);
      }
      const bool whole = Divides(dim, n_);
      for (auto border = borders_.rbegin(); !whole && border != borders_.rend(); ++border) {
        if (!Divides(dim, *border)) continue;
        AddWithin(dim, *border);
        break;
      }
      for (auto border = borders_.begin(); !whole && border != borders_.end(); ++border) {
        if (!Divides(dim, n_ / *border)) continue;
        Add({{dim.dim, n_ / *border}, {kIdleAxis, *border}});
        break;
      }
    }
  }

  // Adds one dim over the first devices.
  void AddWithin(const SplitDim& dim, int64_t devices) {
    Add({{kIdleAxis, n_ / devices}, {dim.dim, devices}});
  }

  // Two dims with a boundary at each of `borders`.
  std::vector<AxisList> Pairs(const std::vector<int64_t>& borders) const {
    std::vector<AxisList> pairs;
    for (int64_t border : borders) {
      for (const SplitDim& outer : dims_) {
        for (const SplitDim& inner : dims_) {
          if (outer.dim == inner.dim || !Divides(outer, n_ / border) || !Divides(inner, border)) {
            continue;
          }
          pairs.push_back({{outer.dim, n_ / border}, {inner.dim, border}});
        }
      }
    }
    return pairs;
  }

  // Three dims with one boundary among `units` and the other among `borders`.
  std::vector<AxisList> Triples(const std::vector<int64_t>& units,
                                const std::vector<int64_t>& borders) const {
    std::vector<AxisList> triples;
    for (int64_t unit : units) {
      for (int64_t border : borders) {
        const int64_t low = std::min(unit, border), high = std::max(unit, border);
        if (low == high || high % low != 0) continue;
        // Skips pairs of boundaries already listed in the other order.
        if (border < unit && std::find(units.begin(), units.end(), border) != units.end()) continue;
        AddTriples(n_ / high, high / low, low, &triples);
      }
    }
    return triples;
  }

  void AddTriples(int64_t outer, int64_t middle, int64_t inner, std::vector<AxisList>* to) const {
    for (const SplitDim& a : dims_) {
      if (!Divides(a, outer)) continue;
      for (const SplitDim& b : dims_) {
        if (b.dim == a.dim || !Divides(b, middle)) continue;
        for (const SplitDim& c : dims_) {
          if (c.dim == a.dim || c.dim == b.dim || !Divides(c, inner)) continue;
          to->push_back({{a.dim, outer}, {b.dim, middle}, {c.dim, inner}});
        }
      }
    }
  }

  // Adds a tier: `first`, and as much of `rest` as fits, by thinning the boundaries that are no
  // units.
  void AddTier(std::vector<AxisList> first, std::vector<AxisList> rest,
               const std::vector<int64_t>& divisors, int axes) {
    const bool given_first = !first.empty();
    if (Room() < static_cast<int64_t>(first.size()) && axes == 3) {
      for (int count = static_cast<int>(divisors.size()) - 1; count >= 1; --count) {
        first = Triples(units_, Thinned(divisors, count));
        if (Room() >= static_cast<int64_t>(first.size())) break;
      }
    }
    AddIfRoom(std::move(first));
    if (rest.empty() || (axes == 3 && given_first)) return;
    for (int count = static_cast<int>(divisors.size()) - 1;
         count >= 1 && Room() < static_cast<int64_t>(rest.size()); --count) {
      const std::vector<int64_t> thinned = Thinned(divisors, count);
      rest = axes == 2 ? Pairs(thinned) : Triples(thinned, thinned);
    }
    AddIfRoom(std::move(rest));
  }

  int64_t Room() const { return options_.limit - static_cast<int64_t>(lists_.size()); }
  void AddIfRoom(std::vector<AxisList> lists) {
    if (Room() < static_cast<int64_t>(lists.size())) return;
    for (AxisList& list : lists) Add(std::move(list));
  }

  static int64_t Split(const AxisList& list) {
    int64_t product = 1;
    for (const Axis& axis : list) product *= axis.dim == kIdleAxis ? 1 : axis.degree;
    return product;
  }

  // If no list splits the call over all devices: two dims, each as far as it divides.
  void AddIdleRemainder() {
    int64_t most = 1;
    for (const AxisList& list : lists_) most = std::max(most, Split(list));
    if (most == n_ || options_.max_axes < 3) return;
    for (const SplitDim& outer : dims_) {
      for (const SplitDim& inner : dims_) {
        const int64_t in = std::gcd(inner.size, n_), out = std::gcd(outer.size, n_ / in);
        if (outer.dim == inner.dim || in == 1 || out == 1 || in * out == n_) continue;
        if (in * out >= most)
          Add({{kIdleAxis, n_ / (in * out)}, {outer.dim, out}, {inner.dim, in}});
      }
    }
  }

  const std::vector<SplitDim>& dims_;
  const AxisOptions& options_;
  const int64_t n_;
  std::vector<int64_t> units_, borders_;
  std::vector<AxisList> lists_;
  std::set<AxisList> seen_;
};

}  // namespace

std::vector<int64_t> DivisorsOf(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

std::vector<int64_t> Thinned(const std::vector<int64_t>& values, int count) {
  const int size = static_cast<int>(values.size());
  if (size <= count) return values;
  if (count == 1) return {values[size / 2]};
  std::vector<int64_t> kept;
  const double first = std::log2(values.front()), last = std::log2(values.back());
  for (int k = 0; k < count; ++k) {
    const double wanted = first + (last - first) * k / (count - 1);
    const auto distance = [wanted](int64_t v) { return std::abs(std::log2(v) - wanted); };
    const int64_t nearest =
        *std::min_element(values.begin(), values.end(),
                          [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
    if (kept.empty() || kept.back() != nearest) kept.push_back(nearest);
  }
  return kept;
}

std::vector<std::vector<Axis>> EnumerateAxes(const std::vector<SplitDim>& dims,
                                             const AxisOptions& options) {
  return AxisEnumerator(dims, options).Run();
}

}  // namespace isomer
